/* SPDX-License-Identifier: Apache-2.0 */
/* The files below /proc/PID/task/TID. */
#include "proc/threads.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "proc/proctext.h"

enum {
	CALL_BYTES_MAX = 512,
	PATH_BYTES = 64,
	PF_KTHREAD = 0x00200000, /* include/linux/sched.h */
	STAT_FLAGS = 9,
	STAT_USER_TICKS = 14,
	STAT_SYSTEM_TICKS = 15,
	STAT_START_TICKS = 22,
};

void threads_deinit(struct threads *threads)
{
	free(threads->thread);
	*threads = (struct threads)THREADS_INIT;
}

/* A file of the thread; NULL when the thread has ended. */
static struct error *read_text(pid_t pid, pid_t tid, const char *name, size_t max, char **ret)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	return proctext_read(path, max, ret);
}

/* The same where a refusal is an answer: then the text is NULL, too. */
static struct error *read_if_allowed(const struct thread *thread, const char *name, size_t max,
				     char **ret)
{
	struct error *err = read_text(thread->pid, thread->tid, name, max, ret);

	if (err && (error_code(err) == EACCES || error_code(err) == EPERM)) {
		error_free(err); // whoever needs it asks proc/access.h for the reason
		*ret = NULL;
		return NULL;
	}
	return err;
}

static struct error *parse_stat(const char *text, struct thread *thread)
{
	uint64_t flags;
	const char *after = proctext_stat_name(text, thread->comm, sizeof(thread->comm));

	if (!after)
		return error_new("/proc/%d/task/%d/stat: no name in it", thread->pid, thread->tid);
	const char *state = proctext_skip_blanks(after);
	if (!*state || !proctext_stat_number(after, STAT_FLAGS, &flags) ||
	    !proctext_stat_number(after, STAT_USER_TICKS, &thread->user_ticks) ||
	    !proctext_stat_number(after, STAT_SYSTEM_TICKS, &thread->system_ticks) ||
	    !proctext_stat_number(after, STAT_START_TICKS, &thread->start_ticks))
		return error_new("/proc/%d/task/%d/stat: fields missing", thread->pid, thread->tid);
	thread->state = *state;
	thread->kernel_thread = flags & PF_KTHREAD;
	return NULL;
}

static bool parse_line(const char *text, const char *name, uint64_t *ret)
{
	const char *end, *at = proctext_line(text, name);

	return at && proctext_number(at, ret, &end);
}

static void parse_status(const char *text, struct thread *thread)
{
	const char *at = proctext_line(text, "NSpid");
	uint64_t number;

	// The innermost namespace comes last; without namespaces the line is not there.
	for (int i = 0; at && i < PROCESS_NAMESPACES_MAX && proctext_number(at, &number, &at);
	     i++) {
		thread->ns_tid = (pid_t)number;
		at = proctext_skip_blanks(at);
	}
	if (!parse_line(text, "voluntary_ctxt_switches", &thread->voluntary) ||
	    !parse_line(text, "nonvoluntary_ctxt_switches", &thread->involuntary))
		thread->voluntary = thread->involuntary = 0;
}

/* COUNT hexadecimal numbers; what stands behind them, or NULL. */
static const char *hex_numbers(const char *text, size_t count, uint64_t *ret)
{
	char *end;

	for (size_t i = 0; i < count; i++) {
		text = proctext_skip_blanks(text);
		if (!strchr("0123456789abcdef", *text) || !*text)
			return NULL;
		ret[i] = strtoull(text, &end, 16);
		text = end;
	}
	return text;
}

bool thread_call_parse(const char *text, struct thread_call *ret)
{
	struct thread_call call = {.kind = THREAD_CALL_running};
	const char *end = text;
	uint64_t place[2];

	if (!strcmp(text, "running\n") || !strcmp(text, "running")) {
		*ret = call;
		return true;
	}
	call.kind = THREAD_CALL_outside;
	if (text[0] == '-' && text[1] == '1') {
		end = text + 2;
	} else {
		call.kind = THREAD_CALL_inside;
		if (!proctext_number(text, &call.number, &end))
			return false;
		end = hex_numbers(end, THREAD_ARGUMENTS, call.argument);
	}
	end = end ? hex_numbers(end, 2, place) : NULL;
	if (!end || (*end && *end != '\n'))
		return false;
	call.sp = place[0];
	call.pc = place[1];
	*ret = call;
	return true;
}

struct error *thread_read_call(pid_t pid, pid_t tid, struct thread_call *ret)
{
	struct thread who = {.pid = pid, .tid = tid};
	struct thread_call call = {0};
	_cleanup_free_ char *text = NULL;

