/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks on the host, of processes whose mappings are followed: to their end where the BPF side
 * stopped, or from a thread's registers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "abi/ends.h"
#include "base/counters.h"
#include "base/error.h"
#include "capture/objects.h"
#include "capture/processes.h"
#include "capture/pythons.h"
#include "proc/memory.h"
#include "unwind/store.h"

/* All borrowed. */
struct host_walks {
	unsigned depth; /* frames in one stack */
	struct store *store;
	struct objects *objects;
	struct processes *processes;
	struct counters *counters;
};

/* Where a walk begins, and what it can read. */
struct host_begin {
	struct process_state *process;
	struct walk_state at;
	uint32_t flags;             /* WALK_leaf, WALK_call */
	struct python_image *image; /* whose Python frames to look for; NULL: nobody's */
	uint64_t fs_base;           /* 0: not known */
	struct memory memory;
};

/* A stack as abi/sample.h has its words, leaf first. */
struct host_stack {
	uint64_t *word; /* room for 2 * SAMPLE_USER_FRAMES; borrowed */
	size_t words;
	enum walk_end end;
};

/* Words of the frame that begins with WORD. */
static inline size_t frame_words(uint64_t word)
{
	return sample_is_runtime(word) ? 2 : 1;
}

/*
 * Walk from BEGIN, loading what is missing on the way. A walk that goes on begins with the last
 * frame that STACK holds.
 */
struct error *host_walks_run(const struct host_walks *walks, const struct host_begin *begin,
			     struct host_stack *stack);
