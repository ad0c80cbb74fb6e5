/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF expressions in unwind information, recognised rather than run: a walk in the kernel has no
 * stack machine, and what compilers and assemblers write there is a handful of shapes. An
 * expression is evaluated over symbolic values; one whose result is no such shape is not
 * understood.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "object/arch.h"

enum cfi_value_kind {
	CFI_VALUE_none = 0,
	CFI_VALUE_number, /* offset */
	CFI_VALUE_reg,    /* register base + offset */
	CFI_VALUE_cfa,    /* CFA + offset */
	CFI_VALUE_index,  /* register base * 8 */
	CFI_VALUE_sum,    /* register base + register index * 8 + offset */
	CFI_VALUE_deref,  /* *(register base + offset) + aux */
	CFI_VALUE_scaled, /* *(register base + register index * 8 + offset) + aux */
	CFI_VALUE_pc,     /* program counter */
	CFI_VALUE_pc_low, /* pc & 15 */
	CFI_VALUE_pc_ge,  /* (pc & 15) >= aux */
	CFI_VALUE_step,   /* 8 if (pc & 15) >= aux, else 0 */
	CFI_VALUE_plt,    /* register base + offset + the step by aux */
};

struct cfi_value {
	enum cfi_value_kind kind;
	uint8_t base, index;
	int64_t offset, aux;
};

/* What EXPR computes. WITH_CFA: the CFA is on its stack at the start, as for registers. */
struct cfi_value cfi_expr_recognise(struct bytes expr, const struct arch *arch, bool with_cfa);
