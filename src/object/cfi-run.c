/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter of call frame instructions (DWARF 5, 6.4.2). */
#include "object/cfi-run.h"

#include <dwarf.h>

#include "object/cfi-expr.h"
#include "object/rows-build.h"

enum {
	PRIMARY_MASK = 0xc0,
	OPERAND_MASK = 0x3f,
	/* in the GNU and Arm vendor ranges, not in dwarf.h of elfutils 0.188 */
	ARM_NEGATE_RA_STATE_WITH_PC = 0x2c,
	GNU_WINDOW_SAVE = 0x2d, /* on aarch64: negate_ra_state */
	MIPS_ADVANCE_LOC8 = 0x1d,
	GNU_ARGS_SIZE = 0x2e,
	GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

static bool fits(int64_t value, unsigned bits)
{
	int64_t limit = (int64_t)1 << (bits - 1);

	return value >= -limit && value < limit;
}

static bool set_cfa(const struct cfi_line *line, struct unwind_rule *rule)
{
	int64_t aux = line->cfa.aux;

	if (line->cfa.kind == UNWIND_CFA_none || !fits(line->cfa.offset, 32) || !fits(aux, 32))
		return false;
	rule->cfa = line->cfa.kind;
	rule->base = line->cfa.base;
	rule->offset = (int32_t)line->cfa.offset;
	rule->aux = (int32_t)aux;
	return true;
}

static bool set_ra(const struct cfi_line *line, const struct arch *arch, struct unwind_rule *rule)
{
	if (line->ra.how == CFI_SAVED_cfa && fits(line->ra.offset, 16)) {
		rule->ra = UNWIND_RA_cfa;
	} else if (line->ra.how == CFI_SAVED_reg && line->ra.offset < arch->registers) {
		rule->ra = UNWIND_RA_reg;
	} else {
		return false;
	}
	rule->ra_offset = (int16_t)line->ra.offset;
	return true;
}

static void set_fp(const struct cfi_line *line, struct unwind_rule *rule)
{
	bool near = fits(line->fp.offset, 16);

	rule->fp = UNWIND_FP_undefined;
	if (line->fp.how == CFI_SAVED_unspecified || line->fp.how == CFI_SAVED_same)
		rule->fp = UNWIND_FP_same;
	else if (line->fp.how == CFI_SAVED_cfa && near)
		rule->fp = UNWIND_FP_cfa;
	else if (line->fp.how == CFI_SAVED_fp && near)
		rule->fp = UNWIND_FP_reg;
	if (rule->fp == UNWIND_FP_cfa || rule->fp == UNWIND_FP_reg)
		rule->fp_offset = (int16_t)line->fp.offset;
}

struct unwind_rule cfi_rule(const struct cfi_line *line, const struct arch *arch)
{
	struct unwind_rule rule = {0};

