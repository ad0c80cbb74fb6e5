/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walkers' environment on the host. Memory is whatever the caller can read; tables are those
 * that the BPF programs use, or any other of the same layout.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proc/memory.h"
#include "unwind/walk.h"

#define WALK_INLINE static inline __attribute__((always_inline))
#define WALK_UNROLL

/* The tables that a walk looks up. All of it is borrowed. */
struct host_tables {
	const struct unwind_mapping *mapping;
	size_t mappings;
	const struct unwind_module *module;
	size_t modules;
	const struct unwind_segment *const *segment;
	size_t segments;
	const struct unwind_rule *rule;
	size_t rules;
	const struct python_process *python; /* of the process; NULL: it does not run CPython */
	const struct python_layout *layout;  /* its number is not looked at */
};

/* A walk on the host: the cursor with its surroundings. */
struct host_walk {
	struct walk walk;
	const struct host_tables *tables; /* borrowed */
	struct memory memory;
	uint64_t *words; /* room for 2 * walk.depth; borrowed */
	/* Room for as many: next to the first word of a runtime's frame the frame's address. May be
	 * NULL; borrowed. */
	uint64_t *places;
	uint64_t thread_state; /* of CPython, the first it has; 0: not known, it is looked for */
	const struct python_kept *kept; /* frames that are not read from memory; borrowed */
	size_t kepts;
};

static inline struct host_walk *host_of(const struct walk *w)
{
	return (struct host_walk *)((char *)(uintptr_t)w - offsetof(struct host_walk, walk));
}

#define read_user(w, to, addr) memory_read(&host_of(w)->memory, (addr), (to), sizeof(*(to)))

WALK_INLINE int env_mapping(const struct walk *w, __u32 number, struct unwind_mapping *ret)
{
	const struct host_tables *tables = host_of(w)->tables;

	if (number >= tables->mappings)
		return -1;
	*ret = tables->mapping[number];
	return 0;
}

WALK_INLINE int env_module(const struct walk *w, __u32 number, struct unwind_module *ret)
{
	const struct host_tables *tables = host_of(w)->tables;

	if (number >= tables->modules)
		return -1;
	*ret = tables->module[number];
	return 0;
}

WALK_INLINE const struct unwind_segment *env_segment(const struct walk *w, __u32 number)
{
	const struct host_tables *tables = host_of(w)->tables;

	return number < tables->segments ? tables->segment[number] : NULL;
}

WALK_INLINE int env_rule(const struct walk *w, __u32 number, struct unwind_rule *ret)
{
	const struct host_tables *tables = host_of(w)->tables;

	if (number >= tables->rules)
		return -1;
	*ret = tables->rule[number];
	return 0;
}

WALK_INLINE const struct python_process *env_python(const struct walk *w)
{
	return host_of(w)->tables->python;
}

WALK_INLINE const struct python_layout *env_layout(const struct walk *w, __u32 number)
{
	return host_of(w)->tables->layout;
}

WALK_INLINE __u64 env_thread_state(const struct walk *w)
{
	return host_of(w)->thread_state;
}

/* Whoever knows it has read the lists just now. */
WALK_INLINE int env_state_is_innermost(const struct walk *w)
{
	return 1;
}

/* The host walks a thread once. */
WALK_INLINE void env_keep_state(const struct walk *w, __u64 state)
{
}

WALK_INLINE int env_keeps(const struct walk *w)
{
	return 0;
}

WALK_INLINE int env_keep(struct walk *w, const struct python_kept *frame)
{
	return -1;
}

/* Frames are met in their order, but for those that an evaluator gives back. */
WALK_INLINE int env_kept(struct walk *w, struct python_kept *ret, __u64 *previous)
{
	const struct host_walk *host = host_of(w);

	for (size_t looked = 0; looked < host->kepts; looked++) {
		size_t i = (w->python.kept + looked) % host->kepts;
		if (host->kept[i].at != w->python.frame)
			continue;
		w->python.kept = (__u32)i;
		*ret = host->kept[i];
		*previous = i + 1 < host->kepts ? host->kept[i + 1].at : 0;
		return 0;
	}
	return -1;
}

WALK_INLINE int push(struct walk *w, __u64 pc)
{
	if (w->frames >= w->depth)
		return -1;
	w->frames++;
	host_of(w)->words[w->words++] = pc;
	return 0;
}

WALK_INLINE int push_runtime(struct walk *w, __u64 head, __u64 rest, __u64 place)
{
	struct host_walk *host = host_of(w);

	if (w->frames >= w->depth)
		return -1;
	w->frames++;
	if (host->places)
		host->places[w->words] = place;
	host->words[w->words++] = head;
	host->words[w->words++] = rest;
	return 0;
}

/*
 * Walk the machine frames until the end; host_walk.walk.at is the leaf (or where another walk
 * stopped). The end is in walk.end. Frames of runtimes are runtimes/walk-host.h's.
 */
void host_walk_native(struct host_walk *walk);

/* What stands in a profile where a walk ended before the root: "no unwind rows". Never NULL. */
const char *walk_end_text(enum walk_end end);
/* Is a stack with this end complete? */
int walk_end_whole(enum walk_end end);
