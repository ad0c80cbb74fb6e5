/* SPDX-License-Identifier: Apache-2.0 */
/* The section table, and the bytes of sections: read when asked for, decompressed, kept until
 * released. */
#include "object/image.h"

#include <elf.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/str.h"

enum {
	NAMES_MAX = 4 << 20,
	/* deflate and zstd do not pack better than about 1:1000; what claims more is a bomb */
	PACKED_RATIO_MAX = 1100,
	ZDEBUG_HEADER = 12, /* "ZLIB" and the size, big-endian */
	COMPRESS_ZSTD = 2,  /* ELFCOMPRESS_ZSTD; elf.h of glibc 2.36 does not have it yet */
};

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

static struct error *parse_section(struct object *object, struct bytes *b, uint32_t *ret_name,
				   struct object_section *ret)
{
	struct object_section section = {.name = ""};

	TRY(bytes_u32(b, ret_name));
	TRY(bytes_u32(b, &section.type));
	TRY(word(object, b, &section.flags));
	TRY(word(object, b, &section.addr));
	TRY(word(object, b, &section.offset));
	TRY(word(object, b, &section.size));
	TRY(bytes_u32(b, &section.link));
	TRY(bytes_skip(b, object->is_64 ? 4 + 8 + 8 : 4 + 4 + 4));
	*ret = section;
	return NULL;
}

/* Read the section names; without them the sections stay nameless. */
static void read_names(struct object *object)
{
	if (object->section_names_index >= object->section_count)
		return;

	const struct object_section *names = &object->sections[object->section_names_index];
	if (names->type != SHT_STRTAB || !names->size || names->size > NAMES_MAX)
		return;
	_cleanup_free_ char *text = malloc(names->size + 1);
	if (!text)
		return;
	struct error *err = image_read(object, names->offset, text, names->size);
	if (err) {
		error_free(err); // as if stripped
		return;
	}
	text[names->size] = 0;
	object->section_names_size = names->size;
	object->section_names = take(text);
}

static struct error *parse_sections(struct object *object, const uint8_t *data, size_t total)
{
	struct bytes b = bytes_over(data, total, object->name);
	_cleanup_free_ uint32_t *names = calloc(object->section_count, sizeof(*names));

	object->sections = calloc(object->section_count, sizeof(*object->sections));
	if (!object->sections || !names)
		return error_oom();
	b.big_endian = object->big_endian;
	for (uint32_t i = 0; i < object->section_count; i++)
		TRY(parse_section(object, &b, &names[i], &object->sections[i]));
	read_names(object);
	for (uint32_t i = 0; i < object->section_count; i++)
		if (names[i] < object->section_names_size)
			object->sections[i].name = object->section_names + names[i];
	return NULL;
}

struct error *image_read_sections(struct object *object)
{
	size_t size = object->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	size_t total = size * object->section_count;

	// A program runs without its section table, and packers make nonsense of it. What is not
	// readable is therefore absent.
	if (object->section_entry_size != size || object->section_table > object->size ||
	    total > object->size - object->section_table)
		object->section_count = 0;
	if (!object->section_count)
		return NULL;

	_cleanup_free_ uint8_t *data = malloc(total);
	if (!data)
		return error_oom();
	TRY(image_read(object, object->section_table, data, total));
	return parse_sections(object, data, total);
}

const struct object_section *object_sections(const struct object *object, size_t *ret_count)
{
	*ret_count = object->section_count;
	return object->sections;
}

static void load_free(struct object_load *load)
{
	if (!load)
		return;
	free(load->label);
	free(load->owned);
	free(load);
}

static void cleanup_load(struct object_load **load)
{
	load_free(*load);
}

void image_release(struct object *object)
{
	while (object->loads) {
		struct object_load *load = object->loads;
		object->loads = load->next;
		load_free(load);
	}
}

static struct error *load_new(const struct object *object, uint64_t offset, uint64_t size,
			      const char *what, struct object_load **ret)
{
	_cleanup_(cleanup_load) struct object_load *load = calloc(1, sizeof(*load));

	if (!load)
		return error_oom();
	TRY(str_format(&load->label, "%s: %s", object->name, what));
	load->offset = offset;
	load->size = size;
	*ret = take(load);
	return NULL;
}

/* Give LOAD its bytes and keep it. */
static void load_keep(struct object *object, struct object_load *load, const uint8_t *data,
		      uint64_t size)
{
	load->bytes = bytes_over(data, size, load->label);
	load->bytes.big_endian = object->big_endian;
	load->next = object->loads;
	object->loads = load;
}

static const struct object_load *load_find(const struct object *object, uint64_t offset,
					   uint64_t size, bool unpacked)
{
	for (const struct object_load *load = object->loads; load; load = load->next)
		if (load->offset == offset && load->size == size && load->unpacked == unpacked)
			return load;
	return NULL;
}

/* Read from the file, or point into the caller's memory. */
static struct error *load_raw(struct object *object, struct object_load *load)
{
	if (load->offset > object->size || load->size > object->size - load->offset)
		return error_new("%s: lies outside the file", load->label);
	if (load->size > OBJECT_LOAD_MAX)
		return error_new("%s: larger than %d bytes", load->label, OBJECT_LOAD_MAX);
	if (object->memory)
		return NULL;
	load->owned = malloc(load->size ? load->size : 1);
	if (!load->owned)
		return error_oom();
	return image_read(object, load->offset, load->owned, load->size);
}