	if (line->ra.how == CFI_SAVED_undefined)
		return (struct unwind_rule){.cfa = UNWIND_CFA_root};
	if (!set_cfa(line, &rule) || !set_ra(line, arch, &rule))
		return rows_unknown;
	set_fp(line, &rule);
	return rule;
}

/* Say in RULE where the caller's other base register is, if there is room to say it. */
static void set_base(const struct cfi_line *line, struct unwind_rule *rule)
{
	if (rule->cfa != UNWIND_CFA_reg || rule->aux)
		return;
	if (line->base.how == CFI_SAVED_unspecified || line->base.how == CFI_SAVED_same)
		rule->aux = UNWIND_RBX_same;
	else if (line->base.how == CFI_SAVED_cfa && fits(line->base.offset, 16))
		rule->aux = (int32_t)((uint32_t)line->base.offset << 16 | UNWIND_RBX_cfa);
}

/* The place in LINE where REG is kept; NULL: nobody asks for that register. */
static struct cfi_saved *saved_of(struct cfi_run *run, struct cfi_line *line, uint64_t reg)
{
	if (reg == run->cie->ra)
		return &line->ra;
	if (reg == run->arch->base)
		return &line->base;
	return reg == run->arch->fp ? &line->fp : NULL;
}

static void save(struct cfi_run *run, uint64_t reg, enum cfi_saved_how how, int64_t offset)
{
	struct cfi_saved *saved = saved_of(run, &run->line, reg);

	if (saved)
		*saved = (struct cfi_saved){how, offset};
}

static void save_scaled(struct cfi_run *run, uint64_t reg, int64_t factored)
{
	int64_t offset;

	if (__builtin_mul_overflow(factored, run->cie->data_align, &offset))
		save(run, reg, CFI_SAVED_unknown, 0);
	else
		save(run, reg, CFI_SAVED_cfa, offset);
}

static void restore(struct cfi_run *run, uint64_t reg)
{
	struct cfi_saved *to = saved_of(run, &run->line, reg);

	if (to)
		*to = *saved_of(run, &run->initial, reg);
}

static void define_cfa(struct cfi_run *run, uint64_t reg, int64_t offset)
{
	run->line.cfa.kind = reg < run->arch->registers ? UNWIND_CFA_reg : UNWIND_CFA_none;
	run->line.cfa.base = (uint8_t)reg;
	run->line.cfa.offset = offset;
	run->line.cfa.stated_offset = offset;
	run->line.cfa.aux = 0;
	run->line.cfa.by_expression = false;
}

/*
 * A new register alone. Behind an expression DWARF does not allow it, but assembly has it
 * (libgcrypt's AVX2 ciphers), and the offset that counts there is the last one that was stated.
 */
static void change_cfa_register(struct cfi_run *run, uint64_t reg)
{
	define_cfa(run, reg, run->line.cfa.stated_offset);
}

/* A new offset alone, which an expression goes on hiding. */
static void change_cfa_offset(struct cfi_run *run, int64_t offset)
{
	if (run->line.cfa.by_expression)
		run->line.cfa.stated_offset = offset;
	else
		define_cfa(run, run->line.cfa.base, offset);
}

/* The CFA by a recognised expression. */
static void define_cfa_value(struct cfi_run *run, struct cfi_value value)
{
	enum unwind_cfa kind = UNWIND_CFA_none;

	if (value.kind == CFI_VALUE_reg)
		kind = UNWIND_CFA_reg;
	else if (value.kind == CFI_VALUE_deref)
		kind = UNWIND_CFA_deref;
	else if (value.kind == CFI_VALUE_plt && value.base == run->arch->sp)
		kind = UNWIND_CFA_plt;
	else if (value.kind == CFI_VALUE_scaled && fits(value.aux, 16))
		kind = UNWIND_CFA_scaled;
	run->line.cfa.kind = (uint8_t)kind;
	run->line.cfa.base = value.base;
	run->line.cfa.offset = value.offset;
	run->line.cfa.aux = value.aux;
	if (kind == UNWIND_CFA_scaled)
		run->line.cfa.aux = (int64_t)value.index << 16 | (uint16_t)value.aux;
	run->line.cfa.by_expression = true;
}

static struct error *cut_expression(struct cfi_run *run, struct bytes *ret)
{
	uint64_t size;

	TRY(bytes_uleb(&run->program, &size));
	return bytes_cut(&run->program, size, ret);
}

static struct error *cfa_expression(struct cfi_run *run)
{
	struct bytes expr;

	TRY(cut_expression(run, &expr));
	define_cfa_value(run, cfi_expr_recognise(expr, run->arch, false));
	return NULL;
}

/* A register saved at what an expression computes, or (IS_VALUE) that is what it computes. */
static struct error *register_expression(struct cfi_run *run, bool is_value)
{
	uint64_t reg;
	struct bytes expr;

	TRY(bytes_uleb(&run->program, &reg));
	TRY(cut_expression(run, &expr));
	if (!saved_of(run, &run->line, reg))
		return NULL;
	struct cfi_value value = cfi_expr_recognise(expr, run->arch, true);
	if (!is_value && value.kind == CFI_VALUE_cfa)
		save(run, reg, CFI_SAVED_cfa, value.offset);
	else if (!is_value && value.kind == CFI_VALUE_reg && value.base == run->arch->fp)
		save(run, reg, CFI_SAVED_fp, value.offset);
	else
		save(run, reg, CFI_SAVED_unknown, 0);
	return NULL;
}

/* Instructions that are not understood end the program: what follows them is not known. */
static struct error *unknown(struct cfi_run *run, uint8_t op)
{
	return bytes_error(&run->program, "call frame instruction 0x%x is unknown", op);
}

/* Move on by COUNT units. */
static struct error *advance(struct cfi_run *run, uint64_t count)
{
	uint64_t size;

