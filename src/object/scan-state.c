/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of a function, instruction by instruction. */
#include "object/scan-state.h"

#include <string.h>

#include "object/rows-build.h"

enum { FRAME_MAX = 1 << 28 };

struct scan_state scan_state_at_entry(void)
{
	return (struct scan_state){.sp_known = true, .sp = SCAN_WORD, .fp_is_callers = true};
}

bool scan_state_equal(const struct scan_state *a, const struct scan_state *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

bool scan_state_is_at_entry(const struct scan_state *state)
{
	return state->sp_known && state->sp == SCAN_WORD && state->fp_is_callers &&
	       state->ra == SCAN_RA_on_stack;
}

static void lose_sp(struct scan_state *state)
{
	state->sp_known = false;
	state->sp = 0;
}

bool scan_state_meet(const struct scan_state *a, const struct scan_state *b, struct scan_state *ret)
{
	struct scan_state x = *a, y = *b;

	// With a frame pointer the stack pointer may differ (alloca); it is set from that later.
	if (x.fp_is_frame && y.fp_is_frame && x.fp == y.fp) {
		if (x.sp_known != y.sp_known || x.sp != y.sp) {
			lose_sp(&x);
			lose_sp(&y);
		}
	} else {
		// A register that points into the frame on one path only does not lead to the
		// frame.
		x.fp_is_frame = y.fp_is_frame = false;
		x.fp = y.fp = 0;
	}
	*ret = x;
	return scan_state_equal(&x, &y);
}

static bool move_sp(struct scan_state *state, int64_t distance)
{
	if (!state->sp_known)
		return true;
	if (distance > FRAME_MAX || distance < -FRAME_MAX)
		return false;
	state->sp += (int32_t)distance;
	return state->sp >= 0 && state->sp <= FRAME_MAX;
}

/*
 * The caller's frame pointer is on the stack now. Whether it still is in its register too makes no
 * difference, and paths that meet may differ in that.
 */
static void save_fp(struct scan_state *state, int32_t distance)
{
	state->fp_saved = true;
	state->saved = distance;
	state->fp_is_callers = false;
}

static bool do_push(struct scan_state *state, uint8_t reg)
{
	if (!move_sp(state, SCAN_WORD))
		return false;
	if (!state->sp_known)
		return true;
	if (reg == UNWIND_RBP && state->fp_is_callers)
		save_fp(state, state->sp);
	// A return address that was taken off goes back.
	if (state->sp == SCAN_WORD &&
	    ((state->ra == SCAN_RA_in_register && reg == state->ra_register) ||
	     (state->ra == SCAN_RA_elsewhere && reg == INSN_NO_REG))) {
		state->ra = SCAN_RA_on_stack;
		state->ra_register = 0;
	}
	return true;
}

/* The frame pointer is loaded from DISTANCE below the CFA. */
static void load_fp(struct scan_state *state, int32_t distance)
{
	state->fp_is_callers = state->fp_saved && state->saved == distance;
	state->fp_is_frame = false;
	state->fp = 0;
	if (state->fp_is_callers) {
		state->fp_saved = false;
		state->saved = 0;
	}
}

static bool do_pop(struct scan_state *state, uint8_t reg)
{
	int32_t from = state->sp;

	if (!state->sp_known) {
		if (reg == UNWIND_RBP)
			load_fp(state, INT32_MAX);
		return true;
	}
	if (from < SCAN_WORD || (from == SCAN_WORD && state->ra != SCAN_RA_on_stack))
		return false;
	state->sp -= SCAN_WORD;
	if (state->ra == SCAN_RA_in_register && reg == state->ra_register) {
		state->ra = SCAN_RA_elsewhere;
		state->ra_register = 0;
	}
	if (from == SCAN_WORD) {
		state->ra = reg == INSN_NO_REG ? SCAN_RA_elsewhere : SCAN_RA_in_register;
		state->ra_register = reg == INSN_NO_REG ? 0 : reg;
	}
	if (reg == UNWIND_RBP)
		load_fp(state, from);
	if (reg == UNWIND_RSP)
		lose_sp(state);
	return true;
}

static void lose_fp(struct scan_state *state)
{
	state->fp_is_callers = false;
	state->fp_is_frame = false;
	state->fp = 0;
}

static bool set_sp_from_fp(struct scan_state *state, int64_t value)
{
	state->sp_known = state->fp_is_frame;
	state->sp = state->fp_is_frame ? state->fp : 0;
	return move_sp(state, -value);
}

static bool set_fp_from_sp(struct scan_state *state, int64_t value)
{
	lose_fp(state);
	if (!state->sp_known || value > FRAME_MAX || value < -FRAME_MAX)
		return true;
	state->fp_is_frame = true;
	state->fp = state->sp - (int32_t)value;
	return true;
}

static void store_fp(struct scan_state *state, int64_t value)
{
	int64_t distance = state->sp - value;

	// Above the return address it would be the caller's memory.
	if (state->sp_known && state->fp_is_callers && distance > SCAN_WORD &&
	    distance <= FRAME_MAX)
		save_fp(state, (int32_t)distance);
}

static bool do_leave(struct scan_state *state)
{
	return state->fp_is_frame && set_sp_from_fp(state, 0) && do_pop(state, UNWIND_RBP);
}

bool scan_state_apply(struct scan_state *state, const struct insn *insn)
{
	switch (insn->kind) {
	case INSN_other:
	case INSN_padding:
	case INSN_jump:
	case INSN_branch:
	case INSN_jump_indirect:
	case INSN_return:
	case INSN_stop:
		return true;
	case INSN_push:
		return do_push(state, insn->reg);
	case INSN_pop:
		return do_pop(state, insn->reg);
	case INSN_sp_add:
		return move_sp(state, -insn->value);
	case INSN_sp_from_fp:
		return set_sp_from_fp(state, insn->value);
	case INSN_sp_lost:
		lose_sp(state);
		return true;
	case INSN_fp_from_sp:
		return set_fp_from_sp(state, insn->value);
	case INSN_fp_lost:
		lose_fp(state);
		return true;
	case INSN_fp_store:
		store_fp(state, insn->value);
		return true;
	case INSN_fp_load:
		load_fp(state,
			state->sp_known && insn->value <= FRAME_MAX && insn->value >= -FRAME_MAX
				? state->sp - (int32_t)insn->value
				: INT32_MAX);
		return true;
	case INSN_leave:
		return do_leave(state);
	case INSN_call:
		// The callee may overwrite the register: a clone's child, which has no caller.
		if (state->ra == SCAN_RA_in_register) {
			state->ra = SCAN_RA_nowhere;
			state->ra_register = 0;
		}
		return true;
	}
	return false;
}

struct unwind_rule scan_state_rule(const struct scan_state *state)
{
	struct unwind_rule rule = {.cfa = UNWIND_CFA_reg, .ra_offset = -SCAN_WORD};
	bool near = state->saved <= INT16_MAX;

	if (state->ra == SCAN_RA_nowhere)
		return (struct unwind_rule){.cfa = UNWIND_CFA_root};
	if (state->ra == SCAN_RA_elsewhere || (!state->sp_known && !state->fp_is_frame))
		return rows_unknown;
	// The frame pointer, where there is one: what a call leaves of the stack pointer is the
	// callee's convention (V8's builtins take their arguments off the stack). A register that
	// happens to point elsewhere into the frame is none, if there is a choice.
	bool by_fp = state->fp_is_frame && (state->fp == 2 * SCAN_WORD || !state->sp_known);
	rule.base = by_fp ? UNWIND_RBP : UNWIND_RSP;
	rule.offset = by_fp ? state->fp : state->sp;
	if (state->fp_saved && near) {
		rule.fp = UNWIND_FP_cfa;
		rule.fp_offset = (int16_t)-state->saved;
	} else if (!state->fp_is_callers) {
		rule.fp = UNWIND_FP_undefined;
	}
	if (state->ra == SCAN_RA_in_register) {
		rule.ra = UNWIND_RA_reg;
		rule.ra_offset = state->ra_register;
	}
	return rule;
}
