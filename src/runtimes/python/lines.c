/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three formats, each described in CPython's Objects/lnotab_notes.txt or Objects/locations.md:
 *
 *   up to 3.9   pairs {bytes of code, lines}; lines are signed from 3.6 on (bpo-26107)
 *   3.10        pairs {bytes of code, signed lines}, -128: no line (PEP 626)
 *   3.11        entries of a kind, a length in code units, and a delta of lines (PEP 657)
 */
#include "runtimes/python/lines.h"

#include <stdbool.h>

#include "base/bytes.h"

enum {
	NO_LINE = -128, /* 3.10 */

	/* 3.11: the first byte of an entry has the highest bit set, and no other byte has. */
	ENTRY = 0x80,
	ENTRY_LENGTH = 0x07,
	ENTRY_KIND_SHIFT = 3,
	ENTRY_KIND = 0x0f,
	KIND_ONE_LINE = 10, /* 10, 11, 12: that many lines more, less 10 */
	KIND_NO_COLUMNS = 13,
	KIND_LONG = 14,
	KIND_NO_LOCATION = 15,
	CODE_UNIT = 2,

	VARINT_MORE = 0x40,
	VARINT_BITS = 6,
	VARINT_BYTES_MAX = 6, /* what 32 bits take */
};

static bool take_byte(struct bytes *b, uint8_t *ret)
{
	if (!bytes_left(b))
		return false;
	*ret = *b->at++;
	return true;
}

static enum python_line answer(int64_t line, uint32_t *ret)
{
	// 0 is a line: that of what a module runs before its first statement, from 3.11 on.
	if (line < 0 || line > INT32_MAX)
		return PYTHON_LINE_odd;
	*ret = (uint32_t)line;
	return PYTHON_LINE_found;
}

static enum python_line find_lnotab(const struct python_lines *lines, int64_t offset, uint32_t *ret)
{
	struct bytes b = bytes_over(lines->table, lines->size, "co_lnotab");
	int64_t start = 0, line = lines->first_line;
	uint8_t code, more;

	while (take_byte(&b, &code) && take_byte(&b, &more)) {
		start += code;
		if (start > offset)
			break;
		line += lines->version < 0x0306 ? more : (int8_t)more;
	}
	return answer(line, ret);
}

static enum python_line find_linetable(const struct python_lines *lines, int64_t offset,
				       uint32_t *ret)
{
	struct bytes b = bytes_over(lines->table, lines->size, "co_linetable");
	int64_t end = 0, line = lines->first_line;
	uint8_t code, more;

	while (take_byte(&b, &code) && take_byte(&b, &more)) {
		bool none = (int8_t)more == NO_LINE;
		end += code;
		line += none ? 0 : (int8_t)more;
		if (end > offset)
			return none ? PYTHON_LINE_none : answer(line, ret);
	}
	return PYTHON_LINE_none;
}

/* Six bits a byte, lowest first; the lowest bit of the whole is the sign. */
static int64_t take_signed(struct bytes *b)
{
	uint64_t value = 0;
	uint8_t byte;

	for (unsigned i = 0; i < VARINT_BYTES_MAX && take_byte(b, &byte); i++) {
		value |= (uint64_t)(byte & (VARINT_MORE - 1)) << (i * VARINT_BITS);
		if (!(byte & VARINT_MORE))
			break;
	}
	int64_t size = (int64_t)(value >> 1);
	return value & 1 ? -size : size;
}

static int64_t take_delta(struct bytes *b, unsigned kind)
{
	if (kind == KIND_NO_COLUMNS || kind == KIND_LONG)
		return take_signed(b);
	// Kinds below 10 stay in the line, and say in which columns.
	return kind >= KIND_ONE_LINE && kind < KIND_NO_COLUMNS ? kind - KIND_ONE_LINE : 0;
}

static enum python_line find_location(const struct python_lines *lines, int64_t offset,
				      uint32_t *ret)
{
	struct bytes b = bytes_over(lines->table, lines->size, "co_linetable");
	int64_t end = 0, line = lines->first_line;
	uint8_t byte;

	while (take_byte(&b, &byte)) {
		if (!(byte & ENTRY))
			continue; // columns, of an entry whose lines have been read
		unsigned kind = byte >> ENTRY_KIND_SHIFT & ENTRY_KIND;
		end += ((byte & ENTRY_LENGTH) + 1) * CODE_UNIT;
		line += take_delta(&b, kind);
		if (end > offset)
			return kind == KIND_NO_LOCATION ? PYTHON_LINE_none : answer(line, ret);
	}
	return PYTHON_LINE_none;
}

enum python_line python_lines_find(const struct python_lines *lines, int64_t offset, uint32_t *ret)
{
	if (offset < 0)
		return answer(lines->first_line, ret);
	if (lines->version < 0x030a)
		return find_lnotab(lines, offset, ret);
	return lines->version == 0x030a ? find_linetable(lines, offset, ret)
					: find_location(lines, offset, ret);
}
