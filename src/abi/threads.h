/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * One thread as bpf/threads.bpf.c shows it, one record after the other. Numbers of processes and
 * threads are those of the machine's own PID namespace.
 */
#pragma once

#include <linux/types.h>

enum {
	THREAD_RECORD_WORDS = 21,
	THREAD_RECORD_COMM = 16,
	THREAD_STACK_FRAMES = 127,
	THREAD_STACK_HEAD = 32, /* bytes before the frames */
	THREADS_ASKED_MAX = 16384,
};

enum thread_record_flag {
	THREAD_on_cpu = 1,    /* it executes, or did while this was written */
	THREAD_no_user = 2,   /* a thread of the kernel, or one that has no memory any more */
	THREAD_words = 4,     /* word[] holds what the user side was left with */
	THREAD_has_turns = 8, /* turns is counted by this kernel */
};

struct thread_record {
	__u32 pid, tid;
	__u32 state; /* the kernel's bits: 0 running or runnable, 1 interruptible, 2 not, ... */
	__u32 flags; /* enum thread_record_flag */
	__u64 runtime_ns; /* on a CPU so far, exact for a thread that is off it */
	__u64 user_ns, system_ns;
	__u64 switches; /* times it was taken off a CPU */
	__u64 turns;    /* times it was put on one */
	__u64 fs_base;
	/* struct pt_regs, see REGISTERS_WORDS in proc/registers.h. Of a thread that is on a CPU
	 * they are those of its last entry into the kernel, and worth nothing if it has left it. */
	__u64 word[THREAD_RECORD_WORDS];
	char comm[THREAD_RECORD_COMM];
};
/*
 * What show_stack writes of a thread, if it was asked for: the head of its record, so to say, and
 * COUNT program counters of the kernel, innermost first.
 */
struct thread_stack {
	__u32 tid;
	__u32 flags; /* enum thread_record_flag */
	__u64 switches, turns;
	__u32 count;
	__u32 unused;
	__u64 pc[THREAD_STACK_FRAMES];
};

_Static_assert(sizeof(struct thread_record) == 248, "records are alike on both sides");
