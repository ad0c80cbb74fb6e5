/* SPDX-License-Identifier: Apache-2.0 */
/* The dump command: what each thread of a process is doing, once. */
#define LOG_DOMAIN "dump"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "capture/dump-core.h"
#include "capture/dump-process.h"
#include "cli/child.h"
#include "cli/chosen.h"
#include "cli/dump-print.h"
#include "cli/sampling.h"
#include "cli/thread-filter.h"

enum { LOCALS_MAX = 3, STOP_LIMIT_MAX_MS = 10000 };

struct dump_args {
	struct logging_args logging;
	struct naming_args naming;
	struct uint_list pids, tids;
	struct text_list names, threads, operands, command;
	bool subprocesses, native, kernel, nonblocking, json;
	uint64_t locals, stop_limit_ms, after_ns;
	const char *color, *core;
};

/* All that one run prints. */
struct run {
	const struct dump_args *args;
	struct thread_filter filter;
	struct dump_style style;
};

static void run_deinit(struct run *run)
{
	thread_filter_deinit(&run->filter);
}

static bool is_wanted(void *context, const struct dump_thread *thread)
{
	const struct run *run = context;
	struct thread_who who = {
		.tid = thread->tid,
		.main = thread->main,
		.name = thread->name,
		.python_name = thread->python_name,
	};

	return thread_filter_accepts(&run->filter, &who);
}

/* --- printing */

static const char *const color_words[] = {"auto", "always", "never"};

static const char *color_at(size_t index)
{
	return index < ARRAY_COUNT(color_words) ? color_words[index] : NULL;
}

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value && strcmp(value, "0") != 0;
}

/* By the option, else as NO_COLOR and CLICOLOR say, which many tools follow. */
static bool wants_color(const char *word)
{
	const char *wish = getenv("CLICOLOR"), *terminal = getenv("TERM");

	if (strcmp(word, "auto") != 0)
		return !strcmp(word, "always");
	if (getenv("NO_COLOR") && *getenv("NO_COLOR"))
		return false;
	if (is_set("CLICOLOR_FORCE"))
		return true;
	if ((wish && !strcmp(wish, "0")) || (terminal && !strcmp(terminal, "dumb")))
		return false;
	return isatty(STDOUT_FILENO);
}

static struct error *print(const struct run *run, const struct dump *dump)
{
	if (!dump->count && (run->filter.count || run->filter.tids->count))
		return error_new("process %d has no thread that -t and -L allow", dump->pid);
	if (!run->args->json)
		return dump_print_text(dump, &run->style, stdout);
	dump_print_json(dump, CAIRN_VERSION, stdout);
	return NULL;
}

/* --- processes */

static struct dump_options options_of(struct run *run)
{
	const struct dump_args *args = run->args;

	return (struct dump_options){
		.lines = args->naming.lines,
		.debuginfod = args->naming.debuginfod,
		.native = args->native,
		.kernel = args->kernel,
		.locals = (unsigned)args->locals,
		.nonblocking = args->nonblocking,
		.stop_limit_ms = (unsigned)args->stop_limit_ms,
		.wanted = is_wanted,
		.context = run,
	};
}

static struct error *dump_file(struct run *run)
{
	_cleanup_(dump_deinit) struct dump dump = DUMP_INIT;
	const struct dump_args *args = run->args;
	struct dump_options options = options_of(run);
	struct dump_core_source source = {
		.path = args->core,
		.exe = args->operands.count ? args->operands.items[0] : NULL,
	};

	TRY(dump_core(&source, &options, &dump));
	return print(run, &dump);
}

static struct error *dump_one(struct run *run, uint32_t pid)
{
	_cleanup_(dump_deinit) struct dump dump = DUMP_INIT;
	struct dump_options options = options_of(run);

	TRY(dump_process((pid_t)pid, &options, &dump));
	return print(run, &dump);
}

/* Of several processes one that cannot be looked at does not keep the others from it. */
static struct error *dump_each(struct run *run, const struct chosen *chosen)
{
	size_t failed = 0;

	for (size_t i = 0; i < chosen->count; i++) {
		struct error *err = dump_one(run, chosen->pids[i]);
		if (err && chosen->count == 1)
			return err;
		if (err)
			log_warning("%s", error_text(err));
		failed += err != NULL;
		error_free(err); // told above; the count is the result
	}
	if (failed == chosen->count)
		return error_new("none of %zu processes could be looked at", failed);
	return NULL;
}

static struct error *choose(const struct dump_args *args, struct chosen *chosen)
{
	uint64_t pid;

	for (size_t i = 0; i < args->operands.count; i++) {
		if (!str_parse_u64(args->operands.items[i], 1, CHOSEN_PID_MAX, &pid))
			return error_new("\"%s\" is no process id; processes are found by name "
					 "with -N",
					 args->operands.items[i]);
		TRY(chosen_add(chosen, pid));
	}
	TRY(chosen_add_pids(chosen, &args->pids));
	TRY(chosen_add_names(chosen, &args->names));
	return args->subprocesses ? chosen_add_children(chosen) : NULL;
}

