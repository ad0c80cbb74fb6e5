/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stopping one thread for a moment, with its registers, by PTRACE_SEIZE and PTRACE_INTERRUPT. Never
 * more than one at a time, never one that waits, and never for longer than a limit: whatever the
 * caller does, and if cairn dies, the thread goes on (the kernel lets go of what a dead tracer
 * held).
 *
 * A thread that executes its own code notices nothing but the time. One that enters a system call
 * in the very moment between the look at its state and the stop sees that call interrupted: the
 * kernel restarts most, and a few (epoll_wait, semop, sigtimedwait) return EINTR, as for any
 * debugger; that is told.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "proc/registers.h"

enum stop_outcome {
	STOP_done,    /* it was stopped, FN ran, it goes on */
	STOP_waits,   /* it is blocked in the kernel, and was left alone */
	STOP_gone,    /* it has ended */
	STOP_traced,  /* somebody else traces it: a debugger, strace */
	STOP_denied,  /* we may not */
	STOP_in_vain, /* it did not come to a stop in time: the kernel does not let it */
};

/* Runs while the thread is stopped. REGISTERS are all known. */
typedef void stop_fn(void *context, const struct thread_registers *registers);

struct stop_options {
	unsigned limit_ms; /* at most so long */
	stop_fn *fn;
	void *context;
	unsigned arrive_us; /* so long may it need until it stops; 0: 200 ms */
};

struct stop_result {
	enum stop_outcome outcome;
	uint64_t stopped_ns; /* no longer than that */
	bool cut_short;      /* the limit was over before FN returned: the thread ran meanwhile */
	bool ended_wait;     /* a system call of the thread was ended by the stop, with EINTR */
};

/* Stop the thread TID of PID, run FN, let it go on. */
struct error *thread_stop(pid_t pid, pid_t tid, const struct stop_options *options,
			  struct stop_result *ret);

/* Why a stop had an outcome other than STOP_done, as a sentence. The caller frees it. */
struct error *stop_explain(pid_t pid, pid_t tid, enum stop_outcome outcome, char **ret);
