/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The cursor that every stack walker moves. A walker sees this and the verbs of unwind/env.h,
 * nothing else; it is compiled once for BPF and once for the host.
 */
#pragma once

#include "abi/ends.h"
#include "abi/sample.h"
#include "abi/unwind.h"

/* A frame pointer that no frame has: it was lost. Zero would mean the outermost frame. */
enum { WALK_FP_LOST = 1 };

enum walk_flag {
	WALK_leaf = 1, /* all of at.reg hold: the leaf, or the frame that a signal interrupted */
	WALK_rbx = 4,  /* at.reg[UNWIND_RBX] holds */
	WALK_call = 2, /* at.pc is a return address: what it belongs to lies one byte before */
};

struct walk {
	struct walk_state at;
	__u32 flags;
	__u32 frames;  /* pushed */
	__u32 depth;   /* at most this many, up to SAMPLE_USER_FRAMES */
	__u32 end;     /* enum walk_end; END_none while walking */
	__u64 fs_base; /* x86-64: where the thread's TLS is; 0: not known */

	/* The process's table of mappings, and the mapping the last pc was in. */
	__u32 first_mapping, mappings;
	struct unwind_mapping in;
};
