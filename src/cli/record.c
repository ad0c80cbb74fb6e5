/* SPDX-License-Identifier: Apache-2.0 */
/* The record command: one session, one file. */
#define LOG_DOMAIN "record"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/child.h"
#include "cli/chosen.h"
#include "cli/sampling.h"
#include "formats/format.h"
#include "proc/cpus.h"
#include "proc/process.h"

enum { SLICE_MS = 250 };

struct record_args {
	struct logging_args logging;
	struct sampling_args sampling;
	struct naming_args naming;
	bool all, subprocesses, user_only, kernel_only, by_thread, native, versions;
	struct uint_list pids, tids, cpus;
	struct text_list names, cgroups, operands, command;
	uint64_t hz, period, duration_ns;
	const char *event, *output, *format, *mode;
};

/* What is sampled, and the command that was started for it. */
struct subject {
	struct chosen chosen;
	uint32_t *tids, *cpus;
	size_t tid_count;
	uint64_t duration_ns; /* 0: until told to stop */
	struct child child;
};

static void subject_deinit(struct subject *subject)
{
	chosen_deinit(&subject->chosen);
	free(subject->tids);
	free(subject->cpus);
	child_deinit(&subject->child);
}

static const char *event_name(size_t index)
{
	const struct perf_event_row *row = perf_event_at(index);

	return row ? row->name : NULL;
}

static const char *mode_at(size_t index)
{
	static const char *const modes[] = {"cpu", "gil", "wall"};

	return index < ARRAY_COUNT(modes) ? modes[index] : NULL;
}

static const char *format_name(size_t index)
{
	const struct format *format = format_at(index);

	return format ? format->name : NULL;
}

/* Do the options say what to sample? */
static bool has_target(const struct record_args *args)
{
	return args->all || args->pids.count || args->tids.count || args->names.count ||
	       args->cgroups.count || args->command.count;
}

/* Operands: a pid if nothing else says what to sample, then a duration. */
static struct error *take_operands(const struct record_args *args, struct subject *subject)
{
	size_t used = 0;
	uint64_t number;

	if (!has_target(args) && args->operands.count) {
		if (!str_parse_u64(args->operands.items[0], 1, CHOSEN_PID_MAX, &number))
			return error_new("\"%s\" is no process id; sample by name with -N",
					 args->operands.items[0]);
		TRY(chosen_add(&subject->chosen, number));
		used++;
	}
	if (used < args->operands.count) {
		if (!str_parse_u64(args->operands.items[used], 1, 1000000, &number))
			return error_new("\"%s\" is no duration in seconds",
					 args->operands.items[used]);
		subject->duration_ns = number * 1000000000u;
		used++;
	}
	if (used < args->operands.count)
		return error_new("\"%s\" is one word too many", args->operands.items[used]);
	return NULL;
}

static struct error *find_subject(const struct record_args *args, struct subject *subject)
{
	subject->duration_ns = args->duration_ns;
	TRY(take_operands(args, subject));
	TRY(chosen_add_pids(&subject->chosen, &args->pids));
	for (size_t i = 0; i < args->tids.count; i++)
		if (kill((pid_t)args->tids.items[i], 0) < 0 && errno == ESRCH)
			return error_new("there is no thread %" PRIu64, args->tids.items[i]);
	TRY(chosen_add_names(&subject->chosen, &args->names));
	TRY(sampling_ids(&args->tids, &subject->tids));
	subject->tid_count = args->tids.count;
	return sampling_ids(&args->cpus, &subject->cpus);
}

/* By name, by the suffix of the output, else a flame graph. */
static const struct format *choose_format(const struct record_args *args)
{
	const struct format *format = NULL;

	if (args->format)
		format = format_find(args->format);
	else if (args->output)
		format = format_of_path(args->output);
	return format ? format : format_find("html");
}

/* "cairn-20260102-030405.html" when the user named no file. */
static struct error *choose_path(const struct record_args *args, const struct format *format,
				 char **ret)
{
	char time[20];

	if (args->output)
		return str_copy(ret, args->output);
	clock_format_utc(clock_realtime_ns(), time);
	return str_format(ret, "cairn-%.4s%.2s%.2s-%.2s%.2s%.2s%s", time, time + 5, time + 8,
			  time + 11, time + 14, time + 17, format->suffix);
}

static void show_progress(const struct capture *capture, uint64_t begin_ns, bool last)
{
	uint64_t samples, cut;

	capture_progress(capture, &samples, &cut);
	fprintf(stderr, "\r%6.1f s  %" PRIu64 " samples, %" PRIu64 " cut%s",
		(double)(clock_monotonic_ns() - begin_ns) / 1e9, samples, cut,
		last ? "\n" : "  (Ctrl-C ends)");
	fflush(stderr);
}

