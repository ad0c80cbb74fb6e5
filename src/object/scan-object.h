/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading rules off the instructions of an object (scan.h) where it has no unwind information.
 * Functions begin at symbols and at the entry point and, in an object with next to no unwind
 * information (musl's libc), also where calls go and behind other functions.
 */
#pragma once

#include "object/arch.h"
#include "object/rows-build.h"

struct object;

/*
 * Fill gaps of ROWS that lie in CODE (sorted, disjoint). POOR: the object has next to no unwind
 * information. What cannot be read stays open.
 */
struct error *scan_object(struct object *object, const struct arch *arch,
			  const struct rows_ranges *code, bool poor, struct rows *rows);
