/* SPDX-License-Identifier: Apache-2.0 */
/* Symbolic evaluation of the DWARF expressions that occur in unwind information. */
#include "object/cfi-expr.h"

#include <dwarf.h>

enum {
	STACK_DEPTH = 8,
	STEPS_MAX = 64, /* operations; the longest seen has 9 */
	STUB_MASK = 15, /* a jump stub is 16 bytes */
	WORD_SHIFT = 3,
	WORD_BYTES = 8,
};

struct machine {
	struct cfi_value stack[STACK_DEPTH];
	unsigned depth;
	const struct arch *arch;
};

static bool push(struct machine *m, struct cfi_value value)
{
	if (m->depth == STACK_DEPTH || value.kind == CFI_VALUE_none)
		return false;
	m->stack[m->depth++] = value;
	return true;
}

static struct cfi_value pop(struct machine *m)
{
	if (!m->depth)
		return (struct cfi_value){0};
	return m->stack[--m->depth];
}

static struct cfi_value number(int64_t value)
{
	return (struct cfi_value){.kind = CFI_VALUE_number, .offset = value};
}

static bool push_register(struct machine *m, uint64_t reg, int64_t offset)
{
	if (reg == m->arch->pc && offset == 0)
		return push(m, (struct cfi_value){.kind = CFI_VALUE_pc});
	if (reg >= m->arch->registers)
		return false;
	return push(m, (struct cfi_value){
			       .kind = CFI_VALUE_reg, .base = (uint8_t)reg, .offset = offset});
}

/* The offset of VALUE that a number may be added to; NULL: none. */
static int64_t *addend(struct cfi_value *value)
{
	switch (value->kind) {
	case CFI_VALUE_number:
	case CFI_VALUE_reg:
	case CFI_VALUE_cfa:
	case CFI_VALUE_sum:
	case CFI_VALUE_plt:
		return &value->offset;
	case CFI_VALUE_deref:
	case CFI_VALUE_scaled:
		return &value->aux;
	case CFI_VALUE_none:
	case CFI_VALUE_index:
	case CFI_VALUE_pc:
	case CFI_VALUE_pc_low:
	case CFI_VALUE_pc_ge:
	case CFI_VALUE_step:
		break;
	}
	return NULL;
}

static struct cfi_value add_number(struct cfi_value value, int64_t add)
{
	int64_t *to = addend(&value);

	if (!to || __builtin_add_overflow(*to, add, to))
		return (struct cfi_value){0};
	return value;
}

static struct cfi_value add(struct cfi_value a, struct cfi_value b)
{
	if (b.kind == CFI_VALUE_number)
		return add_number(a, b.offset);
	if (a.kind == CFI_VALUE_number)
		return add_number(b, a.offset);
	if (a.kind == CFI_VALUE_reg && b.kind == CFI_VALUE_index)
		return (struct cfi_value){
			.kind = CFI_VALUE_sum, .base = a.base, .index = b.base, .offset = a.offset};
	if (a.kind == CFI_VALUE_reg && b.kind == CFI_VALUE_step)
		return (struct cfi_value){
			.kind = CFI_VALUE_plt, .base = a.base, .offset = a.offset, .aux = b.aux};
	if (a.kind == CFI_VALUE_index || a.kind == CFI_VALUE_step)
		return b.kind == CFI_VALUE_reg ? add(b, a) : (struct cfi_value){0};
	return (struct cfi_value){0};
}

static struct cfi_value deref(struct cfi_value value)
{
	if (value.kind == CFI_VALUE_reg)
		value.kind = CFI_VALUE_deref;
	else if (value.kind == CFI_VALUE_sum)
		value.kind = CFI_VALUE_scaled;
	else
		value.kind = CFI_VALUE_none;
	return value;
}

static struct cfi_value shift_left(struct cfi_value a, struct cfi_value b)
{
	bool by_word = b.kind == CFI_VALUE_number && b.offset == WORD_SHIFT;

	if (by_word && a.kind == CFI_VALUE_pc_ge)
		a.kind = CFI_VALUE_step;
	else if (by_word && a.kind == CFI_VALUE_reg && a.offset == 0)
		a.kind = CFI_VALUE_index;
	else
		a.kind = CFI_VALUE_none;
	return a;
}

static struct cfi_value multiply(struct cfi_value a, struct cfi_value b)
{
	if (b.kind == CFI_VALUE_number && b.offset == WORD_BYTES)
		return shift_left(a, number(WORD_SHIFT));
	return (struct cfi_value){0};
}

static struct cfi_value mask(struct cfi_value a, struct cfi_value b)
{
	if (a.kind == CFI_VALUE_pc && b.kind == CFI_VALUE_number && b.offset == STUB_MASK)
		return (struct cfi_value){.kind = CFI_VALUE_pc_low};
	return (struct cfi_value){0};
}

