/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture: a source of samples (captures.h), what is known of processes and objects, and the
 * stacks that come of both; and the end of a session, with names and facts.
 */
#define LOG_DOMAIN "capture"
#include "capture/capture.h"

#include <string.h>
#include <sys/resource.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "capture/captures.h"
#include "capture/naming.h"
#include "capture/objects.h"
#include "capture/pythons.h"
#include "identity/containers.h"
#include "identity/host.h"
#include "proc/system.h"

struct capture {
	struct capture_options
		options; /* its pointers but for applications are not used after capture_open() */
	const struct capture_row *row;
	void *source;  /* owned */
	char *instead; /* owned */
	const struct perf_event_row *event;
	struct store *store;
	struct objects *objects;
	struct pythons *pythons;
	struct processes *processes;
	struct containers *containers; /* NULL: nobody wants their names */
	struct stacks *stacks;
	struct counters counters;
	uint64_t session_start_ns;
};

/* --- opening */

/* Each object of the machine holds a descriptor while it is mapped by anybody. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		// With the old limit fewer objects can be open, which is counted where it happens.
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static struct error *open_containers(struct capture *capture)
{
	_cleanup_close_ int root_fd = -1;

	TRY(host_open_root(&root_fd));
	TRY(containers_new(root_fd, &capture->containers));
	(void)take_fd(&root_fd);
	return NULL;
}

static struct error *open_stacks(struct capture *capture)
{
	const struct capture_options *options = &capture->options;
	struct stacks_options stacks = {
		.walks = {.depth = options->depth,
			  .store = capture->store,
			  .objects = capture->objects,
			  .processes = capture->processes,
			  .counters = &capture->counters},
		.by_thread = options->by_thread,
		.kernel = options->kernel_stacks,
		.only_gil = options->only_gil,
		.native = options->native,
		.pythons = capture->pythons,
		.containers = capture->containers,
	};

	return stacks_new(&stacks, &capture->stacks);
}

/* What all sources share, with the tables of this one. */
static struct error *open_parts(struct capture *capture, const struct source_tables *tables)
{
	const struct capture_options *options = &capture->options;

	TRY(store_new(&tables->store, &capture->store));
	TRY(objects_new(capture->store, &capture->counters, &capture->objects));
	struct pythons_options pythons = {
		.processes = tables->pythons,
		.layouts = tables->layouts,
		.objects = capture->objects,
		.counters = &capture->counters,
		.versions = options->python_versions,
	};
	if (options->python)
		TRY(pythons_new(&pythons, &capture->pythons));
	struct processes_options processes = {
		.kernel = tables->kernel,
		.objects = capture->objects,
		.pythons = capture->pythons,
		.applications = options->applications,
		.counters = &capture->counters,
		.mapping_room = tables->mappings,
	};
	TRY(processes_new(&processes, &capture->processes));
	if (options->containers)
		TRY(open_containers(capture));
	TRY(open_stacks(capture));
	struct source_parts parts = {
		.options = options,
		.counters = &capture->counters,
		.pythons = capture->pythons,
		.processes = capture->processes,
		.stacks = capture->stacks,
	};
	return capture->row->source->join(capture->source, &parts);
}

static struct error *open_with(const struct capture_options *options, const struct capture_row *row,
			       struct capture **ret)
{
	_cleanup_capture_ struct capture *capture = calloc(1, sizeof(*capture));
	struct source_tables tables;

	if (!capture)
		return error_oom();
	capture->options = *options;
	capture->row = row;
	capture->event = perf_event_find(options->event);
	TRY(row->source->open(options, &capture->counters, &capture->source, &tables));
	TRY(open_parts(capture, &tables));
	*ret = take(capture);
	return NULL;
}

/* The best that works. If none does, the failure says why, of each. */
static struct error *open_best(const struct capture_options *options, struct capture **ret)
{
	const struct capture_row *row = capture_row_at(0);
	_cleanup_error_ struct error *why = open_with(options, row, ret);

	for (size_t i = 1; why && (row = capture_row_at(i)); i++) {
		_cleanup_error_ struct error *err = open_with(options, row, ret);
		if (!err)
			return str_copy(&(*ret)->instead, error_text(why));
		struct error *both =
			error_new("%s; instead of it: %s", error_text(why), error_text(err));
		error_free(why); // its text is in the new one
		why = both;
	}
	return take(why);
}

