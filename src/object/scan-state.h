/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of the stack before one instruction of a function, and what instructions make of
 * it. For machines whose calls push the return address.
 */
#pragma once

#include "abi/unwind.h"
#include "object/insn.h"

enum { SCAN_WORD = 8 };

/* All numbers are distances below the CFA; those that are not known are zero. */
struct scan_state {
	int32_t sp;
	int32_t fp;    /* if fp_is_frame */
	int32_t saved; /* where the caller's frame pointer is, if fp_saved */
	bool sp_known, fp_is_callers, fp_is_frame, fp_saved;
	uint8_t ra; /* enum scan_ra */
	uint8_t ra_register;
	uint8_t unused[2]; /* states are compared as bytes */
};

enum scan_ra {
	SCAN_RA_on_stack = 0, /* right below the CFA */
	SCAN_RA_in_register,
	SCAN_RA_elsewhere,
	SCAN_RA_nowhere, /* the outermost frame */
};

/* At a function's first instruction. */
struct scan_state scan_state_at_entry(void);

/* As every function is entered, and left? */
bool scan_state_is_at_entry(const struct scan_state *state);

bool scan_state_equal(const struct scan_state *a, const struct scan_state *b);

/* What holds where two paths meet. False: they cannot meet, one of the two is none. */
bool scan_state_meet(const struct scan_state *a, const struct scan_state *b,
		     struct scan_state *ret);

/* What INSN makes of STATE. False: it cannot be followed. */
bool scan_state_apply(struct scan_state *state, const struct insn *insn);

/* The rule that says STATE; rows_unknown if none can. */
struct unwind_rule scan_state_rule(const struct scan_state *state);
