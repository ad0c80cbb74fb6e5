/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples become stacks of numbers: each frame an object and an address in it. The walks that the
 * BPF side could not finish are finished here.
 *
 * The numbers are kept in a struct profile whose frames have no names yet: function is 0, offset
 * the address (for KIND_cut the enum walk_end), line twice the number of the object (KIND_native)
 * or of the profile's process (KIND_jit), plus 1 for a return address; inlined marks a pc where
 * nothing is mapped.
 */
#pragma once

#include <stdint.h>

#include "abi/sample.h"
#include "base/counters.h"
#include "base/error.h"
#include "capture/objects.h"
#include "capture/processes.h"
#include "profile/profile.h"
#include "unwind/store.h"

/* The object or process of a frame without a name, and whether its address is behind a call. */
static inline uint32_t stacks_frame_number(const struct frame *frame)
{
	return frame->line >> 1;
}

static inline bool stacks_frame_call(const struct frame *frame)
{
	return frame->line & 1;
}

struct stacks;

struct stack_totals {
	uint64_t samples;
	uint64_t by_end[END_MAX];
};

/* All pointers are borrowed. */
struct stacks_options {
	unsigned depth; /* user frames in one stack */
	struct store *store;
	struct objects *objects;
	struct processes *processes;
	struct counters *counters;
};

struct error *stacks_new(const struct stacks_options *options, struct stacks **ret);
void stacks_free(struct stacks *stacks);

/* Add SAMPLE, which is from the time up to which side-band events have been applied. */
struct error *stacks_add(struct stacks *stacks, const struct sample *sample);

const struct stack_totals *stacks_totals(const struct stacks *stacks);

/* End a session: its profile of numbers, the caller's now; the next session begins empty. */
struct error *stacks_take(struct stacks *stacks, struct profile **ret,
			  struct stack_totals *ret_totals);
