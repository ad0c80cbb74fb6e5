/* SPDX-License-Identifier: Apache-2.0 */
/* Code that is known without unwind information. */
#include "object/known.h"

#include <elf.h>
#include <string.h>

#include "base/str.h"
#include "object/object.h"
#include "object/rows-build.h"
#include "object/scan-object.h"

enum {
	WINDOW = 64 << 10,
	STUBS_LOOKED_AT = 64, /* bytes: the head and the first ones */
	ENTRY_MAX = 128,
	TRAMPOLINE_MAX = 16, /* the longest code that is known by its bytes */
	POOR_PERCENT = 50,   /* below this share of code with rules, an object counts as poor */
	FRAMES_MIN = 8,      /* functions in a gap that set up a frame pointer, and at least */
	FRAME_BYTES = 4096,  /* one in so many bytes: then the gap is code that has them */
};

/* Where code is: executable sections, or without those, segments. */
static struct error *list_code(const struct object *object, struct rows_ranges *ret)
{
	const uint64_t wanted = SHF_ALLOC | SHF_EXECINSTR;
	size_t count;
	const struct object_section *sections = object_sections(object, &count);

	for (size_t i = 0; i < count; i++)
		if ((sections[i].flags & wanted) == wanted && sections[i].size &&
		    sections[i].size <= UINT64_MAX - sections[i].addr)
			TRY(rows_ranges_add(ret, sections[i].addr,
					    sections[i].addr + sections[i].size));
	bool by_section = ret->count > 0;
	const struct object_segment *segments = object_segments(object, &count);
	for (size_t i = 0; i < count && !by_section; i++)
		if (segments[i].executable && segments[i].mem_size)
			TRY(rows_ranges_add(ret, segments[i].addr,
					    segments[i].addr + segments[i].mem_size));
	rows_ranges_make_disjoint(ret);
	return NULL;
}

/* Add PIECES as far as ROWS are open there. */
static struct error *fill_pieces(struct rows *rows, struct rows_pieces *pieces)
{
	_cleanup_(rows_deinit) struct rows more = ROWS_INIT;

	TRY(rows_of_pieces(pieces, &more));
	return rows_fill(rows, &more);
}

static struct error *add_stubs(struct object *object, const struct arch *arch,
			       const struct object_section *section, struct rows_pieces *pieces)
{
	struct stub_row row[STUB_ROWS_MAX];
	uint8_t head[STUBS_LOOKED_AT];
	size_t size = section->size < sizeof(head) ? section->size : sizeof(head);

	if (!object_read(object, section->addr, head, size))
		return NULL;
	size_t count = arch->stub_rows(bytes_over(head, size, section->name), section->addr, row);
	for (size_t i = 0; i < count; i++) {
		struct rows_piece piece = {.start = section->addr + row[i].offset,
					   .end = section->addr + section->size,
					   .rule = row[i].rule};
		if (i + 1 < count)
			piece.end = section->addr + row[i + 1].offset;
		TRY(rows_pieces_add(pieces, piece));
	}
	return NULL;
}

static struct error *find_stubs(struct object *object, const struct arch *arch,
				const struct rows *rows, struct rows_pieces *pieces)
{
	size_t count;
	const struct object_section *sections = object_sections(object, &count);

	for (size_t i = 0; i < count; i++) {
		const struct object_section *section = &sections[i];
		if (!(section->flags & SHF_EXECINSTR) ||
		    (!str_starts(section->name, ".plt") && strcmp(section->name, ".iplt") != 0) ||
		    section->size > UINT64_MAX - section->addr)
			continue;
		const struct unwind_rule *rule = rows_find(rows, section->addr);
		if (!rule || rule->cfa == UNWIND_CFA_none)
			TRY(add_stubs(object, arch, section, pieces));
	}
	return NULL;
}

/* The piece that the code at B, at address START, is known to be. False: it is nothing known. */
static bool trampoline_at(const struct arch *arch, const struct bytes *b, uint64_t start,
			  struct rows_piece *ret)
{
	size_t length;

	if (arch->is_signal_return(b, &length))
		// One byte more in front, for the walk looks up the byte before a return address.
		*ret = (struct rows_piece){.start = start ? start - 1 : 0,
					   .end = start + length,
					   .rule.cfa = UNWIND_CFA_signal};
	else if (arch->is_thread_start(b, &length))
		*ret = (struct rows_piece){
			.start = start, .end = start + length, .rule.cfa = UNWIND_CFA_root};
	else
		return false;
	return true;
}

/* Look for the return from signal handlers and the start of threads in the gap RANGE. */
static struct error *find_trampolines(struct object *object, const struct arch *arch,
				      struct rows_range range, uint8_t *window,
				      struct rows_pieces *pieces)
{
	for (uint64_t at = range.start; at < range.end; at += WINDOW - TRAMPOLINE_MAX) {
		size_t size = range.end - at < WINDOW ? range.end - at : WINDOW;
		struct rows_piece piece;
		if (!object_read(object, at, window, size))
			return NULL;
		struct bytes b = bytes_over(window, size, "code");
		for (; bytes_left(&b) > 0; b.at++)
			if (trampoline_at(arch, &b, at + bytes_offset(&b), &piece))
				TRY(rows_pieces_add(pieces, piece));
		if (size < WINDOW)
			break;
	}
	return NULL;
}

