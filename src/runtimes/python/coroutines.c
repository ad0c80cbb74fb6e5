/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is awaited lies on top of the value stack of the frame that awaits: Objects/genobject.c,
 * _PyGen_yf() and its forerunners, of all versions.
 */
#include "runtimes/python/coroutines.h"

#include "unwind/env-host.h"

#include "runtimes/python/walk.h"

enum {
	TAG_BITS = 7,
	STACK_MAX = 1 << 16,
	CODE_ITERABLE_COROUTINE = 0x100, /* types.coroutine() */
	/* pycore_frame.h: state of a frame that waits in yield from or await; 3.13 and later. */
	STATE_AWAITS = -1,
	STATE_EXECUTING = 0,
};

static bool is_coroutine(enum python_kind kind)
{
	return kind == PYTHON_KIND_coroutine || kind == PYTHON_KIND_generator ||
	       kind == PYTHON_KIND_async_generator;
}

/* The frame of the coroutine at ADDR; 0 if it is over. False: unreadable. */
static bool find_frame(const struct python_heap *heap, uint64_t addr, int8_t *ret_state,
		       uint64_t *ret)
{
	const struct python_offsets *at = heap->offsets;

	*ret_state = STATE_AWAITS;
	if (at->generator_iframe == PYTHON_ABSENT)
		return python_heap_u64(heap, addr, at->generator_frame, ret);
	if (!python_heap_bytes(heap, addr, at->generator_state, ret_state, 1))
		return false;
	*ret = *ret_state > 0 ? 0 : addr + at->generator_iframe;
	return true;
}

/* By the text that walks run. False: unreadable. */
static bool read_position(const struct python_heap *heap, struct python_await *frame)
{
	const struct python_layout layout = python_offsets_layout(heap->offsets);
	struct host_walk walk = {.memory = heap->memory, .walk.python.frame = frame->frame};

	return !python_position(&walk.walk, &layout, frame->code, &frame->position);
}

/*
 * Address of the slot on top of the value stack of FRAME; 0: it is empty, or the frame runs, which
 * up to 3.10 nothing but that tells: f_stacktop is NULL then, and f_stackdepth of 3.10 -1.
 */
static bool find_top(const struct python_heap *heap, const struct python_await *frame,
		     bool *ret_running, uint64_t *ret)
{
	const struct python_offsets *at = heap->offsets;
	uint64_t base = frame->frame + at->frame_fast, top;
	uint32_t depth, locals = 0;

	if (at->code_locals != PYTHON_ABSENT) {
		if (!python_heap_u32(heap, frame->code, at->code_locals, &locals))
			return false;
		base += (uint64_t)locals * 8;
	} else if (!python_heap_u64(heap, frame->frame, at->frame_stack, &base)) {
		return false;
	}
	if (at->frame_stack_top != PYTHON_ABSENT) {
		if (!python_heap_u64(heap, frame->frame, at->frame_stack_top, &top))
			return false;
		*ret_running = !top;
	} else {
		if (!python_heap_u32(heap, frame->frame, at->frame_stack_depth, &depth))
			return false;
		*ret_running = depth == UINT32_MAX;
		// A count of its own up to 3.10; from the first local on since 3.11.
		top = (at->generator_iframe != PYTHON_ABSENT ? frame->frame + at->frame_fast
							     : base) +
		      (depth > STACK_MAX ? 0 : (uint64_t)depth * 8);
	}
	*ret = top > base && top - base <= (uint64_t)STACK_MAX * 8 ? top - 8 : 0;
	return true;
}

/*
 * Whether what is on top of the stack is awaited. A coroutine rests nowhere else; a generator may
 * just yield, and have anything there.
 */
static bool awaits(const struct python_heap *heap, const struct python_await *frame, int8_t state,
		   enum python_kind kind)
{
	uint32_t flags;

	if (kind == PYTHON_KIND_coroutine)
		return true;
	if (heap->offsets->version >= 0x030d)
		return state == STATE_AWAITS;
	if (kind == PYTHON_KIND_async_generator)
		return true;
	return python_heap_u32(heap, frame->code, heap->offsets->code_flags, &flags) &&
	       flags & CODE_ITERABLE_COROUTINE;
}

/* One step from the coroutine at *ADDR to what it awaits, 0 for nothing. False: unreadable. */
static bool step(struct python_heap *heap, uint64_t *addr, enum python_kind kind,
		 struct python_awaits *ret)
{
	struct python_await frame;
	uint64_t slot, word;
	int8_t state;

	if (!find_frame(heap, *addr, &state, &frame.frame))
		return false;
	*addr = 0;
	if (!frame.frame)
		return true;
	if (!python_heap_u64(heap, frame.frame, heap->offsets->frame_code, &frame.code))
		return false;
	frame.code &= ~(uint64_t)TAG_BITS;
	if (!read_position(heap, &frame))
		return false;
	ret->frame[ret->count++] = frame;
	ret->running = state == STATE_EXECUTING;
	if (ret->running || !awaits(heap, &frame, state, kind))
		return true;
	if (!find_top(heap, &frame, &ret->running, &slot) ||
	    (slot && !python_heap_u64(heap, slot, 0, &word)))
		return false;
	*addr = slot ? word & ~(uint64_t)TAG_BITS : 0;
	return true;
}

void python_awaits_read(struct python_heap *heap, uint64_t addr, struct python_awaits *ret)
{
	struct python_type type;

	ret->count = 0;
	ret->waits_for = 0;
	ret->running = ret->whole = false;
	for (int i = 0; i < 2 * PYTHON_AWAITS_MAX && addr; i++) {
		if (!python_heap_type(heap, addr, &type))
			return;
		if (type.kind == PYTHON_KIND_awaiter) {
			// Its first member is what it forwards to: cw_coroutine, ags_gen, agt_gen
			// in genobject.c; future in FutureIter of _asynciomodule.c.
			if (!python_heap_u64(heap, addr, heap->offsets->object_header, &addr))
				return;
		} else if (is_coroutine(type.kind)) {
			if (ret->count == PYTHON_AWAITS_MAX || !step(heap, &addr, type.kind, ret))
				return;
		} else {
			ret->waits_for = addr;
			addr = 0;
		}
	}
	ret->whole = !addr;
}
