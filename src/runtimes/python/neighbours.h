/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machine frames beside Python frames: which of them say the same once more. The interpreter's own
 * frames between those that it evaluates, and what leads to the first of them from the thread's
 * start, are hidden; what it does for the innermost Python frame (sorting, hashing), extension
 * modules, libraries and the program that embeds it stay.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/python.h"

struct python_neighbour {
	bool python;      /* a frame that the interpreter evaluates */
	bool interpreter; /* machine code of the object that holds the evaluator */
	bool start;       /* of what python_starts_in() says */
	bool keep;        /* the answer */
};

/* Set keep in each of COUNT frames, leaf first. Without any Python frame all stay. */
void python_hide_interpreter(struct python_neighbour *frame, size_t count);

/*
 * Is PATH where threads and programs start: the C library, the dynamic loader, or a program called
 * python, which in 3.6 and with a libpython has a main() of its own?
 */
bool python_starts_in(const char *path);

/* Is PATH a library that runs several stacks of calls in one thread? */
bool python_switches_stacks(const char *path);

/*
 * Up to 3.10 nothing on the C stack tells which call of the evaluator runs which frame: frames are
 * dealt out from the leaf on. A thread that was caught in a call that had not linked its frame yet,
 * or had unlinked it, has one frame less than calls: the innermost call has none, and each frame
 * belongs one call further out. Put it right in WORDS (abi/sample.h, leaf first) of a stack that is
 * whole, up to where a library that python_switches_stacks() began it.
 */
void python_deal_frames(const struct python_process *process, uint64_t *words, size_t count);
