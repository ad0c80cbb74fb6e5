/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of struct target, for the files that fill it. Others see target.h. */
#pragma once

#include "base/arena.h"
#include "base/counters.h"
#include "capture/namer.h"
#include "capture/target.h"
#include "runtimes/python/attach.h"
#include "runtimes/python/code.h"
#include "runtimes/python/thread-names.h"
#include "symbolize/names.h"
#include "unwind/store.h"

struct target_python;

struct target {
	struct target_options options; /* maps is not used after target_open() */
	struct counters counters;
	struct unwind_module *modules; /* the store's memory, owned, as the next two */
	struct unwind_rule *rules;
	struct unwind_segment *segment[STORE_SEGMENTS_MAX];
	struct store *store;
	struct map_sets sets;         /* sets.objects is owned */
	struct map_set *set;          /* owned reference */
	struct target_python *python; /* never NULL once the target is open */
	struct namer *namer;
	struct arena locals;       /* variables of frames */
	struct names names;        /* texts handed out that are not the namer's */
	struct memory_pages pages; /* what the walk that goes on has read */
	uint64_t *word, *place;    /* 2 * TARGET_DEPTH each, for the walk that goes on */
	enum walk_end lacks;       /* how the last walk ended, and in which module */
	uint32_t lacks_module;
	unsigned refreshed; /* how often the mappings were read again */
};

/* Look for an interpreter in what is mapped. */
struct error *target_find_python(struct target *target);
void target_python_free(struct target_python *python);

/* Have WALK find the frames of CPython. */
void target_python_walk(const struct target *target, struct host_walk *walk,
			struct host_tables *tables);

/* Put the words of frames of CPython beside the calls that run them: python_deal_frames(). */
void target_python_deal(const struct target *target, struct target_stack *stack);

/* Is there a CPython that can be read? */
bool target_runs_python(const struct target *target);

/* Does object number OBJECT hold the evaluator? */
bool target_in_interpreter(const struct target *target, uint32_t object);

/* The frame of CPython in two words of a stack. */
struct error *target_name_python(struct target *target, const uint64_t word[2],
				 struct target_frame *ret);
