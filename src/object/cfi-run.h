/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running the program of an FDE: from its start to its end, one range of addresses after the other,
 * each with the rule that holds there.
 */
#pragma once

#include "object/arch.h"
#include "object/cfi.h"

enum { CFI_REMEMBER_MAX = 16 };

/* Where a register of the caller is. */
struct cfi_saved {
	enum cfi_saved_how {
		CFI_SAVED_unspecified = 0, /* the program says nothing */
		CFI_SAVED_same,
		CFI_SAVED_undefined, /* lost */
		CFI_SAVED_cfa,       /* at CFA + offset */
		CFI_SAVED_fp,        /* at *(frame pointer + offset) */
		CFI_SAVED_reg,       /* in register number offset */
		CFI_SAVED_unknown,   /* in a way that no rule can say */
	} how;
	int64_t offset;
};

/* What a program computes: one line of the table that DWARF describes. */
struct cfi_line {
	struct {
		uint8_t kind; /* enum unwind_cfa; none: not known, or in a way no rule can say */
		uint8_t base;
		bool by_expression;
		int64_t offset, aux;
		int64_t stated_offset; /* of the last instruction that gave one */
	} cfa;
	struct cfi_saved fp, ra, base;
};

/* The rule of LINE; rows_unknown if none can say it. */
struct unwind_rule cfi_rule(const struct cfi_line *line, const struct arch *arch);

struct cfi_run {
	const struct cfi *cfi; /* borrowed, as arch */
	const struct cfi_cie *cie;
	const struct arch *arch;
	struct bytes program;
	uint64_t addr, end;
	struct cfi_line line, initial;
	struct cfi_line remembered[CFI_REMEMBER_MAX];
	unsigned depth;
	bool keep_base; /* rules say where arch->base is; set it behind cfi_run_start() */
	bool damaged;   /* the program makes no sense from here on: the rest has no rule */
};

void cfi_run_start(struct cfi_run *run, const struct cfi *cfi, const struct cfi_fde *fde,
		   const struct arch *arch);

/*
 * The next range: RULE holds from *RET_START to where the next range starts, or to the end of the
 * FDE. Neighbours may be equal. False: the FDE has ended.
 */
bool cfi_run_next(struct cfi_run *run, uint64_t *ret_start, struct unwind_rule *ret_rule);
