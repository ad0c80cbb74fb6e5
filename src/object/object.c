/* SPDX-License-Identifier: Apache-2.0 */
/* Opening an ELF file: its headers and segments. Sections are in sections.c, who it is in
 * identity.c. */
#include "object/image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libelf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/str.h"
#include "object/go.h"

enum { PAGE = 4096 };

struct error *image_read(const struct object *object, uint64_t offset, void *data, size_t size)
{
	uint8_t *at = data;

	if (offset > object->size || size > object->size - offset)
		return error_new("%s: %zu bytes at offset 0x%llx lie outside the file",
				 object->name, size, (unsigned long long)offset);
	if (object->memory) {
		memcpy(data, object->memory + offset, size);
		return NULL;
	}
	while (size > 0) {
		ssize_t got = pread(object->fd, at, size, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_errno("read %s", object->name);
		if (got == 0)
			return error_new("%s: ends at offset 0x%llx while it is read", object->name,
					 (unsigned long long)offset);
		at += got;
		offset += (uint64_t)got;
		size -= (size_t)got;
	}
	return NULL;
}

/* A number as wide as the file's addresses. */
static struct error *word(const struct object *object, struct bytes *b, uint64_t *ret)
{
	uint32_t narrow;

	if (object->is_64)
		return bytes_u64(b, ret);
	TRY(bytes_u32(b, &narrow));
	*ret = narrow;
	return NULL;
}

/* Section 0 holds the counts that do not fit into the ELF header. */
static struct error *read_long_counts(struct object *object)
{
	uint8_t data[sizeof(Elf64_Shdr)];
	size_t size = object->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	uint64_t count;
	uint32_t link, info;

	if (!object->section_table || object->section_entry_size != size)
		return NULL;
	TRY(image_read(object, object->section_table, data, size));

	struct bytes b = bytes_over(data, size, object->name);
	b.big_endian = object->big_endian;
	TRY(bytes_seek(&b, object->is_64 ? 32 : 20));
	TRY(word(object, &b, &count));
	TRY(bytes_u32(&b, &link));
	TRY(bytes_u32(&b, &info));
	if (!object->section_count)
		object->section_count = count <= OBJECT_SECTIONS_MAX ? (uint32_t)count : 0;
	if (object->section_names_index == SHN_XINDEX)
		object->section_names_index = link;
	if (object->program_count == PN_XNUM)
		object->program_count = info;
	return NULL;
}

static struct error *read_header(struct object *object)
{
	uint8_t data[sizeof(Elf64_Ehdr)] = {0};
	uint16_t phnum, shnum, shstrndx;

	TRY(image_read(object, 0, data, EI_NIDENT));
	if (memcmp(data, ELFMAG, SELFMAG) != 0)
		return error_new("%s: not an ELF file", object->name);
	if (data[EI_CLASS] != ELFCLASS64 && data[EI_CLASS] != ELFCLASS32)
		return error_new("%s: ELF class %u is unknown", object->name, data[EI_CLASS]);
	if (data[EI_DATA] != ELFDATA2LSB && data[EI_DATA] != ELFDATA2MSB)
		return error_new("%s: ELF byte order %u is unknown", object->name, data[EI_DATA]);
	object->is_64 = data[EI_CLASS] == ELFCLASS64;
	object->big_endian = data[EI_DATA] == ELFDATA2MSB;

	size_t size = object->is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
	TRY(image_read(object, 0, data, size));
	struct bytes b = bytes_over(data, size, object->name);
	b.big_endian = object->big_endian;
	TRY(bytes_skip(&b, EI_NIDENT + 2));
	TRY(bytes_u16(&b, &object->machine));
	TRY(bytes_skip(&b, 4));
	TRY(word(object, &b, &object->entry));
	TRY(word(object, &b, &object->program_table));
	TRY(word(object, &b, &object->section_table));
	TRY(bytes_skip(&b, 4 + 2));
	TRY(bytes_u16(&b, &object->program_entry_size));
	TRY(bytes_u16(&b, &phnum));
	TRY(bytes_u16(&b, &object->section_entry_size));
	TRY(bytes_u16(&b, &shnum));
	TRY(bytes_u16(&b, &shstrndx));
	object->program_count = phnum;
	object->section_count = shnum;
	object->section_names_index = shstrndx;
	if ((!shnum && object->section_table) || phnum == PN_XNUM || shstrndx == SHN_XINDEX)
		error_free(read_long_counts(object)); // without them there are no sections, as
						      // after strip
	return NULL;
}

/* The two classes order the fields of a program header differently. */
static struct error *read_program_header(struct object *object, struct bytes *b)
{
	uint32_t type, flags;
	uint64_t offset, addr, physical, file_size, mem_size, align;

