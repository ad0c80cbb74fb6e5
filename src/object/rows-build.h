/* SPDX-License-Identifier: Apache-2.0 */
/* Making rows: append in order of address, and lay one source's rows over another's. */
#pragma once

#include "base/hash.h"
#include "object/rows.h"

enum { ROWS_CACHE = 256 };

struct rows_builder {
	struct rows rows;
	struct hash_index index;    /* of rows.rules */
	uint32_t cache[ROWS_CACHE]; /* rule number + 1 by a quick hash of the rule */
};

#define ROWS_BUILDER_INIT                                                                          \
	{                                                                                          \
		0                                                                                  \
	}

void rows_builder_deinit(struct rows_builder *builder);

/*
 * A gap that stays one: code of which it is known that no rule describes it. While rows are being
 * made it is told apart from code that another source may know; rows_close() makes both the same.
 */
extern const struct unwind_rule rows_unknown;

/*
 * RULE holds from ADDR, which is not below any address added before. At the same address the last
 * call counts. A rule more than ROWS_RULES_MAX becomes a gap and is counted as damage.
 */
struct error *rows_builder_add(struct rows_builder *builder, uint64_t addr,
			       const struct unwind_rule *rule);

/* A function begins at ADDR; in any order. */
struct error *rows_builder_start(struct rows_builder *builder, uint64_t addr);

/* Give out what was built: sorts the starts, sets the range. The last row added is a gap. The
 * builder is empty afterwards. */
void rows_builder_finish(struct rows_builder *builder, struct rows *ret);

/* A range of code under one rule. */
struct rows_piece {
	uint64_t start, end;
	struct unwind_rule rule;
};

struct rows_pieces {
	struct rows_piece *piece;
	size_t count, room;
};

#define ROWS_PIECES_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

void rows_pieces_deinit(struct rows_pieces *pieces);
struct error *rows_pieces_add(struct rows_pieces *pieces, struct rows_piece piece);

/* Rows of PIECES, which are sorted. Of two that overlap the one that starts first wins. */
struct error *rows_of_pieces(struct rows_pieces *pieces, struct rows *ret);

/* A range of addresses. */
struct rows_range {
	uint64_t start, end;
};

struct rows_ranges {
	struct rows_range *range;
	size_t count, room;
};

#define ROWS_RANGES_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

void rows_ranges_deinit(struct rows_ranges *ranges);
struct error *rows_ranges_add(struct rows_ranges *ranges, uint64_t start, uint64_t end);

/* Sort RANGES and cut what two of them share off the later one. */
void rows_ranges_make_disjoint(struct rows_ranges *ranges);

/* The range that holds ADDR, of sorted, disjoint ones; NULL: none does. */
const struct rows_range *rows_ranges_find(const struct rows_ranges *ranges, uint64_t addr);

/*
 * The parts of [START, END) for which ROWS have no rule are added to RET, except for padding: up to
 * 15 bytes next to a rule.
 */
struct error *rows_gaps(const struct rows *rows, uint64_t start, uint64_t end,
			struct rows_ranges *ret);

/*
 * Fill the gaps of ROWS with the rows of MORE, which is consumed. Both are empty or end in a gap.
 */
struct error *rows_fill(struct rows *rows, struct rows *more);

/* Functions begin at ADDRS. */
struct error *rows_add_starts(struct rows *rows, const uint64_t *addrs, size_t count);

/*
 * Gaps of up to 15 bytes between two rows are padding, where no program counter is ever found: the
 * row before them goes on. Those that are rows_unknown stay.
 */
void rows_join_padding(struct rows *rows);

/* The last step: padding is joined, all gaps have one rule. */
void rows_close(struct rows *rows);