static struct cfi_value at_least(struct cfi_value a, struct cfi_value b)
{
	if (a.kind == CFI_VALUE_pc_low && b.kind == CFI_VALUE_number && b.offset >= 0 &&
	    b.offset <= STUB_MASK + 1)
		return (struct cfi_value){.kind = CFI_VALUE_pc_ge, .aux = b.offset};
	return (struct cfi_value){0};
}

/* An operation on the two topmost values. False: it is none of those. */
static bool binary(struct machine *m, uint8_t op)
{
	struct cfi_value b = pop(m), a = pop(m);

	switch (op) {
	case DW_OP_plus:
		return push(m, add(a, b));
	case DW_OP_minus:
		if (b.kind != CFI_VALUE_number || b.offset == INT64_MIN)
			return false;
		return push(m, add_number(a, -b.offset));
	case DW_OP_and:
		return push(m, mask(a, b));
	case DW_OP_ge:
		return push(m, at_least(a, b));
	case DW_OP_shl:
		return push(m, shift_left(a, b));
	case DW_OP_mul:
		return push(m, multiply(a, b));
	}
	return false;
}

/* Sign-extended number of WIDTH bytes. */
static struct error *signed_number(struct bytes *b, unsigned width, int64_t *ret)
{
	struct bytes part;
	uint64_t value = 0;

	TRY(bytes_cut(b, width, &part));
	for (unsigned i = 0; i < width; i++)
		value |= (uint64_t)part.at[i] << (8 * i);
	*ret = (int64_t)(value << (64 - 8 * width)) >> (64 - 8 * width);
	return NULL;
}

static struct error *unsigned_number(struct bytes *b, unsigned width, int64_t *ret)
{
	TRY(signed_number(b, width, ret));
	if (width < 8)
		*ret &= (int64_t)(((uint64_t)1 << (8 * width)) - 1);
	return NULL;
}

/* The constant that OP pushes, read from B. *RET_IS: it is one. */
static struct error *constant(struct bytes *b, uint8_t op, bool *ret_is, int64_t *ret)
{
	uint64_t value;

	*ret_is = true;
	switch (op) {
	case DW_OP_const1u:
		return unsigned_number(b, 1, ret);
	case DW_OP_const1s:
		return signed_number(b, 1, ret);
	case DW_OP_const2u:
		return unsigned_number(b, 2, ret);
	case DW_OP_const2s:
		return signed_number(b, 2, ret);
	case DW_OP_const4u:
		return unsigned_number(b, 4, ret);
	case DW_OP_const4s:
		return signed_number(b, 4, ret);
	case DW_OP_const8u:
	case DW_OP_const8s:
		return signed_number(b, 8, ret);
	case DW_OP_constu:
		TRY(bytes_uleb(b, &value));
		*ret = (int64_t)value;
		return NULL;
	case DW_OP_consts:
		return bytes_sleb(b, ret);
	}
	*ret_is = op >= DW_OP_lit0 && op <= DW_OP_lit31;
	*ret = op - DW_OP_lit0;
	return NULL;
}

/* Run one operation. *RET_KNOWN: it was understood. */
static struct error *step(struct machine *m, struct bytes *b, bool *ret_known)
{
	uint8_t op;
	bool is_constant;
	int64_t value;
	uint64_t reg, more;

	TRY(bytes_u8(b, &op));
	TRY(constant(b, op, &is_constant, &value));
	if (is_constant) {
		*ret_known = push(m, number(value));
	} else if (op >= DW_OP_breg0 && op <= DW_OP_breg31) {
		TRY(bytes_sleb(b, &value));
		*ret_known = push_register(m, op - DW_OP_breg0, value);
	} else if (op == DW_OP_bregx) {
		TRY(bytes_uleb(b, &reg));
		TRY(bytes_sleb(b, &value));
		*ret_known = push_register(m, reg, value);
	} else if (op == DW_OP_plus_uconst) {
		TRY(bytes_uleb(b, &more));
		*ret_known = more <= INT64_MAX && push(m, add_number(pop(m), (int64_t)more));
	} else if (op == DW_OP_deref) {
		*ret_known = push(m, deref(pop(m)));
	} else {
		*ret_known = op == DW_OP_nop || binary(m, op);
	}
	return NULL;
}

struct cfi_value cfi_expr_recognise(struct bytes expr, const struct arch *arch, bool with_cfa)
{
	struct machine m = {.arch = arch};

	if (with_cfa)
		push(&m, (struct cfi_value){.kind = CFI_VALUE_cfa});
	for (unsigned steps = 0; bytes_left(&expr) > 0; steps++) {
		bool known = false;
		_cleanup_error_ struct error *err =
			steps < STEPS_MAX ? step(&m, &expr, &known) : NULL;
		if (err || !known) // not understood is an outcome here
			return (struct cfi_value){0};
	}
	return pop(&m);
}
