/* SPDX-License-Identifier: Apache-2.0 */
/* Building, overlaying and cleaning up rows. Where rules come from is rows.c's business. */
#include "object/rows-build.h"

#include <string.h>

#include "base/array.h"

enum {
	PADDING_MAX = 15,
	PIECES_MAX = 8 << 20,
};

static const struct unwind_rule gap = {.cfa = UNWIND_CFA_none};
const struct unwind_rule rows_unknown = {.cfa = UNWIND_CFA_none, .aux = 1};

static bool is_gap(const struct unwind_rule *rule)
{
	return memcmp(rule, &gap, sizeof(gap)) == 0;
}

void rows_builder_deinit(struct rows_builder *builder)
{
	rows_deinit(&builder->rows);
	hash_index_deinit(&builder->index);
}

struct rule_key {
	const struct rows *rows;
	const struct unwind_rule *rule;
};

static bool rule_equal(const void *context, uint32_t item)
{
	const struct rule_key *key = context;

	return memcmp(&key->rows->rules[item], key->rule, sizeof(*key->rule)) == 0;
}

static struct error *add_rule(struct rows_builder *builder, uint64_t hash,
			      const struct unwind_rule *rule, uint32_t *ret)
{
	struct rows *rows = &builder->rows;

	// The gap is rule 0 of every object, so that there is room for it when the table is full.
	if (!rows->rule_count && !is_gap(rule))
		TRY(add_rule(builder, hash_bytes(&gap, sizeof(gap), 0), &gap, ret));
	if (rows->rule_count == ROWS_RULES_MAX) {
		rows->facts.damaged++;
		*ret = 0;
		return NULL;
	}
	TRY(ARRAY_RESERVE(rows->rules, rows->rule_room, rows->rule_count, 1, ROWS_RULES_MAX,
			  "distinct unwind rules"));
	TRY(hash_add(&builder->index, hash, (uint32_t)rows->rule_count));
	*ret = (uint32_t)rows->rule_count;
	rows->rules[rows->rule_count++] = *rule;
	return NULL;
}

static unsigned quick_hash(const struct unwind_rule *rule)
{
	uint64_t word[2];

	memcpy(word, rule, sizeof(word));
	word[0] ^= word[1] * 0x9e3779b97f4a7c15ull;
	return (unsigned)((word[0] * 0xd6e8feb86659fd93ull) >> 56);
}

/* The number of RULE, added if it is new. */
static struct error *intern(struct rows_builder *builder, const struct unwind_rule *rule,
			    uint32_t *ret)
{
	struct rule_key key = {&builder->rows, rule};
	uint32_t *cached = &builder->cache[quick_hash(rule) % ROWS_CACHE];

	if (*cached && rule_equal(&key, *cached - 1)) {
		*ret = *cached - 1;
		return NULL;
	}
	uint64_t hash = hash_bytes(rule, sizeof(*rule), 0);
	if (!hash_find(&builder->index, hash, rule_equal, &key, ret))
		TRY(add_rule(builder, hash, rule, ret));
	*cached = *ret + 1;
	return NULL;
}

struct error *rows_builder_add(struct rows_builder *builder, uint64_t addr,
			       const struct unwind_rule *rule)
{
	struct rows *rows = &builder->rows;
	uint32_t number;

	TRY(intern(builder, rule, &number));
	if (rows->count && rows->row[rows->count - 1].addr == addr)
		rows->count--;
	if (rows->count && rows->row[rows->count - 1].rule == number)
		return NULL;
	TRY(ARRAY_RESERVE(rows->row, rows->room, rows->count, 1, ROWS_MAX, "unwind rows"));
	rows->row[rows->count++] = (struct row){addr, number};
	return NULL;
}

struct error *rows_builder_start(struct rows_builder *builder, uint64_t addr)
{
	struct rows *rows = &builder->rows;

	TRY(ARRAY_RESERVE(rows->starts, rows->start_room, rows->start_count, 1, ROWS_STARTS_MAX,
			  "function starts"));
	rows->starts[rows->start_count++] = addr;
	return NULL;
}

