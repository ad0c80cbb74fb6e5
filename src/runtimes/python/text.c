/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PEP 393 (3.3 and later): a string is its header and then its characters, or (subclasses, and up
 * to 3.11 what old functions made) a header with a pointer to them. Include/cpython/unicodeobject.h
 * of each version describes the forms; strings of kind 0 went away in 3.12 (PEP 623).
 */
#include "runtimes/python/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/utf8.h"

enum {
	/* Include/object.h: Py_TPFLAGS_STRING_SUBCLASS (2.7), Py_TPFLAGS_UNICODE_SUBCLASS. */
	FLAG_BYTES = 1 << 27,
	FLAG_UNICODE = 1 << 28,
	UNITS_MAX = 8192, /* no caller has room for more */
	PIECE_MAX = 12,   /* one character or escape, and a NUL */
};

/* U+2026, HORIZONTAL ELLIPSIS */
static const char cut_mark[] = "\xe2\x80\xa6";

static int read_word(const struct memory *memory, uint64_t addr, uint32_t offset, uint64_t *ret)
{
	return offset == PYTHON_ABSENT ? -1 : memory_read_u64(memory, addr + offset, ret);
}

static enum python_text find_bytes(const struct memory *memory, const struct python_offsets *at,
				   uint64_t addr, struct python_string *ret)
{
	uint64_t size;

	if (at->bytes_data == PYTHON_ABSENT || read_word(memory, addr, at->bytes_size, &size))
		return PYTHON_TEXT_unreadable;
	*ret = (struct python_string){
		.data = addr + at->bytes_data, .length = size, .width = 1, .bytes = true};
	return PYTHON_TEXT_read;
}

static enum python_text find_unicode_2(const struct memory *memory, const struct python_offsets *at,
				       uint64_t addr, struct python_string *ret)
{
	struct python_string string = {.width = at->unicode_width};

	if (read_word(memory, addr, at->unicode_length, &string.length) ||
	    read_word(memory, addr, at->unicode_data, &string.data))
		return PYTHON_TEXT_unreadable;
	if (string.width != 2 && string.width != 4)
		return PYTHON_TEXT_not_a_string;
	string.pairs = string.width == 2; // a narrow build of 2.7 keeps UTF-16
	*ret = string;
	return PYTHON_TEXT_read;
}

/* A string that is not compact: its characters are elsewhere. */
static enum python_text find_legacy(const struct memory *memory, const struct python_offsets *at,
				    uint64_t addr, struct python_string *string)
{
	int failed;

	if (string->width) {
		failed = read_word(memory, addr, at->unicode_data, &string->data);
	} else {
		string->width = sizeof(wchar_t);
		failed = read_word(memory, addr, at->unicode_wstr, &string->data) ||
			 read_word(memory, addr, at->unicode_wstr_length, &string->length);
	}
	return failed ? PYTHON_TEXT_unreadable : PYTHON_TEXT_read;
}

static uint32_t bits(uint32_t state, uint32_t lowest, unsigned count)
{
	return lowest < 32 ? state >> lowest & ((1u << count) - 1) : 0;
}

static enum python_text find_unicode_3(const struct memory *memory, const struct python_offsets *at,
				       uint64_t addr, struct python_string *ret)
{
	struct python_string string = {0};
	uint32_t state;

	if (at->unicode_state == PYTHON_ABSENT ||
	    memory_read_u32(memory, addr + at->unicode_state, &state) ||
	    read_word(memory, addr, at->unicode_length, &string.length))
		return PYTHON_TEXT_unreadable;
	string.width = (uint8_t)bits(state, at->unicode_kind_bit, 3);
	bool compact = bits(state, at->unicode_compact_bit, 1);
	uint32_t offset = bits(state, at->unicode_ascii_bit, 1) ? at->unicode_ascii_data
								: at->unicode_compact_data;
	if (string.width == 3 || string.width > 4 || (compact && !string.width))
		return PYTHON_TEXT_not_a_string;
	if (!compact) {
		enum python_text outcome = find_legacy(memory, at, addr, &string);
		if (outcome != PYTHON_TEXT_read)
			return outcome;
	} else if (offset == PYTHON_ABSENT) {
		return PYTHON_TEXT_not_a_string;
	} else {
		string.data = addr + offset;
	}
	*ret = string;
	return PYTHON_TEXT_read;
}

