/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * One stack of machine frames and frames of runtimes: the dispatcher between their walkers.
 * Compiled for BPF and for the host from this text. Where machine code is the evaluator of an
 * interpreter, the frames that it evaluates come behind it.
 */
#pragma once

#include "runtimes/python/walk.h"
#include "unwind/native.h"

/* Push the present machine frame and step. Non-zero: the walk is over. */
WALK_INLINE int walk_machine(struct walk *w)
{
	__u64 pc = w->at.pc - (w->flags & WALK_call ? 1 : 0), low = w->at.sp;

	if (native_push(w))
		return 1;
	w->after = native_step(w);
	// Where the host walks on it begins with this frame once more.
	if (!walk_end_unknown(w->after) && python_evaluates(w, pc)) {
		python_enter(w, low, w->after == END_none ? w->at.sp : ~0ull);
		return 0;
	}
	if (walk_end_unknown(w->after) && python_keeps(w))
		return 0;
	w->end = w->after;
	return w->end != END_none;
}

/*
 * One step of a walk: at most one frame is pushed. Non-zero: the walk is over, w->end says why.
 */
WALK_INLINE int walk_one(struct walk *w)
{
	int full = 0;

	switch ((enum walk_phase)w->phase) {
	case WALK_native:
		return walk_machine(w);
	case WALK_find_thread:
		python_find_thread(w);
		break;
	case WALK_python:
		full = python_frame(w);
		break;
	case WALK_keep:
		python_keep(w);
		break;
	}
	if (full)
		w->end = END_depth;
	else if (w->phase == WALK_native)
		w->end = w->after;
	return w->end != END_none;
}
