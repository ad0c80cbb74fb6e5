/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a live process: which threads, their registers, their stacks. */
#define LOG_DOMAIN "dump"
#include "capture/dump-process.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/array.h"
#include "base/log.h"
#include "base/str.h"
#include "capture/dump-kernel.h"
#include "capture/dump-tasks.h"
#include "capture/thread-iterator.h"
#include "proc/access.h"
#include "proc/process-memory.h"
#include "proc/process.h"
#include "proc/stop.h"
#include "proc/threads.h"
#include "proc/waiting.h"

enum {
	// A thread that was woken while it was walked is walked again, this often; after the first
	// few looks with a pause, for those that are about to wait again.
	LOOKS_MAX = 16,
	LOOKS_EAGER = 3,
	LOOK_PAUSE_NS = 1000000,
	// One stop for each object whose rows a walk of a running thread needs first.
	STOPS_MAX = 256,
};

struct look {
	pid_t pid;
	const struct dump_options *options;
	struct dump *dump;
	struct target *target;            /* borrowed from the dump */
	struct thread_iterator *iterator; /* owned; NULL: not needed yet, or not to be had */
	bool iterator_tried;
};

static void look_deinit(struct look *look)
{
	thread_iterator_close(look->iterator);
}

static struct error *open_memory(pid_t pid, struct process_memory **ret)
{
	enum process_memory_look look;
	_cleanup_free_ char *why = NULL;

	TRY(process_memory_open(pid, &look, ret));
	switch (look) {
	case PROCESS_MEMORY_opened:
		return NULL;
	case PROCESS_MEMORY_gone:
		return error_new("there is no process %d", pid);
	case PROCESS_MEMORY_none:
		return error_new("process %d is a thread of the kernel: it has no program", pid);
	case PROCESS_MEMORY_denied:
		break;
	}
	TRY(access_explain(pid, &why));
	return error_new("process %d cannot be looked at: %s", pid, why);
}

/* Who the process is. */
static struct error *describe(struct look *look)
{
	struct dump *dump = look->dump;
	struct process_status status;
	enum process_look there;
	_cleanup_free_ char *command = NULL, *exe = NULL;

	dump->pid = look->pid;
	TRY(process_read_status(look->pid, &there, &status));
	if (there == PROCESS_gone)
		return error_new("process %d has ended", look->pid);
	TRY(process_read_command(look->pid, &command));
	TRY(process_read_exe(look->pid, &exe));
	TRY(dump_text(dump, status.comm, &dump->name));
	if (*command)
		TRY(dump_text(dump, command, &dump->command));
	if (*exe)
		TRY(dump_text(dump, exe, &dump->exe));
	return NULL;
}

static struct error *open_target(struct look *look, const struct memory *memory)
{
	_cleanup_(maps_deinit) struct maps maps = MAPS_INIT;

	TRY(maps_read(look->pid, MAPS_executable, &maps));
	if (!maps.count)
		return error_new("process %d has ended", look->pid);
	struct target_options options = {
		.owner = {.pid = (uint32_t)look->pid},
		.maps = &maps,
		.memory = memory,
		.lines = look->options->lines,
		.debuginfod = look->options->debuginfod,
	};
	TRY(target_open(&options, &look->dump->target));
	look->target = look->dump->target;
	return NULL;
}

/* --- threads */

/* Is the thread where threads wait for work, and not for somebody? */
static bool waits_for_work(const struct thread *thread)
{
	if (thread->call.kind != THREAD_CALL_inside)
		return false;
	switch (thread->call.number) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_accept:
	case SYS_accept4:
	case SYS_io_getevents:
	case SYS_io_pgetevents:
	case SYS_io_uring_enter:
	case SYS_rt_sigtimedwait:
	case SYS_pause:
		return true;
	}
	return false;
}

static enum dump_state state_of(const struct thread *thread)
{
	switch (thread->state) {
	case 'R':
		return DUMP_running;
	case 'D':
		return DUMP_disk;
	case 'T':
	case 't':
		return DUMP_stopped;
	case 'Z':
	case 'X':
		return DUMP_ended;
	}
	return waits_for_work(thread) ? DUMP_idle : DUMP_waiting;
}

