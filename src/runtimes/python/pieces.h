/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pieces of an object's code that have an unwind record of their own: functions, and the parts
 * of them that compilers put elsewhere. Read from the file, a few bytes for each question.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtimes/python/find.h"

struct object;

enum { PYTHON_PIECE_MAX = 1 << 20 }; /* bytes; evaluators have some 50 kB */

struct python_pieces {
	struct object *file; /* borrowed */
	uint64_t header, header_size;
	uint32_t count; /* rows of the header's table */
};

/* False: FILE has no table of them in the form that linkers write. */
bool python_pieces_open(struct object *file, struct python_pieces *ret);

/* The piece that holds ADDR. False: none does. */
bool python_pieces_find(const struct python_pieces *pieces, uint64_t addr,
			struct python_range *ret);
