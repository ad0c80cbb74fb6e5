/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind rows of one object. Addresses are the object's own (as in its program headers). The
 * compiled form is independent of the process and of where rows are stored.
 *
 * Each source fills what those before it leave open: .eh_frame, .debug_frame, Go's pclntab, jump
 * stubs and start and signal trampolines known by their shape, instructions read by scan.h, and,
 * in an object that has next to no unwind information, frame pointers. What is still open is a gap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/unwind.h"
#include "base/error.h"

struct object;

/* From ADDR to the next row's address RULE holds. */
struct row {
	uint64_t addr;
	uint32_t rule; /* index into struct rows.rules */
};

/* What compiling met, for logs and status. */
struct rows_facts {
	uint32_t fdes;        /* used */
	uint32_t damaged;     /* records and programs that made no sense, in whole or in part */
	uint32_t overlapping; /* FDEs cut or left out because an earlier one covers their code */
	uint32_t outside;     /* FDEs left out because they describe no executable segment */
	uint32_t scanned;     /* functions whose rules were read off their instructions */
	uint32_t unscanned;   /* functions for which that failed */
};

/* Sorted by address, no two rows of one address, no two neighbours of one rule. */
struct rows {
	struct row *row;
	size_t count, room;
	struct unwind_rule *rules; /* distinct ones of this object */
	size_t rule_count, rule_room;
	uint64_t *starts; /* sorted addresses at which functions begin: FDEs, Go functions */
	size_t start_count, start_room;
	uint64_t text_start,
		text_end; /* rows cover this range; the last row is a gap at text_end */
	struct rows_facts facts;
};

#define ROWS_INIT                                                                                  \
	{                                                                                          \
		0                                                                                  \
	}

/* Limits on hostile input. */
enum { ROWS_MAX = 16 << 20, ROWS_RULES_MAX = 4096, ROWS_STARTS_MAX = 4 << 20 };

/*
 * Compile the rows of OBJECT, and object_release() it. An object of which nothing at all is known
 * yields zero rows and no failure; the caller then walks it by frame pointer. Damaged parts become
 * gaps; only a file that cannot be read at all, or exceeds a limit, is a failure.
 */
struct error *rows_compile(struct object *object, struct rows *ret);
void rows_deinit(struct rows *rows);

/* The number of the row that holds at ADDR; 0 also when ADDR lies before all of them. */
size_t rows_index(const struct rows *rows, uint64_t addr);

/* The rule that holds at ADDR; NULL outside text_start..text_end. */
const struct unwind_rule *rows_find(const struct rows *rows, uint64_t addr);

/* Start of the function that holds ADDR, by its unwind information. False: ADDR lies in no known
 * function. */
bool rows_find_start(const struct rows *rows, uint64_t addr, uint64_t *ret);
