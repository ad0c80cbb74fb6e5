/* SPDX-License-Identifier: Apache-2.0 */
/* The agent as a service: the parts are in agent/, here is what the options say of them. */
#define LOG_DOMAIN "agent"
#include "cli/operations.h"

#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/delivery.h"
#include "agent/log-file.h"
#include "agent/marks.h"
#include "agent/notify.h"
#include "agent/preconditions.h"
#include "agent/status.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/agent-options.h"

const struct option_row options_operations[] = {
	{.name = "beside-others",
	 .whole = true,
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct operations_args, several),
	 .help = "allow other agents, gProfiler's or cairn's, to run at the same time"},
	{.name = "status-socket",
	 .whole = true,
	 .kind = OPTION_FILE,
	 .at = offsetof(struct operations_args, status_socket),
	 .help = "where cairn status finds the agent; unless given /run/cairn/agent.sock, and "
		 "below $XDG_RUNTIME_DIR without root"},
	{0},
};

enum { CLIENTS_MAX = 8 }; // at one beat; more of them wait for the next

/* What the agent is and makes, whoever started it. */
static void prepare_process(const struct agent_args *args)
{
	const struct rlimit none = {0, 0};

	// A core of the agent would hold the token, and what it has read of other processes.
	if (args->no_core_files)
		(void)setrlimit(RLIMIT_CORE, &none);
	umask(022);
	(void)signal(SIGPIPE, SIG_IGN); // whoever read standard output may go away
}

/* Lines go to standard output, and to the file if there can be one. */
static struct error *open_log(const struct agent_args *args, struct operations *operations)
{
	const struct log_file_settings settings = {
		.path = args->log_file,
		.bytes_max = args->log_bytes,
		.backups = (unsigned)args->log_backups,
	};
	bool asked = agent_asked(args, offsetof(struct agent_args, log_file)) != NULL;

	if (!args->logging.quiet)
		log_set_level(args->logging.verbose ? LOG_DEBUG : LOG_INFO);
	struct error *err = log_file_open(&settings, &operations->log);
	if (err && asked)
		return err;
	operations->console = (struct log_sink){.write = log_console_write};
	(void)log_add_sink(&operations->console); // the first two of four
	if (err) {
		// Without root that is to be expected.
		if (!geteuid())
			log_warning("no log is kept: %s", error_text(err));
		error_free(err);
		return NULL;
	}
	operations->file = (struct log_sink){log_file_write, operations->log, .all = true};
	(void)log_add_sink(&operations->file);
	return NULL;
}

static void write_pid_file(struct operations *operations)
{
	const struct agent_args *args = operations->args;
	struct error *err = marks_write_pid(args->pid_file);

	operations->has_pid_file = !err;
	if (err && (!geteuid() || agent_asked(args, offsetof(struct agent_args, pid_file))))
		log_warning("%s", error_text(err));
	error_free(err); // gProfiler goes on, too
}

/* Listen for those who ask for the status. */
static struct error *open_status(struct operations *operations)
{
	const char *asked = operations->args->operations.status_socket;
	struct error *err = NULL;

	if (asked)
		TRY(str_copy(&operations->status_path, asked));
	else
		TRY(status_path(!geteuid(), &operations->status_path));
	if (operations->status_path)
		err = status_listen(operations->status_path, &operations->status_fd);
	if (err && asked)
		return err;
	if (err)
		log_info("nobody can ask for the status: %s", error_text(err));
	error_free(err);
	return NULL;
}

struct error *operations_start(const struct agent_args *args, struct operations *ret)
{
	const struct preconditions wanted = {
		.rootless = args->rootless,
		.any_pidns = !args->pidns_check || agent_on_fargate(),
		.log_usage = args->log_usage,
		.in_container = preconditions_in_container(),
		.several = args->operations.several,
	};

	ret->args = args;
	TRY(preconditions_check(&wanted, &ret->lock_fd));
	TRY(controller_find((pid_t)args->controller, &ret->controller));
	prepare_process(args);
	TRY(open_log(args, ret));
	log_info("cairn %s starts pid=%d", CAIRN_VERSION, getpid());
	write_pid_file(ret);
	TRY(open_status(ret));
	ret->watchdog_ns = notify_watchdog_ns();
	ret->start_realtime_ns = clock_realtime_ns();
	return NULL;
}

void operations_end(struct operations *operations)
{
	if (operations->has_pid_file)
		marks_remove_pid(operations->args->pid_file);
	if (operations->status_fd >= 0) {
		close(operations->status_fd);
		(void)unlink(operations->status_path);
	}
	free(operations->status_path);
	log_remove_sink(&operations->file);
	log_remove_sink(&operations->console);
	log_file_free(operations->log);
	if (operations->lock_fd >= 0)
		close(operations->lock_fd);
	*operations = (struct operations)OPERATIONS_INIT;
}

void operations_ready(struct operations *operations, const char *capture)
{
	operations->capture = capture;
	notify_send("READY=1\nSTATUS=taking samples");
}

static void read_usage(struct usage *ret)
{
	struct error *err = usage_read(ret);

	if (err)
		log_warning("%s", error_text(err));
	error_free(err);
}

