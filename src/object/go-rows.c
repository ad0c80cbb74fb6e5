/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of Go functions. The stack pointer table gives the CFA at every instruction; the code says
 * where the frame pointer is (go-code.h), the function's name and flags where the stack changes
 * (go-special.def).
 */
#include <elf.h>
#include <string.h>

#include "base/array.h"
#include "object/go-code.h"
#include "object/go-steps.h"
#include "object/go-table.h"
#include "object/object.h"
#include "object/rows-build.h"

enum {
	DELTA_MAX = INT32_MAX - 64, /* reflect calls with frames of up to 1 GiB */
	PADDING_MAX = 64,           /* behind a function; functions are aligned to 64 at most */
	SPECIAL_NAME_MAX = 32,
	SPECIAL_CODE_MAX = 1024, /* the longest of them has some 300 bytes */
	LEAVE_MAX = 7,
};

enum how {
	HOW_usual,
	HOW_root,
	HOW_through,
	HOW_signal,
	HOW_root_after,
	HOW_gap_after,
	HOW_saved_after,
	HOW_system_stack,
	HOW_c_call,
	HOW_framed,
	HOW_plain,
};

static const struct special {
	const char *name;
	enum how how;
} specials[] = {
#define GO_SPECIAL(name, how) {name, HOW_##how},
#include "object/go-special.def"
#undef GO_SPECIAL
};

static const struct unwind_rule rule_gap = {.cfa = UNWIND_CFA_none};
static const struct unwind_rule rule_root = {.cfa = UNWIND_CFA_root};
static const struct unwind_rule rule_signal = {.cfa = UNWIND_CFA_signal};

/* By the frame pointer, which the function has saved and set. */
static const struct unwind_rule rule_frame = {.cfa = UNWIND_CFA_reg,
					      .base = UNWIND_RBP,
					      .aux = UNWIND_OTHER_STACK,
					      .offset = 16,
					      .fp = UNWIND_FP_cfa,
					      .fp_offset = -16,
					      .ra = UNWIND_RA_cfa,
					      .ra_offset = -8};

struct compile {
	struct go_table *table;
	struct rows_builder builder;
	uint64_t until;                 /* end of the code that is described at present */
	const struct go_layout *layout; /* NULL: systemstack was not seen, or is not one we know */
	int32_t tls;                    /* of g; 0: unknown */
};

/* One function: what is known of it before its rows are made. */
struct function {
	const struct go_record *record;
	struct go_frame frame;
	uint64_t frame_at; /* where the stack pointer first moves */
	bool switches;     /* its frame pointer is the way to its frame */
	uint64_t until;    /* the stack pointer table holds up to here */
	uint8_t code[SPECIAL_CODE_MAX];
	size_t code_size;
};

/* DELTA bytes below the value at entry. */
static struct unwind_rule rule_by_sp(uint32_t delta, bool fp_saved)
{
	return (struct unwind_rule){.cfa = UNWIND_CFA_reg,
				    .base = UNWIND_RSP,
				    .offset = (int32_t)delta + 8,
				    .fp = fp_saved ? UNWIND_FP_cfa : UNWIND_FP_same,
				    .fp_offset = fp_saved ? -16 : 0,
				    .ra = UNWIND_RA_cfa,
				    .ra_offset = -8};
}

/* Continue with the goroutine's saved context; a gap where that cannot be found. */
static struct unwind_rule rule_saved(const struct compile *c)
{
	if (!c->layout || !c->tls || c->tls < INT16_MIN)
		return rule_gap;
	return (struct unwind_rule){.cfa = UNWIND_CFA_go_switch,
				    .offset = (int32_t)(c->layout->m | c->layout->curg << 16),
				    .aux = c->layout->sp,
				    .fp_offset = (int16_t)c->layout->bp,
				    .ra_offset = (int16_t)c->tls};
}

static struct error *add(struct compile *c, uint64_t addr, struct unwind_rule rule)
{
	return addr < c->until ? rows_builder_add(&c->builder, addr, &rule) : NULL;
}

static enum how special_find(struct compile *c, const struct go_record *record)
{
	char name[SPECIAL_NAME_MAX + 1] = "";

	if (record->name >= c->table->at.units - c->table->at.names)
		return HOW_usual;
	go_view_some(&c->table->view, c->table->at.names + record->name, name, SPECIAL_NAME_MAX);
	for (size_t i = 0; i < ARRAY_COUNT(specials); i++)
		if (strcmp(specials[i].name, name) == 0)
			return specials[i].how;
	return HOW_usual;
}

/* Where the frame begins, and what becomes of the frame pointer there. */
static void find_frame(struct compile *c, struct function *f)
{
	struct go_steps steps = go_steps_begin(c->table, f->record, f->record->sp_values);
	uint8_t code[GO_FRAME_BYTES];

	while (go_steps_next(&steps)) {
		if (steps.value == 0)
			continue;
		f->frame_at = steps.start;
		size_t size = go_view_some(&c->table->view, steps.start - GO_FRAME_BEFORE, code,
					   sizeof(code));
		f->frame = go_code_frame(code, size, (uint32_t)steps.value);
		return;
	}
}

