/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture: samples and side-band events in one order of time. Samples are held back until all
 * events up to them have been read, so that each meets its process as it was.
 */
#define LOG_DOMAIN "capture"
#include "capture/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "capture/naming.h"
#include "capture/objects.h"
#include "capture/processes.h"
#include "capture/pythons.h"
#include "capture/side-band.h"
#include "capture/stacks.h"
#include "capture/wall.h"
#include "proc/cpus.h"
#include "proc/system.h"

enum {
	DRAIN_MS = 100,
	// While walks find things missing: what is loaded sooner is missed less often.
	DRAIN_SOON_MS = 20,
	// Before the first sample, for the rows of what runs at the moment.
	WARM_NS = 300 * 1000 * 1000,
	// How long the rings may fill while samples are worked off.
	COLLECT_NS = 20 * 1000 * 1000,
	SWEEP_NS = 1000 * 1000 * 1000,
	// A record is stamped before it is committed; this much later it is surely there to be
	// read.
	SETTLE_NS = 2 * 1000 * 1000,
	HELD_MAX_BYTES = 16 << 20,
	HELD_MAX = 1 << 18,
	RING_BYTES = 8 << 20,
	SIDE_BAND_BYTES = 4 << 20,
	MAPPING_ROOM = 65536,
	COPY_BYTES = SAMPLE_COPY_BYTES,
	CGROUPS_MAX = 256,
};

/* Samples that wait for their events. */
struct held {
	struct sample **sample;
	size_t count, room;
	struct arena data;
};

struct capture {
	struct capture_options options; /* pointers in it are not used after capture_open() */
	const struct perf_event_row *event;
	struct cpus only_cpus; /* none: all */
	int *cgroup_fds;
	size_t cgroup_count, cgroup_room;
	struct kernel_side *kernel;
	struct store *store;
	struct objects *objects;
	struct pythons *pythons;
	struct processes *processes;
	struct stacks *stacks;
	struct wall *wall; /* NULL: only threads that run are sampled */
	struct side_band *side_band;
	struct held
		held[2]; /* new samples go into held[holding]; the other one is being worked off */
	int holding;
	struct counters counters;
	uint64_t bpf_counted[BPF_COUNTERS]; /* up to the last session's end */
	uint64_t next_sweep_ns, session_start_ns;
	struct cpus online;
	bool started;
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

static struct error *check_rate(const struct capture_options *options)
{
	unsigned max = perf_max_rate();

	if (options->hz && max && options->hz > max)
		return error_new("the kernel allows at most %u samples a second; raise it by "
				 "sysctl kernel.perf_event_max_sample_rate=%u",
				 max, options->hz);
	return NULL;
}

static struct error *open_cgroups(struct capture *capture, const struct capture_options *options)
{
	for (size_t i = 0; i < options->cgroup_count; i++) {
		TRY(ARRAY_RESERVE(capture->cgroup_fds, capture->cgroup_room, capture->cgroup_count,
				  1, CGROUPS_MAX, "cgroups"));
		int fd = open(options->cgroups[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return error_errno("cgroup %s", options->cgroups[i]);
		capture->cgroup_fds[capture->cgroup_count++] = fd;
	}
	return NULL;
}

static struct error *copy_cpus(struct capture *capture, const struct capture_options *options)
{
	struct cpus *cpus = &capture->only_cpus;

	TRY(ARRAY_RESERVE(cpus->cpu, cpus->room, 0, options->cpu_count, CPUS_MAX, "CPUs"));
	if (options->cpu_count)
		memcpy(cpus->cpu, options->cpus, options->cpu_count * sizeof(*cpus->cpu));
	cpus->count = options->cpu_count;
	return NULL;
}

static struct error *open_kernel(struct capture *capture, const struct capture_options *options)
{
	struct kernel_options with = {
		.kernel_stacks = options->kernel_stacks,
		.user_stacks = options->user_stacks,
		.depth = options->depth,
		.copy_bytes = COPY_BYTES,
		.ring_bytes = RING_BYTES,
		.mappings = MAPPING_ROOM,
		.variant = options->variant,
		.only_gil = options->only_gil,
		.pids = options->pids,
		.pid_count = options->pid_count,
		.children = options->children,
		.tids = options->tids,
		.tid_count = options->tid_count,
	};

	return kernel_open(&with, &capture->kernel);
}

static struct error *open_wall(struct capture *capture, const struct capture_options *options)
{
	const struct wall_options wall = {
		.hz = options->hz,
		.stacks = capture->stacks,
		.kernel = capture->kernel,
		.counters = &capture->counters,
		.tids = options->tids,
		.tid_count = options->tid_count,
	};

	return wall_open(&wall, &capture->wall);
}

static struct error *open_parts(struct capture *capture, const struct capture_options *options)
{
	TRY(check_rate(options));
	capture->event = perf_event_find(options->event);
	if (!capture->event)
		return error_new("no event is called \"%s\"; cairn help record lists them",
				 options->event);
	raise_descriptor_limit();
	TRY(open_cgroups(capture, options));
	TRY(copy_cpus(capture, options));
	TRY(open_kernel(capture, options));

	struct store_options store =
		kernel_store_options(capture->kernel, options->memory_mib, &capture->counters);
	TRY(store_new(&store, &capture->store));
	TRY(objects_new(capture->store, &capture->counters, &capture->objects));
	struct pythons_options pythons = {
		.kernel = capture->kernel,
		.objects = capture->objects,
		.counters = &capture->counters,
		.versions = options->python_versions,
	};
	if (options->python)
		TRY(pythons_new(&pythons, &capture->pythons));
	struct processes_options processes = {
		.kernel = capture->kernel,
		.objects = capture->objects,
		.pythons = capture->pythons,
		.counters = &capture->counters,
		.mapping_room = MAPPING_ROOM,
	};
	TRY(processes_new(&processes, &capture->processes));
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
	};
	TRY(stacks_new(&stacks, &capture->stacks));
	if (options->wall)
		TRY(open_wall(capture, options));
	return side_band_new(SIDE_BAND_BYTES, &capture->counters, &capture->side_band);
}

struct error *capture_open(const struct capture_options *options, struct capture **ret)
{
	struct capture *capture = calloc(1, sizeof(*capture));

