/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The frames of CPython, from 2.7 on: which thread state belongs to a thread, and which of its
 * frames one C frame of the evaluator runs. Compiled for BPF and for the host from this text.
 *
 * A thread has the state whose thread_id is its pthread_self(). Frames hang together from the
 * innermost outwards; each C call of the evaluator runs a segment of them. From 3.11 on something
 * of each segment lies inside the evaluator's C frame, so that frames never appear in a call that
 * does not run them: not when a tick hits the evaluator before it has linked its frame, and not
 * behind it.
 *
 * Worst case of one step: looking at a thread state 4 reads, a frame 9.
 */
#pragma once

#include "abi/runtimes.h"
#include "unwind/env.h"

/* Objects lie at multiples of 8; 3.14 keeps tags in the low bits (CPython 3.14,
 * pycore_stackref.h). */
#define PYTHON_POINTER(word) ((word) & ~7ull)

enum {
	PYTHON_CFRAME_MAX = 4096, /* bytes of the evaluator's C frame; some 400 */
	/* Bytes of instructions; a frame that has run none yet stands in front of the first. */
	PYTHON_CODE_MAX = 16 << 20,
	PYTHON_CODE_BEFORE = 2,
};

/* Is PC, an address inside an instruction, in the evaluator? */
WALK_INLINE int python_evaluates(struct walk *w, __u64 pc)
{
	const struct python_process *process;

	if (!w->python.process || w->python.lost)
		return 0;
	process = env_python(w);
	if (!process)
		return 0;
	WALK_UNROLL
	for (int i = 0; i < PYTHON_EVALS; i++)
		if (pc >= process->eval[i].start && pc < process->eval[i].end)
			return 1;
	return 0;
}

/* No Python frames in the rest of this walk; a frame says so. */
WALK_INLINE void python_lose(struct walk *w, enum python_lost why)
{
	w->python.lost = why;
	w->phase = WALK_native;
	if (w->python.keep)
		return;
	// A full buffer ends the walk at its next frame.
	(void)push_runtime(w, sample_runtime_word(RUNTIME_python, 0), why, w->python.frame);
}

/* Does the thread hold the lock? What cannot be read holds nothing. */
WALK_INLINE int python_holds_lock(struct walk *w, const struct python_process *process,
				  const struct python_layout *layout)
{
	__u64 gil, holder = 0;
	__u32 locked = 0;

	if (process->holder)
		return !read_user(w, &holder, process->holder) && holder == w->python.state;
	if (layout->interpreter_gil == PYTHON_ABSENT)
		return 0;
	return !read_user(w, &gil, w->python.interpreter + layout->interpreter_gil) && gil &&
	       !read_user(w, &locked, gil + layout->gil_locked) && locked &&
	       !read_user(w, &holder, gil + layout->gil_holder) && holder == w->python.state;
}

/* The innermost frame of the thread state that was found. */
WALK_INLINE int python_begin(struct walk *w, const struct python_process *process,
			     const struct python_layout *layout)
{
	struct python_walk *at = &w->python;

	if (read_user(w, &at->frame, at->state + layout->thread_frame))
		return -1;
	at->cframe = 0;
	if (layout->cframe_frame != PYTHON_ABSENT) {
		at->cframe = at->frame;
		if (at->cframe && read_user(w, &at->frame, at->cframe + layout->cframe_frame))
			return -1;
	}
	if (!at->found && w->flags & WALK_ask_gil && python_holds_lock(w, process, layout))
		w->flags |= WALK_gil;
	at->found = 1;
	return 0;
}

/* All states of the lists have been looked at. */
WALK_INLINE void python_end_search(struct walk *w)
{
	// One state was found, its frames are all pushed, and there is none of another
	// interpreter: the evaluator has not linked its first frame yet.
	if (w->python.found) {
		w->python.lost = PYTHON_LOST_end;
		w->phase = WALK_native;
		return;
	}
	python_lose(w, PYTHON_LOST_state);
}

