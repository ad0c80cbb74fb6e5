/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * One sample in the ring, as the BPF programs write it. Little-endian, no pointers.
 *
 *   struct sample | kernel_frames x u64 | user_words x u64 | kept_words x u64 | copy_bytes of
 * stack, from address state.sp - SAMPLE_RED_ZONE upwards
 *
 * User frames are raw program counters from the leaf outwards; the host turns them into objects and
 * offsets with the mappings that held at time_ns. Behind the evaluator of an interpreter come the
 * frames it evaluates, two words each (SAMPLE_RUNTIME). If a walk ends where the host may know more
 * (END_unknown_process, END_unknown_pc, END_not_loaded), state holds the registers at that point
 * and a copy of the stack follows, so that the host finishes the walk; before it a struct
 * python_kept_state and the Python frames that the rest of the walk may meet (abi/python.h).
 */
#pragma once

#include <linux/types.h>

#include "abi/unwind.h"

enum {
	SAMPLE_KERNEL_FRAMES = 127, /* sysctl kernel.perf_event_max_stack at its default */
	// A function of Python 3.6 to 3.8 that is 500 deep in itself takes 2,050.
	SAMPLE_USER_FRAMES = 2560,
	SAMPLE_COPY_BYTES = 32768,
	SAMPLE_COMM = 16,
	// x86-64 psABI 3.2.2: that much below the stack pointer keeps its content. Walks read it:
	// in GCC's epilogues a frame pointer that was popped is, by the rules, still where it was
	// saved.
	SAMPLE_RED_ZONE = 128,
};

enum sample_flag {
	SAMPLE_in_kernel = 1,  /* the tick hit kernel code */
	SAMPLE_in_syscall = 2, /* user pc is behind a system call instruction */
	SAMPLE_copy_whole = 4, /* the copy reaches memory that cannot be read: the end of the stack,
				  as a rule */
	SAMPLE_leaf = 8,       /* state is that of the leaf: all 16 registers hold */
	SAMPLE_call = 16,      /* state.pc is a return address */
	SAMPLE_gil = 32,       /* the thread holds CPython's global interpreter lock */
};

/*
 * In a user frame: the pc is that of an instruction (the leaf, a frame that a signal interrupted),
 * not behind a call.
 */
#define SAMPLE_EXACT_PC (1ull << 63)

/*
 * Set in the first of the two words of a frame that is not machine code: the runtime (enum
 * runtime_id) in 6 bits from bit 56 on, an address below. The second word is the runtime's
 * (abi/python.h).
 */
#define SAMPLE_RUNTIME (1ull << 62)
enum { SAMPLE_RUNTIME_SHIFT = 56 };

static inline __attribute__((always_inline)) __u64 sample_runtime_word(__u32 runtime, __u64 addr)
{
	return SAMPLE_RUNTIME | (__u64)runtime << SAMPLE_RUNTIME_SHIFT |
	       (addr & ((1ull << SAMPLE_RUNTIME_SHIFT) - 1));
}

static inline __attribute__((always_inline)) int sample_is_runtime(__u64 word)
{
	return (word & (SAMPLE_RUNTIME | SAMPLE_EXACT_PC)) == SAMPLE_RUNTIME;
}

/* What a native walk knows at one frame. */
struct walk_state {
	__u64 pc, sp, fp;
	__u64 reg[UNWIND_REGISTERS]; /* by DWARF number; those of the leaf or of a signal frame */
};

struct sample {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 size;    /* of everything, in bytes */
	__u32 pid, tid, cpu;
	__u32 flags; /* enum sample_flag */
	__u16 kernel_frames, user_words;
	__u32 copy_bytes;
	__u32 copy_hole; /* so many bytes at the copy's begin could not be read and are zero */
	__u32 end;       /* enum walk_end of the user stack */
	__u32 python;    /* struct process_entry's, if there are Python frames; else 0 */
	__u32 kept_words;
	char comm[SAMPLE_COMM]; /* the process's: that of its first thread */
	char thread_comm[SAMPLE_COMM];
	struct walk_state state;
};
