/* SPDX-License-Identifier: Apache-2.0 */
/* The agent command: sessions of the whole machine, once or for ever, into a directory or to a
 * server. */
#define LOG_DOMAIN "agent"

#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/delivery.h"
#include "agent/heartbeat.h"
#include "agent/log-upload.h"
#include "agent/session-files.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/agent-arguments.h"
#include "cli/agent-met.h"
#include "cli/agent-options.h"
#include "cli/chosen.h"
#include "cli/follow.h"
#include "cli/operations.h"
#include "cli/sampling.h"
#include "cli/token.h"
#include "identity/host.h"
#include "identity/metadata.h"

/* After a signal: systemd and Kubernetes wait longer than this before they kill. */
#define FAREWELL_NS UINT64_C(10000000000)

/* Where sessions go. */
struct outlet {
	struct session_files files; /* without a directory: none are written */
	struct delivery *delivery;  /* NULL: nothing is sent */
	struct metadata *metadata;  /* what goes with each */
};

/* A run of the agent. */
struct run {
	struct operations *operations; /* its args change with the server's commands */
	struct outlet outlet;
	struct log_upload *logs;     /* NULL: the log is not sent */
	struct heartbeat *heartbeat; /* NULL: nobody gives commands */
	int stop_fd;
	bool told; /* to end, by a signal */
};

static void read_signals(struct run *run)
{
	for (int number; (number = stop_signals_read(run->stop_fd));)
		run->told = run->told || number != SIGCHLD;
}

/* Sample until the session is over. *RET_STOP: it is the last one of this profiling, because of a
 * signal or of a command. */
static struct error *take_session(struct run *run, struct capture *capture, bool *ret_stop)
{
	const struct agent_args *args = run->operations->args;
	uint64_t end_ns = clock_monotonic_ns() + args->duration_ns;

	*ret_stop = false;
	for (uint64_t now_ns; !*ret_stop && (now_ns = clock_monotonic_ns()) < end_ns;) {
		uint64_t left_ms = (end_ns - now_ns + 999999) / 1000000;
		operations_beat(run->operations);
		TRY(capture_wait(capture, left_ms < 1000 ? (unsigned)left_ms : 1000, run->stop_fd));
		read_signals(run);
		*ret_stop = run->told ||
			    (run->heartbeat && heartbeat_waits(run->heartbeat, !args->continuous));
	}
	return NULL;
}

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
static struct error *end_session(struct operations *operations, struct capture *capture,
				 const struct outlet *outlet, struct agent_met *met,
				 struct error **ret_write)
{
	const struct agent_args *args = operations->args;
	_cleanup_profile_ struct profile *profile = NULL;
	_cleanup_free_ char *path = NULL, *arguments = NULL;

	TRY(capture_end_session(capture, &profile));
	profile_facts(profile)->show_objects = args->insert_dso;
	profile_facts(profile)->no_containers = args->api_version != NULL; // v1
	TRY(agent_arguments_print(args, &arguments));
	TRY(metadata_fill(outlet->metadata, arguments, profile));
	agent_tell_met(args, profile, met);
	*ret_write = write_session(outlet, profile, &path);
	operations_count(operations, profile, !*ret_write);
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

static struct error *take_sessions(struct run *run, struct capture *capture)
{
	struct operations *operations = run->operations;
	const struct agent_args *args = operations->args;
	struct agent_met met = {0};
	bool stop;

	do {
		operations_begin_session(operations);
		if (run->logs)
			log_upload_begin_session(run->logs, !args->continuous && !run->heartbeat);
		TRY(take_session(run, capture, &stop));
		if (run->told) {
			operations_stop(operations);
			stop_signals_let_go();
		}
		if (stop || !args->continuous)
			capture_stop(capture);
		struct error *err = NULL;
		TRY(end_session(run->operations, capture, &run->outlet, &met, &err));
		if (err && (stop || !args->continuous))
			return err;
		if (err)
			log_error("%s", error_text(err));
		error_free(err);
		operations_end_session(operations);
	} while (args->continuous && !stop && !operations_over(operations));
	return NULL;
}

static struct error *profile_machine(struct run *run)
{
	const struct agent_args *args = run->operations->args;
	_cleanup_(application_options_deinit) struct application_options applications =
		APPLICATION_OPTIONS_INIT;
	_cleanup_(chosen_deinit) struct chosen chosen = CHOSEN_INIT;
	_cleanup_capture_ struct capture *capture = NULL;

	TRY(choose_pids(args, &chosen));
	TRY(agent_applications(args, &applications));
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
		.containers = args->container_names,
		.applications = args->application_ids ? &applications : NULL,
		.pids = chosen.pids,
		.pid_count = chosen.count,
	};
	sampling_apply(&args->sampling, &options);
	if (agent_mode_off(args->perf_mode) && !strcmp(options.capture, CAPTURE_AUTO))
		options.capture = "poll";
	TRY(capture_open(&options, &capture));
	sampling_tell(capture);
	TRY(capture_start(capture));
	operations_ready(run->operations, capture_name(capture));
	return take_sessions(run, capture);
}