/* --- a command */

/* Has CHILD ended? *STATUS is its exit status as shells have it. */
static bool has_ended(const struct child *child, int options, int *status)
{
	int how;

	if (waitpid(child->pid, &how, options) != child->pid)
		return false;
	*status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
	return true;
}

/* Wait until UNTIL_NS, or for the end of CHILD: then *RET. What we are told to end by, it is. */
static struct error *wait_for(const struct child *child, int stop_fd, uint64_t until_ns, bool *ret,
			      int *status)
{
	*ret = false;
	for (uint64_t now_ns; !*ret && (now_ns = clock_monotonic_ns()) < until_ns;) {
		uint64_t left_ms = (until_ns - now_ns) / 1000000 + 1;
		struct pollfd wait = {.fd = stop_fd, .events = POLLIN};
		if (poll(&wait, 1, left_ms < 1000000 ? (int)left_ms : 1000000) < 0)
			return error_errno("wait for the command");
		// A terminal's Ctrl-C has reached the command already.
		for (int number; (number = stop_signals_read(stop_fd));)
			if (number == SIGTERM || number == SIGHUP)
				kill(child->pid, number);
		*ret = has_ended(child, WNOHANG, status);
	}
	return NULL;
}

static struct error *dump_command(struct run *run, int *ret_status)
{
	const struct dump_args *args = run->args;
	_cleanup_(child_deinit) struct child child = CHILD_INIT;
	_cleanup_(chosen_deinit) struct chosen chosen = CHOSEN_INIT;
	_cleanup_close_ int stop_fd = -1;
	struct error *err = NULL;
	bool ended;

	TRY(stop_signals_open(&stop_fd));
	TRY(child_start(&args->command, &child));
	TRY(child_release(&child));
	TRY(wait_for(&child, stop_fd, clock_monotonic_ns() + args->after_ns, &ended, ret_status));
	TRY(child_check(&child, &args->command));
	if (ended)
		return error_new("%s ended within %.3g s, with status %d: nothing was left to "
				 "look at (--after)",
				 args->command.items[0], (double)args->after_ns / 1e9, *ret_status);
	TRY(chosen_add(&chosen, (uint64_t)child.pid));
	if (args->subprocesses)
		TRY(chosen_add_children(&chosen));
	err = dump_each(run, &chosen);
	fflush(stdout);
	if (err)
		log_error("%s", error_text(err));
	error_free(err); // the command goes on, and its end is ours
	return wait_for(&child, stop_fd, UINT64_MAX, &ended, ret_status);
}

/* --- the command line */

static struct error *dump_check(void *data)
{
	const struct dump_args *args = data;
	_cleanup_(thread_filter_deinit) struct thread_filter filter = THREAD_FILTER_INIT;
	bool process = args->operands.count || args->pids.count || args->names.count;

	if (args->core && (args->pids.count || args->names.count || args->command.count ||
			   args->operands.count > 1))
		return error_new("--core goes with no process; the program's file may stand behind "
				 "it");
	if (args->core)
		return thread_filter_init(&filter, &args->threads, &args->tids);
	if (!process && !args->command.count)
		return error_new("say what to look at: a process id, -N NAME, --core FILE, "
				 "or -- COMMAND");
	if (process && args->command.count)
		return error_new("a command after -- goes with no other process");
	return thread_filter_init(&filter, &args->threads, &args->tids);
}

static struct error *dump_run(const void *data, int *ret_status)
{
	const struct dump_args *args = data;
	_cleanup_(run_deinit) struct run run = {.args = args};
	_cleanup_(chosen_deinit) struct chosen chosen = CHOSEN_INIT;

	logging_apply(&args->logging);
	run.style.color = wants_color(args->color);
	TRY(thread_filter_init(&run.filter, &args->threads, &args->tids));
	if (args->core)
		return dump_file(&run);
	if (args->command.count)
		return dump_command(&run, ret_status);
	TRY(choose(args, &chosen));
	return dump_each(&run, &chosen);
}