static struct error *find_all_trampolines(struct object *object, const struct arch *arch,
					  const struct rows_ranges *gaps,
					  struct rows_pieces *pieces)
{
	_cleanup_free_ uint8_t *window = malloc(WINDOW);

	if (!window)
		return error_oom();
	for (size_t i = 0; i < gaps->count; i++)
		TRY(find_trampolines(object, arch, gaps->range[i], window, pieces));
	return NULL;
}

/* Nobody called the code at a dynamic loader's entry point. */
static struct error *find_loader_entry(struct object *object, const struct arch *arch,
				       struct rows_pieces *pieces)
{
	uint8_t code[ENTRY_MAX];
	uint64_t entry = object_entry(object);

	if (!entry || entry > UINT64_MAX - ENTRY_MAX ||
	    !object_read(object, entry, code, sizeof(code)))
		return NULL;
	size_t size = arch->loader_entry(bytes_over(code, sizeof(code), "entry code"));
	struct rows_piece piece = {
		.start = entry, .end = entry + size, .rule.cfa = UNWIND_CFA_root};
	return size ? rows_pieces_add(pieces, piece) : NULL;
}

static uint64_t total_size(const struct rows_ranges *ranges)
{
	uint64_t size = 0;

	for (size_t i = 0; i < ranges->count; i++)
		size += ranges->range[i].end - ranges->range[i].start;
	return size;
}

static struct error *find_gaps(const struct rows *rows, const struct rows_ranges *code,
			       struct rows_ranges *ret)
{
	for (size_t i = 0; i < code->count; i++)
		TRY(rows_gaps(rows, code->range[i].start, code->range[i].end, ret));
	return NULL;
}

/*
 * Does the code in RANGE set up frame pointers, as far as one sees by looking for the instructions?
 * V8's builtins are such code: megabytes without unwind information, in programs that otherwise
 * have it.
 */
static bool has_frames(struct object *object, const struct arch *arch, struct rows_range range,
		       uint8_t *window)
{
	uint64_t frames = 0;

	for (uint64_t at = range.start; at < range.end; at += WINDOW) {
		size_t size = range.end - at < WINDOW ? range.end - at : WINDOW;
		if (!object_read(object, at, window, size))
			break;
		frames += arch->count_frames(bytes_over(window, size, "code"));
	}
	return frames >= FRAMES_MIN && frames >= (range.end - range.start) / FRAME_BYTES;
}

/*
 * Where frame pointers are tried if nothing better is found: in all GAPS of an object whose
 * functions mostly have no rules, and in code of others that is seen to have them.
 */
static struct error *find_framed(struct object *object, const struct arch *arch,
				 const struct rows_ranges *gaps, bool poor,
				 struct rows_pieces *pieces)
{
	_cleanup_free_ uint8_t *window = malloc(WINDOW);

	if (!window)
		return error_oom();
	for (size_t i = 0; i < gaps->count; i++) {
		struct rows_piece piece = {.start = gaps->range[i].start,
					   .end = gaps->range[i].end,
					   .rule.cfa = UNWIND_CFA_frame_ptr};
		if (poor || has_frames(object, arch, gaps->range[i], window))
			TRY(rows_pieces_add(pieces, piece));
	}
	return NULL;
}

struct error *known_fill(struct object *object, const struct arch *arch, struct rows *rows)
{
	_cleanup_(rows_ranges_deinit) struct rows_ranges code = ROWS_RANGES_INIT;
	_cleanup_(rows_ranges_deinit) struct rows_ranges gaps = ROWS_RANGES_INIT;
	_cleanup_(rows_pieces_deinit) struct rows_pieces known = ROWS_PIECES_INIT;
	_cleanup_(rows_pieces_deinit) struct rows_pieces framed = ROWS_PIECES_INIT;
	bool poor;

	TRY(list_code(object, &code));
	TRY(find_gaps(rows, &code, &gaps));
	poor = total_size(&gaps) > total_size(&code) / 100 * POOR_PERCENT;
	TRY(find_stubs(object, arch, rows, &known));
	TRY(find_all_trampolines(object, arch, &gaps, &known));
	TRY(find_loader_entry(object, arch, &known));
	TRY(find_framed(object, arch, &gaps, poor, &framed));
	TRY(fill_pieces(rows, &known));
	TRY(scan_object(object, arch, &code, poor, rows));
	rows_join_padding(rows); // which is no code to be filled
	// Without any rows the walk goes by frame pointers anyway, in the whole object.
	return rows->count ? fill_pieces(rows, &framed) : NULL;
}
