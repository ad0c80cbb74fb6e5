/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_DOMAIN "poll"
#include "capture/poll-look.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "proc/stop.h"
#include "proc/threads.h"

enum {
	STOP_LIMIT_MS = 5,
	// A thread that is on a CPU stops at once; one that waits for a CPU when it has got one, on
	// a machine whose CPUs have eight programs each after some 30 ms.
	ARRIVE_US = 500,
	ARRIVE_PATIENT_US = 50000,
	// One stop for each object whose rows a walk needs first; the next look goes on.
	STOPS_MAX = 8,
	NO_STOP_NS = 1000 * 1000 * 1000, /* until the next attempt where one was refused */
};

void poll_look_deinit(struct poll_look *look)
{
	memory_pages_deinit(&look->pages);
	python_threads_deinit(&look->pythons);
	free(look->why_not);
}

struct error *poll_look_begin(struct poll_look *look, struct poll_process *process)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct process_state *state;

	look->process = process;
	look->pythons_read = false;
	process->walked = true;
	memory_pages_deinit(&look->pages);
	struct memory memory = process_memory_reader(process->memory);
	TRY(memory_pages_init(&look->pages, &memory));
	// An interpreter is looked for when a process is published.
	TRY(processes_get(look->options.processes, process->pid, now_ns, &state));
	return processes_publish(look->options.processes, now_ns);
}

/* Whose stack it is, as samples say it. */
static struct error *head_of(const struct poll_look *look, const struct poll_process *process,
			     const struct poll_thread *thread, struct sample *ret)
{
	struct sample head = {
		.time_ns = clock_monotonic_ns(), .pid = process->pid, .tid = thread->tid};
	enum process_look there = PROCESS_gone;
	struct thread who;

	memcpy(head.comm, process->comm, sizeof(head.comm) - 1);
	if (look->options.by_thread)
		TRY(thread_read((pid_t)process->pid, (pid_t)thread->tid, 0, &there, &who));
	memcpy(head.thread_comm, there == PROCESS_there ? who.comm : process->comm,
	       sizeof(head.thread_comm) - 1);
	*ret = head;
	return NULL;
}

static struct error *keep(struct poll_look *look, const struct poll_process *process,
			  const struct poll_thread *thread, const struct host_stack *stack,
			  struct stacks_kept *ret)
{
	static const struct thread_stack no_kernel;
	struct stacks_thread of = {.kernel = &no_kernel, .stack = *stack};

	TRY(head_of(look, process, thread, &of.head));
	return stacks_keep(look->options.stacks, &of, ret);
}

/* --- threads that run */

/* A walk inside of a stop. */
struct visit {
	struct poll_look *look;
	const struct poll_process *process;
	struct poll_thread *thread;
	struct host_stack stack;
	struct error *err; /* owned */
};

static void walk_stopped(void *context, const struct thread_registers *registers)
{
	struct visit *visit = context;
	struct poll_look *look = visit->look;
	struct memory memory = memory_pages_memory(&look->pages);
	const struct stacks_from from = {
		.pid = visit->process->pid,
		.registers = registers,
		.memory = &memory,
		.thread_state = visit->thread->thread_state,
	};

	memory_pages_forget(&look->pages);
	visit->thread->fs_base = registers->fs_base;
	visit->err = stacks_walk_stopped(look->options.stacks, &from, &visit->stack);
}

/* No stop, and why. */
static struct error *note_refusal(struct poll_look *look, struct poll_process *process,
				  const struct poll_thread *thread, enum stop_outcome outcome)
{
	counter_add(look->options.counters, COUNTER_poll_unstopped, 1);
	process->no_stop_until_ns = clock_monotonic_ns() + NO_STOP_NS;
	if (look->why_not)
		return NULL;
	return stop_explain((pid_t)process->pid, (pid_t)thread->tid, outcome, &look->why_not);
}

static struct error *judge_stop(struct visit *visit, struct poll_process *process,
				enum stop_outcome outcome, enum poll_outcome *ret)
{
	*ret = POLL_missed;
	switch (outcome) {
	case STOP_done:
		*ret = POLL_walked;
		return NULL;
	case STOP_waits:
		*ret = POLL_waits;
		return NULL;
	case STOP_gone:
		return NULL;
	case STOP_in_vain:
		*ret = POLL_queues;
		counter_add(visit->look->options.counters, COUNTER_poll_unstopped,
			    visit->look->patient);
		return NULL;
	case STOP_traced:
	case STOP_denied:
		break;
	}
	return note_refusal(visit->look, process, visit->thread, outcome);
}