static const struct option_row dump_options[] = {
	{.name = "pid",
	 .letter = 'p',
	 .kind = OPTION_UINTS,
	 .at = offsetof(struct dump_args, pids),
	 .min = 1,
	 .max = CHOSEN_PID_MAX,
	 .value = "PID",
	 .help = "look at these processes"},
	{.name = "name",
	 .letter = 'N',
	 .kind = OPTION_LIST,
	 .at = offsetof(struct dump_args, names),
	 .value = "REGEX",
	 .help = "look at the processes whose name matches, as pgrep does"},
	{.name = "subprocesses",
	 .letter = 's',
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct dump_args, subprocesses),
	 .help = "also look at what the chosen processes have forked"},
	{.name = "children",
	 .letter = 'C',
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct dump_args, subprocesses),
	 .help = "another name for -s"},
	{.name = "core",
	 .kind = OPTION_FILE,
	 .at = offsetof(struct dump_args, core),
	 .help = "look at a core file, packed by gzip, xz or zstd or not; an operand is the "
		 "program's file then"},
	{.name = "after",
	 .kind = OPTION_SECONDS,
	 .at = offsetof(struct dump_args, after_ns),
	 .fallback_text = "1",
	 .min = 0,
	 .help = "how long a command after -- runs before it is looked at"},
	{.name = "threads",
	 .alias = "thread",
	 .letter = 't',
	 .kind = OPTION_LIST,
	 .at = offsetof(struct dump_args, threads),
	 .value = "REGEX",
	 .help = "only threads whose name matches; main is the first thread, !REGEX leaves out; "
		 "others are neither read nor stopped"},
	{.name = "tid",
	 .letter = 'L',
	 .kind = OPTION_UINTS,
	 .at = offsetof(struct dump_args, tids),
	 .min = 1,
	 .max = CHOSEN_PID_MAX,
	 .value = "TID",
	 .help = "only these threads"},
	{.name = "locals",
	 .letter = 'l',
	 .kind = OPTION_COUNT,
	 .at = offsetof(struct dump_args, locals),
	 .max = LOCALS_MAX,
	 .help = "show arguments and local variables of interpreted functions; twice: more of "
		 "each; "
		 "three times: functions, classes and modules, too"},
	{.name = "native",
	 .alias = "native-all",
	 .letter = 'n',
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct dump_args, native),
	 .help = "show the interpreter's own functions between those of the program, too"},
	{.name = "kernel",
	 .letter = 'k',
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct dump_args, kernel),
	 .help = "show where each thread is in the kernel, too; needs root"},
	{.name = "nonblocking",
	 .alias = "no-block",
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct dump_args, nonblocking),
	 .help = "stop no thread, not even for a moment: those that run have no stack then"},
	{.name = "stop-limit",
	 .kind = OPTION_UINT,
	 .at = offsetof(struct dump_args, stop_limit_ms),
	 .fallback = 10,
	 .min = 1,
	 .max = STOP_LIMIT_MAX_MS,
	 .unit = "ms",
	 .value = "MS",
	 .help = "a thread that runs is stopped no longer than that; threads that wait are never "
		 "stopped"},
	{.name = "json",
	 .letter = 'j',
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct dump_args, json),
	 .help = "write JSON, one line for each process"},
	{.name = "color",
	 .kind = OPTION_CHOICE,
	 .at = offsetof(struct dump_args, color),
	 .choice = color_at,
	 .fallback_text = "auto",
	 .help = "colors; auto: on a terminal, unless NO_COLOR or CLICOLOR=0 is set"},
	{.kind = OPTION_GROUP, .at = offsetof(struct dump_args, naming), .group = options_naming},
	{.kind = OPTION_GROUP, .at = offsetof(struct dump_args, logging), .group = options_logging},
	{0},
};

static const struct command_example dump_examples[] = {
	{"cairn dump 4711", "what all threads of a process are doing"},
	{"cairn dump 4711 -t main", "only its first thread"},
	{"cairn dump -N nginx -t '!log' -j", "processes by name, as JSON"},
	{"cairn dump --core core.4711 -l", "where a program crashed, with its variables"},
	{"cairn dump --after 600 -- make test", "a command that has not ended after ten minutes"},
	{0},
};

static const struct command_hint dump_hints[] = {
	{"-c", "a core file is given with --core"},
	{"-i", "threads that wait are shown always"},
	{"--no-color", "it is --color never here"},
	{"--no-line", "it is --no-lines here"},
	{0},
};

const struct command command_dump = {
	.name = "dump",
	.help = "show what each thread of a process is doing: stack, and what it waits for",
	.text = "Prints the stack of every thread, the innermost function first. A stack that "
		"could "
		"not be walked to its root ends with [cut: reason]. Threads with equal stacks are "
		"told together. Below a thread that runs an event loop of asyncio stand its tasks, "
		"and who waits for whom.\n\n"
		"With a command after -- cairn starts it, looks at it once and lets it go on; its "
		"exit status is cairn's then.",
	.operands = "[PID...|EXE]",
	.operands_max = 4096,
	.operands_at = offsetof(struct dump_args, operands),
	.takes_command = true,
	.command_at = offsetof(struct dump_args, command),
	.options = dump_options,
	.examples = dump_examples,
	.hints = dump_hints,
	.args_size = sizeof(struct dump_args),
	.check = dump_check,
	.run = dump_run,
};
