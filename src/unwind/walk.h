/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The cursor that every stack walker moves. A walker sees this and the verbs of unwind/env.h,
 * nothing else; it is compiled once for BPF and once for the host.
 */
#pragma once

#include "abi/ends.h"
#include "abi/python.h"
#include "abi/sample.h"
#include "abi/unwind.h"

/* A frame pointer that no frame has: it was lost. Zero would mean the outermost frame. */
enum { WALK_FP_LOST = 1 };

enum walk_flag {
	WALK_leaf = 1,    /* all of at.reg hold: the leaf, or the frame that a signal interrupted */
	WALK_rbx = 4,     /* at.reg[UNWIND_RBX] holds */
	WALK_call = 2,    /* at.pc is a return address: what it belongs to lies one byte before */
	WALK_ask_gil = 8, /* set WALK_gil if the thread holds CPython's global interpreter lock */
	WALK_gil = 16,
};

/* What the next step of a walk does. */
enum walk_phase {
	WALK_native = 0,  /* one machine frame */
	WALK_find_thread, /* look at one thread state of CPython */
	WALK_python,      /* one frame of CPython */
	WALK_keep,        /* one frame of CPython for who walks on */
};

/* Where a walk is among the frames of CPython. */
struct python_walk {
	__u32 process; /* 1 + number of the struct python_process; 0: it does not run CPython */
	__u32 looked;  /* thread states looked at */
	__u64 interpreter, state; /* addresses; state 0: none looked at yet */
	__u64 frame;              /* the innermost one not pushed yet; 0: none */
	__u64 cframe;             /* 3.11, 3.12: the _PyCFrame that led to it */
	__u64 low, high;          /* the evaluator's C frame, whose frames are being pushed */
	/* If they turn out to be an outer evaluator's: where to go on. */
	__u64 first_frame;
	__u32 first_frames, first_words;
	struct python_kept_state first; /* the state that frames are kept from, the innermost */
	__u32 found;                    /* the thread's state has been found */
	__u32 lost; /* enum python_lost: no Python frames in the rest of this walk */
	__u32 keep; /* the machine frames are over; frames are kept for who walks on */
	__u32 kept; /* so many */
	/* The innermost evaluator has linked its _PyCFrame and not filled it. Non-zero: as many
	 * bytes below the end of its C frame as that is, the next one's is below the end of its. */
	__u32 unfilled;
	__u32 unused;
};

struct walk {
	struct walk_state at;
	__u32 flags;
	__u32 frames;  /* pushed */
	__u32 words;   /* that they take in the frame buffer */
	__u32 depth;   /* at most this many frames, up to SAMPLE_USER_FRAMES */
	__u32 end;     /* enum walk_end; END_none while walking */
	__u32 phase;   /* enum walk_phase */
	__u32 after;   /* the end of the native walk, once the present Python frames are pushed */
	__u64 fs_base; /* x86-64: where the thread's TLS is; 0: not known */
	struct python_walk python;

	/* The process's table of mappings, and the mapping the last pc was in. */
	__u32 first_mapping, mappings;
	struct unwind_mapping in;
};