/* Look at one thread state, or go to the next interpreter's. Non-zero: unreadable. */
WALK_INLINE int python_look(struct walk *w, const struct python_process *process,
			    const struct python_layout *layout)
{
	struct python_walk *at = &w->python;
	__u64 id;

	if (at->looked++ >= PYTHON_LOOKS) {
		python_end_search(w);
		return 0;
	}
	if (!at->state) {
		__u64 link = at->interpreter ? at->interpreter + layout->interpreter_next
					     : process->interpreters;
		if (read_user(w, &at->interpreter, link))
			return -1;
		if (!at->interpreter) {
			python_end_search(w);
			return 0;
		}
		return read_user(w, &at->state, at->interpreter + layout->interpreter_threads);
	}
	if (read_user(w, &id, at->state + layout->thread_id))
		return -1;
	if (id != w->fs_base)
		return read_user(w, &at->state, at->state + layout->thread_next);
	// One inside of the other: the second is not where the next walk begins.
	if (!at->found)
		env_keep_state(w, at->state);
	w->phase = at->keep ? WALK_keep : WALK_python;
	return python_begin(w, process, layout);
}

/*
 * The state that this thread had in an earlier sample, if it still has it. Not if there is a newer
 * interpreter, where the thread may be by now: it stands first in the list.
 */
WALK_INLINE void python_recall(struct walk *w, const struct python_process *process,
			       const struct python_layout *layout)
{
	struct python_walk *at = &w->python;
	__u64 state = env_thread_state(w), id, first = 0;

	if (!state || read_user(w, &id, state + layout->thread_id) || id != w->fs_base ||
	    read_user(w, &first, process->interpreters) ||
	    read_user(w, &at->interpreter, state + layout->thread_interpreter))
		return;
	if (at->interpreter == first || env_state_is_innermost(w))
		at->state = state;
	else
		at->interpreter = 0;
}

/* The evaluator's C frame takes from LOW to HIGH: push the frames that it runs. */
WALK_INLINE void python_enter(struct walk *w, __u64 low, __u64 high)
{
	struct python_walk *at = &w->python;

	at->low = low;
	at->high = high;
	at->first_frame = at->frame;
	at->first_frames = w->frames;
	at->first_words = w->words;
	w->phase = at->found ? WALK_python : WALK_find_thread;
}

WALK_INLINE void python_find_thread(struct walk *w)
{
	const struct python_process *process = env_python(w);
	const struct python_layout *layout = process ? env_layout(w, process->layout) : 0;

	if (!layout) {
		python_lose(w, PYTHON_LOST_memory);
		return;
	}
	if (!w->python.looked)
		python_recall(w, process, layout);
	if (python_look(w, process, layout))
		python_lose(w, PYTHON_LOST_memory);
	w->python.first_frame = w->python.frame;
}

/* Bytes from the first instruction of CODE to the present one of FRAME, or f_lasti. */
WALK_INLINE int python_position(struct walk *w, const struct python_layout *layout, __u64 code,
				__u32 *ret)
{
	__u64 frame = w->python.frame, ip, first = code + layout->code_bytes;
	__u32 index = 0;

	if (layout->frames == PYTHON_FRAMES_objects)
		return read_user(w, ret, frame + layout->frame_ip);
	if (read_user(w, &ip, frame + layout->frame_ip))
		return -1;
	// Free-threaded 3.14: each thread runs its own copy of the instructions, but for the first
	// (CPython 3.14, pycore_code.h, _PyCodeArray).
	if (layout->frame_tlbc_index != PYTHON_ABSENT) {
		if (read_user(w, &index, frame + layout->frame_tlbc_index))
			return -1;
		__u64 copies;
		if (index && (read_user(w, &copies, code + layout->code_tlbc) ||
			      read_user(w, &first, copies + 8 + 8ull * index)))
			return -1;
	}
	*ret = (__u32)(ip - first);
	return 0;
}

