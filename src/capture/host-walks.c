/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/host-walks.h"

#include "base/clock.h"
#include "runtimes/python/attach.h"
#include "runtimes/python/neighbours.h"
#include "runtimes/walk-host.h"

enum {
	// A walk meets at most this many objects whose rows must be loaded, and re-reads of maps.
	WALK_ROUNDS = 64,
};

struct error *host_walks_prepare(const struct host_walks *walks, struct process_state *process,
				 const struct host_stack *stack, bool *ret)
{
	uint32_t object = objects_of_module(walks->objects, stack->module);

	*ret = false;
	if (stack->end == END_not_loaded && object != OBJECT_NONE) {
		TRY(objects_load(walks->objects, object));
		*ret = true;
	} else if (stack->end == END_unknown_pc) {
		TRY(processes_refresh(walks->processes, process, clock_monotonic_ns(), ret));
	}
	return NULL;
}

static uint32_t count_frames(const struct host_stack *stack)
{
	uint32_t count = 0;

	for (size_t i = 0; i < stack->words; i += frame_words(stack->word[i]))
		count++;
	return count;
}

/* The tables as they are now; what a round loads changes them. */
static struct error *set_tables(const struct host_walks *with, const struct host_begin *begin,
				struct host_walk *walk, struct host_tables *tables)
{
	const struct unwind_mapping *mapping;
	size_t count;

	TRY(process_table(with->processes, begin->process, &mapping, &count));
	*tables = store_tables(with->store);
	tables->mapping = mapping;
	tables->mappings = count;
	if (begin->image) {
		const struct python_instance *instance = python_image_instance(begin->image);
		tables->python = &instance->process;
		tables->layout = &instance->layout;
	}
	walk->tables = tables;
	walk->walk.mappings = (uint32_t)count;
	walk->walk.in = (struct unwind_mapping){0};
	return NULL;
}

/* Where the walk is among the frames of Python. */
static struct python_walk begin_python(const struct host_begin *begin)
{
	if (begin->state && begin->image)
		return (struct python_walk){.process = 1,
					    .found = 1,
					    .state = begin->state->state,
					    .interpreter = begin->state->interpreter,
					    .cframe = begin->state->cframe,
					    .frame = begin->kepts ? begin->kept[0].at : 0};
	return (struct python_walk){.process = begin->image && begin->fs_base};
}

static struct host_walk start_walk(const struct host_walks *walks, const struct host_begin *begin,
				   const struct host_stack *stack)
{
	return (struct host_walk){.memory = begin->memory,
				  .words = stack->word,
				  .thread_state = begin->thread_state,
				  .kept = begin->kept,
				  .kepts = begin->kepts,
				  .walk = {.at = begin->at,
					   .flags = begin->flags,
					   .depth = walks->depth,
					   .fs_base = begin->fs_base,
					   .words = (uint32_t)stack->words,
					   .frames = count_frames(stack),
					   .python = begin_python(begin)}};
}

static void end_round(const struct walk *walk, struct host_stack *stack)
{
	stack->words = walk->words;
	stack->end = (enum walk_end)walk->end;
	stack->module = walk->in.module;
	stack->thread_state = walk->python.state;
	stack->gil = walk->flags & WALK_gil;
}

struct error *host_walks_once(const struct host_walks *walks, const struct host_begin *begin,
			      struct host_stack *stack)
{
	struct host_walk walk = start_walk(walks, begin, stack);
	struct host_tables tables;

	counter_add(walks->counters, COUNTER_host_walks, 1);
	TRY(set_tables(walks, begin, &walk, &tables));
	host_walk(&walk);
	end_round(&walk.walk, stack);
	return NULL;
}

struct error *host_walks_run(const struct host_walks *walks, const struct host_begin *begin,
			     struct host_stack *stack)
{
	struct host_walk walk = start_walk(walks, begin, stack);
	struct host_tables tables;
	bool again = true;

	counter_add(walks->counters, COUNTER_host_walks, 1);
	for (int round = 0; again && round < WALK_ROUNDS; round++) {
		// The frame where a walk stopped was pushed; the walk that goes on pushes it again.
		if (walk.walk.frames) {
			walk.walk.frames--;
			walk.walk.words--;
		}
		TRY(set_tables(walks, begin, &walk, &tables));
		host_walk(&walk);
		end_round(&walk.walk, stack);
		TRY(host_walks_prepare(walks, begin->process, stack, &again));
	}
	return NULL;
}
