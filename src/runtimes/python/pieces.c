// SPDX-License-Identifier: Apache-2.0
/* Looking code up in .eh_frame_hdr (LSB, "Eh_frame_hdr"). */
#include "runtimes/python/pieces.h"

#include <string.h>

#include "object/object.h"

enum { STEPS_MAX = 32 };

bool python_pieces_open(struct object *file, struct python_pieces *ret)
{
	// Version 1, pointers of 4 bytes, relative to the header: the one form in use.
	static const uint8_t form[] = {1, 0x1b, 0x03, 0x3b};
	struct python_pieces pieces = {.file = file};
	uint8_t head[12];

	if (!object_frame_header(file, &pieces.header, &pieces.header_size) ||
	    !object_read(file, pieces.header, head, sizeof(head)) ||
	    memcmp(head, form, sizeof(form)) != 0)
		return false;
	memcpy(&pieces.count, head + 8, sizeof(pieces.count));
	if (!pieces.count || pieces.header_size < sizeof(head) ||
	    pieces.count > (pieces.header_size - sizeof(head)) / 8)
		return false;
	*ret = pieces;
	return true;
}

static bool piece_at(const struct python_pieces *pieces, uint32_t index, struct python_range *ret)
{
	int32_t row[2][2];
	size_t rows = index + 1 < pieces->count ? 2 : 1;
	uint64_t header = pieces->header;

	if (!object_read(pieces->file, header + 12 + 8ull * index, row, rows * sizeof(row[0])))
		return false;
	ret->start = header + (uint64_t)(int64_t)row[0][0];
	ret->end =
		rows == 2 ? header + (uint64_t)(int64_t)row[1][0] : ret->start + PYTHON_PIECE_MAX;

	// The record says how long the function is: length, CIE, start, length; pointers as in the
	// table, but relative to where they are.
	uint64_t record = header + (uint64_t)(int64_t)row[0][1];
	uint32_t words[4];
	if (object_read(pieces->file, record, words, sizeof(words)) &&
	    record + 8 + (uint64_t)(int64_t)(int32_t)words[2] == ret->start && words[3] &&
	    ret->start + words[3] <= ret->end)
		ret->end = ret->start + words[3];
	return ret->start < ret->end;
}

bool python_pieces_find(const struct python_pieces *pieces, uint64_t addr, struct python_range *ret)
{
	uint32_t low = 0, high = pieces->count;
	struct python_range range;

	for (int i = 0; i < STEPS_MAX && high - low > 1; i++) {
		uint32_t middle = low + (high - low) / 2;
		if (!piece_at(pieces, middle, &range))
			return false;
		if (range.start <= addr)
			low = middle;
		else
			high = middle;
	}
	return piece_at(pieces, low, ret) && ret->start <= addr && addr < ret->end;
}
