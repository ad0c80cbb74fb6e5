/* SPDX-License-Identifier: Apache-2.0 */
/* The agent command: sessions of the whole machine, once or for ever, into a directory or to a
 * server. */
#define LOG_DOMAIN "agent"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agent/delivery.h"
#include "agent/session-files.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/agent-met.h"
#include "cli/agent-options.h"
#include "cli/chosen.h"
#include "cli/operations.h"
#include "cli/sampling.h"
#include "cli/token.h"

/* After a signal: systemd and Kubernetes wait longer than this before they kill. */
#define FAREWELL_NS UINT64_C(10000000000)

/* Sample until the session is over. *RET_STOP: the agent was told to stop. */
static struct error *take_session(struct operations *operations, struct capture *capture,
				  int stop_fd, bool *ret_stop)
{
	uint64_t end_ns = clock_monotonic_ns() + operations->args->duration_ns;

	*ret_stop = false;
	for (uint64_t now_ns; !*ret_stop && (now_ns = clock_monotonic_ns()) < end_ns;) {
		uint64_t left_ms = (end_ns - now_ns + 999999) / 1000000;
		operations_beat(operations);
		TRY(capture_wait(capture, left_ms < 1000 ? (unsigned)left_ms : 1000, stop_fd));
		for (int number; (number = stop_signals_read(stop_fd));)
			*ret_stop = *ret_stop || number != SIGCHLD;
	}
	return NULL;
}

/* Where sessions go. */
struct outlet {
	struct session_files files; /* without a directory: none are written */
	struct delivery *delivery;  /* NULL: nothing is sent */
};

static void log_session(const struct capture *capture, const struct profile *profile,
			const char *path)
{
	const struct session_facts *facts = profile_facts_const(profile);

	log_info("session file=%s samples=%" PRIu64 " lost=%" PRIu64, path ? path : "none",
		 facts->samples, facts->lost);
	for (size_t i = 0; i < facts->note_count; i++) {
		const char *note = profile_text(profile, facts->notes[i], NULL);
		// What is the same in all sessions was said at the start.
		if (!capture_lacks(capture) || strcmp(note, capture_lacks(capture)) != 0)
			log_warning("%s", note);
	}
}

/* The session's files, and it on its way to the server. One of them failing spares the other. */
static struct error *write_session(const struct outlet *outlet, struct profile *profile,
				   char **ret_path)
{
	struct error *err = NULL, *sent = NULL;

	if (outlet->delivery)
		sent = delivery_note(outlet->delivery, profile);
	if (outlet->files.directory)
		err = session_files_write(&outlet->files, profile, ret_path);
	if (outlet->delivery && !sent)
		sent = delivery_add(outlet->delivery, profile);
	if (!err || !sent)
		return err ? err : sent;
	log_error("%s", error_text(sent));
	error_free(sent); // the other failure goes on
	return err;
}

/*
 * End the session and write it. *RET_WRITE: what went wrong with the files, which the next session
 * may not meet.
 */
static struct error *end_session(const struct agent_args *args, struct capture *capture,
				 const struct outlet *outlet, struct agent_met *met,
				 struct error **ret_write)
{
	_cleanup_profile_ struct profile *profile = NULL;
	_cleanup_free_ char *path = NULL;

	TRY(capture_end_session(capture, &profile));
	profile_facts(profile)->show_objects = args->insert_dso;
	agent_tell_met(args, profile, met);
	*ret_write = write_session(outlet, profile, &path);
	if (!*ret_write)
		log_session(capture, profile, path);
	return NULL;
}

/* The processes that were asked for; those that are not there are left out. */
static struct error *choose_pids(const struct agent_args *args, struct chosen *chosen)
{
	for (size_t i = 0; i < args->pids.count; i++) {
		struct error *err = chosen_add(chosen, args->pids.items[i]);
		if (err)
			log_warning("%s", error_text(err));
		error_free(err);
	}
	if (args->pids.count && !chosen->count)
		return error_new("none of the processes of --pids is there");
	return NULL;
}

static struct error *take_sessions(struct operations *operations, struct capture *capture,
				   const struct outlet *outlet, int stop_fd)
{
	const struct agent_args *args = operations->args;
	struct agent_met met = {0};
	bool stop;

	do {
		operations_begin_session(operations);
		TRY(take_session(operations, capture, stop_fd, &stop));
		if (stop) {
			operations_stop(operations);
			stop_signals_let_go();
		}
		if (stop || !args->continuous)
			capture_stop(capture);
		struct error *err = NULL;
		TRY(end_session(args, capture, outlet, &met, &err));
		if (err && (stop || !args->continuous))
			return err;
		if (err)
			log_error("%s", error_text(err));
		error_free(err);
		operations_end_session(operations);
	} while (args->continuous && !stop && !operations_over(operations));
	return NULL;
}

