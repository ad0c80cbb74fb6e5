/* SPDX-License-Identifier: Apache-2.0 */
/* Where functions begin in code without unwind information, and scanning each of them. */
#include "object/scan-object.h"

#include <elf.h>
#include <string.h>

#include "base/array.h"
#include "object/object.h"
#include "object/scan.h"

enum {
	STARTS_MAX = 4 << 20,
	SYMBOLS_SIZE_MAX = 64 << 20,
	EXITS_MAX = 1 << 20,
	COLD_PARTS_MAX = 4096,
	COLD_BYTES_MAX = 16 << 10, /* of one */
	HOOKS_MAX = 8,
	ROUNDS_MAX = 3,
	/* A scan takes a second for some 10 MB of code, over all rounds. */
	CODE_MAX = 8 << 20,
	CODE_ROUNDS_MAX = 1 << 20, /* beyond it there is one round */
	TYPE_MASK = 15,
};

struct starts {
	uint64_t *addr;
	size_t count, room;
};

/* Jumps out of functions. */
struct exits {
	struct scan_exit *exit;
	size_t count, room;
};

struct context {
	struct object *object;
	const struct arch *arch;
	const struct rows_ranges *code; /* sorted, disjoint */
	struct rows *rows;
	bool poor;
	struct rows_ranges gaps; /* as they were at the start */
	struct starts starts;    /* sorted, distinct */
	struct starts found;     /* of functions that were understood */
	struct exits exits;
	struct scanner *scanner;
	struct rows_pieces pieces;
	struct rows_facts facts;
};