struct error *image_load(struct object *object, uint64_t offset, uint64_t size, const char *what,
			 struct bytes *ret)
{
	const struct object_load *known = load_find(object, offset, size, false);

	if (!known) {
		_cleanup_(cleanup_load) struct object_load *load = NULL;
		TRY(load_new(object, offset, size, what, &load));
		TRY(load_raw(object, load));
		known = load;
		load_keep(object, load, load->owned ? load->owned : object->memory + offset, size);
		load = NULL;
	}
	*ret = known->bytes;
	return NULL;
}

static struct error *inflate_zlib(struct bytes packed, uint8_t *data, uint64_t size)
{
	z_stream stream = {.next_in = (uint8_t *)packed.at,
			   .avail_in = (uInt)bytes_left(&packed),
			   .next_out = data,
			   .avail_out = (uInt)size};

	if (inflateInit(&stream) != Z_OK)
		return error_oom();
	int end = inflate(&stream, Z_FINISH);
	bool whole = end == Z_STREAM_END && stream.avail_out == 0;
	inflateEnd(&stream);
	return whole ? NULL : bytes_error(&packed, "does not decompress to the size it states");
}

static struct error *inflate_zstd(struct bytes packed, uint8_t *data, uint64_t size)
{
	size_t got = ZSTD_decompress(data, size, packed.at, bytes_left(&packed));

	if (ZSTD_isError(got) || got != size)
		return bytes_error(&packed, "does not decompress to the size it states");
	return NULL;
}

struct packed_header {
	uint32_t type;
	uint64_t size;
};

/* Read what stands before the compressed bytes: a Chdr, or "ZLIB" of .zdebug_* sections. */
static struct error *read_packed_header(const struct object *object, bool gabi, struct bytes *b,
					struct packed_header *ret)
{
	uint64_t align;

	if (gabi) {
		TRY(bytes_u32(b, &ret->type));
		if (object->is_64)
			TRY(bytes_skip(b, 4));
		TRY(word(object, b, &ret->size));
		return word(object, b, &align);
	}
	if (bytes_left(b) < ZDEBUG_HEADER || memcmp(b->at, "ZLIB", 4) != 0)
		return bytes_error(b, "no ZLIB header");

	struct bytes size = *b;
	size.big_endian = true;
	TRY(bytes_skip(&size, 4));
	TRY(bytes_u64(&size, &ret->size));
	ret->type = ELFCOMPRESS_ZLIB;
	return bytes_skip(b, ZDEBUG_HEADER);
}

static struct error *unpack(const struct object *object, bool gabi, struct bytes packed,
			    struct object_load *load, uint64_t *ret_size)
{
	struct packed_header header;

	TRY(read_packed_header(object, gabi, &packed, &header));
	if (header.size > OBJECT_LOAD_MAX || header.size / PACKED_RATIO_MAX > bytes_left(&packed))
		return bytes_error(&packed, "states a decompressed size of %llu bytes",
				   (unsigned long long)header.size);
	load->owned = malloc(header.size ? header.size : 1);
	if (!load->owned)
		return error_oom();
	*ret_size = header.size;
	if (header.type == ELFCOMPRESS_ZLIB)
		return inflate_zlib(packed, load->owned, header.size);
	if (header.type == COMPRESS_ZSTD)
		return inflate_zstd(packed, load->owned, header.size);
	return bytes_error(&packed, "compression %u is unknown", header.type);
}

static struct error *load_packed(struct object *object, const struct object_section *section,
				 struct bytes *ret)
{
	_cleanup_(cleanup_load) struct object_load *raw = NULL;
	_cleanup_(cleanup_load) struct object_load *load = NULL;
	bool gabi = section->flags & SHF_COMPRESSED;
	uint64_t size;

	const struct object_load *known = load_find(object, section->offset, section->size, true);
	if (known) {
		*ret = known->bytes;
		return NULL;
	}
	// The packed bytes are needed here only.
	TRY(load_new(object, section->offset, section->size, section->name, &raw));
	TRY(load_raw(object, raw));
	struct bytes packed = bytes_over(raw->owned ? raw->owned : object->memory + raw->offset,
					 raw->size, raw->label);
	packed.big_endian = object->big_endian;

	TRY(load_new(object, section->offset, section->size, section->name, &load));
	TRY(unpack(object, gabi, packed, load, &size));
	load->unpacked = true;
	load_keep(object, load, load->owned, size);
	*ret = load->bytes;
	load = NULL;
	return NULL;
}

/* Is SECTION the one called NAME? ".zdebug_frame" is ".debug_frame", packed the old way. */
static bool is_named(const struct object_section *section, const char *name)
{
	if (strcmp(section->name, name) == 0)
		return true;
	return str_starts(name, ".debug_") && str_starts(section->name, ".zdebug_") &&
	       strcmp(section->name + 2, name + 1) == 0;
}

bool object_section(struct object *object, const char *name, struct bytes *ret, uint64_t *ret_addr)
{
	for (uint32_t i = 0; i < object->section_count; i++) {
		const struct object_section *section = &object->sections[i];
		if (section->type == SHT_NULL || section->type == SHT_NOBITS ||
		    !is_named(section, name))
			continue;
		bool packed =
			(section->flags & SHF_COMPRESSED) || str_starts(section->name, ".zdebug_");
		struct error *err =
			packed ? load_packed(object, section, ret)
			       : image_load(object, section->offset, section->size, name, ret);
		if (!err) {
			if (ret_addr)
				*ret_addr = section->addr;
			return true;
		}
		error_free(err); // the contract: damaged is absent
	}
	return false;
}