/* Have all processes and threads that were named ended? */
static bool subject_gone(const struct subject *subject)
{
	for (size_t i = 0; i < subject->chosen.count; i++)
		if (!kill((pid_t)subject->chosen.pids[i], 0) || errno != ESRCH)
			return false;
	for (size_t i = 0; i < subject->tid_count; i++)
		if (!kill((pid_t)subject->tids[i], 0) || errno != ESRCH)
			return false;
	return subject->chosen.count + subject->tid_count > 0;
}

/* Has the session been told to end? The command's own end counts when all else waits for it. */
static bool told_to_stop(const struct subject *subject, int stop_fd)
{
	for (int number; (number = stop_signals_read(stop_fd));) {
		if (number != SIGCHLD)
			return true;
		if (subject->child.pid &&
		    waitpid(subject->child.pid, NULL, WNOHANG) == subject->child.pid)
			return true;
	}
	return false;
}

static struct error *sample_until_end(struct capture *capture, struct subject *subject, int stop_fd,
				      const struct record_args *args)
{
	uint64_t begin_ns = clock_monotonic_ns();
	uint64_t end_ns = subject->duration_ns ? begin_ns + subject->duration_ns : UINT64_MAX;
	bool progress = isatty(STDERR_FILENO) && !args->logging.quiet;

	TRY(child_release(&subject->child));
	for (uint64_t now_ns = begin_ns; now_ns < end_ns; now_ns = clock_monotonic_ns()) {
		uint64_t left_ms = (end_ns - now_ns + 999999) / 1000000;
		TRY(capture_wait(capture, left_ms < SLICE_MS ? (unsigned)left_ms : SLICE_MS,
				 stop_fd));
		if (progress)
			show_progress(capture, begin_ns, false);
		if (told_to_stop(subject, stop_fd) ||
		    (!args->subprocesses && subject_gone(subject)))
			break;
	}
	capture_stop(capture);
	if (progress)
		show_progress(capture, begin_ns, true);
	return NULL;
}

/* What a reader has to know before they trust the picture. */
static void print_summary(const struct profile *profile, const char *path)
{
	const struct session_facts *facts = profile_facts_const(profile);
	uint64_t cut = 0;

	for (size_t i = 0; i < facts->cut_count; i++)
		cut += facts->cuts[i].samples;
	fprintf(stderr, "%s: %" PRIu64 " samples, %.1f %% of the stacks whole", path,
		facts->samples,
		facts->samples ? 100.0 * (double)(facts->samples - cut) / (double)facts->samples
			       : 0);
	for (size_t i = 0; i < facts->cut_count; i++)
		fprintf(stderr, "%s %" PRIu64 " %s", i ? "," : "; cut:", facts->cuts[i].samples,
			facts->cuts[i].reason);
	fprintf(stderr, "; %" PRIu64 " lost\n", facts->lost);
	for (size_t i = 0; i < facts->note_count; i++)
		fprintf(stderr, "note: %s\n", profile_text(profile, facts->notes[i], NULL));
}

static struct error *name_session(struct profile *profile, const struct record_args *args)
{
	_cleanup_(strbuf_deinit) struct strbuf title = STRBUF_INIT;
	struct session_facts *facts = profile_facts(profile);

	if (args->command.count)
		for (size_t i = 0; i < args->command.count; i++)
			TRY(strbuf_addf(&title, "%s%s", i ? " " : "", args->command.items[i]));
	else if (args->names.count)
		TRY(strbuf_addf(&title, "processes named %s", args->names.items[0]));
	else if (args->pids.count)
		TRY(strbuf_addf(&title, "process %" PRIu64, args->pids.items[0]));
	else if (args->all)
		TRY(strbuf_addf(&title, "whole machine"));
	if (!title.length)
		return NULL;
	return profile_string(profile, title.text, title.length, &facts->title);
}

static struct error *write_profile(const struct profile *profile, const struct format *format,
				   const char *path, struct file_writer *writer)
{
	struct error *err = format->write(profile, writer->stream);

	return err ? error_wrap(err, "%s", path) : file_writer_commit(writer);
}