	TRY(bytes_u32(b, &type));
	if (object->is_64)
		TRY(bytes_u32(b, &flags));
	TRY(word(object, b, &offset));
	TRY(word(object, b, &addr));
	TRY(word(object, b, &physical));
	TRY(word(object, b, &file_size));
	TRY(word(object, b, &mem_size));
	if (!object->is_64)
		TRY(bytes_u32(b, &flags));
	TRY(word(object, b, &align));

	struct object_range range = {.offset = offset, .addr = addr, .size = file_size};
	if (type == PT_GNU_EH_FRAME)
		object->frame_header = range;
	if (type == PT_DYNAMIC)
		object->dynamic = range;
	if (type == PT_NOTE && object->note_count < OBJECT_NOTES_MAX)
		object->notes[object->note_count++] = range;
	if (type != PT_LOAD || mem_size > UINT64_MAX - addr || file_size > UINT64_MAX - offset ||
	    file_size > mem_size)
		return NULL;
	TRY(ARRAY_RESERVE(object->segments, object->segment_room, object->segment_count, 1,
			  OBJECT_SEGMENTS_MAX, "segments"));
	object->segments[object->segment_count++] =
		(struct object_segment){.addr = addr,
					.offset = offset,
					.file_size = file_size,
					.mem_size = mem_size,
					.executable = flags & PF_X,
					.writable = flags & PF_W};
	return NULL;
}

static struct error *read_program_headers(struct object *object)
{
	size_t size = object->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);

	if (!object->program_count)
		return NULL;
	if (object->program_entry_size != size || object->program_count > OBJECT_SEGMENTS_MAX)
		return error_new("%s: %u program headers of %u bytes make no sense", object->name,
				 object->program_count, object->program_entry_size);

	size_t total = size * object->program_count;
	_cleanup_free_ uint8_t *data = malloc(total);
	if (!data)
		return error_oom();
	TRY(image_read(object, object->program_table, data, total));
	struct bytes b = bytes_over(data, total, object->name);
	b.big_endian = object->big_endian;
	for (uint32_t i = 0; i < object->program_count; i++)
		TRY(read_program_header(object, &b));
	return NULL;
}

static struct error *open_image(struct object *object, const char *name)
{
	TRY(str_copy(&object->name, name));
	TRY(read_header(object));
	TRY(read_program_headers(object));
	TRY(image_read_sections(object));
	return image_identify(object);
}

struct error *object_open(int fd, const char *name, struct object **ret)
{
	_cleanup_object_ struct object *object = calloc(1, sizeof(*object));
	struct stat st;

	if (!object)
		return error_oom();
	object->fd = -1;
	if (fstat(fd, &st) < 0)
		return error_errno("stat %s", name);
	// A device or a pipe could block for ever; what is mapped as code is a file.
	if (!S_ISREG(st.st_mode))
		return error_new("%s: not a regular file", name);
	object->size = (uint64_t)st.st_size;
	object->fd = fd;
	struct error *err = open_image(object, name);
	if (err) {
		object->fd = -1;
		return err;
	}
	*ret = take(object);
	return NULL;
}

struct error *object_open_memory(const void *data, size_t size, const char *name,
				 struct object **ret)
{
	_cleanup_object_ struct object *object = calloc(1, sizeof(*object));

	if (!object)
		return error_oom();
	object->fd = -1;
	object->memory = data;
	object->size = size;
	TRY(open_image(object, name));
	*ret = take(object);
	return NULL;
}

