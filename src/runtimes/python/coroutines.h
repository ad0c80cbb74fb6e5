/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a coroutine that rests is in: its frame, the one of what it awaits, and so on (cr_await).
 * Also of generators that are coroutines, and of asynchronous generators.
 */
#pragma once

#include "runtimes/python/heap.h"

enum { PYTHON_AWAITS_MAX = 64 };

struct python_await {
	uint64_t frame, code; /* addresses */
	uint32_t position;    /* as of any frame: abi/python.h */
};

struct python_awaits {
	struct python_await frame[PYTHON_AWAITS_MAX]; /* outermost first */
	size_t count;
	uint64_t waits_for; /* object that is no coroutine, at the end of the chain; 0: none */
	bool running;       /* the last one is on a thread's stack, and goes on there */
	bool whole;         /* false: something was unreadable, or there are too many */
};

/* From the coroutine at ADDR on. */
void python_awaits_read(struct python_heap *heap, uint64_t addr, struct python_awaits *ret);