/* A thread being looked at. */
struct seat {
	struct look *look;
	struct dump_thread *to;
	struct thread_turns turns; /* read before the next */
	struct thread thread;      /* as it was last seen */
	struct target_thread who;
	struct target_stack stack; /* owned */
	struct error *err;         /* of a walk while it was stopped; owned */
};

static void seat_deinit(struct seat *seat)
{
	target_stack_deinit(&seat->stack);
}

/* Is the thread in a call for the lock of CPython? */
static bool waits_for_lock(const struct seat *seat)
{
	const struct thread_call *call = &seat->thread.call;

	return call->kind == THREAD_CALL_inside && call->number == SYS_futex &&
	       target_python_is_lock(seat->look->target, call->argument[0]);
}

static struct error *describe_thread(struct seat *seat)
{
	struct dump_thread *to = seat->to;
	struct target_python_thread python;
	_cleanup_free_ char *waits = NULL;

	to->state = state_of(&seat->thread);
	bool in_kernel =
		to->state != DUMP_running && to->state != DUMP_ended && to->state != DUMP_stopped;
	if (target_python_thread(seat->look->target, &seat->who, &python)) {
		if (target_python_holds_lock(seat->look->target, &python))
			to->state = DUMP_gil_holder;
		else if (waits_for_lock(seat))
			to->state = DUMP_gil_waiter;
	}
	if (!in_kernel)
		return NULL;
	TRY(thread_waiting_text(&seat->thread, &waits));
	return dump_text(seat->look->dump, waits, &to->waits_in);
}

/* Of a thread that waits: what the kernel tells a user without privileges. */
static struct thread_registers registers_of(const struct seat *seat)
{
	const struct thread_call *call = &seat->thread.call;
	struct target_python_thread python;
	struct thread_registers registers = {.known = REGISTERS_none};

	if (call->kind != THREAD_CALL_inside && call->kind != THREAD_CALL_outside)
		return registers;
	registers.known = REGISTERS_pc_sp;
	registers.at = (struct walk_state){.pc = call->pc, .sp = call->sp};
	if (target_python_thread(seat->look->target, &seat->who, &python))
		registers.fs_base = python.id;
	return registers;
}

/* Did the walk miss something that all registers would tell? */
static bool lacks_registers(const struct target_stack *stack)
{
	return stack->end == END_no_register || stack->end == END_no_frame_ptr ||
	       stack->end == END_bad_frame || stack->end == END_unreadable;
}

/* All registers of a thread that waits, from the kernel's own records. *RET: they are to be had. */
static struct error *ask_kernel(struct seat *seat, struct thread_registers *registers, bool *ret)
{
	struct look *look = seat->look;
	struct thread_record record;

	*ret = false;
	if (!look->iterator_tried) {
		look->iterator_tried = true;
		struct error *err = thread_iterator_open(&look->iterator);
		struct error *noted = NULL;
		if (err)
			noted = dump_note(
				look->dump,
				"of threads that wait not all registers are known, so that "
				"stacks may be cut: %s",
				error_text(err));
		error_free(err); // it is told
		TRY(noted);
	}
	if (!look->iterator)
		return NULL;
	TRY(thread_iterator_read_one(look->iterator, look->pid, seat->to->tid, ret, &record));
	*ret = *ret && thread_record_registers(&record, registers) &&
	       registers->known == REGISTERS_all;
	return NULL;
}

/* Where the thread waits: with what anybody may know, and if that does not do, with all of it. */
static struct error *walk_there(struct seat *seat, const struct thread_registers *registers)
{
	struct target *target = seat->look->target;
	struct thread_registers all;
	bool known;

	TRY(target_walk_whole(target, registers, &seat->stack));
	if (!lacks_registers(&seat->stack))
		return NULL;
	TRY(ask_kernel(seat, &all, &known));
	return known ? target_walk_whole(target, &all, &seat->stack) : NULL;
}