static void read_code(struct compile *c, struct function *f)
{
	uint64_t size = f->record->end - f->record->entry;

	if (size > sizeof(f->code))
		size = sizeof(f->code);
	f->code_size = go_view_some(&c->table->view, f->record->entry, f->code, size);
}

/*
 * The rows of STEP in a function with a frame. Before Go 1.21 the frame pointer is given back one
 * instruction earlier than the stack pointer, so that the former does not lead there.
 */
static struct error *add_framed(struct compile *c, const struct function *f,
				const struct go_steps *step)
{
	uint64_t saved = f->frame_at + f->frame.saved, set = f->frame_at + f->frame.set;
	uint64_t at = step->start;
	uint8_t code[LEAVE_MAX];

	if (at < saved) {
		TRY(add(c, at, rule_by_sp((uint32_t)step->value, false)));
		at = saved;
	}
	if (at >= step->end)
		return NULL;
	if (!f->switches)
		return add(c, at, rule_by_sp((uint32_t)step->value, true));
	if (at < set) {
		TRY(add(c, at, rule_by_sp((uint32_t)step->value, true)));
		at = set;
	}
	if (at >= step->end)
		return NULL;
	TRY(add(c, at, rule_frame));
	if (f->frame.by_push || step->end - at < sizeof(code) ||
	    !go_view_read(&c->table->view, step->end - sizeof(code), code, sizeof(code)))
		return NULL;
	size_t leave = go_code_leave(code, sizeof(code));
	return leave ? add(c, step->end - leave, rule_by_sp((uint32_t)step->value, true)) : NULL;
}

/* The rows of a function by its stack pointer table, up to c->until. */
static struct error *add_steps(struct compile *c, const struct function *f)
{
	struct go_steps steps = go_steps_begin(c->table, f->record, f->record->sp_values);
	uint64_t end = f->record->entry;

	while (f->record->sp_values && end < c->until && go_steps_next(&steps)) {
		end = steps.end;
		if (steps.value < 0 || steps.value > DELTA_MAX)
			TRY(add(c, steps.start, rule_gap));
		else if (steps.value > 0 && f->frame.kept && steps.start >= f->frame_at)
			TRY(add_framed(c, f, &steps));
		else
			TRY(add(c, steps.start, rule_by_sp((uint32_t)steps.value, false)));
	}
	// What stands behind the last instruction is never run, and a rule less.
	if (end < c->until && (end == f->record->entry || c->until - end > PADDING_MAX))
		return add(c, end, rule_gap);
	return NULL;
}

/* By the table up to the first write to the stack pointer, then by RULE. */
static struct error *add_until_write(struct compile *c, struct function *f, struct unwind_rule rule)
{
	struct go_write writes[GO_WRITES_MAX];

	f->switches = false;
	read_code(c, f);
	if (!go_code_writes(f->code, f->code_size, writes)) {
		// The wrapper that the linker makes for another calling convention has the same
		// name, and no mark.
		if (f->record->flags & GO_FLAG_SP_WRITE)
			return add(c, f->record->entry, rule_gap);
		return add_steps(c, f);
	}
	uint64_t changed = f->record->entry + writes[0].end;
	c->until = changed;
	TRY(add_steps(c, f));
	c->until = f->record->end;
	return add(c, changed, rule);
}

/*
 * A function that switches stacks and keeps no frame pointer of its own, none that we know. The
 * race detector's keeps the old stack pointer in r12, which its caller can still see as a leaf.
 */
static struct error *add_unknown_switch(struct compile *c, struct function *f)
{
	static const uint8_t keep[] = {0x49, 0x89, 0xe4}; // mov %rsp,%r12
	struct unwind_rule rule = rule_by_sp(0, false);
	struct go_write writes[GO_WRITES_MAX];
	size_t kept;

	rule.base = UNWIND_R12;
	rule.aux = UNWIND_OTHER_STACK;
	read_code(c, f);
	if (!f->frame_at && go_code_writes(f->code, f->code_size, writes) &&
	    go_code_has(f->code, f->code_size, keep, sizeof(keep), &kept) && kept < writes[0].start)
		return add_until_write(c, f, rule);
	return add_until_write(c, f, rule_gap);
}

/* systemstack before Go 1.21: out by the first write, back by the second. */
static struct error *add_system_stack(struct compile *c, struct function *f)
{
	struct go_write writes[GO_WRITES_MAX];
	uint64_t entry = f->record->entry;

	if (go_code_writes(f->code, f->code_size, writes) != 2)
		return add(c, entry, rule_gap);
	TRY(add(c, entry, rule_by_sp(0, false)));
	TRY(add(c, entry + writes[0].end, rule_saved(c)));
	return add(c, entry + writes[1].end, rule_by_sp(0, false));
}

