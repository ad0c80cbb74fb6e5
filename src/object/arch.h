/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What unwind information has to know of a machine. One file per architecture fills the row
 * (arch-x86-64.c); nothing else in this folder asks which machine it is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/unwind.h"
#include "base/bytes.h"
#include "base/error.h"
#include "object/insn.h"

enum { STUB_ROWS_MAX = 3 };

/* A rule that holds from OFFSET in a section of jump stubs. */
struct stub_row {
	uint32_t offset;
	struct unwind_rule rule;
};

struct arch {
	uint16_t machine;  /* ELF e_machine */
	uint8_t registers; /* DWARF numbers below this can be bases of rules */
	uint8_t sp, fp;    /* DWARF numbers */
	uint8_t ra;        /* DWARF number of the return address */
	uint8_t base;      /* DWARF number of another register that frames are based on */
	uint64_t relative_relocation; /* r_info of one that adds the load bias */
	uint8_t pc;                   /* DWARF number of the program counter in expressions */

	/*
	 * The rules of a section of jump stubs (.plt and its like) that has no unwind information.
	 * CODE holds the section's first bytes, ADDR is where it is. The result is the number of
	 * rows; 0: these are no stubs that we know.
	 */
	size_t (*stub_rows)(struct bytes code, uint64_t addr, struct stub_row ret[STUB_ROWS_MAX]);

	/* The instruction at B, which is at ADDR. False: not understood. */
	bool (*decode)(const struct bytes *b, uint64_t addr, struct insn *ret);

	/* How many times CODE sets up a frame pointer, going by the bytes. */
	size_t (*count_frames)(struct bytes code);

	/*
	 * How long the entry code of a dynamic loader is, which CODE begins with: it calls the
	 * loader, which returns, and then jumps to the program. 0: this is no such code.
	 */
	size_t (*loader_entry)(struct bytes code);

	/* Does code at B begin with the system call that returns from a signal handler? RET_SIZE:
	 * how many bytes that takes. */
	bool (*is_signal_return)(const struct bytes *b, size_t *ret_size);

	/* Does code at B begin with what a new thread runs first, which nobody called? RET_SIZE:
	 * how many bytes that takes. */
	bool (*is_thread_start)(const struct bytes *b, size_t *ret_size);

	/* The address of the variable whose word the function that CODE begins with, at ADDR, gives
	 * back and does nothing else before. False: it does something else. */
	bool (*returned_variable)(struct bytes code, uint64_t addr, uint64_t *ret);
};

/* NULL: no unwind rows for this machine. */
const struct arch *arch_find(unsigned machine);
