/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one machine instruction does to the stack pointer, the frame pointer and the flow of
 * control. Everything else about it is INSN_other. This is no disassembler: an instruction that it
 * does not know for certain is not understood, and whoever asked gives up on that code.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum insn_kind {
	INSN_other = 0,
	INSN_padding,       /* does nothing */
	INSN_push,          /* reg, or INSN_NO_REG */
	INSN_pop,           /* reg, or INSN_NO_REG */
	INSN_sp_add,        /* sp = sp + value */
	INSN_sp_from_fp,    /* sp = fp + value */
	INSN_sp_lost,       /* sp = something else */
	INSN_fp_from_sp,    /* fp = sp + value */
	INSN_fp_lost,       /* fp = something else */
	INSN_fp_store,      /* *(sp + value) = fp */
	INSN_fp_load,       /* fp = *(sp + value) */
	INSN_leave,         /* sp = fp, pop fp */
	INSN_call,          /* of target, or 0: not known */
	INSN_jump,          /* to target */
	INSN_branch,        /* to target, or on */
	INSN_jump_indirect, /* to where only the program knows */
	INSN_return,
	INSN_stop, /* never goes on */
};

enum { INSN_NO_REG = 0xff };

struct insn {
	enum insn_kind kind;
	uint8_t length;
	uint8_t reg; /* DWARF number */
	int64_t value;
	uint64_t target; /* address; of INSN_other: one that it computes, or 0 */
};

/* The x86-64 instruction at B, which is at ADDR. False: not understood. */
bool insn_decode_x86_64(const struct bytes *b, uint64_t addr, struct insn *ret);