/* Stop and walk until nothing is lacking; what a walk lacks is got while the thread runs. */
static struct error *visit_thread(struct visit *visit, struct poll_process *process,
				  enum poll_outcome *ret)
{
	struct poll_look *look = visit->look;
	const struct stop_options options = {
		.limit_ms = STOP_LIMIT_MS,
		.arrive_us = look->patient ? ARRIVE_PATIENT_US : ARRIVE_US,
		.fn = walk_stopped,
		.context = visit,
	};
	struct stop_result result = {.outcome = STOP_in_vain};
	bool again = true;

	for (int round = 0; again && round < STOPS_MAX; round++) {
		TRY(thread_stop((pid_t)process->pid, (pid_t)visit->thread->tid, &options, &result));
		TRY(take(visit->err));
		counter_add(look->options.counters, COUNTER_poll_ended_waits, result.ended_wait);
		TRY(judge_stop(visit, process, result.outcome, ret));
		if (result.outcome != STOP_done)
			return NULL;
		TRY(stacks_prepare(look->options.stacks, process->pid, &visit->stack, &again));
		again |= result.cut_short;
	}
	// It ran on in the middle of the last walk as well: frames further out may be wrong.
	if (result.cut_short)
		visit->stack.end = END_moved;
	return NULL;
}

struct error *poll_look_running(struct poll_look *look, struct poll_process *process,
				struct poll_thread *thread, struct stacks_kept *ret,
				enum poll_outcome *ret_outcome)
{
	struct visit visit = {.look = look, .process = process, .thread = thread};

	*ret_outcome = POLL_missed;
	if (clock_monotonic_ns() < process->no_stop_until_ns)
		return NULL;
	TRY(visit_thread(&visit, process, ret_outcome));
	if (*ret_outcome != POLL_walked)
		return NULL;
	thread->thread_state = visit.stack.thread_state;
	if (look->options.only_gil && !visit.stack.gil) {
		*ret_outcome = POLL_unasked;
		return NULL;
	}
	return keep(look, process, thread, &visit.stack, ret);
}

/* --- threads that wait */

/*
 * Where the thread's TLS is, as CPython's own list of threads tells; 0: it is not in it. The kernel
 * tells it only of a thread that is stopped.
 */
static struct error *find_fs_base(struct poll_look *look, const struct poll_process *process,
				  const struct poll_thread *thread, uint64_t *ret)
{
	struct memory memory = process_memory_reader(process->memory);
	struct process_state *state;
	enum process_look there;
	struct thread who;

	*ret = 0;
	TRY(processes_get(look->options.processes, process->pid, clock_monotonic_ns(), &state));
	const struct python_image *image = state ? process_python(state) : NULL;
	if (!image)
		return NULL;
	if (!look->pythons_read) {
		python_threads_deinit(&look->pythons);
		TRY(python_threads(python_image_instance(image), &memory, &look->pythons));
		look->pythons_read = true;
	}
	TRY(thread_read((pid_t)process->pid, (pid_t)thread->tid, THREADS_status, &there, &who));
	for (size_t i = 0; there == PROCESS_there && i < look->pythons.count; i++)
		if (python_thread_is(&look->pythons.thread[i], who.ns_tid))
			*ret = look->pythons.thread[i].thread_id;
	return NULL;
}

struct error *poll_look_waiting(struct poll_look *look, struct poll_process *process,
				struct poll_thread *thread, struct stacks_kept *ret,
				enum poll_outcome *ret_outcome)
{
	pid_t pid = (pid_t)process->pid, tid = (pid_t)thread->tid;
	struct thread_registers registers = {.known = REGISTERS_pc_sp};
	struct thread_turns turns;
	struct thread_call call;
	struct host_stack stack;
	bool stayed;

	*ret_outcome = POLL_missed;
	TRY(thread_read_turns(pid, tid, &turns));
	TRY(thread_read_call(pid, tid, &call));
	if (call.kind == THREAD_CALL_running)
		*ret_outcome = POLL_runs;
	// Without a stack pointer it has no user side any more: it ends.
	if (call.kind == THREAD_CALL_running || call.kind == THREAD_CALL_unknown || !call.sp)
		return NULL;
	if (!thread->fs_base)
		TRY(find_fs_base(look, process, thread, &thread->fs_base));
	registers.at = (struct walk_state){.pc = call.pc, .sp = call.sp};
	registers.fs_base = thread->fs_base;
	memory_pages_forget(&look->pages);
	struct memory memory = memory_pages_memory(&look->pages);
	const struct stacks_from from = {
		.pid = process->pid,
		.registers = &registers,
		.memory = &memory,
		.thread_state = thread->thread_state,
	};
	TRY(stacks_walk(look->options.stacks, &from, &stack));
	thread->thread_state = stack.thread_state;
	TRY(thread_has_stayed(pid, tid, &turns, &call, &stayed));
	*ret_outcome = stayed ? POLL_walked : POLL_runs;
	return stayed ? keep(look, process, thread, &stack, ret) : NULL;
}
