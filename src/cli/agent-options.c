/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's rows, what goes together, and what is said about options without an effect. */
#define LOG_DOMAIN "agent"
#include "cli/agent-options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/chosen.h"
#include "proc/perf-event.h"

#define CHOICES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define UNPACK(...) __VA_ARGS__

const struct option_row agent_options[] = {
#define AGENT_SHARED(name_, note_)
#define AGENT_OPTION(name_, kind_, field_, more_, effect_, help_, note_)                           \
	{.name = name_,                                                                            \
	 .kind = OPTION_##kind_,                                                                   \
	 .at = offsetof(struct agent_args, field_),                                                \
	 .help = help_,                                                                            \
	 UNPACK more_},
#include "cli/agent-options.def"
#undef AGENT_OPTION
#undef AGENT_SHARED
	{.kind = OPTION_GROUP,
	 .at = offsetof(struct agent_args, sampling),
	 .group = options_sampling},
	{.kind = OPTION_GROUP,
	 .at = offsetof(struct agent_args, sending),
	 .group = options_sending},
	{.kind = OPTION_GROUP,
	 .at = offsetof(struct agent_args, operations),
	 .group = options_operations},
	{.kind = OPTION_GROUP,
	 .at = offsetof(struct agent_args, logging),
	 .group = options_logging},
	{0},
};