	TRY(read_if_allowed(&who, "syscall", CALL_BYTES_MAX, &text));
	// Nothing but the three forms was ever written there; another one is as good as none.
	if (!text || !thread_call_parse(text, &call))
		call.kind = THREAD_CALL_unknown;
	*ret = call;
	return NULL;
}

static struct error *read_wchan(struct thread *thread)
{
	_cleanup_free_ char *text = NULL;

	TRY(read_if_allowed(thread, "wchan", CALL_BYTES_MAX, &text));
	// "0": it does not wait, or we may not know.
	if (text && strcmp(text, "0") != 0)
		(void)snprintf(thread->wchan, sizeof(thread->wchan), "%s", text);
	return NULL;
}

static struct error *read_details(struct thread *thread, unsigned details)
{
	_cleanup_free_ char *text = NULL;

	if (details & THREADS_status) {
		TRY(read_text(thread->pid, thread->tid, "status", PROCTEXT_STATUS_BYTES, &text));
		if (text)
			parse_status(text, thread);
	}
	if (details & THREADS_call)
		TRY(thread_read_call(thread->pid, thread->tid, &thread->call));
	if (details & THREADS_wchan)
		TRY(read_wchan(thread));
	return NULL;
}

struct error *thread_read(pid_t pid, pid_t tid, unsigned details, enum process_look *ret_look,
			  struct thread *ret)
{
	struct thread thread = {.pid = pid, .tid = tid, .ns_tid = tid};
	_cleanup_free_ char *text = NULL;

	TRY(read_text(pid, tid, "stat", PROCTEXT_STAT_BYTES, &text));
	if (!text) {
		*ret_look = PROCESS_gone;
		return NULL;
	}
	TRY(parse_stat(text, &thread));
	TRY(read_details(&thread, details));
	*ret = thread;
	*ret_look = PROCESS_there;
	return NULL;
}

struct error *threads_read(pid_t pid, unsigned details, struct threads *ret)
{
	_cleanup_(threads_deinit) struct threads threads = THREADS_INIT;
	_cleanup_(pids_deinit) struct pids tids = PIDS_INIT;
	enum process_look look = PROCESS_gone;

	TRY(process_list_threads(pid, &tids));
	TRY(ARRAY_RESERVE(threads.thread, threads.room, 0, tids.count, PIDS_MAX, "threads"));
	for (size_t i = 0; i < tids.count; i++) {
		TRY(thread_read(pid, tids.pid[i], details, &look, &threads.thread[threads.count]));
		threads.count += look == PROCESS_there;
	}
	*ret = take_struct(threads);
	return NULL;
}

struct error *thread_read_turns(pid_t pid, pid_t tid, struct thread_turns *ret)
{
	struct thread_turns turns = {0};
	_cleanup_free_ char *schedstat = NULL;
	_cleanup_free_ char *status = NULL;
	struct thread thread = {0};
	uint64_t number[3] = {0};

	// Nanoseconds on a CPU, nanoseconds in its queue, arrivals on it. All zero where the kernel
	// does not count (delayacct=off, the default since Linux e4042ad49235, 5.14, unless it was
	// built with CONFIG_SCHEDSTATS).
	TRY(read_text(pid, tid, "schedstat", CALL_BYTES_MAX, &schedstat));
	const char *at = schedstat;
	for (int i = 0; at && i < 3; i++)
		at = proctext_number(proctext_skip_blanks(at), &number[i], &at) ? at : NULL;
	turns.counts = at && number[2];
	turns.turns = number[2];
	turns.there = schedstat;
	if (!turns.counts) {
		TRY(read_text(pid, tid, "status", PROCTEXT_STATUS_BYTES, &status));
		turns.there = status;
		if (status)
			parse_status(status, &thread);
		turns.switches = thread.voluntary + thread.involuntary;
	}
	*ret = turns;
	return NULL;
}

struct error *thread_has_stayed(pid_t pid, pid_t tid, const struct thread_turns *turns,
				const struct thread_call *call, bool *ret)
{
	struct thread_turns now_turns;
	struct thread_call now;

	// In this order: a blocked thread's call is shown only once it is off its CPU, so that the
	// count behind it has all its turns in it.
	TRY(thread_read_call(pid, tid, &now));
	TRY(thread_read_turns(pid, tid, &now_turns));
	bool blocked = now.kind == THREAD_CALL_inside || now.kind == THREAD_CALL_outside;
	*ret = blocked && now.kind == call->kind && now.pc == call->pc && now.sp == call->sp &&
	       now_turns.there && now_turns.counts == turns->counts &&
	       now_turns.turns == turns->turns && now_turns.switches == turns->switches;
	return NULL;
}