	if (!capture)
		return error_oom();
	capture->options = *options;
	capture->held[0].data.max_bytes = capture->held[1].data.max_bytes = HELD_MAX_BYTES;
	struct error *err = open_parts(capture, options);
	if (err) {
		capture_close(capture);
		return err;
	}
	*ret = capture;
	return NULL;
}

void capture_close(struct capture *capture)
{
	if (!capture)
		return;
	capture_stop(capture);
	wall_close(capture->wall);
	side_band_free(capture->side_band);
	stacks_free(capture->stacks);
	processes_free(capture->processes);
	pythons_free(capture->pythons);
	objects_free(capture->objects);
	store_free(capture->store);
	kernel_close(capture->kernel);
	for (size_t i = 0; i < capture->cgroup_count; i++)
		close(capture->cgroup_fds[i]);
	free(capture->cgroup_fds);
	cpus_deinit(&capture->only_cpus);
	cpus_deinit(&capture->online);
	for (int i = 0; i < 2; i++) {
		free(capture->held[i].sample);
		arena_deinit(&capture->held[i].data);
	}
	free(capture);
}

/* --- CPUs */

static bool cpu_listed(const struct cpus *cpus, unsigned cpu)
{
	for (size_t i = 0; i < cpus->count; i++)
		if (cpus->cpu[i] == cpu)
			return true;
	return false;
}

static struct error *attach(struct capture *capture, unsigned cpu, int cgroup_fd)
{
	struct perf_sampling sampling = {
		.event = capture->event,
		.hz = capture->options.hz,
		.period = capture->options.period,
		.cpu = (int)cpu,
		.cgroup_fd = cgroup_fd,
	};
	_cleanup_close_ int fd = -1;

	struct error *err = perf_open_sampling(&sampling, &fd);
	if (err && error_code(err) == ENODEV) {
		error_free(err); // it went offline since it was listed
		return NULL;
	}
	TRY(err);
	TRY(kernel_attach(capture->kernel, cpu, fd));
	fd = -1;
	return NULL;
}

static struct error *attach_cpu(struct capture *capture, unsigned cpu)
{
	if (capture->only_cpus.count && !cpu_listed(&capture->only_cpus, cpu))
		return NULL;
	if (!capture->cgroup_count)
		return attach(capture, cpu, -1);
	for (size_t i = 0; i < capture->cgroup_count; i++)
		TRY(attach(capture, cpu, capture->cgroup_fds[i]));
	return NULL;
}

/*
 * Side-band records of CPU, which is one of CPUS; one that went offline since it was listed has
 * none.
 */
static struct error *listen_to_cpu(struct capture *capture, unsigned cpu, unsigned cpus)
{
	struct error *err = side_band_add_cpu(capture->side_band, cpu, cpus);

	if (!err || error_code(err) != ENODEV)
		return err;
	error_free(err);
	return NULL;
}

/*
 * Follow CPUs that come and go. Events of one that went offline are dead and are opened anew when
 * it comes back.
 */
static struct error *follow_cpus(struct capture *capture)
{
	struct cpus *before = &capture->online;
	_cleanup_(cpus_deinit) struct cpus online = CPUS_INIT;

