/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling the rows of an object: source after source. */
#include "object/rows.h"

#include "object/cfi-run.h"
#include "object/go.h"
#include "object/known.h"
#include "object/object.h"
#include "object/rows-build.h"

static const struct unwind_rule gap = {.cfa = UNWIND_CFA_none};
static const struct unwind_rule signal_rule = {.cfa = UNWIND_CFA_signal};

/* Where code can be. */
static struct error *list_text(const struct object *object, struct rows_ranges *ret)
{
	size_t count;
	const struct object_segment *segments = object_segments(object, &count);

	for (size_t i = 0; i < count; i++)
		if (segments[i].executable)
			TRY(rows_ranges_add(ret, segments[i].addr,
					    segments[i].addr + segments[i].mem_size));
	rows_ranges_make_disjoint(ret);
	return NULL;
}

/* Compiling one section. */
struct compile {
	const struct arch *arch;
	struct rows_ranges text;
	struct rows_builder builder;
	struct cfi cfi;
	struct cfi_run run;
	bool keep_base;   /* rules say where arch->base is, too */
	uint64_t covered; /* code below has its rows */
};

/* Add the rows of FDE from FROM to TO. */
static struct error *run_fde(struct compile *c, const struct cfi_fde *fde, uint64_t from,
			     uint64_t to)
{
	struct unwind_rule rule;
	uint64_t addr;

	if (c->cfi.cies[fde->cie].signal)
		return rows_builder_add(&c->builder, from, &signal_rule);
	cfi_run_start(&c->run, &c->cfi, fde, c->arch);
	c->run.keep_base = c->keep_base;
	while (cfi_run_next(&c->run, &addr, &rule) && addr < to)
		// A row before FROM is replaced by the next one there, until one reaches beyond.
		TRY(rows_builder_add(&c->builder, addr > from ? addr : from, &rule));
	c->builder.rows.facts.damaged += c->run.damaged;
	return NULL;
}

static struct error *add_fde(struct compile *c, const struct cfi_fde *fde)
{
	struct rows_facts *facts = &c->builder.rows.facts;
	const struct rows_range *text = rows_ranges_find(&c->text, fde->start);
	uint64_t from = fde->start, to = fde->end;

	if (!text) {
		facts->outside++;
		return NULL;
	}
	if (to > text->end)
		to = text->end;
	if (from < c->covered) {
		facts->overlapping++;
		from = c->covered;
	}
	if (to <= from)
		return NULL;
	facts->fdes++;
	TRY(rows_builder_start(&c->builder, fde->start));
	// The kernel puts the trampoline's first byte on the stack as a return address, and who
	// looks up a return address looks at the byte before it.
	if (c->cfi.cies[fde->cie].signal && from == fde->start && from > text->start)
		from--;
	if (from > c->covered && c->covered)
		TRY(rows_builder_add(&c->builder, c->covered, &gap));
	c->covered = to;
	return run_fde(c, fde, from, to);
}

static struct error *compile_cfi(struct compile *c)
{
	for (size_t i = 0; i < c->cfi.fde_count; i++)
		TRY(add_fde(c, &c->cfi.fdes[i]));
	if (c->covered)
		TRY(rows_builder_add(&c->builder, c->covered, &gap));
	c->builder.rows.facts.damaged += (uint32_t)c->cfi.damaged;
	return NULL;
}

/* A section of call frame information. */
struct frames {
	struct bytes section;
	uint64_t addr;
	enum cfi_kind kind;
};

/* The rows of one section of call frame information. */
static struct error *compile_once(struct object *object, const struct frames *frames,
				  bool keep_base, struct rows *ret)
{
	struct compile c = {.arch = arch_find(object_machine(object)), .keep_base = keep_base};
	struct error *err = list_text(object, &c.text);

	if (!err)
		err = cfi_read(frames->section, frames->addr, frames->kind, &c.cfi);
	if (!err)
		err = compile_cfi(&c);
	if (!err)
		rows_builder_finish(&c.builder, ret);
	cfi_deinit(&c.cfi);
	rows_ranges_deinit(&c.text);
	rows_builder_deinit(&c.builder);
	return err;
}

/* Does any frame need the other base register? */
static bool has_base(const struct rows *rows, const struct arch *arch)
{
	for (size_t i = 0; i < rows->rule_count; i++)
		if (rows->rules[i].cfa == UNWIND_CFA_reg && rows->rules[i].base == arch->base)
			return true;
	return false;
}

/*
 * Few objects have frames based on another register than sp and fp. In those every rule says where
 * it is; in all others that would only multiply the rules.
 */
static struct error *compile_section(struct object *object, const struct frames *frames,
				     struct rows *ret)
{
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;

	TRY(compile_once(object, frames, false, &rows));
	if (!has_base(&rows, arch_find(object_machine(object)))) {
		*ret = take_struct(rows);
		return NULL;
	}
	return compile_once(object, frames, true, ret);
}

/* .eh_frame by its section or, in a file without sections, by the frame header. */
static bool find_eh_frame(struct object *object, struct bytes *ret, uint64_t *ret_addr,
			  enum cfi_kind *ret_kind)
{
	uint64_t header_addr, header_size;
	struct bytes header;

	*ret_kind = CFI_EH_FRAME;
	if (object_section(object, ".eh_frame", ret, ret_addr))
		return true;
	*ret_kind = CFI_EH_FRAME_OPEN;
	return object_frame_header(object, &header_addr, &header_size) &&
	       object_at(object, header_addr, &header) &&
	       cfi_find_frames(header, header_addr, ret_addr) && object_at(object, *ret_addr, ret);
}

static struct error *add_frames(struct object *object, struct rows *rows)
{
	_cleanup_(rows_deinit) struct rows more = ROWS_INIT;
	struct frames frames;

	if (find_eh_frame(object, &frames.section, &frames.addr, &frames.kind)) {
		TRY(compile_section(object, &frames, rows));
		object_release(object);
	}
	// What Go's linker writes there lacks the frame pointer; its pclntab has it.
	if (!object_is_go(object) &&
	    object_section(object, ".debug_frame", &frames.section, &frames.addr)) {
		frames.kind = CFI_DEBUG_FRAME;
		TRY(compile_section(object, &frames, &more));
		TRY(rows_fill(rows, &more));
		object_release(object);
	}
	return NULL;
}

static struct error *compile(struct object *object, struct rows *ret)
{
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;

	TRY(add_frames(object, &rows));
	TRY(go_rows_add(object, &rows));
	TRY(known_fill(object, arch_find(object_machine(object)), &rows));
	rows_close(&rows);
	*ret = take_struct(rows);
	return NULL;
}

struct error *rows_compile(struct object *object, struct rows *ret)
{
	struct error *err;

	if (!object_is_64(object) || !arch_find(object_machine(object))) {
		*ret = (struct rows)ROWS_INIT;
		return NULL;
	}
	err = compile(object, ret);
	object_release(object);
	return err ? error_wrap(err, "unwind rows of %s", object_name(object)) : NULL;
}