/*
 * asmcgocall before Go 1.21: load, align, call, move back, return; and for a caller on the thread's
 * stack: move down, align, call, move back, return.
 */
static struct error *add_c_call(struct compile *c, struct function *f)
{
	static const uint8_t down[] = {0xc3, 0x48, 0x83, 0xec}; // ret; sub $imm8,%rsp
	struct go_write w[GO_WRITES_MAX];
	uint64_t entry = f->record->entry;
	size_t ret;

	read_code(c, f);
	if (go_code_writes(f->code, f->code_size, w) != 5 || w[0].kind != GO_WRITE_load ||
	    w[2].kind != GO_WRITE_move || w[4].kind != GO_WRITE_move ||
	    !go_code_has(f->code, f->code_size, down, sizeof(down), &ret) || ret < w[2].end ||
	    ret > w[3].start)
		return add(c, entry, rule_gap);
	TRY(add(c, entry, rule_by_sp(0, false)));
	TRY(add(c, entry + w[0].end, rule_frame));
	TRY(add(c, entry + w[2].end, rule_by_sp(0, false)));
	TRY(add(c, entry + ret + sizeof(down) + 1, rule_frame));
	return add(c, entry + w[4].end, rule_by_sp(0, false));
}

/* The runtime's layout, by the code of systemstack. */
static void learn_layout(struct compile *c, struct function *f)
{
	read_code(c, f);
	const struct go_layout *layout = go_code_layout(f->code, f->code_size);
	if (!layout || !go_code_tls(f->code, f->code_size, &c->tls))
		return;
	c->layout = layout;
}

static struct error *add_usual(struct compile *c, struct function *f)
{
	if (f->switches && !f->frame.kept)
		return add_unknown_switch(c, f);
	return add_steps(c, f);
}

static struct error *add_special(struct compile *c, struct function *f, enum how how)
{
	uint64_t entry = f->record->entry;

	switch (how) {
	case HOW_root:
		return add(c, entry, rule_root);
	case HOW_signal:
		// The walker looks one byte before a return address, and cannot know yet that this
		// one is none.
		return add(c, entry ? entry - 1 : 0, rule_signal);
	case HOW_root_after:
		return add_until_write(c, f, rule_root);
	case HOW_gap_after:
		return add_until_write(c, f, rule_gap);
	case HOW_saved_after:
		read_code(c, f);
		if (c->layout && !go_code_saves(f->code, f->code_size, c->layout))
			return add_until_write(c, f, rule_gap);
		return add_until_write(c, f, rule_saved(c));
	case HOW_system_stack:
		learn_layout(c, f);
		if (!f->frame.kept)
			return add_system_stack(c, f);
		f->switches = true;
		return add_steps(c, f);
	case HOW_c_call:
		f->switches = f->frame.kept;
		return f->frame.kept ? add_steps(c, f) : add_c_call(c, f);
	case HOW_framed:
		f->switches = f->frame.kept;
		return add_usual(c, f);
	case HOW_through:
	case HOW_plain:
		f->switches = false;
		return add_steps(c, f);
	case HOW_usual:
		break;
	}
	return add_usual(c, f);
}

static struct error *add_function(struct compile *c, const struct go_record *record)
{
	struct function f = {.record = record};
	enum how how = special_find(c, record);

	c->until = record->end;
	f.switches = record->flags & GO_FLAG_SP_WRITE;
	if ((record->flags & GO_FLAG_TOP_FRAME) && how != HOW_through)
		how = HOW_root;
	find_frame(c, &f);
	TRY(add_special(c, &f, how));
	return rows_builder_start(&c->builder, record->entry);
}

static struct error *compile(struct compile *c)
{
	struct go_record record = {0};
	uint64_t end = 0;

	for (uint32_t i = 0; i < c->table->at.count; i++) {
		// What is damaged, or out of order, leaves a gap.
		if (!go_record_read(c->table, i, &record) || record.entry < end) {
			c->builder.rows.facts.damaged++;
			continue;
		}
		if (end && record.entry > end)
			TRY(rows_builder_add(&c->builder, end, &rule_gap));
		TRY(add_function(c, &record));
		end = record.end;
	}
	return end ? rows_builder_add(&c->builder, end, &rule_gap) : NULL;
}

static void cleanup_compile(struct compile *c)
{
	rows_builder_deinit(&c->builder);
}

struct error *go_rows_add(struct object *object, struct rows *rows)
{
	_cleanup_go_table_ struct go_table *table = NULL;
	_cleanup_(rows_deinit) struct rows found = ROWS_INIT;

	if (object_machine(object) != EM_X86_64)
		return NULL;
	struct error *err = go_table_open(object, &table);
	if (err) {
		error_free(err); // its code is a gap, as that of a damaged function is
		rows->facts.damaged++;
	}
	if (!table)
		return NULL;
	_cleanup_(cleanup_compile) struct compile c = {.table = table};
	TRY(compile(&c));
	rows_builder_finish(&c.builder, &found);
	return rows_fill(rows, &found);
}
