/* SPDX-License-Identifier: Apache-2.0 */
/* The agent command: sessions of the whole machine, once or for ever, into a directory. */
#define LOG_DOMAIN "agent"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agent/session-files.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/sampling.h"

struct agent_args {
	struct logging_args logging;
	struct sampling_args sampling;
	const char *directory;
	uint64_t hz, duration_ns;
	bool continuous, rotate, flamegraph, versions, python;
	const char *python_mode;
};

/* gProfiler's words; there is one way here, and it is on or off. */
static const char *python_mode_at(size_t index)
{
	static const char *const modes[] = {"auto",   "pyperf",   "pyspy",
					    "py-spy", "disabled", "none"};

	return index < ARRAY_COUNT(modes) ? modes[index] : NULL;
}

static bool wants_python(const struct agent_args *args)
{
	return args->python && strcmp(args->python_mode, "disabled") != 0 &&
	       strcmp(args->python_mode, "none") != 0;
}

/* Sample until the session is over. *RET_STOP: the agent was told to stop. */
static struct error *take_session(struct capture *capture, uint64_t duration_ns, int stop_fd,
				  bool *ret_stop)
{
	uint64_t end_ns = clock_monotonic_ns() + duration_ns;

	*ret_stop = false;
	for (uint64_t now_ns; !*ret_stop && (now_ns = clock_monotonic_ns()) < end_ns;) {
		uint64_t left_ms = (end_ns - now_ns + 999999) / 1000000;
		TRY(capture_wait(capture, left_ms < 1000 ? (unsigned)left_ms : 1000, stop_fd));
		for (int number; (number = stop_signals_read(stop_fd));)
			*ret_stop = *ret_stop || number != SIGCHLD;
	}
	return NULL;
}

/*
 * End the session and write it. *RET_WRITE: what went wrong with the files, which the next session
 * may not meet.
 */
static struct error *end_session(struct capture *capture, const struct session_files *files,
				 struct error **ret_write)
{
	_cleanup_profile_ struct profile *profile = NULL;
	_cleanup_free_ char *path = NULL;

	TRY(capture_end_session(capture, &profile));
	*ret_write = session_files_write(files, profile, &path);
	if (*ret_write)
		return NULL;
	const struct session_facts *facts = profile_facts_const(profile);
	log_info("session file=%s samples=%" PRIu64 " lost=%" PRIu64, path, facts->samples,
		 facts->lost);
	for (size_t i = 0; i < facts->note_count; i++) {
		const char *note = profile_text(profile, facts->notes[i], NULL);
		// What is the same in all sessions was said at the start.
		if (!capture_lacks(capture) || strcmp(note, capture_lacks(capture)) != 0)
			log_warning("%s", note);
	}
	return NULL;
}

static struct error *agent_run(const void *data, int *ret_status)
{
	const struct agent_args *args = data;
	struct session_files files = {
		.directory = args->directory,
		.flamegraph = args->flamegraph,
		.rotate = args->rotate,
	};
	// Source lines and inlined calls would take hundreds of megabytes where there is
	// debug information; .col has no place for lines.
	struct capture_options options = {
		.event = "cpu-clock",
		.hz = (unsigned)args->hz,
		.kernel_stacks = true,
		.user_stacks = true,
		.python = wants_python(args),
		.python_versions = args->versions,
	};
	_cleanup_capture_ struct capture *capture = NULL;
	_cleanup_close_ int stop_fd = -1;
	bool stop;

	logging_apply(&args->logging);
	TRY(session_files_check(&files));
	TRY(stop_signals_open(&stop_fd));
	sampling_prepare_process();
	sampling_apply(&args->sampling, &options);
	TRY(capture_open(&options, &capture));
	sampling_tell(capture);
	TRY(capture_start(capture));
	do {
		TRY(take_session(capture, args->duration_ns, stop_fd, &stop));
		if (stop || !args->continuous)
			capture_stop(capture);
		struct error *err = NULL;
		TRY(end_session(capture, &files, &err));
		if (err && (stop || !args->continuous))
			return err;
		if (err)
			log_error("%s", error_text(err));
		error_free(err);
	} while (args->continuous && !stop);
	return NULL;
}

static struct error *agent_check(void *data)
{
	const struct agent_args *args = data;

	return args->directory ? NULL : error_new("say where profiles go: -o DIR (--output-dir)");
}

static const struct option_row agent_options[] = {
	{.name = "output-dir",
	 .letter = 'o',
	 .kind = OPTION_FILE,
	 .at = offsetof(struct agent_args, directory),
	 .value = "DIR",
	 .help = "where profile_TIME.col and .html go, and the links to the newest; made if it is "
		 "missing"},
	{.name = "profiling-duration",
	 .letter = 'd',
	 .kind = OPTION_SECONDS,
	 .at = offsetof(struct agent_args, duration_ns),
	 .fallback_text = "60",
	 .min = 1000000000,
	 .help = "length of each session"},
	{.name = "profiling-frequency",
	 .letter = 'f',
	 .kind = OPTION_UINT,
	 .at = offsetof(struct agent_args, hz),
	 .fallback = 11,
	 .min = 1,
	 .max = 10000,
	 .unit = "Hz",
	 .help = "samples per second on each CPU"},
	{.name = "continuous",
	 .letter = 'c',
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct agent_args, continuous),
	 .help = "one session after the other, until stopped"},
	{.name = "rotating-output",
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct agent_args, rotate),
	 .help = "keep only the newest .col and .html"},
	{.name = "no-flamegraph",
	 .kind = OPTION_FLAG_OFF,
	 .at = offsetof(struct agent_args, flamegraph),
	 .help = "write no .html"},
	{.name = "python-mode",
	 .kind = OPTION_CHOICE,
	 .at = offsetof(struct agent_args, python_mode),
	 .choice = python_mode_at,
	 .fallback_text = "auto",
	 .help = "disabled and none leave Python's frames out; the others all mean the same: the "
		 "kernel side reads them with each sample"},
	{.name = "no-python",
	 .kind = OPTION_FLAG_OFF,
	 .at = offsetof(struct agent_args, python),
	 .help = "the same as --python-mode disabled"},
	{.name = "no-python-versions",
	 .kind = OPTION_FLAG_OFF,
	 .at = offsetof(struct agent_args, versions),
	 .help = "no package and version with Python frames, [PyYAML==6.0]"},
	{.kind = OPTION_GROUP,
	 .at = offsetof(struct agent_args, sampling),
	 .group = options_sampling},
	{.kind = OPTION_GROUP,
	 .at = offsetof(struct agent_args, logging),
	 .group = options_logging},
	{0},
};

static const struct command_example agent_examples[] = {
	{"cairn agent -o /var/lib/cairn -d 60 -f 11 -c --rotating-output",
	 "profile this machine from now on, keeping the last minute"},
	{0},
};

const struct command command_agent = {
	.name = "agent",
	.help = "profile this machine in sessions, as gProfiler does",
	.text = "Each session is written as profile_TIME.col (gProfiler's collapsed stacks) and as "
		"profile_TIME.html (a flame graph), TIME being its end in UTC; last_profile.col "
		"and last_flamegraph.html always point at the newest. SIGINT and SIGTERM end the "
		"session, which is written.\n"
		"\n"
		"cairn without a verb and with options is cairn agent.",
	.options = agent_options,
	.examples = agent_examples,
	.variables = "GPROFILER_",
	.abbreviations = true,
	.args_size = sizeof(struct agent_args),
	.check = agent_check,
	.run = agent_run,
};
