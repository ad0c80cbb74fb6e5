/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of DWARF (DIEs) as far as names and inlined calls need them: which functions a unit has,
 * which calls are inlined at an address of one, and what a function is called. Loops are bounded
 * whatever the entries refer to; recursion is no deeper than DEBUGINFO_DEPTH.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#include "base/error.h"

/* Code of the entry (or unit) at OFFSET. */
struct die_range {
	uint64_t start, end;
	uint64_t offset;
};

struct die_ranges {
	struct die_range *range; /* sorted by start once die_ranges_sort() was called */
	size_t count, room;
};

void die_ranges_deinit(struct die_ranges *ranges);
void die_ranges_sort(struct die_ranges *ranges);

/* Add what DIE covers. Damaged and empty ranges are left out. */
struct error *die_ranges_add(struct die_ranges *ranges, Dwarf_Die *die);

/* The range that holds ADDR: of several the one that starts last. NULL: none. */
const struct die_range *die_ranges_find(const struct die_ranges *ranges, uint64_t addr);

/* How much may be looked at. */
struct die_limit {
	unsigned entries;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
};

/* Add the functions of UNIT that have code; beyond LIMIT there are fewer. */
struct error *die_list_functions(Dwarf_Die *unit, struct die_limit limit, struct die_ranges *ret);

/*
 * The calls at ADDR in FUNCTION: RET[0] is the function, each further entry was inlined into the
 * one before. Returns how many, at least 1 and at most MAX; what is beyond is left out at the
 * inner end, and so is what is beyond LIMIT.
 */
size_t die_calls(Dwarf_Die *function, uint64_t addr, struct die_limit limit, size_t max,
		 Dwarf_Die *ret);

/* What DIE, an inlined call or a function, is called: by itself or by what it comes from. NULL
 * where it has none. RET_NAMED is the entry that has RET_NAME. */
void die_names(Dwarf_Die *die, const char **ret_linkage, const char **ret_name,
	       Dwarf_Die *ret_named);

/* "scope::name" of NAMED, whose name is NAME; NULL where it has no scope. The caller frees RET. */
struct error *die_scoped_name(Dwarf_Die *named, const char *name, char **ret);

/* A string in attribute ATTRIBUTE of DIE itself, borrowed from the file; NULL: it has none. */
const char *die_text(Dwarf_Die *die, unsigned attribute);

/* A number in attribute ATTRIBUTE of DIE itself. False: it has none. */
bool die_number(Dwarf_Die *die, unsigned attribute, uint64_t *ret);