/* What follow.h calls: profile as ARGS say. */
static struct error *profile_for_server(void *data, const struct agent_args *args)
{
	struct run *run = data;
	const struct agent_args *before = run->operations->args;

	run->operations->args = args;
	struct error *err = profile_machine(run);
	run->operations->args = before;
	run->operations->capture = NULL;
	return err;
}

/* What follow.h calls: signals and the life of the controller decide. */
static bool goes_on(void *data, bool idle)
{
	struct run *run = data;
	struct pollfd stop = {.fd = run->stop_fd, .events = POLLIN};

	operations_beat(run->operations);
	if (idle)
		(void)poll(&stop, 1, 1000); // a signal, or nothing
	read_signals(run);
	return !run->told && !operations_over(run->operations);
}

static struct error *follow_commands(struct run *run, const char *token)
{
	const struct agent_args *args = run->operations->args;
	_cleanup_heartbeat_ struct heartbeat *heartbeat = NULL;
	_cleanup_free_ char *memory = NULL;
	char host[HOST_NAME_MAX + 1] = "";

	if (gethostname(host, sizeof(host) - 1) < 0)
		return error_errno("name of this machine");
	TRY(delivery_memory(run->outlet.delivery, &memory));
	const struct heartbeat_settings settings = {
		.server = args->api_server,
		.token = token,
		.service = args->service,
		.host = host,
		.memory = memory,
		.verify = args->verify,
		.interval_ns = args->heartbeat_ns,
	};
	TRY(heartbeat_start(&settings, &heartbeat));
	run->heartbeat = heartbeat;
	const struct follow follow = {
		.heartbeat = heartbeat,
		.args = args,
		.profile = profile_for_server,
		.goes_on = goes_on,
		.data = run,
	};
	operations_ready(run->operations, NULL);
	follow_server(&follow);
	run->heartbeat = NULL;
	return NULL;
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
				.v1 = args->api_version != NULL,
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

static struct error *start_logs(const struct agent_args *args, const char *token, const char *host,
				struct log_upload **ret)
{
	const struct log_upload_settings settings = {
		.server = args->api_server,
		.token = token,
		.service = args->service ? args->service : "databricks",
		.host = host,
		.verify = args->verify,
	};

	return log_upload_start(&settings, ret);
}

static struct error *describe_machine(const struct agent_args *args, struct metadata **ret)
{
	_cleanup_close_ int root_fd = -1;

	TRY(host_open_root(&root_fd));
	return metadata_new(root_fd, args->metadata, ret);
}

static struct error *run_with_outlets(struct run *run, const char *token)
{
	const struct agent_args *args = run->operations->args;
	_cleanup_delivery_ struct delivery *delivery = NULL;
	_cleanup_metadata_ struct metadata *metadata = NULL;

	if (args->directory)
		TRY(prepare_files(&run->outlet.files));
	if (args->upload)
		TRY(open_delivery(args, token, &delivery));
	run->outlet.delivery = delivery;
	run->operations->delivery = delivery;
	TRY(describe_machine(args, &metadata));
	run->outlet.metadata = metadata;
	struct error *err = args->heartbeat ? follow_commands(run, token) : profile_machine(run);
	struct error *unsent = NULL;
	if (delivery)
		unsent = end_delivery(args, delivery);
	if (!err || !unsent)
		return err ? err : unsent;
	log_error("%s", error_text(unsent));
	error_free(unsent); // the first failure goes on
	return err;
}

static struct error *run_with_log(struct operations *operations)
{
	const struct agent_args *args = operations->args;
	struct run run = {
		.operations = operations,
		.outlet = {.files = {.directory = args->directory,
				     .flamegraph = args->flamegraph,
				     .rotate = args->rotate}},
	};
	_cleanup_log_upload_ struct log_upload *logs = NULL;
	_cleanup_token_ char *token = NULL;
	_cleanup_close_ int stop_fd = -1;
	char host[HOST_NAME_MAX + 1] = "";

	if (args->token || args->sending.token_file)
		TRY(token_read(args->token, args->sending.token_file, &token));
	if (gethostname(host, sizeof(host) - 1) < 0)
		return error_errno("name of this machine");
	if (args->upload && args->send_logs && !args->api_version)
		TRY(start_logs(args, token, host, &logs));
	TRY(stop_signals_open(&stop_fd));
	run.logs = logs;
	run.stop_fd = stop_fd;
	struct error *err = run_with_outlets(&run, token);
	if (err)
		log_error("%s", error_text(err));
	else
		log_info("cairn ends");
	return err;
}

/* Run as a service; what ends it is in the log, too. */
static struct error *run_agent(const struct agent_args *args)
{
	_cleanup_(operations_end) struct operations operations = OPERATIONS_INIT;

	TRY(operations_start(args, &operations));
	agent_tell(args);
	if (strcmp(args->mode, "none"))
		return run_with_log(&operations);
	log_error("All profilers are disabled");
	return error_new("All profilers are disabled");
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