WALK_INLINE int python_is_shim(const struct python_layout *layout, __u64 owner)
{
	return layout->frames == PYTHON_FRAMES_shim && owner >= layout->shim;
}

/* The present frame and the one that called it. Non-zero: unreadable. */
WALK_INLINE int python_read(struct walk *w, const struct python_layout *layout,
			    struct python_kept *ret, __u64 *previous)
{
	__u32 position, first_line, cookie = PYTHON_COOKIE_NONE;
	__u64 code, name;
	__u8 owner = 0;

	if (!env_kept(w, ret, previous))
		return 0;
	ret->at = w->python.frame;
	if (read_user(w, &code, ret->at + layout->frame_code) ||
	    read_user(w, previous, ret->at + layout->frame_previous))
		return -1;
	if (layout->frame_owner != PYTHON_ABSENT &&
	    read_user(w, &owner, ret->at + layout->frame_owner))
		return -1;
	code = PYTHON_POINTER(code) & ((1ull << PYTHON_OWNER_SHIFT) - 1);
	ret->code = code | (__u64)owner << PYTHON_OWNER_SHIFT;
	ret->rest = 0;
	if (python_is_shim(layout, owner))
		return 0;
	if (python_position(w, layout, code, &position))
		return -1;
	// A code object that is not in memory is read by the host; the frame stays.
	if (!read_user(w, &first_line, code + layout->code_first_line) &&
	    !read_user(w, &name, code + layout->code_name))
		cookie = python_cookie(first_line, name);
	ret->rest = (__u64)cookie << 32 | position;
	return 0;
}

/* The pushed frames are run by an evaluator further out: take them back. */
WALK_INLINE void python_undo(struct walk *w)
{
	w->python.frame = w->python.first_frame;
	w->frames = w->python.first_frames;
	w->words = w->python.first_words;
	w->phase = WALK_native;
}

/*
 * A tick may hit an evaluator of 3.11 and 3.12 when it has linked its _PyCFrame, on the C stack,
 * and not filled it yet (Python/ceval.c, _PyEval_EvalFrameDefault(): some 25 instructions): what it
 * holds is left over from others. 0: it is so, and that evaluator has no frames; those of the
 * others are found by their own _PyCFrames, which lie in the same place of their C frames.
 */
WALK_INLINE int python_skip_unfilled(struct walk *w, const struct python_layout *layout)
{
	struct python_walk *at = &w->python;

	// Only where the tick hit, and not where the evaluator calls something.
	if (layout->cframe_frame == PYTHON_ABSENT || at->first_frames != 1 ||
	    at->cframe < at->low || at->cframe >= at->high ||
	    at->high - at->cframe > PYTHON_CFRAME_MAX)
		return -1;
	at->unfilled = (__u32)(at->high - at->cframe);
	python_undo(w);
	return 0;
}

/* The present evaluator is the one that called it. Non-zero: unreadable. */
WALK_INLINE int python_find_filled(struct walk *w, const struct python_layout *layout)
{
	struct python_walk *at = &w->python;

	at->cframe = at->high - at->unfilled;
	at->unfilled = 0;
	return read_user(w, &at->frame, at->cframe + layout->cframe_frame);
}