static struct error *record(const struct record_args *args, struct subject *subject, int stop_fd)
{
	const struct format *format = choose_format(args);
	_cleanup_(file_writer_deinit) struct file_writer writer = FILE_WRITER_INIT;
	_cleanup_capture_ struct capture *capture = NULL;
	_cleanup_profile_ struct profile *profile = NULL;
	_cleanup_free_ char *path = NULL;
	struct capture_options options = {
		.event = args->event,
		.hz = args->period ? 0 : (unsigned)args->hz,
		.period = args->period,
		.lines = args->naming.lines,
		.debuginfod = args->naming.debuginfod,
		.kernel_stacks = !args->user_only,
		.user_stacks = !args->kernel_only,
		.by_thread = args->by_thread,
		.native = args->native,
		.only_gil = !strcmp(args->mode, "gil"),
		.wall = !strcmp(args->mode, "wall"),
		.python = true,
		.python_versions = args->versions,
		.containers = true,
		.pids = subject->chosen.pids,
		.pid_count = subject->chosen.count,
		.children = args->subprocesses || subject->child.pid,
		.tids = subject->tids,
		.tid_count = args->tids.count,
		.cpus = subject->cpus,
		.cpu_count = args->cpus.count,
		.cgroups = (const char *const *)args->cgroups.items,
		.cgroup_count = args->cgroups.count,
	};

	// Before sampling: nobody wants to learn afterwards that the directory is missing.
	TRY(choose_path(args, format, &path));
	TRY(file_writer_open(path, &writer));
	sampling_apply(&args->sampling, &options);
	TRY(capture_open(&options, &capture));
	sampling_tell(capture);
	TRY(capture_start(capture));
	TRY(sample_until_end(capture, subject, stop_fd, args));
	TRY(child_check(&subject->child, &args->command));
	TRY(capture_end_session(capture, &profile));
	TRY(name_session(profile, args));
	TRY(write_profile(profile, format, path, &writer));
	if (!args->logging.quiet)
		print_summary(profile, path);
	return NULL;
}

static struct error *record_check(void *data)
{
	const struct record_args *args = data;

	if (args->user_only && args->kernel_only)
		return error_new("-U and -K exclude each other");
	if (args->kernel_only && strcmp(args->mode, "cpu") != 0)
		return error_new("-m %s needs user stacks, which -K leaves out", args->mode);
	if (!strcmp(args->mode, "wall") &&
	    (args->period || args->cgroups.count || args->cpus.count))
		return error_new("-m wall looks at threads by the clock: -c, -G and --cpus do not "
				 "go with it");
	if (args->all && (args->pids.count || args->names.count || args->tids.count ||
			  args->cgroups.count || args->command.count))
		return error_new("-a samples everything; it goes with no other choice");
	if (args->tids.count && (args->pids.count || args->names.count || args->command.count))
		return error_new(
			"-L chooses threads; it goes with neither processes nor a command");
	if (!has_target(args) && !args->operands.count)
		return error_new("say what to sample: -a for everything, a process id, -N NAME, or "
				 "-- COMMAND");
	return NULL;
}

static struct error *record_run(const void *data, int *ret_status)
{
	const struct record_args *args = data;
	_cleanup_(subject_deinit) struct subject subject = {.child = CHILD_INIT};
	_cleanup_close_ int stop_fd = -1;

	logging_apply(&args->logging);
	TRY(stop_signals_open(&stop_fd));
	TRY(find_subject(args, &subject));
	if (args->command.count) {
		TRY(child_start(&args->command, &subject.child));
		TRY(chosen_add(&subject.chosen, (uint64_t)subject.child.pid));
	}
	sampling_prepare_process();
	return record(args, &subject, stop_fd);
}

