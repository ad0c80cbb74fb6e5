// SPDX-License-Identifier: Apache-2.0
/* Following the evaluator's jumps to its cold parts. */
#include "runtimes/python/evaluator.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "object/arch.h"
#include "object/object.h"
#include "runtimes/python/pieces.h"

enum {
	PARTS_MAX = 64, /* pieces of code that it jumps to */
	PARTS_SEARCHED_MAX = 32 << 10,
	/* Fewer jumps into the middle of something may be bytes that were taken for a jump. */
	ENOUGH = 2,
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
	struct python_pieces pieces;
	struct part parts[PARTS_MAX];
	size_t part_count;
};

static void meet_jump(struct search *s, const struct insn *insn)
{
	struct python_range range;

	if (insn->target >= s->evaluator.start && insn->target < s->evaluator.end)
		return;
	if (!python_pieces_find(&s->pieces, insn->target, &range))
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
	_cleanup_free_ uint8_t *code = size <= PYTHON_PIECE_MAX ? malloc(size) : NULL;
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

	if (!s.arch || !python_pieces_open(file, &s.pieces) ||
	    !each_jump(&s, s.evaluator, jump_away, NULL))
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
