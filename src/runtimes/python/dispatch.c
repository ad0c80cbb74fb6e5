// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python/dispatch.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "object/arch.h"
#include "object/object.h"
#include "runtimes/python/evaluator.h"
#include "runtimes/python/pieces.h"

enum {
	OPCODES = 256,
	RUN_MAX = 1024, /* pointers in a row that are looked at together */
	RUNS_MAX = 64,
	PARTS = 3,        /* pieces that one evaluator is in */
	INSIDE_MIN = 250, /* of the opcodes: their code is in those */
	MIDDLE_MIN = 200, /* and not where a piece begins, as it would be in a table of functions */
	LARGEST_MIN = 64, /* in the one that has the most */
	DISTINCT_MIN = 64, /* 2.7 has some 110 opcodes */
	/* Bytes of those pieces; evaluators have 25 kB and more, and what else has a case for each
	 * opcode (_PyOpcode_num_popped() in 3.13) 5. */
	SIZE_MIN = 16 << 10,
	SEARCHED_MAX = 64 << 20,
	RELOCATIONS_MAX = 64 << 20, /* bytes */
	WINDOW = 64 << 10,
	WORD = 8,
};

struct label {
	uint64_t addr;
	uint16_t piece; /* number */
	bool middle;
};

struct search {
	struct object *file;
	struct python_pieces pieces;
	struct python_range best[PARTS]; /* the pieces of the table that leads to most code */
	uint64_t best_size;              /* of it; 0: there is none yet */
	uint64_t next;                   /* where a pointer would go on the run */
	struct label run[RUN_MAX];
	size_t length;
	unsigned runs; /* that were looked at */
	/* Of the present run. */
	struct python_range piece[RUN_MAX];
	uint16_t labels[RUN_MAX]; /* of each piece, among OPCODES ones in a row */
	size_t piece_count;
};

static bool is_code(const struct search *s, uint64_t addr)
{
	size_t count;
	const struct object_segment *segments = object_segments(s->file, &count);

	for (size_t i = 0; i < count; i++)
		if (segments[i].executable && addr >= segments[i].addr &&
		    addr - segments[i].addr < segments[i].file_size)
			return true;
	return false;
}

/* Which piece each pointer of the run leads to. False: one leads to none. */
static bool find_pieces(struct search *s)
{
	s->piece_count = 0;
	for (size_t i = 0; i < s->length; i++) {
		struct label *label = &s->run[i];
		size_t k = 0;
		while (k < s->piece_count &&
		       (label->addr < s->piece[k].start || label->addr >= s->piece[k].end))
			k++;
		if (k == s->piece_count) {
			if (!python_pieces_find(&s->pieces, label->addr, &s->piece[k]))
				return false;
			s->piece_count++;
		}
		label->piece = (uint16_t)k;
		label->middle = label->addr != s->piece[k].start;
	}
	return true;
}

