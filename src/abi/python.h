/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What a walker has to know of a process that runs CPython: where its thread states are, which
 * machine code is the evaluator, and how its version lays out what a walk reads. The host finds and
 * checks all of it (runtimes/python/attach.h); BPF and host walk with the same numbers.
 */
#pragma once

#include <linux/types.h>

enum {
	PYTHON_EVALS = 4,
	/* No such member in this version. */
	PYTHON_ABSENT = 0xffffffff,
};

/* How the frames of a thread hang together, and which of them one C call of the evaluator runs. */
enum python_frames {
	/* Up to 3.10: PyFrameObject; each C call of the evaluator runs one. */
	PYTHON_FRAMES_objects = 1,
	/* 3.11: _PyInterpreterFrame. A _PyCFrame on the C stack, inside the evaluator's C frame,
	 * points at the innermost; is_entry marks the outermost of one C call. */
	PYTHON_FRAMES_entry,
	/* 3.12 and later: a frame on the C stack, inside the evaluator's C frame, which runs no
	 * function of the program, ends those of one C call; its owner tells it. */
	PYTHON_FRAMES_shim,
};

/*
 * Offsets in bytes from the begin of the object that the first word names; PYTHON_ABSENT: this
 * version has no such member.
 */
struct python_layout {
	__u16 version; /* 0x030b: 3.11 */
	__u8 frames;   /* enum python_frames */
	__u8 shim;     /* value of owner that marks a shim */

	__u32 interpreter_next, interpreter_threads; /* pointers: next, first thread state */
	__u32 interpreter_gil;        /* 3.12 and later: pointer to struct _gil_runtime_state */
	__u32 gil_holder, gil_locked; /* pointer to a thread state; int */

	__u32 thread_next, thread_interpreter; /* pointers */
	__u32 thread_id; /* pthread_self(): with glibc and musl on x86-64 the thread's FS base */
	/* To the innermost frame, or (3.11, 3.12: cframe_frame is there) to the innermost
	 * _PyCFrame. */
	__u32 thread_frame;
	__u32 cframe_frame, cframe_previous; /* pointers */

	__u32 frame_code, frame_previous; /* pointers; the lowest 3 bits of code may be a tag */
	/* Up to 3.10 the int f_lasti, in the version's own unit; from 3.11 on a pointer into the
	 * code's instructions. */
	__u32 frame_ip;
	__u32 frame_owner;      /* one byte: 3.11 is_entry, 3.12 and later owner */
	__u32 frame_tlbc_index; /* int: free-threaded 3.14 runs copies of the instructions */

	__u32 code_first_line, code_name; /* int, pointer: what a frame's cookie is made of */
	__u32 code_bytes;                 /* from 3.11 on: the instructions, in the object itself */
	__u32 code_tlbc;                  /* pointer to {size, copies[]} */
	__u32 unused;
};
/* Items of a BPF array begin at multiples of 8; the host sees the array as one of C. */
_Static_assert(sizeof(struct python_layout) % 8 == 0, "tables are alike on both sides");

/* One process that runs CPython, and those forked from it. */
struct python_process {
	__u64 interpreters; /* address of the pointer to the first interpreter */
	/* Up to 3.11: address of the pointer to the thread state that holds the GIL
	 * (tstate_current); 0: the interpreter has it, or (free-threaded) there is no GIL. */
	__u64 holder;
	/* Machine code of the evaluator: addresses in the process, end exclusive. */
	struct {
		__u64 start, end;
	} eval[PYTHON_EVALS];
	__u32 evals;
	__u32 layout; /* number */
};
_Static_assert(sizeof(struct python_process) % 8 == 0, "tables are alike on both sides");

/*
 * A Python frame in a sample is two words: sample_runtime_word() of the code object's address, then
 * cookie << 32 | position. Position: f_lasti as it is (up to 3.10), else bytes from the first
 * instruction. Cookie 0: the code object could not be read.
 */
enum { PYTHON_COOKIE_NONE = 0 };

/* In the place of frames, with address 0: why there are none. In the second word. */
enum python_lost {
	PYTHON_LOST_none = 0,
	PYTHON_LOST_state,  /* the thread has no state in the interpreters' lists, or not among the
				first PYTHON_LOOKS */
	PYTHON_LOST_memory, /* a state or frame could not be read */
	PYTHON_LOST_end,    /* never in a sample: no further frames, as it should be */
};

enum { PYTHON_LOOKS = 256 };

/*
 * A frame as it was at a sample whose machine frames the host walks on: by then the process may
 * have left it. The frame that called it is the next one kept.
 */
struct python_kept {
	__u64 at;   /* its address */
	__u64 code; /* of its code object; frame_owner in the highest byte */
	__u64 rest; /* second word of a frame in a sample */
};

/* Before them: whose frames these are. Addresses. */
struct python_kept_state {
	__u64 state, interpreter;
	__u64 cframe; /* struct python_layout's; 0: this version has none */
};
_Static_assert(sizeof(struct python_kept_state) == sizeof(struct python_kept), "one list");
enum { PYTHON_KEPT_WORDS = sizeof(struct python_kept) / 8, PYTHON_OWNER_SHIFT = 56 };

static inline __attribute__((always_inline)) __u32 python_cookie(__u32 first_line, __u64 name)
{
	__u32 cookie = first_line * 2654435761u ^ (__u32)(name >> 4);

	return cookie ? cookie : 1;
}
