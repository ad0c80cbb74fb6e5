// SPDX-License-Identifier: Apache-2.0
/* Following the evaluator's jumps to its cold parts. */
#include "runtimes/python/evaluator.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "object/arch.h"
#include "object/object.h"

enum {
	CODE_MAX = 1 << 20, /* of an evaluator; they have some 50 kB */
	PARTS_MAX = 64,     /* pieces of code that it jumps to */
	PARTS_SEARCHED_MAX = 32 << 10,
	/* Fewer jumps into the middle of something may be bytes that were taken for a jump. */
	ENOUGH = 2,
	HEADER_STEPS_MAX = 32,
};

/* A piece of code with an unwind record of its own. */
struct part {
	struct python_range range;
	unsigned inside;  /* jumps to its middle, or conditional ones to its start */
	unsigned returns; /* jumps from it into the middle of the evaluator */
};

struct search {
	struct object *file;
	const struct arch *arch;
	struct python_range evaluator;
	uint64_t header, header_size;
	uint32_t count; /* rows of the header's table */
	struct part parts[PARTS_MAX];
	size_t part_count;
};

/* The table of .eh_frame_hdr, in the one form that linkers write (LSB, "Eh_frame_hdr"): version 1,
 * pointers of 4 bytes, relative to the header. */
static bool open_header(struct search *s)
{
	static const uint8_t form[] = {1, 0x1b, 0x03, 0x3b};
	uint8_t head[12];

	if (!object_frame_header(s->file, &s->header, &s->header_size) ||
	    !object_read(s->file, s->header, head, sizeof(head)) ||
	    memcmp(head, form, sizeof(form)) != 0)
		return false;
	memcpy(&s->count, head + 8, sizeof(s->count));
	return s->count && s->count <= (s->header_size - sizeof(head)) / 8;
}

static bool header_row(const struct search *s, uint32_t index, struct python_range *ret)
{
	int32_t row[2][2];
	size_t rows = index + 1 < s->count ? 2 : 1;

	if (!object_read(s->file, s->header + 12 + 8ull * index, row, rows * sizeof(row[0])))
		return false;
	ret->start = s->header + (uint64_t)(int64_t)row[0][0];
	ret->end = rows == 2 ? s->header + (uint64_t)(int64_t)row[1][0] : ret->start + CODE_MAX;

	// The record says how long the function is: length, CIE, start, length; pointers as in the
	// table, but relative to where they are.
	uint64_t record = s->header + (uint64_t)(int64_t)row[0][1];
	uint32_t words[4];
	if (object_read(s->file, record, words, sizeof(words)) &&
	    record + 8 + (uint64_t)(int64_t)(int32_t)words[2] == ret->start && words[3] &&
	    ret->start + words[3] <= ret->end)
		ret->end = ret->start + words[3];
	return ret->start < ret->end;
}

/* The piece of code that holds ADDR. */
static bool find_piece(const struct search *s, uint64_t addr, struct python_range *ret)
{
	uint32_t low = 0, high = s->count;
	struct python_range range;

	for (int i = 0; i < HEADER_STEPS_MAX && high - low > 1; i++) {
		uint32_t middle = low + (high - low) / 2;
		if (!header_row(s, middle, &range))
			return false;
		if (range.start <= addr)
			low = middle;
		else
			high = middle;
	}
	return header_row(s, low, ret) && ret->start <= addr && addr < ret->end;
}

static void meet_jump(struct search *s, const struct insn *insn)
{
	struct python_range range;

	if (insn->target >= s->evaluator.start && insn->target < s->evaluator.end)
		return;
	if (!find_piece(s, insn->target, &range))
		return;
	size_t i = 0;
	while (i < s->part_count && s->parts[i].range.start != range.start)
		i++;
	if (i == PARTS_MAX)
		return;
	if (i == s->part_count)
		s->parts[s->part_count++] = (struct part){.range = range};
	s->parts[i].inside += insn->kind == INSN_branch || insn->target != range.start;
}

typedef void jump_fn(struct search *s, const struct insn *insn, struct part *part);

static void jump_away(struct search *s, const struct insn *insn, struct part *part)
{
	meet_jump(s, insn);
}

static void jump_back(struct search *s, const struct insn *insn, struct part *part)
{
	part->returns += insn->target > s->evaluator.start && insn->target < s->evaluator.end;
}

/* Call EACH for the jumps in RANGE. False: it is not in the file. */
static bool each_jump(struct search *s, struct python_range range, jump_fn *each, struct part *part)
{
	size_t size = range.end - range.start;
	_cleanup_free_ uint8_t *code = size <= CODE_MAX ? malloc(size) : NULL;
	struct insn insn;

	if (!code || !object_read(s->file, range.start, code, size))
		return false;
	struct bytes b = bytes_over(code, size, "evaluator");
	while (bytes_left(&b)) {
		// What is not understood is stepped over byte by byte until it makes sense again.
		if (!s->arch->decode(&b, range.start + bytes_offset(&b), &insn)) {
			b.at++;
			continue;
		}
		if (insn.kind == INSN_jump || insn.kind == INSN_branch)
			each(s, &insn, part);
		b.at += insn.length;
	}
	return true;
}

void python_evaluator_add(struct python_object *object, uint64_t start, uint64_t size)
{
	for (uint32_t i = 0; i < object->evals; i++)
		if (object->eval[i].start == start)
			return;
	if (object->evals == PYTHON_EVALS || !size || size > UINT64_MAX - start)
		return;
	object->eval[object->evals++] = (struct python_range){start, start + size};
}

void python_evaluator_follow(struct object *file, struct python_object *object)
{
	struct search s = {
		.file = file,
		.arch = arch_find(object_machine(file)),
		.evaluator = object->eval[0],
	};

	if (!s.arch || !open_header(&s) || !each_jump(&s, s.evaluator, jump_away, NULL))
		return;
	for (size_t i = 0; i < s.part_count; i++) {
		struct part *part = &s.parts[i];
		if (part->range.end - part->range.start <= PARTS_SEARCHED_MAX)
			each_jump(&s, part->range, jump_back, part);
		if (part->returns || part->inside >= ENOUGH)
			python_evaluator_add(object, part->range.start,
					     part->range.end - part->range.start);
	}
}