/* A thread that waits: walked where it is. *RET: it stayed there meanwhile. */
static struct error *walk_waiting(struct seat *seat, bool *ret)
{
	const struct look *look = seat->look;
	struct thread_registers registers = registers_of(seat);

	*ret = false;
	if (registers.known == REGISTERS_none)
		return NULL;
	TRY(walk_there(seat, &registers));
	TRY(target_read_variables(look->target, look->options->locals, &seat->stack));
	return thread_has_stayed(look->pid, seat->to->tid, &seat->turns, &seat->thread.call, ret);
}

/* See where the thread is now. One that has ended stays as it was seen last. */
static struct error *look_again(struct seat *seat)
{
	enum process_look there;
	struct thread now;

	TRY(thread_read_turns(seat->look->pid, seat->to->tid, &seat->turns));
	TRY(thread_read(seat->look->pid, seat->to->tid, THREADS_everything, &there, &now));
	if (there == PROCESS_there)
		seat->thread = now;
	return NULL;
}

/* Runs while the thread is stopped. */
static void walk_stopped(void *context, const struct thread_registers *registers)
{
	struct seat *seat = context;
	const struct look *look = seat->look;

	seat->err = target_walk(look->target, registers, &seat->stack);
	if (!seat->err)
		seat->err =
			target_read_variables(look->target, look->options->locals, &seat->stack);
}

/* A thread that runs. STOP_done: it was walked; else the outcome says why not. */
static struct error *walk_running(struct seat *seat, enum stop_outcome *ret)
{
	const struct look *look = seat->look;
	struct stop_options options = {
		.limit_ms = look->options->stop_limit_ms, .fn = walk_stopped, .context = seat};
	struct stop_result result = {.outcome = STOP_in_vain};
	bool again = true;

	// What a walk lacks is got while the thread runs: it is stopped for a walk alone.
	for (int round = 0; again && round < STOPS_MAX; round++) {
		TRY(thread_stop(look->pid, seat->to->tid, &options, &result));
		TRY(take(seat->err));
		*ret = result.outcome;
		seat->to->stopped_ns += result.stopped_ns;
		if (result.outcome != STOP_done)
			return NULL;
		TRY(target_prepare(look->target, &again));
	}
	if (result.ended_wait)
		TRY(dump_note(look->dump,
			      "thread %d had begun to wait when it was stopped: its system call "
			      "returned EINTR",
			      seat->to->tid));
	if (result.cut_short)
		TRY(dump_note(look->dump,
			      "thread %d ran on after %u ms, before it had been walked to the end: "
			      "its outer frames may be wrong (--stop-limit)",
			      seat->to->tid, options.limit_ms));
	return NULL;
}

/* A frame that says why there are no others. */
static struct error *add_reason(const struct seat *seat, const char *reason)
{
	struct target_frame frame = {.kind = KIND_cut};
	_cleanup_free_ char *text = NULL;

	TRY(str_format(&text, "[cut: %s]", reason));
	TRY(dump_text(seat->look->dump, text, &frame.function));
	return target_frames_add(&seat->to->frames, &frame);
}

/* Why a running thread could not be walked. */
static struct error *explain_stop(const struct seat *seat, enum stop_outcome outcome)
{
	_cleanup_free_ char *text = NULL;

	if (outcome == STOP_gone) {
		seat->to->state = DUMP_ended;
		return NULL;
	}
	if (outcome == STOP_waits)
		return add_reason(seat, "the thread never stayed where it was");
	TRY(stop_explain(seat->look->pid, seat->to->tid, outcome, &text));
	return add_reason(seat, text);
}

/* A thread may wait, run, or change from the one to the other at any moment. */
static struct error *walk_thread(struct seat *seat)
{
	const struct timespec pause = {.tv_nsec = LOOK_PAUSE_NS};
	bool nonblocking = seat->look->options->nonblocking, done = false;
	enum stop_outcome outcome = STOP_waits;