static int compare_addrs(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

static void sort_starts(struct rows *rows)
{
	size_t kept = 0;
	bool sorted = true;

	for (size_t i = 1; i < rows->start_count; i++)
		sorted &= rows->starts[i - 1] < rows->starts[i];
	if (sorted)
		return;
	qsort(rows->starts, rows->start_count, sizeof(*rows->starts), compare_addrs);
	for (size_t i = 0; i < rows->start_count; i++)
		if (!kept || rows->starts[kept - 1] != rows->starts[i])
			rows->starts[kept++] = rows->starts[i];
	rows->start_count = kept;
}

struct error *rows_add_starts(struct rows *rows, const uint64_t *addrs, size_t count)
{
	TRY(ARRAY_RESERVE(rows->starts, rows->start_room, rows->start_count, count, ROWS_STARTS_MAX,
			  "function starts"));
	if (count)
		memcpy(rows->starts + rows->start_count, addrs, count * sizeof(*addrs));
	rows->start_count += count;
	sort_starts(rows);
	return NULL;
}

/* Give back what doubling reserved in vain; without success it stays. */
static void trim(void *array, size_t *room, size_t count, size_t size)
{
	void *old, *smaller;

	memcpy(&old, array, sizeof(old));
	smaller = count && count < *room ? realloc(old, count * size) : NULL;
	if (!smaller)
		return;
	memcpy(array, &smaller, sizeof(smaller));
	*room = count;
}

static void set_range(struct rows *rows)
{
	rows->text_start = rows->count ? rows->row[0].addr : 0;
	rows->text_end = rows->count ? rows->row[rows->count - 1].addr : 0;
}

void rows_builder_finish(struct rows_builder *builder, struct rows *ret)
{
	struct rows *rows = &builder->rows;

	sort_starts(rows);
	trim(&rows->row, &rows->room, rows->count, sizeof(*rows->row));
	trim(&rows->starts, &rows->start_room, rows->start_count, sizeof(*rows->starts));
	set_range(rows);
	*ret = take_struct(*rows);
	hash_index_deinit(&builder->index);
	memset(builder->cache, 0, sizeof(builder->cache));
}

/* A place in a list of rows that is walked in order. */
struct cursor {
	const struct rows *rows;
	size_t next;
	const struct unwind_rule *rule; /* NULL: before the first row, or in a gap */
};

static uint64_t next_addr(const struct cursor *cursor)
{
	if (cursor->next == cursor->rows->count)
		return UINT64_MAX;
	return cursor->rows->row[cursor->next].addr;
}

static void move_to(struct cursor *cursor, uint64_t addr)
{
	if (cursor->next == cursor->rows->count || next_addr(cursor) != addr)
		return;

	const struct unwind_rule *rule = &cursor->rows->rules[cursor->rows->row[cursor->next].rule];
	cursor->rule = is_gap(rule) ? NULL : rule;
	cursor->next++;
}

static void add_facts(struct rows_facts *to, const struct rows_facts *from)
{
	to->fdes += from->fdes;
	to->damaged += from->damaged;
	to->overlapping += from->overlapping;
	to->outside += from->outside;
	to->scanned += from->scanned;
	to->unscanned += from->unscanned;
}

static struct error *overlay(struct rows_builder *builder, const struct rows *rows,
			     const struct rows *more)
{
	struct cursor first = {.rows = rows}, second = {.rows = more};
	size_t room = rows->count + more->count;

	// At once, for growing step by step would take up to twice as much memory.
	if (room < ROWS_MAX)
		TRY(ARRAY_RESERVE(builder->rows.row, builder->rows.room, 0, room, ROWS_MAX,
				  "unwind rows"));
	while (first.next < rows->count || second.next < more->count) {
		uint64_t addr = next_addr(&first);
		if (next_addr(&second) < addr)
			addr = next_addr(&second);
		move_to(&first, addr);
		move_to(&second, addr);
		const struct unwind_rule *rule = first.rule ? first.rule : second.rule;
		TRY(rows_builder_add(builder, addr, rule ? rule : &gap));
	}
	for (size_t i = 0; i < rows->start_count; i++)
		TRY(rows_builder_start(builder, rows->starts[i]));
	for (size_t i = 0; i < more->start_count; i++)
		TRY(rows_builder_start(builder, more->starts[i]));
	return NULL;
}

struct error *rows_fill(struct rows *rows, struct rows *more)
{
	_cleanup_(rows_builder_deinit) struct rows_builder builder = ROWS_BUILDER_INIT;
	struct rows filled;

	if (!rows->count) {
		add_facts(&more->facts, &rows->facts);
		rows_deinit(rows);
		*rows = take_struct(*more);
		return NULL;
	}
	if (more->count) {
		TRY(overlay(&builder, rows, more));
		builder.rows.facts = rows->facts;
		rows_builder_finish(&builder, &filled);
		rows_deinit(rows);
		*rows = filled;
	}
	add_facts(&rows->facts, &more->facts);
	rows_deinit(more);
	return NULL;
}

void rows_join_padding(struct rows *rows)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->count; i++) {
		struct row *row = &rows->row[i];
		bool padding = kept && i + 1 < rows->count && is_gap(&rows->rules[row->rule]) &&
			       row[1].addr - row->addr <= PADDING_MAX;
		if (!padding && (!kept || rows->row[kept - 1].rule != row->rule))
			rows->row[kept++] = *row;
	}
	rows->count = kept;
}

