/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of interpreters of a process whose object does not say where it is (up to 3.9 stripped,
 * with no exported names): searched for in its data, by how an interpreter and its threads refer to
 * each other. What is found is a guess for attach.h to check.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proc/memory.h"
#include "runtimes/python/find.h"
#include "runtimes/python/layout.h"

enum { PYTHON_ROOTS_WORDS = 512 }; /* a page */

struct python_roots {
	const struct memory *memory;       /* borrowed */
	const struct python_offsets *at;   /* borrowed */
	struct python_range object, data;  /* addresses in the process; data is what is left */
	uint64_t word[PYTHON_ROOTS_WORDS]; /* of the page that is being looked at */
	uint64_t words_addr;               /* where they are */
	size_t words, next;                /* how many there are; which is next */
	unsigned reads;                    /* of what they point at, so far */
};

/* The next pointer, by address, that seems to lead to an interpreter. False: there is none. */
bool python_roots_next(struct python_roots *roots, uint64_t *ret);
