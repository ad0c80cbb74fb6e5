/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who an object is: the build id of its notes, or a hash of its content.
 *
 * The content hash is two 64-bit hashes of: the file's size, its first and last 64 KiB (ELF header,
 * program headers, notes, section table), and 64 blocks of 4 KiB evenly spread over the rest; a
 * file of up to 1 MiB is hashed whole. Two links of one program differ in many places at once
 * (addresses in code, tables, symbols), so that a sample tells them apart; reading 384 KiB is
 * bearable for every file of a machine, reading 100 MB of each Go program is not. Nobody is kept
 * out by it: who
 * wants to pass for another file can copy its build id.
 */
#include "object/image.h"

#include <elf.h>
#include <string.h>

#include "base/hash.h"

enum {
	NOTES_SIZE_MAX = 1 << 20,
	WHOLE_MAX = 1 << 20,
	END_BYTES = 64 << 10,
	BLOCK_BYTES = 4 << 10,
	BLOCKS = 64,
	HASH_BYTES = 16,
};

static const uint64_t seeds[2] = {0x636169726e2d6964ull, 0x9e3779b97f4a7c15ull};

bool object_id_equal(const struct object_id *a, const struct object_id *b)
{
	return a->length == b->length && a->hashed == b->hashed &&
	       memcmp(a->data, b->data, a->length) == 0;
}

uint64_t object_id_hash(const struct object_id *id)
{
	return hash_bytes(id->data, id->length, id->hashed);
}

struct note {
	uint32_t type;
	struct bytes name, desc;
};

static struct error *read_note(struct bytes *b, uint64_t align, struct note *ret)
{
	uint32_t name_size, desc_size;

	TRY(bytes_u32(b, &name_size));
	TRY(bytes_u32(b, &desc_size));
	TRY(bytes_u32(b, &ret->type));
	TRY(bytes_cut(b, name_size, &ret->name));
	TRY(bytes_skip(b, -bytes_offset(b) & (align - 1)));
	TRY(bytes_cut(b, desc_size, &ret->desc));
	// The last note need not be padded.
	uint64_t padding = -bytes_offset(b) & (align - 1);
	return bytes_skip(b, padding < bytes_left(b) ? padding : bytes_left(b));
}

static bool all_zero(const struct bytes *b)
{
	for (const uint8_t *at = b->at; at < b->end; at++)
		if (*at)
			return false;
	return true;
}

/* Take the id out of NOTE. False: it is another note, or an id that says nothing. */
static bool take_build_id(const struct note *note, struct object_id *ret)
{
	size_t size = bytes_left(&note->desc);

	// Go's own id has the type of a package note and the name "Go": not this one.
	if (note->type != NT_GNU_BUILD_ID || bytes_left(&note->name) != 4 ||
	    memcmp(note->name.at, "GNU", 4) != 0 || !size || all_zero(&note->desc))
		return false;

	struct object_id id = {.length = (uint8_t)size};
	if (size <= OBJECT_BUILD_ID_MAX) {
		memcpy(id.data, note->desc.at, size);
	} else {
		id.length = HASH_BYTES;
		id.hashed = 1;
		for (int i = 0; i < 2; i++) {
			uint64_t hash = hash_bytes(note->desc.at, size, seeds[i]);
			memcpy(id.data + 8 * i, &hash, 8);
		}
	}
	*ret = id;
	return true;
}

static bool find_in_notes(const struct object *object, uint64_t offset, uint64_t size,
			  uint64_t align, struct object_id *ret)
{
	_cleanup_free_ uint8_t *data = NULL;

	if (!size || size > NOTES_SIZE_MAX || offset > object->size || size > object->size - offset)
		return false;
	data = malloc(size);
	if (!data)
		return false;
	_cleanup_error_ struct error *err = image_read(object, offset, data, size);
	if (err) // then there is no id here
		return false;

	struct bytes b = bytes_over(data, size, object->name);
	b.big_endian = object->big_endian;
	while (!err && bytes_left(&b) > 0) {
		struct note note;
		err = read_note(&b, align, &note);
		if (!err && take_build_id(&note, ret))
			return true;
	}
	return false;
}

static bool find_build_id(const struct object *object, struct object_id *ret)
{
	for (size_t i = 0; i < object->note_count; i++) {
		const struct object_range *range = &object->notes[i];
		if (find_in_notes(object, range->offset, range->size, 4, ret) ||
		    find_in_notes(object, range->offset, range->size, 8, ret))
			return true;
	}
	for (uint32_t i = 0; i < object->section_count; i++) {
		const struct object_section *section = &object->sections[i];
		if (section->type == SHT_NOTE &&
		    find_in_notes(object, section->offset, section->size, 4, ret))
			return true;
	}
	return false;
}

struct content_hash {
	const struct object *object;
	uint8_t *block;
	uint64_t value[2];
};

static struct error *hash_range(struct content_hash *hash, uint64_t from, uint64_t to)
{
	while (from < to) {
		size_t size = to - from < BLOCK_BYTES ? to - from : BLOCK_BYTES;
		TRY(image_read(hash->object, from, hash->block, size));
		for (int i = 0; i < 2; i++)
			hash->value[i] = hash_bytes(hash->block, size, hash->value[i]);
		from += size;
	}
	return NULL;
}

static struct error *hash_content(const struct object *object, struct object_id *ret)
{
	_cleanup_free_ uint8_t *block = malloc(BLOCK_BYTES);
	struct content_hash hash = {.object = object, .block = block};
	uint64_t size = object->size;

	if (!block)
		return error_oom();
	for (int i = 0; i < 2; i++)
		hash.value[i] = hash_u64(size ^ seeds[i]);
	if (size <= WHOLE_MAX) {
		TRY(hash_range(&hash, 0, size));
	} else {
		TRY(hash_range(&hash, 0, END_BYTES));
		uint64_t stride = (size - 2 * END_BYTES) / BLOCKS;
		for (uint64_t i = 0; i < BLOCKS; i++) {
			uint64_t at = END_BYTES + i * stride;
			TRY(hash_range(&hash, at, at + BLOCK_BYTES));
		}
		TRY(hash_range(&hash, size - END_BYTES, size));
	}
	*ret = (struct object_id){.length = HASH_BYTES, .hashed = 1};
	memcpy(ret->data, hash.value, HASH_BYTES);
	return NULL;
}

struct error *image_identify(struct object *object)
{
	if (find_build_id(object, &object->id))
		return NULL;
	return hash_content(object, &object->id);
}
