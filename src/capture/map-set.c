/* SPDX-License-Identifier: Apache-2.0 */
/* What a process has mapped, and that as tables. Whose mappings they are is in processes.c. */
#define LOG_DOMAIN "processes"
#include "capture/map-set.h"

#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

enum {
	SET_MAPS_MAX = 16384, /* what the walkers' binary search covers */
	// A child that BPF gave its parent's entry is noticed after one drain; by then the range
	// must still hold.
	RANGE_GRACE_MS = 3000,
};

static void set_retire_range(struct map_sets *sets, struct map_set *set)
{
	struct range range = {set->first, (uint32_t)set->count,
			      clock_monotonic_ns() + RANGE_GRACE_MS * 1000000ull};

	// Without memory for the list the entries stay unused.
	if (set->in_kernel && set->count)
		error_free(ranges_add(&sets->ranges, range));
	set->in_kernel = false;
}

/* What was derived from the mappings does not hold any more. */
static void set_changed(struct map_sets *sets, struct map_set *set)
{
	set_retire_range(sets, set);
	free(set->table);
	set->table = NULL;
}

void map_set_unref(struct map_sets *sets, struct map_set *set)
{
	if (!set || --set->refs)
		return;
	set_changed(sets, set);
	for (size_t i = 0; i < set->count; i++)
		objects_unref(sets->objects, set->map[i].object);
	free(set->map);
	free(set);
}

struct error *map_set_new(struct map_set **ret)
{
	struct map_set *set = calloc(1, sizeof(*set));

	if (!set)
		return error_oom();
	set->refs = 1;
	*ret = set;
	return NULL;
}

struct error *map_set_copy(struct map_sets *sets, const struct map_set *from, struct map_set **ret)
{
	struct map_set *set;

	TRY(map_set_new(&set));
	struct error *err = ARRAY_RESERVE(set->map, set->room, 0, from->count + 1, SET_MAPS_MAX + 1,
					  "mappings in one process");
	if (err) {
		map_set_unref(sets, set);
		return err;
	}
	if (from->count)
		memcpy(set->map, from->map, from->count * sizeof(*set->map));
	set->count = from->count;
	set->managed = from->managed;
	for (size_t i = 0; i < set->count; i++)
		objects_ref(sets->objects, set->map[i].object);
	*ret = set;
	return NULL;
}