void object_free(struct object *object)
{
	if (!object)
		return;
	if (object->elf)
		elf_end(object->elf);
	image_release(object);
	if (object->fd >= 0)
		close(object->fd);
	free(object->segments);
	free(object->sections);
	free(object->section_names);
	free(object->name);
	free(object);
}

void object_release(struct object *object)
{
	image_release(object);
}

const char *object_name(const struct object *object)
{
	return object->name;
}

const struct object_id *object_id(const struct object *object)
{
	return &object->id;
}

const struct object_segment *object_segments(const struct object *object, size_t *ret_count)
{
	*ret_count = object->segment_count;
	return object->segments;
}

uint64_t object_entry(const struct object *object)
{
	return object->entry;
}

unsigned object_machine(const struct object *object)
{
	return object->machine;
}

bool object_is_64(const struct object *object)
{
	return object->is_64;
}

static bool segment_maps(const struct object_segment *segment, uint64_t offset)
{
	// The kernel maps whole pages, so that a mapping starts up to a page before its segment.
	return offset >= (segment->offset & ~(uint64_t)(PAGE - 1)) &&
	       offset < segment->offset + segment->file_size;
}

bool object_addr_of_offset(const struct object *object, uint64_t offset, uint64_t *ret)
{
	const struct object_segment *found = NULL;

	for (size_t i = 0; i < object->segment_count; i++) {
		const struct object_segment *segment = &object->segments[i];
		if (segment_maps(segment, offset) &&
		    (!found || (segment->executable && !found->executable)))
			found = segment;
	}
	if (!found)
		return false;
	*ret = found->addr + (offset - found->offset);
	return true;
}

/* The segment that has bytes in the file for ADDR; an executable one if there are several. */
static const struct object_segment *segment_at(const struct object *object, uint64_t addr)
{
	const struct object_segment *found = NULL;

	for (size_t i = 0; i < object->segment_count; i++) {
		const struct object_segment *segment = &object->segments[i];
		if (addr >= segment->addr && addr - segment->addr < segment->file_size &&
		    (!found || (segment->executable && !found->executable)))
			found = segment;
	}
	return found;
}

bool object_at(struct object *object, uint64_t addr, struct bytes *ret)
{
	const struct object_segment *segment = segment_at(object, addr);

	if (!segment)
		return false;

	// A file that was cut still has the bytes before the cut.
	uint64_t skip = addr - segment->addr;
	uint64_t offset = segment->offset + skip, size = segment->file_size - skip;
	if (offset >= object->size)
		return false;
	if (size > object->size - offset)
		size = object->size - offset;
	struct error *err = image_load(object, offset, size, "segment", ret);
	if (!err)
		return true;
	error_free(err); // the contract: damaged bytes are bytes that are not there
	return false;
}

bool object_read(struct object *object, uint64_t addr, void *ret, size_t size)
{
	const struct object_segment *segment = segment_at(object, addr);

	if (!segment || size > segment->file_size - (addr - segment->addr))
		return false;
	struct error *err = image_read(object, segment->offset + (addr - segment->addr), ret, size);
	if (!err)
		return true;
	error_free(err); // as in object_at()
	return false;
}

bool object_frame_header(const struct object *object, uint64_t *ret_addr, uint64_t *ret_size)
{
	if (!object->frame_header.size)
		return false;
	*ret_addr = object->frame_header.addr;
	*ret_size = object->frame_header.size;
	return true;
}

struct Elf *object_elf(struct object *object)
{
	if (object->elf || elf_version(EV_CURRENT) == EV_NONE)
		return object->elf;
	if (object->memory)
		// libelf asks for a pointer to what it may change, and changes nothing unless told
		// to.
		object->elf = elf_memory((char *)object->memory, object->size);
	else
		object->elf = elf_begin(object->fd, ELF_C_READ, NULL);
	if (object->elf && elf_kind(object->elf) != ELF_K_ELF) {
		elf_end(object->elf);
		object->elf = NULL;
	}
	return object->elf;
}

bool object_is_go(struct object *object)
{
	uint64_t addr;

	if (!object->go_known)
		object->go = go_table_find(object, &addr);
	object->go_known = true;
	return object->go;
}
