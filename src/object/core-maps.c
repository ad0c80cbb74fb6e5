/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mappings of a core, put together from its segments (which know the protection) and from the
 * list of mapped files (which knows what is behind them). The kernel writes both from the same
 * mappings; others need not.
 */
#include "object/core-inside.h"

#include <elf.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"

#define VSYSCALL 0xffffffffff600000ull

/* --- files */

struct file_key {
	const struct core *core;
	const char *path;
	size_t length;
	bool deleted;
};

static bool file_equal(const void *context, uint32_t item)
{
	const struct file_key *key = context;
	const struct core_mapped_file *file = &key->core->file[item];

	return file->deleted == key->deleted && strlen(file->path) == key->length &&
	       !memcmp(file->path, key->path, key->length);
}

static struct error *add_file(struct core *core, const char *path, uint32_t *ret)
{
	static const char deleted[] = " (deleted)";
	struct core_mapped_file file = {.given_fd = -1, .deleted = str_ends(path, deleted)};
	size_t length = strlen(path) - (file.deleted ? sizeof(deleted) - 1 : 0);
	struct file_key key = {core, path, length, file.deleted};
	uint64_t hash = hash_bytes(path, length, file.deleted);

	if (hash_find(&core->file_by_path, hash, file_equal, &key, ret))
		return NULL;
	TRY(ARRAY_RESERVE(core->file, core->file_room, core->file_count, 1, MAPS_MAX, "files"));
	TRY(arena_copy(&core->maps.paths, path, length, &file.path));
	TRY(hash_add(&core->file_by_path, hash, (uint32_t)core->file_count));
	*ret = (uint32_t)core->file_count;
	core->file[core->file_count++] = file;
	return NULL;
}

struct error *core_add_mapped(struct core *core, const struct core_mapped *row, const char *path)
{
	struct core_mapped mapped = *row;

	TRY(add_file(core, path, &mapped.file));
	TRY(ARRAY_RESERVE(core->mapped, core->mapped_room, core->mapped_count, 1, MAPS_MAX,
			  "mapped files"));
	core->mapped[core->mapped_count++] = mapped;

	struct core_mapped_file *file = &core->file[mapped.file];
	uint64_t end = mapped.offset + (mapped.end - mapped.start);
	if (end > file->end)
		file->end = end;
	if (!mapped.offset && !file->header)
		file->header = mapped.start;
	return NULL;
}

static int compare_mapped(const void *a, const void *b)
{
	const struct core_mapped *left = a, *right = b;

	return (left->start > right->start) - (left->start < right->start);
}

/* Sort them and cut off what overlaps. */
static void sort_mapped(struct core *core)
{
	size_t kept = 0;

	if (core->mapped_count)
		qsort(core->mapped, core->mapped_count, sizeof(*core->mapped), compare_mapped);
	for (size_t i = 0; i < core->mapped_count; i++) {
		struct core_mapped *mapped = &core->mapped[i];
		if (kept && core->mapped[kept - 1].end > mapped->start)
			core->mapped[kept - 1].end = mapped->start;
		if (kept && core->mapped[kept - 1].end == core->mapped[kept - 1].start)
			kept--;
		core->mapped[kept++] = *mapped;
	}
	core->mapped_count = kept;
}

/* --- mappings */

static uint8_t prot_of(uint32_t flags)
{
	return (uint8_t)((flags & PF_R ? MAPS_READ : 0) | (flags & PF_W ? MAPS_WRITE : 0) |
			 (flags & PF_X ? MAPS_EXECUTE : 0));
}

/* Add START..END, of which SEGMENT and MAPPED say what they know; either may be NULL. */
static struct error *add_map(struct core *core, uint64_t start, uint64_t end,
			     const struct core_segment *segment, const struct core_mapped *mapped)
{
	struct maps *maps = &core->maps;
	struct map map = {
		.start = start,
		.end = end,
		.prot = segment ? prot_of(segment->flags) : MAPS_READ | MAPS_EXECUTE,
		.path = "",
	};

	if (mapped) {
		const struct core_mapped_file *file = &core->file[mapped->file];
		map.offset = mapped->offset + (start - mapped->start);
		map.inode = mapped->file + 1ull;
		map.path = file->path;
		map.deleted = file->deleted;
	} else if (core->facts.vdso >= start && core->facts.vdso < end) {
		map.path = "[vdso]";
	} else if (start == VSYSCALL) {
		map.path = "[vsyscall]";
	}
	TRY(ARRAY_RESERVE(maps->map, maps->room, maps->count, 1, 4 * MAPS_MAX, "mappings"));
	maps->map[maps->count++] = map;
	return NULL;
}

/*
 * Both lists are sorted. Step by step the next piece is taken that lies in one segment or none, and
 * in one row or none.
 */
struct error *core_make_maps(struct core *core)
{
	uint64_t at = 0;
	size_t s = 0, m = 0;

	sort_mapped(core);
	while (s < core->segment_count || m < core->mapped_count) {
		const struct core_segment *segment =
			s < core->segment_count ? &core->segment[s] : NULL;
		const struct core_mapped *mapped = m < core->mapped_count ? &core->mapped[m] : NULL;
		uint64_t segment_start = segment ? segment->start : UINT64_MAX;
		uint64_t mapped_start = mapped ? mapped->start : UINT64_MAX;
		uint64_t first = segment_start < mapped_start ? segment_start : mapped_start;
		if (first > at)
			at = first;

		bool in_segment = segment && segment_start <= at,
		     in_row = mapped && mapped_start <= at;
		uint64_t end = in_segment ? segment->end : segment_start;
		uint64_t row_end = in_row ? mapped->end : mapped_start;
		if (row_end < end)
			end = row_end;
		if (end > at)
			TRY(add_map(core, at, end, in_segment ? segment : NULL,
				    in_row ? mapped : NULL));
		at = end;
		s += in_segment && segment->end <= at;
		m += in_row && mapped->end <= at;
	}
	return NULL;
}

/* The file that holds ADDR; NULL: none. */
static struct core_mapped_file *file_at(const struct core *core, uint64_t addr)
{
	const struct map *map = addr ? maps_find(&core->maps, addr) : NULL;

	return map && map->inode ? &core->file[map->inode - 1] : NULL;
}

/* The program's own headers and its entry lie in its file. */
static struct core_mapped_file *exe_file(const struct core *core)
{
	struct core_mapped_file *file = file_at(core, core->facts.headers);

	return file ? file : file_at(core, core->facts.entry);
}

const char *core_exe(const struct core *core)
{
	const struct core_mapped_file *file = exe_file(core);

	return file ? file->path : "";
}

struct error *core_set_exe(struct core *core, int fd)
{
	struct core_mapped_file *file = exe_file(core);

	if (!file)
		return error_new("%s: the core does not tell which mappings are the program's",
				 core->name);
	if (file->given_fd >= 0)
		close(file->given_fd);
	file->given_fd = fd;
	file->asked = false;
	object_free(file->object);
	file->object = NULL;
	return NULL;
}