static struct error *profile_machine(struct operations *operations, const struct outlet *outlet)
{
	const struct agent_args *args = operations->args;
	_cleanup_(chosen_deinit) struct chosen chosen = CHOSEN_INIT;
	_cleanup_capture_ struct capture *capture = NULL;
	_cleanup_close_ int stop_fd = -1;

	TRY(choose_pids(args, &chosen));
	TRY(stop_signals_open(&stop_fd));
	sampling_prepare_process();
	// Source lines and inlined calls would take hundreds of megabytes where there is
	// debug information; .col has no place for lines.
	struct capture_options options = {
		.event = args->perf_event ? args->perf_event : "cpu-clock",
		.hz = args->perf_period ? 0 : (unsigned)args->hz,
		.period = args->perf_period,
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
	operations_ready(operations);
	return take_sessions(operations, capture, outlet, stop_fd);
}

static struct error *open_delivery(const struct agent_args *args, const char *token,
				   struct delivery **ret)
{
	const struct delivery_settings settings = {
		.upload =
			{
				.server = args->server,
				.service = args->service ? args->service : "databricks",
				.token = token,
				.verify = args->verify,
				.show_curl = args->curlify,
				.timeout_ns = args->upload_timeout_ns,
			},
		.spool = args->sending.spool,
		.spool_bytes = args->sending.spool_mib << 20,
		.spool_sessions = (uint32_t)args->sending.spool_sessions,
	};

	return delivery_open(&settings, ret);
}

/* What has not been sent when the agent ends waits for the next one. */
static struct error *end_delivery(const struct agent_args *args, struct delivery *delivery)
{
	uint64_t waiting, lost;

	delivery_finish(delivery, args->continuous ? FAREWELL_NS : args->upload_timeout_ns,
			&waiting, &lost);
	if (!waiting)
		return NULL;
	if (!args->continuous)
		return error_new("%" PRIu64 " sessions have not been sent; %" PRIu64
				 " are kept for the next run",
				 waiting, waiting - lost);
	log_warning("%" PRIu64 " sessions have not been sent; %" PRIu64
		    " are kept for the next run",
		    waiting, waiting - lost);
	return NULL;
}

/* The directory can be written to, and nothing half-written is in it. */
static struct error *prepare_files(const struct session_files *files)
{
	size_t count = 0;

	TRY(session_files_check(files));
	TRY(session_files_clean(files, &count));
	if (count)
		log_info("removed what an agent that was killed had not finished files=%zu", count);
	return NULL;
}

static struct error *run_with_outlets(struct operations *operations)
{
	const struct agent_args *args = operations->args;
	struct outlet outlet = {
		.files = {.directory = args->directory,
			  .flamegraph = args->flamegraph,
			  .rotate = args->rotate},
	};
	_cleanup_delivery_ struct delivery *delivery = NULL;
	_cleanup_token_ char *token = NULL;

	if (args->token || args->sending.token_file)
		TRY(token_read(args->token, args->sending.token_file, &token));
	if (outlet.files.directory)
		TRY(prepare_files(&outlet.files));
	if (args->upload)
		TRY(open_delivery(args, token, &delivery));
	outlet.delivery = delivery;
	struct error *err = profile_machine(operations, &outlet), *unsent = NULL;
	if (delivery)
		unsent = end_delivery(args, delivery);
	if (!err || !unsent)
		return err ? err : unsent;
	log_error("%s", error_text(unsent));
	error_free(unsent); // the first failure goes on
	return err;
}

/* Run as a service; what ends it is in the log, too. */
static struct error *run_agent(const struct agent_args *args)
{
	_cleanup_(operations_end) struct operations operations = OPERATIONS_INIT;

	TRY(operations_start(args, &operations));
	agent_tell(args);
	struct error *err = strcmp(args->mode, "none") ? run_with_outlets(&operations)
						       : error_new("All profilers are disabled");
	if (err)
		log_error("%s", error_text(err));
	else
		log_info("cairn ends");
	return err;
}

static struct error *agent_run(const void *data, int *ret_status)
{
	const struct agent_args *args = data;

	if (args->version) {
		printf("cairn %s\n", CAIRN_VERSION);
		return NULL;
	}
	logging_apply(&args->logging);
	if (!args->operands.count)
		return run_agent(args);
	agent_tell(args);
	return NULL;
}

static const struct command_example agent_examples[] = {
	{"cairn agent -o /var/lib/cairn -d 60 -f 11 -c --rotating-output",
	 "profile this machine from now on, keeping the last minute"},
	{"cairn agent -c -u --service-name shop --token-file key --server-host https://studio",
	 "profile it from now on, and send the profiles"},
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
		"With -u each session is sent to a server as well. It is put on the disk first "
		"and stays there until the server has it, however long that is away.\n"
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