struct error *capture_open(const struct capture_options *options, struct capture **ret)
{
	const struct capture_row *row;

	raise_descriptor_limit();
	if (!strcmp(options->capture, CAPTURE_AUTO))
		return open_best(options, ret);
	for (size_t i = 0; (row = capture_row_at(i)); i++)
		if (!strcmp(row->name, options->capture))
			return open_with(options, row, ret);
	return error_new("there is no capture \"%s\"", options->capture);
}

void capture_close(struct capture *capture)
{
	if (!capture)
		return;
	capture_stop(capture);
	stacks_free(capture->stacks);
	containers_free(capture->containers);
	processes_free(capture->processes);
	pythons_free(capture->pythons);
	objects_free(capture->objects);
	store_free(capture->store);
	capture->row->source->close(capture->source);
	free(capture->instead);
	free(capture);
}

/* --- running */

struct error *capture_start(struct capture *capture)
{
	TRY(capture->row->source->start(capture->source));
	capture->session_start_ns = clock_realtime_ns();
	return NULL;
}

struct error *capture_wait(struct capture *capture, unsigned timeout_ms, int wake_fd)
{
	return capture->row->source->wait(capture->source, timeout_ms, wake_fd);
}

void capture_stop(struct capture *capture)
{
	if (capture->source)
		capture->row->source->stop(capture->source);
}

const char *capture_name(const struct capture *capture)
{
	return capture->row->name;
}

const char *capture_instead(const struct capture *capture)
{
	return capture->instead;
}

const char *capture_lacks(const struct capture *capture)
{
	return capture->row->source->lacks;
}

/* --- ending a session */

static struct error *add_note(struct profile *profile, const char *format, uint64_t number)
	__attribute__((format(printf, 2, 0)));

static struct error *add_note(struct profile *profile, const char *format, uint64_t number)
{
	struct session_facts *facts = profile_facts(profile);
	char text[256];

	if (!number || facts->note_count == ARRAY_COUNT(facts->notes))
		return NULL;
	int length = snprintf(text, sizeof(text), format, number);
	return profile_string(profile, text, (size_t)length, &facts->notes[facts->note_count++]);
}

struct error *capture_note(struct profile *profile, const char *text)
{
	struct session_facts *facts = profile_facts(profile);

	if (facts->note_count == ARRAY_COUNT(facts->notes))
		return NULL;
	return profile_string(profile, text, strlen(text), &facts->notes[facts->note_count++]);
}

static struct error *add_python_notes(const struct capture *capture, struct profile *profile)
{
	const uint64_t *value = capture->counters.value;
	const char *refusal = capture->pythons ? pythons_take_refusal(capture->pythons) : NULL;

	TRY(add_note(profile, "%lu processes run a Python that could not be looked into",
		     value[COUNTER_pythons_refused]));
	if (refusal)
		TRY(capture_note(profile, refusal));
	TRY(add_note(profile,
		     "%lu processes that run CPython did not fit into their table; their Python "
		     "frames are missing",
		     value[COUNTER_pythons_full]));
	TRY(add_note(profile, "the Python frames of %lu samples could not be read",
		     value[COUNTER_python_lost]));
	return add_note(profile,
			"%lu Python frames have no names: their functions could not be read",
			value[COUNTER_python_unnamed]);
}

/* What was lost or left out, in words. */
static struct error *add_notes(const struct capture *capture, struct profile *profile)
{
	const uint64_t *value = capture->counters.value;