static int compare_addrs(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

static void sort_starts(struct starts *starts)
{
	size_t kept = 0;

	if (!starts->count)
		return;
	qsort(starts->addr, starts->count, sizeof(*starts->addr), compare_addrs);
	for (size_t i = 0; i < starts->count; i++)
		if (!kept || starts->addr[kept - 1] != starts->addr[i])
			starts->addr[kept++] = starts->addr[i];
	starts->count = kept;
}

static uint64_t total_size(const struct rows_ranges *ranges)
{
	uint64_t size = 0;

	for (size_t i = 0; i < ranges->count; i++)
		size += ranges->range[i].end - ranges->range[i].start;
	return size;
}

/* The number of the first start that is not below ADDR. */
static size_t start_from(const struct starts *starts, uint64_t addr)
{
	size_t low = 0, high = starts->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (starts->addr[middle] < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct error *append(struct starts *starts, uint64_t addr)
{
	TRY(ARRAY_RESERVE(starts->addr, starts->room, starts->count, 1, STARTS_MAX,
			  "function starts"));
	starts->addr[starts->count++] = addr;
	return NULL;
}

static struct error *add_start(struct context *c, uint64_t addr)
{
	return rows_ranges_find(&c->gaps, addr) ? append(&c->starts, addr) : NULL;
}

/* Is the name at OFFSET that of a function's cold part, which is jumped to and not called? */
static bool is_cold(struct bytes names, uint32_t offset)
{
	const char *name;
	_cleanup_error_ struct error *err = bytes_seek(&names, offset);

	if (!err)
		err = bytes_string(&names, &name);
	return !err && strstr(name, ".cold") != NULL;
}

static struct error *add_symbol(struct context *c, struct bytes *b, const struct bytes *names)
{
	uint32_t name;
	uint8_t info;
	uint16_t index;
	uint64_t value;

	TRY(bytes_u32(b, &name));
	TRY(bytes_u8(b, &info));
	TRY(bytes_skip(b, 1));
	TRY(bytes_u16(b, &index));
	TRY(bytes_u64(b, &value));
	TRY(bytes_skip(b, 8));
	unsigned type = info & TYPE_MASK;
	if (index == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC) ||
	    is_cold(*names, name))
		return NULL;
	return add_start(c, value);
}

/* Functions of a symbol table. A cut table ends where it is cut. */
static struct error *add_symbols(struct context *c, const char *table, const char *strings)
{
	struct bytes b, names;

	if (!object_section(c->object, table, &b, NULL) || bytes_left(&b) > SYMBOLS_SIZE_MAX ||
	    !object_section(c->object, strings, &names, NULL))
		return NULL;
	while (bytes_left(&b) >= sizeof(Elf64_Sym))
		TRY(add_symbol(c, &b, &names));
	return NULL;
}

/* The code of GAP from ADDR on, in memory of the caller's. */
static struct error *read_gap(struct context *c, const struct rows_range *gap, uint8_t **ret,
			      bool *ret_there)
{
	_cleanup_free_ uint8_t *data = NULL;
	uint64_t size = gap->end - gap->start;

	*ret_there = false;
	data = malloc(size);
	if (!data)
		return error_oom();
	*ret_there = object_read(c->object, gap->start, data, size);
	*ret = take(data);
	return NULL;
}

/*
 * Add where the calls in [FROM, TO) of GAP go, and what it takes addresses of. Bytes that are no
 * instruction are stepped over: the decoder falls into step again after a few.
 */
static struct error *sweep(struct context *c, const struct rows_range *gap, const uint8_t *data,
			   uint64_t from, uint64_t to)
{
	struct bytes b = bytes_over(data + (from - gap->start), to - from, "code");
	struct insn insn;

	while (bytes_left(&b) > 0) {
		if (!c->arch->decode(&b, to - bytes_left(&b), &insn))
			insn = (struct insn){.length = 1};
		b.at += insn.length;
		if ((insn.kind == INSN_call || insn.kind == INSN_other) && insn.target)
			TRY(add_start(c, insn.target));
	}
	return NULL;
}

/* Sweep the gap, each of the first KNOWN starts bringing the decoder into step. */
static struct error *sweep_gap(struct context *c, const struct rows_range *gap, size_t known)
{
	_cleanup_free_ uint8_t *data = NULL;
	struct starts view = {.addr = c->starts.addr, .count = known};
	uint64_t from = gap->start;
	bool there;

	TRY(read_gap(c, gap, &data, &there));
	// c->starts grows, and its first KNOWN entries stay as they are.
	for (size_t i = start_from(&view, gap->start); there && from < gap->end; i++) {
		uint64_t to =
			i < known && c->starts.addr[i] < gap->end ? c->starts.addr[i] : gap->end;
		TRY(sweep(c, gap, data, from, to));
		from = to;
	}
	return NULL;
}

/* The pointers to what runs before and after main(). */
static struct error *find_hooks(const struct object *object, struct rows_ranges *ret)
{
	size_t count;
	const struct object_section *sections = object_sections(object, &count);

	for (size_t i = 0; i < count && ret->count < HOOKS_MAX; i++)
		if ((!strcmp(sections[i].name, ".init_array") ||
		     !strcmp(sections[i].name, ".fini_array")) &&
		    sections[i].size <= UINT64_MAX - sections[i].addr)
			TRY(rows_ranges_add(ret, sections[i].addr,
					    sections[i].addr + sections[i].size));
	rows_ranges_make_disjoint(ret);
	return NULL;
}

/* Functions that data points at, in a position-independent object. */
static struct error *add_pointers(struct context *c)
{
	_cleanup_(rows_ranges_deinit) struct rows_ranges hooks = ROWS_RANGES_INIT;
	struct bytes b;
	uint64_t place, info, addend;

	TRY(find_hooks(c->object, &hooks));
	if ((!c->poor && !hooks.count) || !object_section(c->object, ".rela.dyn", &b, NULL) ||
	    bytes_left(&b) > SYMBOLS_SIZE_MAX)
		return NULL;
	while (bytes_left(&b) >= sizeof(Elf64_Rela)) {
		TRY(bytes_u64(&b, &place));
		TRY(bytes_u64(&b, &info));
		TRY(bytes_u64(&b, &addend));
		if (info == c->arch->relative_relocation &&
		    (c->poor || rows_ranges_find(&hooks, place)))
			TRY(add_start(c, addend));
	}
	return NULL;
}

/* Functions that a table of pointers holds: as relocations of the RELR kind find them. */
static struct error *add_table(struct context *c, const char *name)
{
	struct bytes b;
	uint64_t addr;

	if (!object_section(c->object, name, &b, NULL))
		return NULL;
	while (bytes_left(&b) >= sizeof(addr)) {
		TRY(bytes_u64(&b, &addr));
		if (addr)
			TRY(add_start(c, addr));
	}
	return NULL;
}

/*
 * What runs before and after main(): a section each that is one function built of pieces, without a
 * symbol, and tables of functions.
 */
static struct error *add_init_and_fini(struct context *c)
{
	size_t count;
	const struct object_section *sections = object_sections(c->object, &count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(sections[i].name, ".init") || !strcmp(sections[i].name, ".fini"))
			TRY(add_start(c, sections[i].addr));
	TRY(add_table(c, ".init_array"));
	return add_table(c, ".fini_array");
}

static struct error *find_starts(struct context *c)
{
	TRY(add_symbols(c, ".dynsym", ".dynstr"));
	TRY(add_symbols(c, ".symtab", ".strtab"));
	TRY(add_pointers(c));
	object_release(c->object);
	TRY(add_start(c, object_entry(c->object)));
	TRY(add_init_and_fini(c));
	sort_starts(&c->starts);

	size_t known = c->starts.count;
	for (size_t i = 0; c->poor && i < c->gaps.count; i++)
		TRY(sweep_gap(c, &c->gaps.range[i], known));
	sort_starts(&c->starts);
	return NULL;
}

static bool is_start(const struct context *c, uint64_t addr)
{
	size_t i = start_from(&c->starts, addr);

	return i < c->starts.count && c->starts.addr[i] == addr;
}

static struct error *keep_exits(struct context *c, const struct scan_result *result)
{
	struct exits *exits = &c->exits;

	TRY(ARRAY_RESERVE(exits->exit, exits->room, exits->count, result->exit_count, EXITS_MAX,
			  "jumps between functions"));
	for (size_t i = 0; i < result->exit_count; i++)
		if (!is_start(c, result->exits[i].addr))
			exits->exit[exits->count++] = result->exits[i];
	return NULL;
}

/* A piece of a gap: DATA holds the gap's bytes. */
struct piece {
	const struct rows_range *gap;
	const uint8_t *data;
	uint64_t from, to;
	struct scan_state start;
	bool certain;
};

/* Scan the code of PIECE, which begins with a function and may hold more of them. */
static struct error *scan_piece(struct context *c, const struct piece *piece)
{
	uint64_t from = piece->from;
	struct scan_function function = {.start = piece->start, .certain = piece->certain};
	struct scan_result result;

	while (from < piece->to) {
		const uint8_t *data = piece->data + (from - piece->gap->start);
		function.code = bytes_over(data, piece->to - from, "code");
		function.addr = from;
		TRY(scan_function(c->scanner, &function, &c->pieces, &result));
		if (function.certain)
			TRY(keep_exits(c, &result));
		c->facts.scanned += result.understood;
		c->facts.unscanned += !result.understood;
		if (result.understood)
			TRY(append(&c->found, from));
		// What follows the entry code is no function for sure, and in an object that has
		// unwind information nothing is but what a symbol says.
		if (!result.understood || !c->poor || function.start.ra == SCAN_RA_nowhere)
			break;
		from = result.end;
		function.start = scan_state_at_entry();
		function.certain = false;
	}
	return NULL;
}

static struct error *scan_gap(struct context *c, const struct rows_range *gap)
{
	_cleanup_free_ uint8_t *data = NULL;
	size_t first = start_from(&c->starts, gap->start), end = start_from(&c->starts, gap->end);
	bool there;

	if (first == end)
		return NULL;
	TRY(read_gap(c, gap, &data, &there));
	for (size_t i = first; there && i < end; i++) {
		struct piece piece = {.gap = gap,
				      .data = data,
				      .from = c->starts.addr[i],
				      .to = i + 1 < end ? c->starts.addr[i + 1] : gap->end,
				      .start = scan_state_at_entry(),
				      .certain = true};
		if (piece.from == object_entry(c->object))
			piece.start.ra = SCAN_RA_nowhere;
		TRY(scan_piece(c, &piece));
	}
	return NULL;
}

/* Where functions jump to with the stack as at an entry, another function begins. */
static struct error *add_tail_calls(struct context *c, bool *ret_more)
{
	size_t before = c->starts.count;

	for (size_t i = 0; c->poor && i < c->exits.count; i++)
		if (scan_state_is_at_entry(&c->exits.exit[i].state))
			TRY(add_start(c, c->exits.exit[i].addr));
	sort_starts(&c->starts);
	*ret_more = c->starts.count > before;
	return NULL;
}

/* Lay what was found over the rows. */
static struct error *flush(struct context *c)
{
	_cleanup_(rows_deinit) struct rows more = ROWS_INIT;

	TRY(rows_of_pieces(&c->pieces, &more));
	c->pieces.count = 0;
	return rows_fill(c->rows, &more);
}

static struct error *scan_functions(struct context *c)
{
	unsigned rounds = total_size(&c->gaps) > CODE_ROUNDS_MAX ? 1 : ROUNDS_MAX;
	bool more = true;

	for (unsigned round = 0; more && round < rounds; round++) {
		c->pieces.count = 0;
		c->exits.count = 0;
		c->found.count = 0;
		c->facts.scanned = c->facts.unscanned = 0;
		for (size_t i = 0; i < c->gaps.count; i++)
			TRY(scan_gap(c, &c->gaps.range[i]));
		TRY(add_tail_calls(c, &more));
	}
	return flush(c);
}

static int compare_exits(const void *a, const void *b)
{
	const struct scan_exit *left = a, *right = b;

	return left->addr < right->addr ? -1 : left->addr > right->addr;
}

/* Do all jumps to the address of exit I agree? Exits are sorted. */
static bool is_agreed(const struct exits *exits, size_t i)
{
	const struct scan_exit *exit = &exits->exit[i];

	for (size_t k = i + 1; k < exits->count && exits->exit[k].addr == exit->addr; k++)
		if (!scan_state_equal(&exits->exit[k].state, &exit->state))
			return false;
	return true;
}

static struct error *scan_cold_part(struct context *c, const struct scan_exit *exit, uint64_t to)
{
	_cleanup_free_ uint8_t *data = NULL;
	const struct rows_range *gap = rows_ranges_find(&c->gaps, exit->addr);
	size_t next = start_from(&c->starts, exit->addr);
	bool there;

	if (!gap)
		return NULL;
	if (next < c->starts.count && c->starts.addr[next] < to)
		to = c->starts.addr[next];
	if (to > gap->end)
		to = gap->end;
	if (to - exit->addr > COLD_BYTES_MAX)
		to = exit->addr + COLD_BYTES_MAX;
	struct rows_range part = {exit->addr, to};
	TRY(read_gap(c, &part, &data, &there));
	if (!there)
		return NULL;
	return scan_piece(c, &(struct piece){.gap = &part,
					     .data = data,
					     .from = part.start,
					     .to = part.end,
					     .start = exit->state});
}

/* Parts of functions that lie elsewhere, with the stack as it was at the jump there. */
static struct error *scan_cold_parts(struct context *c)
{
	struct exits exits = c->exits;
	struct error *err = NULL;
	unsigned parts = 0;

	c->exits = (struct exits){0};
	if (exits.count)
		qsort(exits.exit, exits.count, sizeof(*exits.exit), compare_exits);
	for (size_t i = 0; !err && i < exits.count && parts < COLD_PARTS_MAX; i++, parts++) {
		size_t next = i + 1;
		while (next < exits.count && exits.exit[next].addr == exits.exit[i].addr)
			next++;
		if (is_agreed(&exits, i))
			err = scan_cold_part(c, &exits.exit[i],
					     next < exits.count ? exits.exit[next].addr
								: UINT64_MAX);
		i = next - 1;
	}
	free(exits.exit);
	return err ? err : flush(c);
}

/* In a poor object, take what begins a gap that is still open for a function. */
static struct error *scan_rest(struct context *c)
{
	_cleanup_free_ uint8_t *data = NULL;
	struct insn insn;
	bool there;

	for (size_t i = 0; i < c->gaps.count; i++) {
		const struct rows_range *gap = &c->gaps.range[i];
		free(take(data));
		TRY(read_gap(c, gap, &data, &there));
		if (!there)
			continue;
		struct bytes b = bytes_over(data, gap->end - gap->start, "code");
		while (c->arch->decode(&b, gap->end - bytes_left(&b), &insn) &&
		       insn.kind == INSN_padding)
			b.at += insn.length;
		TRY(scan_piece(c, &(struct piece){.gap = gap,
						  .data = data,
						  .from = gap->end - bytes_left(&b),
						  .to = gap->end,
						  .start = scan_state_at_entry()}));
	}
	return flush(c);
}

static struct error *find_gaps(struct context *c)
{
	c->gaps.count = 0;
	for (size_t i = 0; i < c->code->count; i++)
		TRY(rows_gaps(c->rows, c->code->range[i].start, c->code->range[i].end, &c->gaps));
	return NULL;
}

static struct error *scan(struct context *c)
{
	TRY(find_gaps(c));
	if (!c->gaps.count || total_size(&c->gaps) > CODE_MAX)
		return NULL;
	TRY(scanner_new(c->arch->decode, &c->scanner));
	TRY(find_starts(c));
	TRY(scan_functions(c));
	TRY(scan_cold_parts(c));
	if (!c->poor)
		return NULL;
	TRY(find_gaps(c));
	return scan_rest(c);
}

struct error *scan_object(struct object *object, const struct arch *arch,
			  const struct rows_ranges *code, bool poor, struct rows *rows)
{
	struct context c = {
		.object = object, .arch = arch, .code = code, .poor = poor, .rows = rows};
	struct error *err = scan(&c);

	if (!err)
		err = rows_add_starts(rows, c.found.addr, c.found.count);
	rows->facts.scanned += c.facts.scanned;
	rows->facts.unscanned += c.facts.unscanned;
	scanner_free(c.scanner);
	free(c.starts.addr);
	free(c.found.addr);
	free(c.exits.exit);
	rows_ranges_deinit(&c.gaps);
	rows_pieces_deinit(&c.pieces);
	return err;
}
