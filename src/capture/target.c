/* SPDX-License-Identifier: Apache-2.0 */
/* A process to look at: what it has mapped, and walks. Names are in target-names.c. */
#define LOG_DOMAIN "target"
#include "capture/target.h"

#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "capture/target-state.h"
#include "runtimes/walk-host.h"

enum {
	// A walk meets at most this many objects whose rows must be loaded, and new mappings.
	WALK_ROUNDS = 256,
	// Mappings are read again when a walk meets code nobody knows: what was mapped meanwhile.
	REFRESH_MAX = 8,
};

static struct error *new_segment(void *context, unsigned number, struct unwind_segment **ret)
{
	struct target *target = context;

	TRY(ARRAY_NEW(target->segment[number], 1));
	*ret = target->segment[number];
	return NULL;
}

static struct error *set_maps(struct target *target, const struct maps *maps)
{
	struct map_set *set;

	TRY(map_set_new(&set));
	struct error *err = map_set_add_maps(&target->sets, set, &target->options.owner, maps);
	if (!err)
		err = map_set_build_table(&target->sets, set);
	if (err) {
		map_set_unref(&target->sets, set);
		return err;
	}
	map_set_unref(&target->sets, target->set);
	target->set = set;
	return NULL;
}

static struct error *init(struct target *target)
{
	TRY(ARRAY_NEW(target->modules, STORE_MODULES_MAX));
	TRY(ARRAY_NEW(target->rules, UNWIND_RULES_MAX));
	TRY(ARRAY_NEW(target->word, 2 * TARGET_DEPTH));
	TRY(ARRAY_NEW(target->place, 2 * TARGET_DEPTH));
	TRY(memory_pages_init(&target->pages, target->options.memory));
	struct store_options store = {
		.segments_max = STORE_SEGMENTS_MAX,
		.segment = new_segment,
		.context = target,
		.modules = target->modules,
		.rules = target->rules,
		.counters = &target->counters,
	};
	TRY(store_new(&store, &target->store));
	TRY(objects_new(target->store, &target->counters, &target->sets.objects));
	target->sets.counters = &target->counters;
	struct namer_options naming = {
		.lines = target->options.lines,
		.debuginfod = target->options.debuginfod,
		.objects = target->sets.objects,
	};
	TRY(namer_new(&naming, &target->namer));
	TRY(set_maps(target, target->options.maps));
	return target_find_python(target);
}

struct error *target_open(const struct target_options *options, struct target **ret)
{
	struct target *target;

	TRY(ARRAY_NEW(target, 1));
	target->options = *options;
	struct error *err = init(target);
	if (err) {
		target_close(target);
		return err;
	}
	*ret = target;
	return NULL;
}

void target_close(struct target *target)
{
	if (!target)
		return;
	target_python_free(target->python);
	namer_free(target->namer);
	if (target->set)
		map_set_unref(&target->sets, target->set);
	objects_free(target->sets.objects);
	store_free(target->store);
	for (size_t i = 0; i < STORE_SEGMENTS_MAX; i++)
		free(target->segment[i]);
	names_deinit(&target->names);
	arena_deinit(&target->locals);
	memory_pages_deinit(&target->pages);
	free(target->modules);
	free(target->rules);
	free(target->word);
	free(target->place);
	free(target);
}

/* --- walks */

void target_stack_deinit(struct target_stack *stack)
{
	free(stack->word);
	free(stack->place);
	free(stack->variable);
	*stack = (struct target_stack)TARGET_STACK_INIT;
}

static struct error *keep_stack(const struct target *target, const struct walk *walk,
				struct target_stack *ret)
{
	_cleanup_(target_stack_deinit) struct target_stack stack = {.words = walk->words,
								    .end = walk->end};

	TRY(ARRAY_NEW(stack.word, stack.words + 1));
	TRY(ARRAY_NEW(stack.place, stack.words + 1));
	memcpy(stack.word, target->word, stack.words * sizeof(*stack.word));
	target_python_deal(target, &stack);
	// Places go with their frames, which may stand elsewhere now, in the same order.
	for (size_t i = 0, from = 0; i < stack.words; i += target_frame_words(stack.word[i])) {
		if (target_frame_words(stack.word[i]) != 2)
			continue;
		while (target_frame_words(target->word[from]) != 2)
			from++;
		stack.place[i] = target->place[from];
		from += 2;
	}
	target_stack_deinit(ret);
	*ret = take_struct(stack);
	return NULL;
}

static struct walk start_walk(const struct target *target, const struct thread_registers *from)
{
	struct walk walk = {
		.at = from->at,
		.flags = from->known == REGISTERS_all ? WALK_leaf : 0,
		.depth = TARGET_DEPTH,
		.fs_base = from->fs_base,
		.mappings = (uint32_t)target->set->count,
	};

	if (from->known != REGISTERS_all)
		walk.at.fp = WALK_FP_LOST;
	return walk;
}

struct error *target_walk(struct target *target, const struct thread_registers *from,
			  struct target_stack *ret)
{
	struct host_tables tables = store_tables(target->store);
	struct host_walk walk = {
		.tables = &tables,
		.memory = memory_pages_memory(&target->pages),
		.words = target->word,
		.places = target->place,
		.walk = start_walk(target, from),
	};

	memory_pages_forget(&target->pages);
	tables.mapping = target->set->table;
	tables.mappings = target->set->count;
	target_python_walk(target, &walk, &tables);
	if (from->known == REGISTERS_none)
		walk.walk.end = END_no_register;
	else if (from->compat)
		walk.walk.end = END_compat;
	else
		host_walk(&walk);
	target->lacks = walk.walk.end;
	target->lacks_module = walk.walk.in.module;
	return keep_stack(target, &walk.walk, ret);
}

/* Read the mappings of a live process again, if that may help. */
static struct error *refresh(struct target *target, bool *ret)
{
	_cleanup_(maps_deinit) struct maps maps = MAPS_INIT;

	*ret = false;
	if (!target->options.owner.pid || target->refreshed == REFRESH_MAX)
		return NULL;
	target->refreshed++;
	TRY(maps_read((pid_t)target->options.owner.pid, MAPS_executable, &maps));
	if (!maps.count)
		return NULL; // it is gone; what was known of it stays
	*ret = true;
	return set_maps(target, &maps);
}

struct error *target_prepare(struct target *target, bool *ret)
{
	uint32_t object;

	*ret = false;
	if (target->lacks == END_unknown_pc)
		return refresh(target, ret);
	if (target->lacks != END_not_loaded)
		return NULL;
	object = objects_of_module(target->sets.objects, target->lacks_module);
	if (object == OBJECT_NONE || store_loaded(target->store, target->lacks_module))
		return NULL;
	TRY(objects_load(target->sets.objects, object));
	*ret = true;
	return NULL;
}

struct error *target_walk_whole(struct target *target, const struct thread_registers *from,
				struct target_stack *ret)
{
	bool again = true;

	for (int round = 0; again && round < WALK_ROUNDS; round++) {
		TRY(target_walk(target, from, ret));
		TRY(target_prepare(target, &again));
	}
	return NULL;
}