	TRY(add_note(profile, "%lu side-band records were lost; some stacks may be cut for it",
		     value[COUNTER_side_band_lost]));
	TRY(add_note(profile, "%lu samples did not fit into the profile any more",
		     value[COUNTER_profile_full]));
	TRY(add_note(
		profile,
		"%lu processes did not fit into the kernel's table; the host walked their stacks",
		value[COUNTER_processes_skipped]));
	TRY(add_note(profile,
		     "%lu processes were to be sampled and did not fit into the table of targets",
		     value[COUNTER_targets_full]));
	TRY(add_note(profile, "%lu mappings did not fit into their table",
		     value[COUNTER_mappings_full]));
	TRY(add_note(profile, "the table of unwind rules was full %lu times; stacks are cut for it",
		     value[COUNTER_rules_full]));
	TRY(add_note(profile, "%lu looks at waiting threads came too late and were left out",
		     value[COUNTER_wall_late]));
	TRY(add_python_notes(capture, profile));
	if (capture_lacks(capture))
		TRY(capture_note(profile, capture_lacks(capture)));
	return add_note(
		profile,
		"the unwind rows of %lu objects were evicted to stay inside the memory budget",
		value[COUNTER_objects_evicted]);
}

static struct error *fill_names(const struct capture *capture, struct profile *profile)
{
	struct session_facts *facts = profile_facts(profile);
	struct system_facts system;
	const char *event = capture->event->name;

	// gProfiler's word for the timer, which readers of .col files know.
	if (!strcmp(event, "cpu-clock"))
		event = "cpu-time";

	TRY(system_read(&system));
	facts->cpus = system.cpus;
	TRY(profile_string(profile, event, strlen(event), &facts->event));
	TRY(profile_string(profile, system.host, strlen(system.host), &facts->host));
	TRY(profile_string(profile, system.name, strlen(system.name), &facts->system));
	TRY(profile_string(profile, system.release, strlen(system.release), &facts->kernel));
	TRY(profile_string(profile, system.version, strlen(system.version), &facts->kernel_build));
	TRY(profile_string(profile, system.machine, strlen(system.machine), &facts->machine));
	return profile_string(profile, CAIRN_VERSION, strlen(CAIRN_VERSION), &facts->version);
}

static struct error *fill_facts(struct capture *capture, const struct stack_totals *totals,
				struct profile *profile)
{
	struct session_facts *facts = profile_facts(profile);

	counter_add(&capture->counters, COUNTER_samples, totals->samples);
	facts->rate_hz = capture->options.hz;
	facts->period = capture->options.hz ? 0 : capture->options.period;
	facts->containers_named = capture->containers;
	facts->samples = totals->samples;
	facts->lost = capture->counters.value[COUNTER_samples_lost];
	facts->counters = capture->counters;
	for (int end = 0; end < END_MAX && facts->cut_count < ARRAY_COUNT(facts->cuts); end++)
		if (totals->by_end[end] && !walk_end_whole(end))
			facts->cuts[facts->cut_count++] =
				(struct profile_cut){walk_end_text(end), totals->by_end[end]};
	TRY(fill_names(capture, profile));
	TRY(add_notes(capture, profile));
	capture->counters = (struct counters){0};
	return NULL;
}

struct error *capture_end_session(struct capture *capture, struct profile **ret)
{
	const struct source *source = capture->row->source;
	_cleanup_profile_ struct profile *numbers = NULL;
	_cleanup_profile_ struct profile *profile = NULL;
	struct naming_options naming = {
		.lines = capture->options.lines,
		.debuginfod = capture->options.debuginfod,
		.pulse = source->pulse,
		.context = capture->source,
	};
	uint64_t start_ns = capture->session_start_ns;
	struct stack_totals totals;

	TRY(source->settle(capture->source));
	capture->session_start_ns = clock_realtime_ns();
	TRY(stacks_take(capture->stacks, &numbers, &totals));
	counters_merge(&capture->counters, &profile_facts_const(numbers)->counters);
	TRY(naming_run(&naming, numbers, capture->objects, &profile));
	TRY(source->end_session(capture->source, profile));
	profile_facts(profile)->start_realtime_ns = start_ns;
	profile_facts(profile)->end_realtime_ns = capture->session_start_ns;
	TRY(fill_facts(capture, &totals, profile));
	objects_end_session(capture->objects);
	*ret = take(profile);
	return NULL;
}

void capture_progress(const struct capture *capture, uint64_t *ret_samples, uint64_t *ret_cut)
{
	const struct stack_totals *totals = stacks_totals(capture->stacks);

	*ret_samples = totals->samples;
	*ret_cut = 0;
	for (int end = 0; end < END_MAX; end++)
		if (!walk_end_whole(end))
			*ret_cut += totals->by_end[end];
}