void operations_begin_session(struct operations *operations)
{
	const struct agent_args *args = operations->args;
	struct error *err = NULL;

	if (args->heartbeat_file && args->continuous)
		err = marks_touch(args->heartbeat_file);
	if (err)
		log_warning("%s", error_text(err));
	error_free(err); // the next session tries again
	operations->session_ns = clock_monotonic_ns();
	if (args->log_usage)
		read_usage(&operations->usage);
}

/* "NAME 2026-01-02T03:04:05", if there is such a time. */
static struct error *add_time(struct strbuf *text, const char *name, uint64_t realtime_ns)
{
	char time[20];

	if (!realtime_ns)
		return NULL;
	clock_format_utc(realtime_ns, time);
	return strbuf_addf(text, "%s %s\n", name, time);
}

static struct error *add_delivery(struct strbuf *text, struct delivery *delivery)
{
	const struct delivery_state state = delivery_state(delivery);

	TRY(strbuf_addf(text,
			"sent %" PRIu64 "\nsent_refused %" PRIu64 "\nwaiting %" PRIu64
			"\nwaiting_bytes %" PRIu64 "\nwaiting_in_memory %" PRIu64
			"\ndropped %" PRIu64 "\ndamaged %" PRIu64 "\n",
			state.sender.sent, state.sender.refused, state.spool.waiting,
			state.spool.waiting_bytes, state.spool.in_memory, state.spool.dropped,
			state.spool.damaged));
	TRY(add_time(text, "last_sent", state.sender.last_sent_ns));
	if (!*state.sender.problem)
		return NULL;
	// It is the server's words: a line stays a line.
	TRY(strbuf_addf(text, "problem "));
	for (const char *at = state.sender.problem; *at; at++)
		TRY(strbuf_add(text, (unsigned char)*at < 0x20 ? " " : at, 1));
	return strbuf_add(text, "\n", 1);
}

static struct error *print_status(const struct operations *operations, struct strbuf *text)
{
	TRY(strbuf_addf(text, "version %s\npid %d\ncapture %s\n", CAIRN_VERSION, getpid(),
			operations->capture ? operations->capture : "none"));
	TRY(add_time(text, "started", operations->start_realtime_ns));
	TRY(strbuf_addf(text,
			"sessions %" PRIu64 "\nsessions_failed %" PRIu64 "\nsamples %" PRIu64
			"\nsamples_lost %" PRIu64 "\n",
			operations->sessions, operations->failed, operations->samples,
			operations->lost));
	TRY(add_time(text, "last_session", operations->end_realtime_ns));
	return operations->delivery ? add_delivery(text, operations->delivery) : NULL;
}

static void answer_clients(struct operations *operations)
{
	for (int i = 0; i < CLIENTS_MAX && operations->status_fd >= 0; i++) {
		_cleanup_(strbuf_deinit) struct strbuf text = STRBUF_INIT;
		int client = status_accept(operations->status_fd);
		if (client < 0)
			return;
		struct error *err = print_status(operations, &text);
		status_answer(client, !err && text.text ? text.text : "");
		error_free(err); // the client sees that there is no answer
	}
}

void operations_beat(struct operations *operations)
{
	answer_clients(operations);
	uint64_t now_ns = clock_monotonic_ns();

	if (!operations->watchdog_ns || now_ns < operations->watchdog_next_ns)
		return;
	notify_send("WATCHDOG=1");
	operations->watchdog_next_ns = now_ns + operations->watchdog_ns;
}

void operations_count(struct operations *operations, const struct profile *profile, bool written)
{
	const struct session_facts *facts = profile_facts_const(profile);

	operations->sessions += written;
	operations->failed += !written;
	operations->samples += facts->samples;
	operations->lost += facts->lost;
	operations->end_realtime_ns = facts->end_realtime_ns;
}

void operations_end_session(struct operations *operations)
{
	uint64_t wall_ns = clock_monotonic_ns() - operations->session_ns;
	struct usage now = {0};

	operations_beat(operations);
	if (!operations->args->log_usage)
		return;
	read_usage(&now);
	// The group may have been made anew in between, with its clock at 0.
	if (now.has_cpu && operations->usage.has_cpu && now.cpu_ns >= operations->usage.cpu_ns)
		log_info("usage cpu_seconds=%.3f wall_seconds=%.3f",
			 (double)(now.cpu_ns - operations->usage.cpu_ns) / 1e9,
			 (double)wall_ns / 1e9);
	else
		log_warning("the control group does not say what CPU time it took");
	if (now.has_memory)
		log_info("usage memory_bytes=%" PRIu64, now.memory_bytes);
	else
		log_warning("the control group does not say what memory it takes");
}

bool operations_over(struct operations *operations)
{
	if (!controller_ended(&operations->controller))
		return false;
	log_info("Controller process %d has exited; gProfiler stopping...",
		 operations->controller.pid);
	return true;
}

void operations_stop(struct operations *operations)
{
	if (!operations->stopping)
		notify_send("STOPPING=1\nSTATUS=writing the last session");
	operations->stopping = true;
}