/* Number of the first mapping that ends above ADDR. */
static size_t position(const struct map_set *set, uint64_t addr)
{
	size_t low = 0, high = set->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (set->map[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void set_remove(struct map_sets *sets, struct map_set *set, size_t i)
{
	objects_unref(sets->objects, set->map[i].object);
	memmove(set->map + i, set->map + i + 1, (set->count - i - 1) * sizeof(*set->map));
	set->count--;
}

static void set_insert(struct map_set *set, size_t i, struct process_map map)
{
	memmove(set->map + i + 1, set->map + i, (set->count - i) * sizeof(*set->map));
	set->map[i] = map;
	set->count++;
}

/* Make START..END free of mappings: what reaches into it is cut, one that spans it is split. */
static void set_clear(struct map_sets *sets, struct map_set *set, uint64_t start, uint64_t end)
{
	size_t i = position(set, start);

	while (i < set->count && set->map[i].start < end) {
		struct process_map *map = &set->map[i];
		struct process_map tail = *map;
		if (map->start >= start && map->end <= end) {
			set_remove(sets, set, i);
			continue;
		}
		if (map->end > end)
			tail.start = end;
		if (map->start < start && map->end > end) {
			map->end = start;
			objects_ref(sets->objects, tail.object);
			set_insert(set, i + 1, tail);
			return;
		}
		if (map->start < start)
			map->end = start;
		else
			*map = tail;
		i++;
	}
}

/* Add MAP, whose object reference is consumed also on failure. */
static struct error *set_add(struct map_sets *sets, struct map_set *set, struct process_map map)
{
	// Two more: the new one, and the half of one that is split.
	struct error *err = ARRAY_RESERVE(set->map, set->room, set->count, 2, SET_MAPS_MAX,
					  "mappings in one process");
	if (err) {
		objects_unref(sets->objects, map.object);
		error_free(err); // counted: walks through what is missing end visibly
		counter_add(sets->counters, COUNTER_mappings_full, 1);
		return NULL;
	}
	set_changed(sets, set);
	set_clear(sets, set, map.start, map.end);
	set_insert(set, position(set, map.start), map);
	return NULL;
}

/* Files of runtimes whose compiled code needs a walker of its own. */
static bool is_managed_runtime(const char *path)
{
	return str_ends(path, "/libjvm.so") || str_ends(path, "/libcoreclr.so");
}

static bool is_file_path(const char *path)
{
	return path[0] == '/' && !str_starts(path, "//anon") && !str_starts(path, "/dev/zero") &&
	       !str_starts(path, "/SYSV");
}

/* The object behind SOURCE, and where it is mapped. False: it cannot be told. */
static bool find_object(struct map_sets *sets, const struct object_source *source, uint64_t offset,
			struct process_map *map)
{
	struct error *err = objects_find(sets->objects, source, &map->object);
	uint64_t addr;

	if (err) {
		log_debug("%s", error_text(err));
		error_free(err); // what is mapped there stays unknown code, which stacks show
		counter_add(sets->counters, COUNTER_objects_failed, 1);
		return false;
	}
	// A file that is no object has offsets only.
	if (!objects_addr_of_offset(sets->objects, map->object, offset, &addr))
		addr = offset;
	map->bias = map->start - addr;
	return true;
}

struct error *map_set_add_source(struct map_sets *sets, struct map_set *set,
				 struct object_source *source, uint64_t offset)
{
	struct process_map map = {.start = source->start, .end = source->end};
	_cleanup_free_ char *path = NULL;

	// The kernel's own; programs are not called through it any more, and it cannot be read.
	if (!strcmp(source->path, "[vsyscall]") || map.start >= map.end)
		return NULL;
	TRY(str_copy(&path, source->path));
	if (str_ends(path, " (deleted)"))
		path[strlen(path) - strlen(" (deleted)")] = 0;
	source->path = path;
	if (!strcmp(path, "[vdso]")) {
		TRY(objects_find_vdso(sets->objects, &map.object));
		map.bias = map.start;
	} else if (is_file_path(path) && !find_object(sets, source, offset, &map)) {
		return NULL;
	}
	if (is_managed_runtime(path))
		set->managed = true;
	return set_add(sets, set, map);
}

struct error *map_set_add_maps(struct map_sets *sets, struct map_set *set,
			       const struct map_owner *owner, const struct maps *maps)
{
	for (size_t i = 0; i < maps->count; i++) {
		const struct map *map = &maps->map[i];
		struct object_source source = {
			.path = map->path,
			.pid = owner->pid,
			.open = owner->open,
			.context = owner->context,
			.start = map->start,
			.end = map->end,
			.inode = map->inode,
		};
		if (map->prot & MAPS_EXECUTE)
			TRY(map_set_add_source(sets, set, &source, map->offset));
	}
	return NULL;
}

struct code map_set_code(const struct map_set *set, uint64_t pc)
{
	size_t i = position(set, pc);

	if (i == set->count || set->map[i].start > pc)
		return (struct code){.kind = CODE_none};
	const struct process_map *map = &set->map[i];
	if (map->object == OBJECT_NONE)
		return (struct code){.kind = CODE_jit, .addr = pc};
	return (struct code){.kind = CODE_object, .object = map->object, .addr = pc - map->bias};
}

/* One mapping as walkers want it. */
static struct unwind_mapping to_unwind(const struct map_sets *sets, const struct map_set *set,
				       const struct process_map *map)
{
	struct unwind_mapping to = {.start = map->start, .end = map->end, .bias = map->bias};

	if (map->object != OBJECT_NONE && objects_is_code(sets->objects, map->object))
		to.module = objects_module(sets->objects, map->object);
	else if (set->managed)
		to.module = UNWIND_MODULE_no_walker;
	else
		to.module =
			map->object == OBJECT_NONE ? UNWIND_MODULE_frame_ptr : UNWIND_MODULE_none;
	return to;
}

struct error *map_set_build_table(const struct map_sets *sets, struct map_set *set)
{
	if (set->table)
		return NULL;
	struct unwind_mapping *table = calloc(set->count + 1, sizeof(*table));
	if (!table)
		return error_oom();
	for (size_t i = 0; i < set->count; i++)
		table[i] = to_unwind(sets, set, &set->map[i]);
	set->table = table;
	return NULL;
}

struct error *map_set_publish(struct map_sets *sets, struct map_set *set, bool *ret)
{
	uint32_t first = 0;

	*ret = true;
	if (set->in_kernel)
		return NULL;
	TRY(map_set_build_table(sets, set));
	if (set->count &&
	    !ranges_take(&sets->ranges, (uint32_t)set->count, clock_monotonic_ns(), &first)) {
		counter_add(sets->counters, COUNTER_mappings_full, set->count);
		*ret = false;
		return NULL;
	}
	if (set->count)
		memcpy(kernel_mappings(sets->kernel) + first, set->table,
		       set->count * sizeof(*set->table));
	set->first = first;
	set->in_kernel = true;
	return NULL;
}