	if (__builtin_mul_overflow(count, run->cie->code_align, &size) ||
	    size > run->end - run->addr)
		return bytes_error(&run->program, "advances beyond the end of its code");
	run->addr += size;
	return NULL;
}

static struct error *advance_op(struct cfi_run *run, uint8_t op)
{
	uint8_t one;
	uint16_t two;
	uint32_t four;
	uint64_t addr;

	switch (op) {
	case DW_CFA_advance_loc1:
		TRY(bytes_u8(&run->program, &one));
		return advance(run, one);
	case DW_CFA_advance_loc2:
		TRY(bytes_u16(&run->program, &two));
		return advance(run, two);
	case DW_CFA_advance_loc4:
		TRY(bytes_u32(&run->program, &four));
		return advance(run, four);
	case MIPS_ADVANCE_LOC8:
		TRY(bytes_u64(&run->program, &addr));
		return advance(run, addr);
	}
	// DW_CFA_set_loc. The program's bytes are part of the section, so that relative pointers
	// work out.
	TRY(cfi_pointer(&run->program, run->cie->encoding, run->cfi->addr, 0, &addr));
	if (addr < run->addr || addr > run->end)
		return bytes_error(&run->program, "moves outside its code");
	run->addr = addr;
	return NULL;
}

/* Instructions on the CFA. */
static struct error *cfa_op(struct cfi_run *run, uint8_t op)
{
	uint64_t reg = run->line.cfa.base, offset;
	int64_t factored;

	if (op == DW_CFA_def_cfa_expression)
		return cfa_expression(run);
	if (op != DW_CFA_def_cfa_offset && op != DW_CFA_def_cfa_offset_sf)
		TRY(bytes_uleb(&run->program, &reg));
	if (op == DW_CFA_def_cfa_register) {
		change_cfa_register(run, reg);
		return NULL;
	}
	if (op == DW_CFA_def_cfa || op == DW_CFA_def_cfa_offset) {
		TRY(bytes_uleb(&run->program, &offset));
		factored = (int64_t)offset;
	} else {
		TRY(bytes_sleb(&run->program, &factored));
		if (__builtin_mul_overflow(factored, run->cie->data_align, &factored))
			return bytes_error(&run->program, "offset over 64 bits");
	}
	if (op == DW_CFA_def_cfa_offset || op == DW_CFA_def_cfa_offset_sf)
		change_cfa_offset(run, factored);
	else
		define_cfa(run, reg, factored);
	return NULL;
}

/* Instructions on where one register is. */
static struct error *register_op(struct cfi_run *run, uint8_t op)
{
	uint64_t reg, other;
	int64_t factored;

	TRY(bytes_uleb(&run->program, &reg));
	switch (op) {
	case DW_CFA_offset_extended:
	case GNU_NEGATIVE_OFFSET_EXTENDED:
		TRY(bytes_uleb(&run->program, &other));
		if (other > INT64_MAX)
			return bytes_error(&run->program, "offset over 63 bits");
		factored = (int64_t)other;
		save_scaled(run, reg, op == DW_CFA_offset_extended ? factored : -factored);
		return NULL;
	case DW_CFA_offset_extended_sf:
		TRY(bytes_sleb(&run->program, &factored));
		save_scaled(run, reg, factored);
		return NULL;
	case DW_CFA_register:
		TRY(bytes_uleb(&run->program, &other));
		save(run, reg, CFI_SAVED_reg, other < UINT8_MAX ? (int64_t)other : UINT8_MAX);
		return NULL;
	case DW_CFA_val_offset:
		TRY(bytes_uleb(&run->program, &other));
		save(run, reg, CFI_SAVED_unknown, 0);
		return NULL;
	case DW_CFA_val_offset_sf:
		TRY(bytes_sleb(&run->program, &factored));
		save(run, reg, CFI_SAVED_unknown, 0);
		return NULL;
	case DW_CFA_restore_extended:
		restore(run, reg);
		return NULL;
	case DW_CFA_undefined:
		save(run, reg, CFI_SAVED_undefined, 0);
		return NULL;
	}
	save(run, reg, CFI_SAVED_same, 0); // DW_CFA_same_value
	return NULL;
}

static struct error *state_op(struct cfi_run *run, uint8_t op)
{
	if (op == DW_CFA_remember_state) {
		if (run->depth == CFI_REMEMBER_MAX)
			return bytes_error(&run->program, "remembers more than %d states",
					   CFI_REMEMBER_MAX);
		run->remembered[run->depth++] = run->line;
		return NULL;
	}
	if (!run->depth)
		return bytes_error(&run->program, "restores a state that was not remembered");
	run->line = run->remembered[--run->depth];
	return NULL;
}

static struct error *extended_op(struct cfi_run *run, uint8_t op)
{
	uint64_t skipped;