static const struct option_row record_options[] = {
	{.name = "all",
	 .letter = 'a',
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct record_args, all),
	 .help = "sample every process of the machine, and the kernel"},
	{.name = "pid",
	 .letter = 'p',
	 .kind = OPTION_UINTS,
	 .at = offsetof(struct record_args, pids),
	 .min = 1,
	 .max = CHOSEN_PID_MAX,
	 .value = "PID",
	 .help = "sample these processes"},
	{.name = "name",
	 .letter = 'N',
	 .kind = OPTION_LIST,
	 .at = offsetof(struct record_args, names),
	 .value = "REGEX",
	 .help = "sample the processes whose name matches, as pgrep does"},
	{.name = "tid",
	 .letter = 'L',
	 .kind = OPTION_UINTS,
	 .at = offsetof(struct record_args, tids),
	 .min = 1,
	 .max = CHOSEN_PID_MAX,
	 .value = "TID",
	 .help = "sample these threads"},
	{.name = "cgroup",
	 .letter = 'G',
	 .kind = OPTION_LIST,
	 .at = offsetof(struct record_args, cgroups),
	 .value = "DIR",
	 .help = "sample these control groups, given as directories below /sys/fs/cgroup"},
	{.name = "cpus",
	 .kind = OPTION_UINTS,
	 .at = offsetof(struct record_args, cpus),
	 .max = CPUS_MAX - 1,
	 .value = "CPU",
	 .help = "sample on these CPUs"},
	{.name = "subprocesses",
	 .letter = 's',
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct record_args, subprocesses),
	 .help = "also sample what the chosen processes fork"},
	{.name = "frequency",
	 .alias = "rate",
	 .letter = 'F',
	 .kind = OPTION_UINT,
	 .at = offsetof(struct record_args, hz),
	 .fallback = 99,
	 .min = 1,
	 .max = 10000,
	 .unit = "Hz",
	 .help = "samples per second on each CPU"},
	{.name = "count",
	 .letter = 'c',
	 .kind = OPTION_UINT,
	 .at = offsetof(struct record_args, period),
	 .min = 1,
	 .value = "EVENTS",
	 .help = "one sample every so many events, instead of a frequency"},
	{.name = "event",
	 .letter = 'e',
	 .kind = OPTION_CHOICE,
	 .at = offsetof(struct record_args, event),
	 .choice = event_name,
	 .fallback_text = "cpu-clock",
	 .help = "what drives sampling; cycles, instructions, branches and those of the cache need "
		 "a hardware counter"},
	{.name = "mode",
	 .letter = 'm',
	 .kind = OPTION_CHOICE,
	 .at = offsetof(struct record_args, mode),
	 .choice = mode_at,
	 .fallback_text = "cpu",
	 .help = "which threads: cpu, those that run; gil, those that run and hold Python's global "
		 "interpreter lock; wall, all of them, also those that wait"},
	{.name = "by-thread",
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct record_args, by_thread),
	 .help = "tell threads apart: a frame \"thread TID: NAME\" at the root of each stack; the "
		 "name that Python's threading gave, or the kernel's"},
	{.name = "native",
	 .letter = 'n',
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct record_args, native),
	 .help = "also the C frames by which an interpreter evaluates Python frames"},
	{.name = "no-python-versions",
	 .kind = OPTION_FLAG_OFF,
	 .at = offsetof(struct record_args, versions),
	 .help = "do not look up the package and version that a Python file belongs to"},
	{.name = "duration",
	 .letter = 'd',
	 .kind = OPTION_SECONDS,
	 .at = offsetof(struct record_args, duration_ns),
	 .min = 1000000,
	 .help = "how long; without it until Ctrl-C, or until what is sampled has ended"},
	{.name = "output",
	 .letter = 'o',
	 .kind = OPTION_FILE,
	 .at = offsetof(struct record_args, output),
	 .help = "where to write; without it cairn-TIME with the format's suffix"},
	{.name = "format",
	 .letter = 'f',
	 .kind = OPTION_CHOICE,
	 .at = offsetof(struct record_args, format),
	 .choice = format_name,
	 .help = "how to write; without it by the suffix of the output, else html"},
	{.name = "user-only",
	 .letter = 'U',
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct record_args, user_only),
	 .help = "no kernel frames"},
	{.name = "kernel-only",
	 .letter = 'K',
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct record_args, kernel_only),
	 .help = "no user frames"},
	{.kind = OPTION_GROUP, .at = offsetof(struct record_args, naming), .group = options_naming},
	{.kind = OPTION_GROUP,
	 .at = offsetof(struct record_args, sampling),
	 .group = options_sampling},
	{.kind = OPTION_GROUP,
	 .at = offsetof(struct record_args, logging),
	 .group = options_logging},
	{0},
};

static const struct command_example record_examples[] = {
	{"cairn record -a -d 10 -o machine.html",
	 "the whole machine for ten seconds, as a flame graph"},
	{"cairn record -p 4711 -F 999 -o app.folded",
	 "one process, until Ctrl-C, as folded stacks"},
	{"cairn record -o build.html -- make -j4", "a command and everything it starts"},
	{0},
};

const struct command command_record = {
	.name = "record",
	.help = "sample this machine, processes or a command, and write a profile",
	.text = "Every sample holds the kernel's and the program's stack from the thread's first "
		"function to the instruction that ran. A stack that could not be walked to its "
		"root begins with a frame [cut: reason], and the end of the run says how many "
		"there were and how many samples were lost.\n"
		"\n"
		"Without -a, -p, -N, -L, -G or a command the first operand is a process id. An "
		"operand behind that is a duration in seconds.",
	.operands = "[PID] [SECONDS]",
	.operands_max = 2,
	.operands_at = offsetof(struct record_args, operands),
	.takes_command = true,
	.command_at = offsetof(struct record_args, command),
	.options = record_options,
	.examples = record_examples,
	.args_size = sizeof(struct record_args),
	.check = record_check,
	.run = record_run,
};
