/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of a process as /proc shows them: who they are, whether they run, what they wait in.
 * Nothing is stopped or disturbed. A thread may end at any moment; that is an outcome.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "proc/process.h"

enum {
	THREAD_WCHAN = 64,
	THREAD_ARGUMENTS = 6,
};

/* What /proc/PID/task/TID/syscall says. It needs the right to trace the process. */
enum thread_call_kind {
	THREAD_CALL_unknown, /* not asked for, not permitted, or not in this kernel */
	THREAD_CALL_running, /* on a CPU, or about to be */
	THREAD_CALL_outside, /* blocked, but in no system call: a page fault, a stop, the exit */
	THREAD_CALL_inside,  /* blocked in a system call */
};

struct thread_call {
	enum thread_call_kind kind;
	uint64_t number, argument[THREAD_ARGUMENTS]; /* of the system call */
	uint64_t sp, pc; /* on the user side; unless running. Zero if the thread has no user side */
};

struct thread {
	pid_t pid, tid;
	pid_t ns_tid; /* what the thread calls itself: its number in its own namespace */
	char comm[PROCESS_COMM];
	char state; /* 'R', 'S', 'D', 'T', 't', 'Z', ... */
	bool kernel_thread;
	uint64_t user_ticks, system_ticks; /* of CPU time */
	uint64_t start_ticks;              /* since boot; with the tid it tells threads apart */
	uint64_t voluntary, involuntary;   /* times it was taken off a CPU; with THREADS_status */
	struct thread_call call;           /* with THREADS_call */
	char wchan[THREAD_WCHAN]; /* kernel function that it waits in; "" if not known; with
				     THREADS_wchan */
};

/* What costs a file each and is left out unless asked for. */
enum threads_detail {
	THREADS_status = 1, /* ns_tid, voluntary, involuntary */
	THREADS_call = 2,
	THREADS_wchan = 4,
	THREADS_everything = 7,
};

/* Ascending by tid. */
struct threads {
	struct thread *thread;
	size_t count, room;
};

#define THREADS_INIT                                                                               \
	{                                                                                          \
		0                                                                                  \
	}

void threads_deinit(struct threads *threads);

/*
 * One thread; DETAILS of enum threads_detail. RET is set only with PROCESS_there, as a zombie is.
 */
struct error *thread_read(pid_t pid, pid_t tid, unsigned details, enum process_look *ret_look,
			  struct thread *ret);

/* All threads of PID, in one pass; those that end meanwhile are left out. */
struct error *threads_read(pid_t pid, unsigned details, struct threads *ret);

/* Only what it is in now. THREAD_CALL_unknown also for one that has ended. */
struct error *thread_read_call(pid_t pid, pid_t tid, struct thread_call *ret);

/*
 * The kernel's count of a thread's turns on a CPU. Two looks with equal counts, at both of which
 * the thread was off its CPU: it did not execute a single instruction in between.
 */
struct thread_turns {
	bool there;  /* else it has ended */
	bool counts; /* TURNS is known: the kernel counts arrivals on a CPU */
	uint64_t turns;
	uint64_t switches; /* voluntary + involuntary; only if !counts */
};

struct error *thread_read_turns(pid_t pid, pid_t tid, struct thread_turns *ret);

/*
 * Is the thread still where CALL has it, and has it not executed anything since TURNS, which was
 * read before CALL? Then all that was read of its stack in between belongs together.
 */
struct error *thread_has_stayed(pid_t pid, pid_t tid, const struct thread_turns *turns,
				const struct thread_call *call, bool *ret);

/* The text of /proc/PID/task/TID/syscall. False: it is no such text, and RET is untouched. */
bool thread_call_parse(const char *text, struct thread_call *ret);