	switch (op) {
	case DW_CFA_nop:
	case GNU_WINDOW_SAVE:
	case ARM_NEGATE_RA_STATE_WITH_PC:
		return NULL;
	case GNU_ARGS_SIZE:
		return bytes_uleb(&run->program, &skipped);
	case DW_CFA_set_loc:
	case DW_CFA_advance_loc1:
	case DW_CFA_advance_loc2:
	case DW_CFA_advance_loc4:
	case MIPS_ADVANCE_LOC8:
		return advance_op(run, op);
	case DW_CFA_remember_state:
	case DW_CFA_restore_state:
		return state_op(run, op);
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_expression:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_offset_sf:
		return cfa_op(run, op);
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		return register_expression(run, op == DW_CFA_val_expression);
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case GNU_NEGATIVE_OFFSET_EXTENDED:
	case DW_CFA_restore_extended:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_register:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		return register_op(run, op);
	}
	return unknown(run, op);
}

static struct error *run_one(struct cfi_run *run)
{
	uint8_t op;
	uint64_t offset;

	TRY(bytes_u8(&run->program, &op));
	switch (op & PRIMARY_MASK) {
	case DW_CFA_advance_loc:
		return advance(run, op & OPERAND_MASK);
	case DW_CFA_restore:
		restore(run, op & OPERAND_MASK);
		return NULL;
	case DW_CFA_offset:
		TRY(bytes_uleb(&run->program, &offset));
		if (offset > INT64_MAX)
			return bytes_error(&run->program, "offset over 63 bits");
		save_scaled(run, op & OPERAND_MASK, (int64_t)offset);
		return NULL;
	}
	return extended_op(run, op);
}

void cfi_run_start(struct cfi_run *run, const struct cfi *cfi, const struct cfi_fde *fde,
		   const struct arch *arch)
{
	const struct cfi_cie *cie = &cfi->cies[fde->cie];

	*run = (struct cfi_run){.cfi = cfi,
				.cie = cie,
				.arch = arch,
				.program = cie->program,
				.addr = fde->start,
				.end = fde->end};
	while (!run->damaged && bytes_left(&run->program) > 0) {
		_cleanup_error_ struct error *err = run_one(run);
		// Initial instructions describe the first address and cannot move.
		run->damaged = err || run->addr != fde->start;
	}
	run->addr = fde->start;
	run->initial = run->line;
	run->program = cfi->section;
	run->program.at = cfi->section.start + fde->program;
	run->program.end = run->program.at + fde->program_size;
}

bool cfi_run_next(struct cfi_run *run, uint64_t *ret_start, struct unwind_rule *ret_rule)
{
	uint64_t start = run->addr;

	if (start == run->end)
		return false;
	while (!run->damaged && run->addr == start && bytes_left(&run->program) > 0) {
		_cleanup_error_ struct error *err = run_one(run);
		run->damaged = err;
	}
	*ret_start = start;
	*ret_rule = run->damaged ? (struct unwind_rule){.cfa = UNWIND_CFA_none}
				 : cfi_rule(&run->line, run->arch);
	if (run->keep_base)
		set_base(&run->line, ret_rule);
	if (run->damaged || run->addr == start)
		run->addr = run->end;
	return true;
}