	TRY(cpus_read_online(&online));
	for (size_t i = 0; i < before->count; i++) {
		if (cpu_listed(&online, before->cpu[i]))
			continue;
		log_debug("cpu=%u offline", before->cpu[i]);
		kernel_detach(capture->kernel, (int)before->cpu[i]);
		side_band_remove_cpu(capture->side_band, before->cpu[i]);
	}
	for (size_t i = 0; i < online.count; i++) {
		if (cpu_listed(before, online.cpu[i]))
			continue;
		TRY(listen_to_cpu(capture, online.cpu[i], (unsigned)online.count));
		TRY(attach_cpu(capture, online.cpu[i]));
	}
	cpus_deinit(before);
	*before = take_struct(online);
	return NULL;
}

/* Side-band records of every CPU, before anything is looked at that they tell changes of. */
static struct error *listen_to_cpus(struct capture *capture)
{
	_cleanup_(cpus_deinit) struct cpus online = CPUS_INIT;

	TRY(cpus_read_online(&online));
	for (size_t i = 0; i < online.count; i++)
		TRY(listen_to_cpu(capture, online.cpu[i], (unsigned)online.count));
	return NULL;
}

struct error *capture_start(struct capture *capture)
{
	uint64_t now_ns;

	TRY(kernel_follow(capture->kernel));
	TRY(listen_to_cpus(capture));
	now_ns = clock_monotonic_ns();
	TRY(processes_scan(capture->processes, now_ns));
	TRY(processes_warm(capture->processes, now_ns + WARM_NS));
	log_debug("scan walker=\"%s\" processes=%zu ms=%llu", kernel_variant_name(capture->kernel),
		  processes_count(capture->processes),
		  (unsigned long long)(clock_monotonic_ns() - now_ns) / 1000000);
	capture->session_start_ns = clock_realtime_ns();
	capture->next_sweep_ns = clock_monotonic_ns() + SWEEP_NS;
	TRY(follow_cpus(capture));
	capture->started = true;
	return NULL;
}

void capture_stop(struct capture *capture)
{
	if (capture->started)
		kernel_detach(capture->kernel, -1);
	capture->started = false;
}

/* --- draining */

static struct error *hold(void *context, const struct sample *sample)
{
	struct capture *capture = context;
	struct held *held = &capture->held[capture->holding];
	struct sample *copy;