enum python_text python_string_find(const struct memory *memory, const struct python_offsets *at,
				    uint64_t addr, struct python_string *ret)
{
	uint64_t type, flags;

	if (read_word(memory, addr, at->object_type, &type) ||
	    read_word(memory, type, at->type_flags, &flags))
		return PYTHON_TEXT_unreadable;
	if (at->version < 0x0300 && flags & FLAG_BYTES)
		return find_bytes(memory, at, addr, ret);
	if (!(flags & FLAG_UNICODE))
		return PYTHON_TEXT_not_a_string;
	if (at->version < 0x0300)
		return find_unicode_2(memory, at, addr, ret);
	return find_unicode_3(memory, at, addr, ret);
}

/* Text being written into a caller's room. */
struct output {
	char *text;
	size_t size, length;
	size_t last_cut; /* up to where it stays if there is too much */
};

/* Add one character or escape. False: there is no room, and the text has been ended. */
static bool put(struct output *out, const char *piece, size_t length)
{
	if (length >= out->size - out->length) {
		memcpy(out->text + out->last_cut, cut_mark, sizeof(cut_mark));
		return false;
	}
	memcpy(out->text + out->length, piece, length);
	out->length += length;
	if (out->length + sizeof(cut_mark) <= out->size)
		out->last_cut = out->length;
	return true;
}

static bool put_code(struct output *out, uint32_t code)
{
	char piece[PIECE_MAX];
	int length;

	if (!code)
		length = snprintf(piece, sizeof(piece), "\\x00");
	else if (code > 0x10ffff)
		length = snprintf(piece, sizeof(piece), "\\U%08x", code);
	else if (code >= 0xd800 && code < 0xe000)
		length = snprintf(piece, sizeof(piece), "\\u%04x", code);
	else
		length = (int)utf8_encode(code, piece);
	return put(out, piece, (size_t)length);
}

static bool put_raw(struct output *out, const uint8_t *data, size_t size)
{
	char piece[PIECE_MAX];

	for (size_t i = 0; i < size; i++) {
		int length = snprintf(piece, sizeof(piece), "\\x%02x", data[i]);
		if (!put(out, piece, (size_t)length))
			return false;
	}
	return true;
}

/* Bytes that are perhaps UTF-8. */
static bool put_bytes(struct output *out, const uint8_t *data, size_t size)
{
	struct bytes b = bytes_over(data, size, "str");

	while (bytes_left(&b)) {
		const uint8_t *first = b.at;
		uint32_t code = utf8_next(&b);
		size_t length = (size_t)(b.at - first);
		// A whole sequence that begins so is U+FFFD itself.
		bool bad = code == UTF8_BAD && !(length == 3 && *first == 0xef);
		if (!(bad ? put_raw(out, first, length) : put_code(out, code)))
			return false;
	}
	return true;
}

static uint32_t unit_at(const uint8_t *data, size_t index, uint8_t width)
{
	uint16_t two;
	uint32_t four;

	if (width == 1)
		return data[index];
	if (width == 2) {
		memcpy(&two, data + index * sizeof(two), sizeof(two));
		return two;
	}
	memcpy(&four, data + index * sizeof(four), sizeof(four));
	return four;
}

static bool put_units(struct output *out, const struct python_string *string, const uint8_t *data,
		      size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t code = unit_at(data, i, string->width);
		if (string->pairs && code >> 10 == 0xd800 >> 10 && i + 1 < count) {
			uint32_t low = unit_at(data, i + 1, string->width);
			bool pair = low >> 10 == 0xdc00 >> 10;
			code = pair ? 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff) : code;
			i += pair;
		}
		if (!put_code(out, code))
			return false;
	}
	return true;
}

enum python_text python_string_read(const struct memory *memory, const struct python_string *string,
				    char *ret, size_t size)
{
	uint8_t data[UNITS_MAX * 4];
	struct output out = {.text = ret, .size = size < UNITS_MAX ? size : UNITS_MAX};

	assert(size >= sizeof(cut_mark));
	ret[0] = 0;
	if (string->length > INT64_MAX)
		return PYTHON_TEXT_not_a_string;
	// Each unit is at least a byte of text, and a pair of units two: no more are needed.
	size_t count = string->length < out.size ? (size_t)string->length : out.size;
	if (count && memory_read(memory, string->data, data, count * string->width))
		return PYTHON_TEXT_unreadable;
	bool whole =
		string->bytes ? put_bytes(&out, data, count) : put_units(&out, string, data, count);
	if (whole)
		out.text[out.length] = 0;
	return PYTHON_TEXT_read;
}

enum python_text python_text_read(const struct memory *memory, const struct python_offsets *at,
				  uint64_t addr, char *ret, size_t size)
{
	struct python_string string;

	ret[0] = 0;
	enum python_text outcome = python_string_find(memory, at, addr, &string);
	if (outcome != PYTHON_TEXT_read)
		return outcome;
	return python_string_read(memory, &string, ret, size);
}
