/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Go program says about itself: the pclntab, which the toolchain puts into every program it
 * links and which the Go runtime needs, so that no strip removes it. Read from Go 1.16 on (header
 * magics 0xfffffffa, 0xfffffff0, 0xfffffff1), 64-bit. The table stays in the file; a window of it
 * is read when something is looked up.
 *
 * Lookups have outcomes, not failures: what is damaged is not found. Strings are owned by the table
 * and live as long as it does. A table may be used by one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct object;
struct rows;
struct go_table;

struct go_function {
	const char *name;    /* "main.main"; never NULL */
	uint64_t entry, end; /* object addresses; end is where the next function begins */
	uint32_t start_line; /* of the declaration; 0: not recorded, as before Go 1.20 */
	uint64_t record;     /* where the table describes it, for the functions below */
};

/* One call at an address: the function, or one that was inlined into the next entry. */
struct go_call {
	const char *function; /* never NULL */
	const char *file;     /* NULL: unknown */
	uint32_t line;        /* 0: unknown */
	uint32_t start_line;  /* as in struct go_function */
	bool inlined;
};

enum {
	GO_FUNCTIONS_MAX = 4 << 20,
	GO_NAME_MAX = 1 << 16,      /* generic instances have names of some thousand characters */
	GO_CALLS_MAX = 64,          /* functions inlined into each other */
	GO_STRINGS_MAX = 256 << 20, /* bytes of names that one table keeps */
};

/* Where the pclntab of OBJECT begins (an object address). False: it has none of a known form. */
bool go_table_find(struct object *object, uint64_t *ret);

/*
 * Open the table of OBJECT, which is borrowed. RET is NULL when there is no table; a table that
 * makes no sense is a failure.
 */
struct error *go_table_open(struct object *object, struct go_table **ret);
void go_table_free(struct go_table *table);
static inline void cleanup_go_table(struct go_table **table)
{
	go_table_free(*table);
}
#define _cleanup_go_table_ _cleanup_(cleanup_go_table)

/* How many functions the table has. */
uint32_t go_function_count(const struct go_table *table);

/* Function number INDEX, in order of address. False: the table is damaged there. */
bool go_function_get(struct go_table *table, uint32_t index, struct go_function *ret);

/* The function that holds ADDR. False: none does, or the table is damaged there. */
bool go_function_find(struct go_table *table, uint64_t addr, struct go_function *ret);

/*
 * File and line of the instruction at ADDR in FUNCTION: those of the innermost inlined call. For a
 * return address pass the address minus 1.
 */
bool go_line(struct go_table *table, const struct go_function *function, uint64_t addr,
	     const char **ret_file, uint32_t *ret_line);

/*
 * The calls at ADDR in FUNCTION, innermost first; the last is FUNCTION itself, and there is always
 * that one. Returns how many. More than GO_CALLS_MAX are cut, next to the function.
 */
size_t go_inlines(struct go_table *table, const struct go_function *function, uint64_t addr,
		  struct go_call ret[GO_CALLS_MAX]);

/*
 * Fill the gaps of ROWS (which has those of the C code in a cgo program) with the rows of the Go
 * code in OBJECT, and add where its functions begin. No table, or a machine other than x86-64:
 * nothing is added. Functions whose description is damaged are gaps, counted as damage; so is a
 * table that cannot be opened.
 *
 * The frame pointer is followed only where the code is known to save it. Stack switches:
 *
 *   where a function switches stacks with its own frame pointer set (systemstack and asmcgocall
 *   since Go 1.21; cgocallback and everything that calls the vdso, in all versions), CFA = rbp +
 *   16 and UNWIND_OTHER_STACK: the frame pointer still is that of the stack left behind
 *   systemstack before Go 1.21, morestack: UNWIND_CFA_go_switch
 *   asmcgocall before Go 1.21: CFA = rbp + 16, which is the frame of its caller (runtime.cgocall or
 *   a wrapper); that one frame is not seen. The saved context is of no use there: a call back
 *   into Go overwrites it
 *   mcall, gogo and others that leave a goroutine for good: UNWIND_CFA_root or a gap
 */
struct error *go_rows_add(struct object *object, struct rows *rows);