	for (int i = 0; i < LOOKS_MAX && outcome == STOP_waits; i++) {
		if (i > LOOKS_EAGER)
			nanosleep(&pause, NULL);
		TRY(walk_waiting(seat, &done));
		if (done)
			return NULL;
		if (!nonblocking)
			TRY(walk_running(seat, &outcome));
		if (outcome == STOP_done) {
			seat->thread.state = 'R'; // it may have waited at the look before
			return NULL;
		}
		TRY(look_again(seat));
	}
	target_stack_deinit(&seat->stack);
	if (nonblocking)
		return add_reason(seat, "the thread runs, and --nonblocking stops none");
	return explain_stop(seat, outcome);
}

/* Up to 3.6 the lock is a variable nobody can find, but who waits for it is in this function. */
static bool is_in_take_gil(const struct target_frames *frames)
{
	for (size_t i = 0; i < frames->count && frames->frame[i].kind != KIND_python; i++)
		if (!strcmp(frames->frame[i].function, "take_gil"))
			return true;
	return false;
}

/* One chosen thread. */
static struct error *look_at(struct look *look, struct dump_thread *to)
{
	_cleanup_(seat_deinit) struct seat seat = {.look = look, .to = to};
	enum process_look there;

	TRY(thread_read_turns(look->pid, to->tid, &seat.turns));
	TRY(thread_read(look->pid, to->tid, THREADS_everything, &there, &seat.thread));
	if (there == PROCESS_gone || seat.thread.state == 'Z' || seat.thread.state == 'X') {
		to->state = DUMP_ended;
		return NULL;
	}
	seat.who.ns_tid = seat.thread.ns_tid;
	if (look->options->kernel)
		TRY(dump_kernel_stack(look->dump, look->pid, to));
	TRY(walk_thread(&seat));
	if (to->state == DUMP_unknown)
		TRY(describe_thread(&seat));
	to->end = seat.stack.end;
	if (!seat.stack.words)
		return NULL;
	TRY(dump_note_variables(look->dump, to->tid, &seat.stack));
	TRY(target_name(look->target, &seat.stack, look->options->native, &to->frames));
	if (to->state == DUMP_waiting && is_in_take_gil(&to->frames))
		to->state = DUMP_gil_waiter;
	return NULL;
}

/* Who a thread is, by name and number; nothing else has been asked of it. */
static struct error *introduce(struct look *look, const struct thread *thread,
			       struct dump_thread *to)
{
	struct target_thread who = {.ns_tid = thread->ns_tid};
	struct target_python_thread python;

	to->tid = thread->tid;
	to->main = thread->tid == look->pid;
	TRY(dump_text(look->dump, thread->comm, &to->name));
	if (!target_python_thread(look->target, &who, &python))
		return NULL;
	to->python_name = python.name;
	to->python_id = python.id;
	return NULL;
}

/* All threads that are wanted. */
static struct error *choose(struct look *look)
{
	_cleanup_(threads_deinit) struct threads threads = THREADS_INIT;
	const struct dump_options *options = look->options;
	struct dump_thread *added;

	TRY(threads_read(look->pid, THREADS_status, &threads));
	for (size_t i = 0; i < threads.count; i++) {
		struct dump_thread to = {0};
		TRY(introduce(look, &threads.thread[i], &to));
		if (!options->wanted || options->wanted(options->context, &to))
			TRY(dump_add_thread(look->dump, &to, &added));
		else
			look->dump->chosen = true;
	}
	return NULL;
}

struct error *dump_process(pid_t pid, const struct dump_options *options, struct dump *ret)
{
	_cleanup_process_memory_ struct process_memory *process = NULL;
	_cleanup_(look_deinit) struct look look = {.pid = pid, .options = options, .dump = ret};

	TRY(open_memory(pid, &process));
	struct memory memory = process_memory_reader(process);
	TRY(describe(&look));
	TRY(open_target(&look, &memory));
	TRY(dump_describe_python(ret));
	TRY(choose(&look));
	for (size_t i = 0; i < ret->count; i++)
		TRY(look_at(&look, &ret->thread[i]));
	return dump_read_tasks(ret, options);
}
