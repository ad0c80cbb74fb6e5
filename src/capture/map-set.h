/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of executable mappings, shared by a parent and the children that have not changed theirs,
 * and the table that the BPF side reads of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/counters.h"
#include "base/error.h"
#include "base/ranges.h"
#include "capture/kernel.h"
#include "capture/objects.h"
#include "proc/maps.h"

/* What all sets share. */
struct map_sets {
	/* Borrowed from the capture, as the next two; NULL: sets are not published. */
	struct kernel_side *kernel;
	struct objects *objects;
	struct counters *counters;
	struct ranges ranges; /* free entries of the kernel's table of mappings */
};

struct process_map {
	uint64_t start, end;
	uint64_t bias;   /* address in the object = pc - bias */
	uint32_t object; /* number; OBJECT_NONE: executable memory without a file */
};

struct map_set {
	uint32_t refs;
	struct process_map *map; /* sorted, no overlaps */
	size_t count, room;
	bool managed;                 /* a runtime that keeps no frame pointers is mapped */
	struct unwind_mapping *table; /* NULL until map_set_build_table() */
	uint32_t first;               /* range in the kernel's table */
	bool in_kernel;               /* the range is valid */
};

enum code_kind {
	CODE_none, /* nothing is mapped there */
	CODE_object,
	CODE_jit, /* executable memory without a file */
};

/* What is at an address of a process. */
struct code {
	enum code_kind kind;
	uint32_t object; /* number */
	uint64_t addr;   /* in the object; for CODE_jit the pc itself */
};

/* An empty set; one reference is the caller's. */
struct error *map_set_new(struct map_set **ret);
struct error *map_set_copy(struct map_sets *sets, const struct map_set *from, struct map_set **ret);
/* NULL is allowed. With the last reference its objects lose theirs. */
void map_set_unref(struct map_sets *sets, struct map_set *set);

/*
 * Enter the executable mapping of SOURCE, whose file is mapped from OFFSET on; what it covers of
 * others is gone. What cannot be told or does not fit is counted, and stays unknown code. The set
 * must not be shared.
 */
struct error *map_set_add_source(struct map_sets *sets, struct map_set *set,
				 struct object_source *source, uint64_t offset);

/* Whose mappings they are: of a live process, or of one whose files are opened otherwise. */
struct map_owner {
	uint32_t pid;
	object_open_fn *open; /* NULL: in the root of pid */
	void *context;        /* of open; borrowed */
};

/* Enter the executable ones of MAPS, those of OWNER, into SET, which is not shared. */
struct error *map_set_add_maps(struct map_sets *sets, struct map_set *set,
			       const struct map_owner *owner, const struct maps *maps);

/* What is at PC. */
struct code map_set_code(const struct map_set *set, uint64_t pc);

/* See that set->table holds the mappings as walkers want them; it does until the set changes. */
struct error *map_set_build_table(const struct map_sets *sets, struct map_set *set);

/* Put SET into the kernel's table. False: it is full. */
struct error *map_set_publish(struct map_sets *sets, struct map_set *set, bool *ret);
