/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free ranges of a numbered space (words of storage, rows of a table). A range may come back with
 * a time from which on it may be used again: somebody who does not tell may still be reading it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct range {
	uint32_t start, count;
	uint64_t free_at_ns; /* CLOCK_MONOTONIC; 0: free now */
};

struct ranges {
	struct range *range; /* sorted by start */
	size_t count, room;
	/* Ranges are not joined across multiples of 2^bits; 0: no boundary. */
	unsigned boundary_bits;
};

#define RANGES_INIT                                                                                \
	{                                                                                          \
		0                                                                                  \
	}

void ranges_deinit(struct ranges *ranges);

/* RANGE is free, or will be at free_at_ns. A failure (no memory) loses it. */
struct error *ranges_add(struct ranges *ranges, struct range range);

/* COUNT numbers in a row that are free at NOW_NS, first fit. False: there are none. */
bool ranges_take(struct ranges *ranges, uint32_t count, uint64_t now_ns, uint32_t *ret);
