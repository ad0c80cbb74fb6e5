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

#include "agent/log-file.h"
#include "agent/marks.h"
#include "agent/notify.h"
#include "agent/preconditions.h"
#include "base/clock.h"
#include "cli/agent-options.h"

const struct option_row options_operations[] = {
	{.name = "beside-others",
	 .whole = true,
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct operations_args, several),
	 .help = "allow other agents, gProfiler's or cairn's, to run at the same time"},
	{0},
};

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
	ret->watchdog_ns = notify_watchdog_ns();
	return NULL;
}

void operations_end(struct operations *operations)
{
	if (operations->has_pid_file)
		marks_remove_pid(operations->args->pid_file);
	log_remove_sink(&operations->file);
	log_remove_sink(&operations->console);
	log_file_free(operations->log);
	if (operations->lock_fd >= 0)
		close(operations->lock_fd);
	*operations = (struct operations)OPERATIONS_INIT;
}

void operations_ready(struct operations *operations)
{
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

void operations_beat(struct operations *operations)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (!operations->watchdog_ns || now_ns < operations->watchdog_next_ns)
		return;
	notify_send("WATCHDOG=1");
	operations->watchdog_next_ns = now_ns + operations->watchdog_ns;
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