	struct error *err = ARRAY_RESERVE(held->sample, held->room, held->count, 1, HELD_MAX,
					  "samples at a time");
	if (!err)
		err = arena_alloc(&held->data, sample->size, &copy);
	if (err) {
		error_free(err); // a limit
		counter_add(&capture->counters, COUNTER_samples_lost, 1);
		return NULL;
	}
	memcpy(copy, sample, sample->size);
	held->sample[held->count++] = copy;
	return sample->python && capture->pythons ? pythons_prefetch(capture->pythons, copy) : NULL;
}

static int by_time(const void *a, const void *b)
{
	const struct sample *x = *(struct sample *const *)a, *y = *(struct sample *const *)b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static struct error *apply_events(struct capture *capture, uint64_t until_ns)
{
	const struct side_event *event;

	while ((event = side_band_next(capture->side_band, until_ns)))
		TRY(processes_apply(capture->processes, event));
	return NULL;
}

/* Make room in the rings; what comes is worked off later. */
static struct error *collect(void *context)
{
	struct capture *capture = context;

	TRY(kernel_drain(capture->kernel, hold, capture));
	return side_band_read(capture->side_band);
}

/* Work off what was held and is not younger than UNTIL_NS; the rest is held on. */
static struct error *work_off(struct capture *capture, uint64_t until_ns)
{
	struct held *held = &capture->held[capture->holding];
	uint64_t collect_ns = clock_monotonic_ns() + COLLECT_NS;

	capture->holding = !capture->holding;
	if (held->count)
		qsort(held->sample, held->count, sizeof(*held->sample), by_time);
	for (size_t i = 0; i < held->count; i++) {
		if (held->sample[i]->time_ns > until_ns) {
			TRY(hold(capture, held->sample[i]));
			continue;
		}
		TRY(apply_events(capture, held->sample[i]->time_ns));
		TRY(stacks_add(capture->stacks, held->sample[i]));
		// Rows may have been compiled for it, which takes its time.
		if (clock_monotonic_ns() < collect_ns)
			continue;
		TRY(collect(capture));
		collect_ns = clock_monotonic_ns() + COLLECT_NS;
	}
	held->count = 0;
	arena_deinit(&held->data);
	return NULL;
}

/* One round: samples first, then the events, so that every event before a sample is there. */
static struct error *drain(struct capture *capture, uint64_t until_ns)
{
	uint64_t read_ns = clock_monotonic_ns();

	TRY(collect(capture));
	TRY(work_off(capture, until_ns));
	TRY(apply_events(capture, until_ns));
	TRY(processes_publish(capture->processes, until_ns < read_ns ? until_ns : read_ns));
	return side_band_forget(capture->side_band);
}

static struct error *sweep(struct capture *capture, uint64_t now_ns)
{
	if (now_ns < capture->next_sweep_ns)
		return NULL;
	capture->next_sweep_ns = now_ns + SWEEP_NS;
	if (capture->started)
		TRY(follow_cpus(capture));
	return processes_sweep(capture->processes);
}

/* What ended a wait. */
struct woken {
	bool ring, caller;
};

/* Wait until UNTIL_NS, or until something is to be done at once. */
static struct error *wait_for_samples(struct capture *capture, uint64_t until_ns, int wake_fd,
				      struct woken *ret)
{
	uint64_t now_ns = clock_monotonic_ns();
	uint64_t left_ms = until_ns > now_ns ? (until_ns - now_ns + 999999) / 1000000 : 0;
	struct pollfd fds[] = {
		{.fd = kernel_poll_fd(capture->kernel), .events = POLLIN},
		{.fd = wake_fd, .events = POLLIN},
	};

	int ready = poll(fds, 2, (int)left_ms);
	if (ready < 0 && errno != EINTR)
		return error_errno("wait for samples");
	ret->ring = ready > 0 && fds[0].revents;
	ret->caller = ready > 0 && fds[1].revents;
	return NULL;
}

/* Work off what came, and say when to do so again. */
static struct error *take_samples(struct capture *capture, uint64_t *next_ns)
{
	uint64_t walked = capture->counters.value[COUNTER_host_walks];
	uint64_t now_ns = clock_monotonic_ns();

	TRY(drain(capture, now_ns - SETTLE_NS));
	TRY(sweep(capture, now_ns));
	uint64_t pause_ms =
		capture->counters.value[COUNTER_host_walks] > walked ? DRAIN_SOON_MS : DRAIN_MS;
	*next_ns = now_ns + pause_ms * 1000000;
	return NULL;
}

struct error *capture_wait(struct capture *capture, unsigned timeout_ms, int wake_fd)
{
	uint64_t end_ns = clock_monotonic_ns() + timeout_ms * 1000000ull;
	uint64_t drain_ns = clock_monotonic_ns() + DRAIN_SOON_MS * 1000000ull;
	struct woken woken = {false, false};

	while (!woken.caller && clock_monotonic_ns() < end_ns) {
		uint64_t until_ns = drain_ns < end_ns ? drain_ns : end_ns;
		if (capture->wall && wall_due_ns(capture->wall) < until_ns)
			until_ns = wall_due_ns(capture->wall);
		TRY(wait_for_samples(capture, until_ns, wake_fd, &woken));
		if (capture->wall && capture->started)
			TRY(wall_look(capture->wall, clock_monotonic_ns()));
		if (woken.ring || woken.caller || clock_monotonic_ns() >= drain_ns)
			TRY(take_samples(capture, &drain_ns));
	}
	return take_samples(capture, &drain_ns);
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

static struct error *add_text_note(struct profile *profile, const char *text)
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

	TRY(add_note(profile, "%lu processes run a CPython that could not be looked into",
		     value[COUNTER_pythons_refused]));
	if (refusal)
		TRY(add_text_note(profile, refusal));
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
	uint64_t counted[BPF_COUNTERS];

	TRY(kernel_count(capture->kernel, counted));
	uint64_t lost = counted[BPF_ring_full] - capture->bpf_counted[BPF_ring_full];
	counter_add(&capture->counters, COUNTER_samples_lost, lost);
	counter_add(&capture->counters, COUNTER_processes_skipped,
		    counted[BPF_fork_full] - capture->bpf_counted[BPF_fork_full]);
	counter_add(&capture->counters, COUNTER_targets_full,
		    counted[BPF_target_full] - capture->bpf_counted[BPF_target_full]);
	memcpy(capture->bpf_counted, counted, sizeof(counted));
	counter_add(&capture->counters, COUNTER_samples, totals->samples);

	facts->rate_hz = capture->options.hz;
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
	_cleanup_profile_ struct profile *numbers = NULL;
	_cleanup_profile_ struct profile *profile = NULL;
	struct naming_options naming = {
		.lines = capture->options.lines,
		.debuginfod = capture->options.debuginfod,
		.pulse = collect,
		.context = capture,
	};
	uint64_t start_ns = capture->session_start_ns;
	struct stack_totals totals;

	// Once nothing is sampled any more everything can be worked off; else what is young stays.
	TRY(drain(capture, capture->started ? clock_monotonic_ns() - SETTLE_NS : UINT64_MAX));
	capture->session_start_ns = clock_realtime_ns();
	TRY(stacks_take(capture->stacks, &numbers, &totals));
	if (capture->wall)
		wall_end_session(capture->wall);
	counters_merge(&capture->counters, &profile_facts_const(numbers)->counters);
	TRY(naming_run(&naming, numbers, capture->objects, &profile));
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
