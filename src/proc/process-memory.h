/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a live process, read from outside and without stopping it. Its text may be
 * exchanged at any moment (exec), and it may end: reads then fail, or hold what the new program has
 * there. Who has to know asks process_memory_check() afterwards.
 *
 * Reading needs the right to trace the process (ptrace(2), "Ptrace access mode checking"). Why it
 * lacks is what proc/access.h explains.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "proc/memory.h"

struct process_memory;

enum process_memory_look {
	PROCESS_MEMORY_opened,
	PROCESS_MEMORY_gone,   /* no such process, or it has ended */
	PROCESS_MEMORY_none,   /* a kernel thread */
	PROCESS_MEMORY_denied, /* we may not: access_explain() */
};

/* RET is set only with PROCESS_MEMORY_opened. A failure is one of ours: no memory left. */
struct error *process_memory_open(pid_t pid, enum process_memory_look *ret_look,
				  struct process_memory **ret);
void process_memory_close(struct process_memory *process);

static inline void cleanup_process_memory(struct process_memory **process)
{
	process_memory_close(*process);
}
#define _cleanup_process_memory_ _cleanup_(cleanup_process_memory)

/* To read it by; valid as long as PROCESS, which is borrowed. */
struct memory process_memory_reader(struct process_memory *process);

enum process_memory_state {
	PROCESS_MEMORY_same,
	PROCESS_MEMORY_exec,  /* the same process runs another program, or the same one anew */
	PROCESS_MEMORY_ended, /* it is gone; its number may be in use again */
};

/*
 * Is it still the memory that was opened? What was read before PROCESS_MEMORY_same came out is of
 * one program. (Under a program that shares all its memory with another process, as between vfork()
 * and exec, an exec shows by the name of the program and its start alone.)
 */
struct error *process_memory_check(struct process_memory *process, enum process_memory_state *ret);

/*
 * The quick part of that, one system call: false once the process runs another program or has
 * ended. (Not under a vfork(), nor where /proc/PID/mem is forbidden.)
 */
bool process_memory_lives(const struct process_memory *process);

/* System calls that reads have made so far. */
uint64_t process_memory_calls(const struct process_memory *process);
