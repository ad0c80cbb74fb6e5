/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that the process had mapped, opened when something is wanted of them. A file of the
 * same name may be another one by now: an upgrade since the crash, another machine. The kernel puts
 * the first page of ELF files into cores (core(5), bit 4 of coredump_filter), which has the build
 * id; where it is missing there is only the length.
 */
#include "object/core-inside.h"

#include <fcntl.h>
#include <string.h>

#include "base/array.h"
#include "object/image.h"

enum { PAGE = 4096 };

/* --- is it the one? */

static uint64_t page_up(uint64_t size)
{
	return (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

/* The build id in the first page of an object. False: it holds none. */
static bool id_in_page(const uint8_t *page, struct object_id *ret)
{
	_cleanup_object_ struct object *head = NULL;
	struct error *err = object_open_memory(page, PAGE, "the first page", &head);

	error_free(err); // then there is no id in it
	// A hash of the page says nothing about the file.
	if (err || object_id(head)->hashed || !object_id(head)->length)
		return false;
	*ret = *object_id(head);
	return true;
}

/* Does the file begin with PAGE? */
static bool begins_with(const struct object *object, const uint8_t *page)
{
	uint8_t first[PAGE];
	size_t size = object->size < PAGE ? (size_t)object->size : PAGE;
	struct error *err = image_read(object, 0, first, size);

	error_free(err); // what cannot be read is not the same
	return !err && !memcmp(first, page, size);
}

static enum core_file compare(struct core *core, const struct core_mapped_file *file,
			      const struct object *object)
{
	const struct map *map = file->header ? maps_find(&core->maps, file->header) : NULL;
	uint8_t page[PAGE];
	struct object_id id;

	if (page_up(object->size) < file->end)
		return CORE_FILE_other;
	if (map && !core_read_held(core, file->header, page, sizeof(page))) {
		if (id_in_page(page, &id))
			return object_id_equal(&id, object_id(object)) ? CORE_FILE_same
								       : CORE_FILE_other;
		// The program may have changed a page that it may write to.
		if (!(map->prot & MAPS_WRITE))
			return begins_with(object, page) ? CORE_FILE_same : CORE_FILE_other;
	}
	return file->deleted ? CORE_FILE_other : CORE_FILE_unproven;
}

/* --- opening */

static struct error *open_by_path(struct core *core, const struct core_mapped_file *file,
				  enum core_file *ret, int *ret_fd)
{
	enum root_outcome outcome = ROOT_absent;

	if (core->options.open)
		TRY(core->options.open(core->options.context, file->path, &outcome, ret_fd));
	switch (outcome) {
	case ROOT_opened:
		*ret = CORE_FILE_unproven;
		break;
	case ROOT_absent:
		*ret = CORE_FILE_absent;
		break;
	case ROOT_denied:
		*ret = CORE_FILE_denied;
		break;
	case ROOT_not_a_file:
		*ret = CORE_FILE_no_object;
		break;
	}
	return NULL;
}

static struct error *remark(struct core *core, const struct core_mapped_file *file)
{
	switch (file->look) {
	case CORE_FILE_same:
	case CORE_FILE_no_object:
		return NULL;
	case CORE_FILE_unproven:
		return core_remark(core,
				   "%s: the core holds nothing that proves this file to be the one "
				   "that was mapped; it is taken for it",
				   file->path);
	case CORE_FILE_other:
		return core_remark(core, "%s: another file than the one that was mapped: not used",
				   file->path);
	case CORE_FILE_absent:
		return core_remark(core, "%s: not found: its code and names are missing",
				   file->path);
	case CORE_FILE_denied:
		return core_remark(core, "%s: may not be read: its code and names are missing",
				   file->path);
	}
	return NULL;
}

/* Keep OBJECT open as that of file NUMBER; the one that was opened longest ago may give way. */
static void keep_open(struct core *core, uint32_t number, struct object *object)
{
	uint32_t *slot = &core->opened[core->open_next++ % CORE_OPEN_FILES];

	if (*slot) {
		object_free(core->file[*slot - 1].object);
		core->file[*slot - 1].object = NULL;
	}
	*slot = number + 1;
	object_free(core->file[number].object);
	core->file[number].object = object;
}

/* Open FILE, whatever it is, and say what it is. RET is NULL unless it can be used. */
static struct error *open_and_compare(struct core *core, const struct core_mapped_file *file,
				      enum core_file *ret_look, struct object **ret)
{
	_cleanup_object_ struct object *object = NULL;
	_cleanup_close_ int fd = -1;
	enum core_file look = CORE_FILE_unproven;

	if (file->given_fd >= 0)
		fd = fcntl(file->given_fd, F_DUPFD_CLOEXEC, 0);
	else
		TRY(open_by_path(core, file, &look, &fd));
	if (fd >= 0) {
		struct error *err = object_open(fd, file->path, &object);
		look = err ? CORE_FILE_no_object : compare(core, file, object);
		if (!err)
			(void)take_fd(&fd);
		error_free(err); // a file that is not ELF is mapped as data
	}
	*ret_look = look;
	*ret = look == CORE_FILE_same || look == CORE_FILE_unproven ? take(object) : NULL;
	return NULL;
}

/* See that core->file[NUMBER] is known and, if it can be used, open. */
static struct error *want_file(struct core *core, uint32_t number)
{
	struct core_mapped_file *file = &core->file[number];
	bool usable = file->look == CORE_FILE_same || file->look == CORE_FILE_unproven;
	struct object *object;
	enum core_file look;

	if (file->object || (file->asked && !usable))
		return NULL;
	TRY(open_and_compare(core, file, &look, &object));
	bool news = !file->asked || look != file->look;
	file->look = look;
	file->asked = true;
	if (object)
		keep_open(core, number, object);
	return news ? remark(core, file) : NULL;
}

struct error *core_open_file(struct core *core, const struct map *map, enum core_file *ret,
			     int *ret_fd)
{
	if (!map->inode || map->inode > core->file_count) {
		*ret = CORE_FILE_no_object;
		return NULL;
	}
	TRY(want_file(core, (uint32_t)(map->inode - 1)));
	const struct core_mapped_file *file = &core->file[map->inode - 1];
	if (file->object) {
		int fd = fcntl(file->object->fd, F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			return error_errno("open %s once more", file->path);
		*ret_fd = fd;
	}
	*ret = file->look;
	return NULL;
}

void core_close_files(struct core *core)
{
	for (size_t i = 0; i < core->file_count; i++) {
		object_free(core->file[i].object);
		if (core->file[i].given_fd >= 0)
			close(core->file[i].given_fd);
	}
}

/* --- reading */

/* May the program have written to bytes of the file at OFFSET, as its own headers have it? */
static bool may_be_written(const struct object *object, uint64_t offset, size_t size)
{
	for (size_t i = 0; i < object->segment_count; i++) {
		const struct object_segment *segment = &object->segments[i];
		uint64_t first = segment->offset & ~(uint64_t)(PAGE - 1);
		if (segment->writable && offset < segment->offset + segment->file_size &&
		    offset + size > first)
			return true;
	}
	return false;
}

int core_read_mapped(struct core *core, const struct map *map, uint64_t addr, void *to, size_t size)
{
	uint64_t offset = map->offset + (addr - map->start);

	// What the program may have changed is in the core or lost: the file has what was there
	// before. Addresses that the loader puts in and protects afterwards are such, too.
	if ((map->prot & MAPS_WRITE) || size > UINT64_MAX - offset)
		return -1;
	struct error *err = want_file(core, (uint32_t)(map->inode - 1));
	const struct object *object = err ? NULL : core->file[map->inode - 1].object;
	error_free(err); // the contract: memory that is not there
	if (!object || (!(map->prot & MAPS_EXECUTE) && may_be_written(object, offset, size)))
		return -1;

	// The rest of a file's last page is zero.
	uint64_t there = offset < object->size ? object->size - offset : 0;
	if (offset + size > page_up(object->size))
		return -1;
	size_t read = size < there ? size : (size_t)there;
	err = image_read(object, offset, to, read);
	memset((uint8_t *)to + read, 0, size - read);
	bool failed = err != NULL;
	error_free(err); // as above
	return failed ? -1 : 0;
}