/* One frame that takes part in a segment. *FULL: no room for it. Non-zero otherwise: unreadable. */
WALK_INLINE int python_one(struct walk *w, const struct python_layout *layout, int *full)
{
	struct python_walk *at = &w->python;
	struct python_kept frame;
	__u64 previous, owner;

	if (python_read(w, layout, &frame, &previous))
		return -1;
	owner = frame.code >> PYTHON_OWNER_SHIFT;
	if (python_is_shim(layout, owner)) {
		// Nor does a shim without frames say which frame is next.
		if ((at->frame >= at->high || w->frames == at->first_frames) &&
		    !python_skip_unfilled(w, layout))
			return 0;
		if (at->frame >= at->high) {
			python_undo(w);
			return 0;
		}
		at->frame = previous;
		w->phase = WALK_native;
		return 0;
	}
	if ((__u32)frame.rest + PYTHON_CODE_BEFORE > PYTHON_CODE_MAX &&
	    !python_skip_unfilled(w, layout))
		return 0;
	*full = push_runtime(w, sample_runtime_word(RUNTIME_python, frame.code), frame.rest,
			     frame.at);
	if (*full)
		return -1;
	at->frame = previous;
	if (layout->frames == PYTHON_FRAMES_objects)
		w->phase = WALK_native;
	if (layout->frames == PYTHON_FRAMES_entry && owner) {
		w->phase = WALK_native;
		// It tells an evaluator that has not linked its frame; frames do without. The host
		// cannot read an outer interpreter's.
		if (read_user(w, &at->cframe, at->cframe + layout->cframe_previous))
			at->cframe = 0;
	}
	return 0;
}

/* Non-zero: the frame buffer is full. */
WALK_INLINE int python_frame(struct walk *w)
{
	const struct python_process *process = env_python(w);
	const struct python_layout *layout = process ? env_layout(w, process->layout) : 0;
	struct python_walk *at = &w->python;
	int full = 0;

	if (!layout) {
		python_lose(w, PYTHON_LOST_memory);
		return 0;
	}
	if (at->unfilled && python_find_filled(w, layout)) {
		python_lose(w, PYTHON_LOST_memory);
		return 0;
	}
	if (!at->frame) {
		// This segment was the state's last: with another interpreter inside of this one
		// the thread has a second state. Or nothing has been linked yet.
		if (at->first_frame) {
			w->phase = WALK_native;
			return 0;
		}
		if (!python_skip_unfilled(w, layout))
			return 0;
		if (read_user(w, &at->state, at->state + layout->thread_next))
			python_lose(w, PYTHON_LOST_memory);
		else
			w->phase = WALK_find_thread;
		return 0;
	}
	if (layout->frames == PYTHON_FRAMES_entry && at->cframe >= at->high) {
		w->phase = WALK_native;
		return 0;
	}
	if (python_one(w, layout, &full) && !full && python_skip_unfilled(w, layout))
		python_lose(w, PYTHON_LOST_memory);
	return full;
}

/* The host walks on from here: keep what Python frames it may meet. */
WALK_INLINE int python_keeps(struct walk *w)
{
	if (!w->python.process || w->python.lost || !env_keeps(w))
		return 0;
	w->python.keep = 1;
	w->phase = w->python.found ? WALK_keep : WALK_find_thread;
	return 1;
}

/* Is there an interpreter outside of the present one? The thread may have a state there, too. */
WALK_INLINE int python_outside(struct walk *w, const struct python_layout *layout)
{
	struct python_walk *at = &w->python;

	return !read_user(w, &at->interpreter, at->interpreter + layout->interpreter_next) &&
	       at->interpreter &&
	       !read_user(w, &at->state, at->interpreter + layout->interpreter_threads);
}

/* One frame for the host. In the place of one that cannot be read stands the reason. */
WALK_INLINE void python_keep(struct walk *w)
{
	const struct python_process *process = env_python(w);
	const struct python_layout *layout = process ? env_layout(w, process->layout) : 0;
	struct python_walk *at = &w->python;
	struct python_kept frame;
	__u64 previous = 0;

	if (!at->kept)
		at->first = (struct python_kept_state){at->state, at->interpreter, at->cframe};
	if (!layout || !at->frame) {
		w->phase = layout && python_outside(w, layout) ? WALK_find_thread : WALK_native;
		return;
	}
	if (python_read(w, layout, &frame, &previous))
		frame = (struct python_kept){at->frame, 0, PYTHON_LOST_memory};
	if (env_keep(w, &frame))
		w->phase = WALK_native;
	else
		at->frame = previous;
}
