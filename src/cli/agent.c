/* SPDX-License-Identifier: Apache-2.0 */
/* The agent command: sessions of the whole machine, once or for ever, into a directory. */
#define LOG_DOMAIN "agent"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agent/session-files.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/agent-options.h"
#include "cli/chosen.h"
#include "cli/sampling.h"

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
static struct error *end_session(const struct agent_args *args, struct capture *capture,
				 const struct session_files *files, struct error **ret_write)
{
	_cleanup_profile_ struct profile *profile = NULL;
	_cleanup_free_ char *path = NULL;

	TRY(capture_end_session(capture, &profile));
	profile_facts(profile)->show_objects = args->insert_dso;
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

/* The processes that were asked for and are still there. */
static struct error *choose_pids(const struct agent_args *args, struct chosen *chosen)
{
	for (size_t i = 0; i < args->pids.count; i++)
		if (!kill((pid_t)args->pids.items[i], 0) || errno != ESRCH)
			TRY(chosen_add(chosen, args->pids.items[i]));
	if (args->pids.count && !chosen->count)
		return error_new("none of the processes of --pids is there");
	return NULL;
}

static struct error *take_sessions(const struct agent_args *args, struct capture *capture,
				   const struct session_files *files, int stop_fd)
{
	bool stop;

	do {
		TRY(take_session(capture, args->duration_ns, stop_fd, &stop));
		if (stop || !args->continuous)
			capture_stop(capture);
		struct error *err = NULL;
		TRY(end_session(args, capture, files, &err));
		if (err && (stop || !args->continuous))
			return err;
		if (err)
			log_error("%s", error_text(err));
		error_free(err);
	} while (args->continuous && !stop);
	return NULL;
}

static struct error *profile_machine(const struct agent_args *args)
{
	struct session_files files = {
		.directory = args->directory,
		.flamegraph = args->flamegraph,
		.rotate = args->rotate,
	};
	_cleanup_(chosen_deinit) struct chosen chosen = CHOSEN_INIT;
	_cleanup_capture_ struct capture *capture = NULL;
	_cleanup_close_ int stop_fd = -1;

	TRY(session_files_check(&files));
	TRY(choose_pids(args, &chosen));
	TRY(stop_signals_open(&stop_fd));
	sampling_prepare_process();
	// Source lines and inlined calls would take hundreds of megabytes where there is
	// debug information; .col has no place for lines.
	struct capture_options options = {
		.event = "cpu-clock",
		.hz = (unsigned)args->hz,
		.kernel_stacks = true,
		.user_stacks = true,
		.python = !agent_mode_off(args->python_mode),
		.python_versions = args->versions,
		.pids = chosen.pids,
		.pid_count = chosen.count,
	};
	sampling_apply(&args->sampling, &options);
	if (agent_mode_off(args->perf_mode) && !strcmp(options.capture, CAPTURE_AUTO))
		options.capture = "poll";
	TRY(capture_open(&options, &capture));
	sampling_tell(capture);
	TRY(capture_start(capture));
	return take_sessions(args, capture, &files, stop_fd);
}

static struct error *agent_run(const void *data, int *ret_status)
{
	const struct agent_args *args = data;

	if (args->version) {
		printf("cairn %s\n", CAIRN_VERSION);
		return NULL;
	}
	logging_apply(&args->logging);
	agent_tell(args);
	if (args->operands.count)
		return NULL;
	if (!strcmp(args->mode, "none"))
		return error_new("All profilers are disabled");
	return profile_machine(args);
}

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
		"cairn without a verb and with options is cairn agent. cairn help from gprofiler "
		"says what becomes of each of gProfiler's options. extract-resources is accepted "
		"and has nothing to do.",
	.operands = "[extract-resources]",
	.operands_max = 1,
	.operands_at = offsetof(struct agent_args, operands),
	.options = agent_options,
	.examples = agent_examples,
	.variables = "GPROFILER_",
	.config = "/etc/gprofiler/config.ini",
	.keeps_sources = true,
	.sources_at = offsetof(struct agent_args, sources),
	.abbreviations = true,
	.args_size = sizeof(struct agent_args),
	.check = agent_check,
	.run = agent_run,
};