static const struct agent_option effects[] = {
#define AGENT_SHARED(name_, note_)
#define AGENT_OPTION(name_, kind_, field_, more_, effect_, help_, note_)                           \
	{name_, AGENT_##effect_, note_},
#include "cli/agent-options.def"
#undef AGENT_OPTION
#undef AGENT_SHARED
};

/* Rows that agent_options has from groups. */
static const struct agent_option shared[] = {
#define AGENT_OPTION(name_, kind_, field_, more_, effect_, help_, note_)
#define AGENT_SHARED(name_, note_) {name_, AGENT_same, note_},
#include "cli/agent-options.def"
#undef AGENT_OPTION
#undef AGENT_SHARED
};

enum { STACK_BYTES_MAX = 65528 }; // the kernel's limit: a u16 in perf_event_attr, by eights

const struct agent_option *agent_option_at(size_t index)
{
	if (index < ARRAY_COUNT(effects))
		return &effects[index];
	index -= ARRAY_COUNT(effects);
	return index < ARRAY_COUNT(shared) ? &shared[index] : NULL;
}

bool agent_mode_off(const char *mode)
{
	return !strcmp(mode, "disabled") || !strcmp(mode, "none");
}

bool agent_on_fargate(void)
{
	const char *where = getenv("AWS_EXECUTION_ENV");

	return where && !strcmp(where, "AWS_ECS_FARGATE");
}

const char *agent_asked(const struct agent_args *args, size_t at)
{
	for (struct option_iterator it = options_begin(agent_options); options_next(&it);)
		if (it.at == at && args->sources.of[it.index])
			return args->sources.of[it.index];
	return NULL;
}

#define ASKED(field) agent_asked(args, offsetof(struct agent_args, field))

/* Every name in the list TEXT is one of NAMES, which ends with NULL. */
static struct error *check_names(const char *option, const char *text, const char *const *names)
{
	while (*text) {
		size_t length = strcspn(text, ","), i = 0;
		while (names[i] &&
		       (strlen(names[i]) != length || strncmp(names[i], text, length) != 0))
			i++;
		if (!names[i])
			return error_new("%s: %.*s: no such name", option, (int)length, text);
		text += length + (text[length] == ',');
	}
	return NULL;
}

static struct error *check_values(const struct agent_args *args)
{
	static const char *const safemodes[] = {
		"all",
		"profiled-oom",
		"profiled-signaled",
		"hserr",
		"general-oom",
		"general-signaled",
		"pid-in-kernel-messages",
		"java-extended-version-checks",
		"ap-loaded-check",
		NULL,
	};
	static const char *const features[] = {"probesp", "vtable", "comptask", NULL};
	const char *safemode = args->java_safemode;

	for (size_t i = 0; i < args->ap_features.count; i++)
		TRY(check_names("--java-async-profiler-features", args->ap_features.items[i],
				features));
	if (!strcmp(safemode, "=")) // how a configuration file said "none of them"
		return NULL;
	TRY(check_names("--java-safemode", safemode, safemodes));
	if (!args->java_version_check &&
	    (strstr(safemode, "java-extended-version-checks") || !strcmp(safemode, "all")))
		return error_new("--java-no-version-check and --java-safemode's "
				 "java-extended-version-checks exclude each other");
	return NULL;
}

/* The first of gProfiler's checks, in its order: how to sample, and where the result goes. */
static struct error *check_sampling(const struct agent_args *args)
{
	bool allocation = !strcmp(args->mode, "allocation");

	if (ASKED(hz) && ASKED(perf_period))
		return error_new("%s and %s exclude each other", ASKED(hz), ASKED(perf_period));
	if (ASKED(alloc_bytes) && !allocation)
		return error_new("%s is only for --mode allocation", ASKED(alloc_bytes));
	if (ASKED(hz) && allocation)
		return error_new("%s: --mode allocation has no frequency; it has --alloc-interval",
				 ASKED(hz));
	if (args->upload && !args->token && !args->sending.token_file)
		return error_new("%s needs --token or --token-file", ASKED(upload));
	if (args->token && args->sending.token_file)
		return error_new("%s and %s exclude each other", ASKED(token),
				 ASKED(sending.token_file));
	if (args->upload && !args->service && !args->databricks_service)
		return error_new("%s needs --service-name", ASKED(upload));
	if (!args->upload && !args->directory && !args->operands.count)
		return error_new("say where profiles go: -o DIR (--output-dir), or "
				 "-u (--upload-results)");
	if (args->operands.count && !args->resources)
		return error_new("extract-resources needs --resources-dest");
	return NULL;
}

static struct error *check_perf(const struct agent_args *args)
{
	bool dwarf = !strcmp(args->perf_mode, "dwarf"), smart = !strcmp(args->perf_mode, "smart");
	bool fp = !strcmp(args->perf_mode, "fp");

	if (args->stack_bytes > STACK_BYTES_MAX && (dwarf || smart))
		return error_new("%s: must be %d at most", ASKED(stack_bytes), STACK_BYTES_MAX);
	// gProfiler's default is fp, for which there is no limit: only those who ask for the others
	// have ever met it.
	if (args->hz > 100 && (dwarf || smart) && ASKED(perf_mode))
		return error_new("%s: must be 100 Hz at most with --perf-mode %s", ASKED(hz),
				 args->perf_mode);
	if (!agent_mode_off(args->nodejs_mode) && !fp && !smart)
		return error_new("%s needs --perf-mode fp or smart", ASKED(nodejs_mode));
	if (args->spawned && args->pids.count)
		return error_new("%s and %s exclude each other", ASKED(spawned), ASKED(pids));
	return NULL;
}

static struct error *check_needs(const struct agent_args *args)
{
	if (args->heartbeat && !args->upload)
		return error_new("%s needs --upload-results", ASKED(heartbeat));
	if (args->heartbeat && !args->token && !args->sending.token_file)
		return error_new("%s needs --token", ASKED(heartbeat));
	if (args->heartbeat && !args->service)
		return error_new("%s needs --service-name", ASKED(heartbeat));
	if (ASKED(perf_period) && !args->perf_event)
		return error_new("%s needs --perf-event", ASKED(perf_period));
	if (args->hw_events_file && !args->perf_event)
		return error_new("%s needs --perf-event", ASKED(hw_events_file));
	if (args->perf_event && strcmp(args->mode, "cpu") != 0)
		return error_new("%s needs --mode cpu", ASKED(perf_event));
	if (args->hw_metrics != (args->perfspect != NULL))
		return error_new("--enable-hw-metrics-collection and --perfspect-path need each "
				 "other");
	return NULL;
}

/* The event is one that can be sampled on this machine. */
static struct error *check_event(const struct agent_args *args)
{
	_cleanup_(strbuf_deinit) struct strbuf names = STRBUF_INIT;

	if (!args->perf_event)
		return NULL;
	const struct perf_event_row *event = perf_event_find(args->perf_event);
	if (event && perf_event_missing(event))
		return error_new("%s %s: this machine does not have this event", ASKED(perf_event),
				 args->perf_event);
	if (event)
		return NULL;
	for (size_t i = 0; (event = perf_event_at(i)); i++)
		TRY(strbuf_addf(&names, "%s%s", i ? ", " : "", event->name));
	return error_new("%s %s: no such event; there are %s", ASKED(perf_event), args->perf_event,
			 names.text);
}

/* What cairn does not do at all is refused, so that nobody waits for it. */
static struct error *check_absent(const struct agent_args *args)
{
	for (size_t i = 0; i < ARRAY_COUNT(effects); i++)
		if (effects[i].effect == AGENT_absent && args->sources.of[i])
			return error_new("%s: cannot be done: %s", args->sources.of[i],
					 effects[i].note);
	if (!strcmp(args->mode, "allocation"))
		return error_new("%s: allocation cannot be done: it is for Java only, which cairn "
				 "does not sample yet",
				 ASKED(mode));
	return NULL;
}

struct error *agent_applications(const struct agent_args *args, struct application_options *ret)
{
	_cleanup_(application_options_deinit) struct application_options options = {
		.spark = args->spark_app_id,
	};

	for (size_t i = 0; i < args->app_id_filters.count; i++) {
		struct error *err = application_add_filter(&options, args->app_id_filters.items[i]);
		if (err)
			return error_wrap(err, "--app-id-args-filter");
	}
	*ret = take_struct(options);
	return NULL;
}

struct error *agent_check(void *data)
{
	_cleanup_(application_options_deinit) struct application_options applications =
		APPLICATION_OPTIONS_INIT;
	struct agent_args *args = data;

	if (args->operands.count && strcmp(args->operands.items[0], "extract-resources") != 0)
		return error_new("%s: takes options only", args->operands.items[0]);
	// gProfiler looks only whether the variable is there, and takes 0 for "do not send", too.
	if (getenv("GPROFILER_DONT_SEND_LOGS"))
		args->send_logs = false;
	if (agent_on_fargate() && !agent_mode_off(args->perf_mode))
		args->perf_mode = "disabled";
	TRY(check_values(args));
	TRY(agent_applications(args, &applications));
	TRY(check_sampling(args));
	TRY(check_perf(args));
	TRY(check_needs(args));
	TRY(check_event(args));
	return check_absent(args);
}

/* Is the row's value one that leaves nothing undone although its runtime is not named? */
static bool asks_for_runtime(const struct agent_args *args, const struct option_iterator *it)
{
	const char *const *mode = (const void *)((const char *)args + it->at);

	if (it->row->kind != OPTION_CHOICE)
		return true;
	// "perf" of Node.js are its perf maps and jitdumps, which are always read.
	return !agent_mode_off(*mode) && strcmp(*mode, "perf") != 0;
}

/* Add a runtime's name to the comma-separated list, once. */
static void add_runtime(char *list, size_t size, const char *name)
{
	size_t length = strlen(list);

	if (!strstr(list, name))
		snprintf(list + length, size - length, "%s%s", length ? ", " : "", name);
}

void agent_tell(const struct agent_args *args)
{
	char runtimes[128] = "";

	for (struct option_iterator it = options_begin(agent_options); options_next(&it);) {
		const char *from = args->sources.of[it.index];
		if (!from || it.index >= ARRAY_COUNT(effects))
			continue;
		const struct agent_option *option = &effects[it.index];
		if (option->effect == AGENT_nearest)
			log_warning("%s has no effect here: %s", from, option->note);
		else if (option->effect == AGENT_upload && !args->upload)
			log_warning("%s has no effect without --upload-results", from);
		else if (option->effect == AGENT_runtime && asks_for_runtime(args, &it))
			add_runtime(runtimes, sizeof(runtimes), option->note);
	}
	if (*runtimes)
		log_warning("this version does not name the functions of %s: such programs are "
			    "sampled as native code",
			    runtimes);
	if (ASKED(perf_mode) && !strcmp(args->perf_mode, "fp"))
		log_warning("%s: stacks are walked by unwind tables instead, also where there are "
			    "no frame pointers",
			    ASKED(perf_mode));
}
