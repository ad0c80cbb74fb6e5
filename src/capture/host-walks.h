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
	uint32_t flags;             /* WALK_leaf, WALK_call, WALK_ask_gil */
	struct python_image *image; /* whose Python frames to look for; NULL: nobody's */
	uint64_t fs_base;           /* 0: not known */
	uint64_t thread_state;      /* of CPython, as an earlier walk found it; 0: not known */
	/* Python frames that are not read from memory, and whose they are; NULL: all are read. */
	const struct python_kept_state *state;
	const struct python_kept *kept;
	size_t kepts;
	struct memory memory;
};

/* A stack as abi/sample.h has its words, leaf first. */
struct host_stack {
	uint64_t *word; /* room for 2 * SAMPLE_USER_FRAMES; borrowed */
	size_t words;
	enum walk_end end;
	uint32_t module;       /* of the last pc */
	uint64_t thread_state; /* of CPython; 0: none was found */
	bool gil;              /* WALK_gil */
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

/* The same as far as it goes without touching a file: for a thread that was stopped. */
struct error *host_walks_once(const struct host_walks *walks, const struct host_begin *begin,
			      struct host_stack *stack);

/* Load what STACK's walk ended for the lack of. *RET: it is worth walking again. */
struct error *host_walks_prepare(const struct host_walks *walks, struct process_state *process,
				 const struct host_stack *stack, bool *ret);