void rows_close(struct rows *rows)
{
	size_t kept = 0;

	rows_join_padding(rows);
	// Rule 0 is the gap.
	for (size_t i = 0; i < rows->count; i++) {
		struct row row = rows->row[i];
		if (rows->rules[row.rule].cfa == UNWIND_CFA_none)
			row.rule = 0;
		if (!kept || rows->row[kept - 1].rule != row.rule)
			rows->row[kept++] = row;
	}
	rows->count = kept;
	set_range(rows); // the last rows may have become one
	for (size_t i = 0; i < rows->rule_count; i++)
		if (rows->rules[i].cfa == UNWIND_CFA_none)
			rows->rules[i] = gap;
}

void rows_pieces_deinit(struct rows_pieces *pieces)
{
	free(pieces->piece);
	*pieces = (struct rows_pieces)ROWS_PIECES_INIT;
}

struct error *rows_pieces_add(struct rows_pieces *pieces, struct rows_piece piece)
{
	TRY(ARRAY_RESERVE(pieces->piece, pieces->room, pieces->count, 1, PIECES_MAX,
			  "ranges of code"));
	pieces->piece[pieces->count++] = piece;
	return NULL;
}

static int compare_pieces(const void *a, const void *b)
{
	const struct rows_piece *left = a, *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left->end < right->end ? -1 : left->end > right->end;
}

struct error *rows_of_pieces(struct rows_pieces *pieces, struct rows *ret)
{
	_cleanup_(rows_builder_deinit) struct rows_builder builder = ROWS_BUILDER_INIT;
	uint64_t covered = 0;

	if (pieces->count)
		qsort(pieces->piece, pieces->count, sizeof(*pieces->piece), compare_pieces);
	for (size_t i = 0; i < pieces->count; i++) {
		const struct rows_piece *piece = &pieces->piece[i];
		uint64_t start = piece->start > covered ? piece->start : covered;
		if (start >= piece->end)
			continue;
		if (start > covered && covered)
			TRY(rows_builder_add(&builder, covered, &gap));
		TRY(rows_builder_add(&builder, start, &piece->rule));
		covered = piece->end;
	}
	if (covered)
		TRY(rows_builder_add(&builder, covered, &gap));
	rows_builder_finish(&builder, ret);
	return NULL;
}

void rows_ranges_deinit(struct rows_ranges *ranges)
{
	free(ranges->range);
	*ranges = (struct rows_ranges)ROWS_RANGES_INIT;
}

struct error *rows_ranges_add(struct rows_ranges *ranges, uint64_t start, uint64_t end)
{
	TRY(ARRAY_RESERVE(ranges->range, ranges->room, ranges->count, 1, PIECES_MAX,
			  "ranges of code"));
	ranges->range[ranges->count++] = (struct rows_range){start, end};
	return NULL;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct rows_range *left = a, *right = b;

	return left->start < right->start ? -1 : left->start > right->start;
}

void rows_ranges_make_disjoint(struct rows_ranges *ranges)
{
	size_t kept = 0;

	if (ranges->count)
		qsort(ranges->range, ranges->count, sizeof(*ranges->range), compare_ranges);
	for (size_t i = 0; i < ranges->count; i++) {
		struct rows_range range = ranges->range[i];
		if (kept && range.start < ranges->range[kept - 1].end)
			range.start = ranges->range[kept - 1].end;
		if (range.start < range.end)
			ranges->range[kept++] = range;
	}
	ranges->count = kept;
}

const struct rows_range *rows_ranges_find(const struct rows_ranges *ranges, uint64_t addr)
{
	size_t low = 0, high = ranges->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (ranges->range[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < ranges->count && ranges->range[low].start <= addr ? &ranges->range[low] : NULL;
}

struct error *rows_gaps(const struct rows *rows, uint64_t start, uint64_t end,
			struct rows_ranges *ret)
{
	uint64_t open = start; // where the gap that we may be in began

	for (size_t i = rows_index(rows, start); i < rows->count && rows->row[i].addr < end; i++) {
		if (is_gap(&rows->rules[rows->row[i].rule]))
			continue;
		if (rows->row[i].addr > open && rows->row[i].addr - open > PADDING_MAX)
			TRY(rows_ranges_add(ret, open, rows->row[i].addr));
		// The next row begins the next gap, unless it has a rule too.
		open = i + 1 < rows->count ? rows->row[i + 1].addr : end;
	}
	// All of it is no padding, however short: .init has a few bytes.
	if (end <= open || (open > start && end - open <= PADDING_MAX))
		return NULL;
	return rows_ranges_add(ret, open, end);
}
