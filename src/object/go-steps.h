/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pc-value table: a number for each range of a function's code, as pairs of a signed difference
 * of the value and an unsigned one of the pc, both in base 128. Ranges follow each other without
 * holes from the function's entry on; a difference of 0 where a value must change ends the table.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "object/go-table.h"

struct go_steps {
	struct go_table *table;
	uint64_t addr;  /* of the bytes not read yet */
	uint64_t limit; /* end of the function */
	bool begun;
	uint64_t start, end; /* the present range of code */
	int32_t value;       /* and its value */
};

/* Begin with the table at OFFSET among the pc-value tables for the code of RECORD. */
struct go_steps go_steps_begin(struct go_table *table, const struct go_record *record,
			       uint32_t offset);

/*
 * The next range. False: there is none, or the table is damaged. Every range holds at least one
 * byte of the function, so that there are no more ranges than that.
 */
bool go_steps_next(struct go_steps *steps);

/* The value at ADDR; FALLBACK when there is none. */
int32_t go_steps_find(struct go_steps steps, uint64_t addr, int32_t fallback);
