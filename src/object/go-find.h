/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the pclntab in an object and, through the runtime's moduledata that points at it, what
 * its numbers are counted from. The table's own header names the text start only in Go 1.18 to 1.25
 * and the base of funcdata never.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "object/go-table.h"

/* The parts of the table at ADDR. False: no table of a known form begins there. */
bool go_parts_read(struct go_view *view, uint64_t addr, struct go_parts *ret);

/* What the moduledata of the table says. */
struct go_module {
	uint64_t text;      /* start of the text */
	uint64_t func_data; /* start of the funcdata; 0: unknown */
};

/* False: there is no moduledata that fits. */
bool go_module_find(struct go_view *view, const struct go_parts *parts, struct go_module *ret);