static int compare_addrs(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static size_t count_distinct(const struct label *labels)
{
	uint64_t addr[OPCODES];
	size_t distinct = 1;

	for (size_t i = 0; i < OPCODES; i++)
		addr[i] = labels[i].addr;
	qsort(addr, OPCODES, sizeof(*addr), compare_addrs);
	for (size_t i = 1; i < OPCODES; i++)
		distinct += addr[i] != addr[i - 1];
	return distinct;
}

/* The pieces that most of the labels lead to, the greatest share first. */
static void find_shares(const struct search *s, size_t ret_piece[PARTS], size_t ret_share[PARTS])
{
	for (size_t i = 0; i < PARTS; i++)
		ret_share[i] = 0;
	for (size_t i = 0; i < s->piece_count; i++) {
		size_t piece = i, share = s->labels[i];
		for (size_t k = 0; k < PARTS; k++) {
			if (share <= ret_share[k])
				continue;
			size_t other = ret_piece[k], others = ret_share[k];
			ret_piece[k] = piece;
			ret_share[k] = share;
			piece = other;
			share = others;
		}
	}
}

/* If the OPCODES labels from FIRST on are a table like that, and lead to more code than those
 * before, keep the pieces. */
static void try_table(struct search *s, size_t first, size_t middles)
{
	size_t piece[PARTS] = {0}, share[PARTS], inside = 0;
	struct python_range parts[PARTS] = {{0}};
	uint64_t size = 0;

	if (middles < MIDDLE_MIN)
		return;
	find_shares(s, piece, share);
	for (size_t i = 0; i < PARTS && share[i]; i++) {
		inside += share[i];
		parts[i] = s->piece[piece[i]];
		size += parts[i].end - parts[i].start;
	}
	if (inside < INSIDE_MIN || share[0] < LARGEST_MIN || size < SIZE_MIN ||
	    size <= s->best_size || count_distinct(&s->run[first]) < DISTINCT_MIN)
		return;
	memcpy(s->best, parts, sizeof(parts));
	s->best_size = size;
}

/* Look for tables in the run, which other pointers may stand next to. */
static void look_at_run(struct search *s)
{
	size_t middles = 0;

	if (s->length < OPCODES || s->runs++ >= RUNS_MAX || !find_pieces(s))
		return;
	memset(s->labels, 0, sizeof(s->labels));
	for (size_t i = 0; i < s->length; i++) {
		s->labels[s->run[i].piece]++;
		middles += s->run[i].middle;
		if (i >= OPCODES) {
			s->labels[s->run[i - OPCODES].piece]--;
			middles -= s->run[i - OPCODES].middle;
		}
		if (i + 1 >= OPCODES)
			try_table(s, i + 1 - OPCODES, middles);
	}
}

/* The word at PLACE is, or becomes when the object is loaded, VALUE. */
static void meet(struct search *s, uint64_t place, uint64_t value)
{
	bool code = is_code(s, value);

	if (!code || place != s->next || s->length == RUN_MAX) {
		look_at_run(s);
		s->length = 0;
	}
	if (code)
		s->run[s->length++] = (struct label){.addr = value};
	s->next = place + WORD;
}

static void end_runs(struct search *s)
{
	look_at_run(s);
	s->length = 0;
	s->runs = 0;
}

/* Pointers that the loader writes. */
static void search_relocations(struct search *s)
{
	const struct arch *arch = arch_find(object_machine(s->file));
	uint64_t place, info, addend;
	struct bytes b;

	if (!arch || !object_section(s->file, ".rela.dyn", &b, NULL) ||
	    bytes_left(&b) > RELOCATIONS_MAX)
		return;
	for (; bytes_left(&b) >= sizeof(Elf64_Rela); b.at += sizeof(Elf64_Rela)) {
		memcpy(&place, b.at, sizeof(place));
		memcpy(&info, b.at + offsetof(Elf64_Rela, r_info), sizeof(info));
		memcpy(&addend, b.at + offsetof(Elf64_Rela, r_addend), sizeof(addend));
		if (info == arch->relative_relocation)
			meet(s, place, addend);
	}
	end_runs(s);
}

/* Pointers that are in the file: of a program at a fixed address, or with packed relocations. */
static void search_segment(struct search *s, const struct object_segment *segment, uint8_t *window)
{
	uint64_t size = segment->file_size, value;

	if (size > SEARCHED_MAX)
		size = SEARCHED_MAX;
	for (uint64_t at = (WORD - segment->addr % WORD) % WORD; at < size; at += WINDOW) {
		size_t bytes = size - at < WINDOW ? size - at : WINDOW;
		if (!object_read(s->file, segment->addr + at, window, bytes))
			break;
		for (size_t i = 0; i + WORD <= bytes; i += WORD) {
			memcpy(&value, window + i, sizeof(value));
			meet(s, segment->addr + at + i, value);
		}
	}
	end_runs(s);
}

bool python_dispatch_find(struct object *file, struct python_object *object)
{
	_cleanup_free_ struct search *s = calloc(1, sizeof(*s));
	_cleanup_free_ uint8_t *window = malloc(WINDOW);
	size_t count;
	const struct object_segment *segments = object_segments(file, &count);

	if (!s || !window || !python_pieces_open(file, &s->pieces))
		return false;
	s->file = file;
	search_relocations(s);
	for (size_t i = 0; i < count; i++)
		search_segment(s, &segments[i], window);
	for (size_t i = 0; i < PARTS && s->best_size; i++)
		python_evaluator_add(object, s->best[i].start, s->best[i].end - s->best[i].start);
	return s->best_size;
}
