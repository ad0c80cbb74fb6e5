/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over DWARF entries. Which unit is looked at, and when, is decided in debuginfo.c. */
#include "symbolize/dies.h"

#include <dwarf.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/str.h"
#include "symbolize/debuginfo.h"

// A function may be inside another's range (nested ones, outlined parts): fewer than this follow.
enum { LOOK_BACK = 64 };

void die_ranges_deinit(struct die_ranges *ranges)
{
	free(ranges->range);
	*ranges = (struct die_ranges){0};
}

static int compare_range(const void *a, const void *b)
{
	const struct die_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	// Of two that start together the larger one first, so that the smaller one is found first.
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

void die_ranges_sort(struct die_ranges *ranges)
{
	if (ranges->count)
		qsort(ranges->range, ranges->count, sizeof(*ranges->range), compare_range);
}

struct error *die_ranges_add(struct die_ranges *ranges, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		// Code that a linker threw away is left at 0 or near the top.
		if (start >= end || !start || ranges->count == DEBUGINFO_RANGES)
			continue;
		TRY(ARRAY_RESERVE(ranges->range, ranges->room, ranges->count, 1, DEBUGINFO_RANGES,
				  "address ranges of DWARF"));
		ranges->range[ranges->count++] =
			(struct die_range){start, end, dwarf_dieoffset(die)};
	}
	return NULL;
}

const struct die_range *die_ranges_find(const struct die_ranges *ranges, uint64_t addr)
{
	size_t low = 0, high = ranges->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (ranges->range[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i > 0 && low - i < LOOK_BACK; i--)
		if (addr < ranges->range[i - 1].end)
			return &ranges->range[i - 1];
	return NULL;
}

/* Entries that hold functions without being one. */
static bool is_scope(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_interface_type:
		return true;
	default:
		return false;
	}
}

/* Take one entry off LIMIT. False: it is used up. An entry may stand for a long list of ranges, so
 * that their number alone says little about time. */
static bool may_go_on(struct die_limit *limit)
{
	if (!limit->entries || clock_monotonic_ns() > limit->deadline_ns)
		return false;
	limit->entries--;
	return true;
}

static struct error *list_below(Dwarf_Die *parent, int depth, struct die_limit *limit,
				struct die_ranges *ret)
{
	Dwarf_Die die;

	for (int end = dwarf_child(parent, &die); !end; end = dwarf_siblingof(&die, &die)) {
		int tag = dwarf_tag(&die);
		if (!may_go_on(limit))
			return NULL;
		if (tag == DW_TAG_subprogram)
			TRY(die_ranges_add(ret, &die));
		else if (is_scope(tag) && depth < DEBUGINFO_DEPTH)
			TRY(list_below(&die, depth + 1, limit, ret));
	}
	return NULL;
}

struct error *die_list_functions(Dwarf_Die *unit, struct die_limit limit, struct die_ranges *ret)
{
	TRY(list_below(unit, 0, &limit, ret));
	die_ranges_sort(ret);
	return NULL;
}

static bool has_code(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

/* Does what is inlined at ADDR stand below DIE? */
static bool leads_on(Dwarf_Die *die, uint64_t addr)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		return !has_code(die) || dwarf_haspc(die, addr) > 0;
	case DW_TAG_inlined_subroutine:
	case DW_TAG_subprogram:
		return dwarf_haspc(die, addr) > 0;
	default:
		return false;
	}
}

struct chain {
	Dwarf_Die *call;
	size_t count, max;
	struct die_limit limit;
};

/* True: ADDR was found in a call or a function below PARENT, and CHAIN holds it. */
static bool find_below(Dwarf_Die *parent, uint64_t addr, int depth, struct chain *chain)
{
	Dwarf_Die die;

	for (int end = dwarf_child(parent, &die); !end; end = dwarf_siblingof(&die, &die)) {
		if (!may_go_on(&chain->limit))
			return false;
		if (!leads_on(&die, addr))
			continue;
		int tag = dwarf_tag(&die);
		bool block = tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram;
		if (tag == DW_TAG_subprogram) // a nested function: nobody inlined it
			chain->count = 0;
		if (!block && chain->count < chain->max)
			chain->call[chain->count++] = die;
		bool found = depth < DEBUGINFO_DEPTH && find_below(&die, addr, depth + 1, chain);
		if (found || !block)
			return true;
	}
	return false;
}

size_t die_calls(Dwarf_Die *function, uint64_t addr, struct die_limit limit, size_t max,
		 Dwarf_Die *ret)
{
	struct chain chain = {.call = ret, .max = max, .limit = limit};

	ret[chain.count++] = *function;
	find_below(function, addr, 0, &chain);
	return chain.count;
}

const char *die_text(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute value;

	return dwarf_attr(die, attribute, &value) ? dwarf_formstring(&value) : NULL;
}

/* The entry that DIE refers to as what it is an instance or the definition of. */
static bool find_origin(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute value;

	return (dwarf_attr(die, DW_AT_abstract_origin, &value) ||
		dwarf_attr(die, DW_AT_specification, &value)) &&
	       dwarf_formref_die(&value, ret);
}

void die_names(Dwarf_Die *die, const char **ret_linkage, const char **ret_name,
	       Dwarf_Die *ret_named)
{
	Dwarf_Die at = *die;

	*ret_linkage = NULL;
	*ret_name = NULL;
	for (int step = 0; step < DEBUGINFO_ORIGINS; step++) {
		const char *linkage = die_text(&at, DW_AT_linkage_name);
		if (!linkage)
			linkage = die_text(&at, DW_AT_MIPS_linkage_name);
		const char *name = die_text(&at, DW_AT_name);
		if (name) { // the last one is the declaration, which stands in its scope
			*ret_name = name;
			*ret_named = at;
		}
		if (linkage) {
			*ret_linkage = linkage;
			return;
		}
		Dwarf_Die origin;
		if (!find_origin(&at, &origin))
			return;
		at = origin;
	}
}

/* The child of PARENT that is or holds the entry at OFFSET: entries are stored in the order of
 * their tree. */
static bool child_towards(Dwarf_Die *parent, Dwarf_Off offset, unsigned *entries, Dwarf_Die *ret)
{
	Dwarf_Die die, next;
	bool found = false;

	if (dwarf_child(parent, &die) != 0)
		return false;
	while (dwarf_dieoffset(&die) <= offset && *entries) {
		--*entries;
		found = true;
		*ret = die;
		if (dwarf_siblingof(&die, &next) != 0)
			break;
		die = next;
	}
	return found;
}

struct error *die_scoped_name(Dwarf_Die *named, const char *name, char **ret)
{
	_cleanup_(strbuf_deinit) struct strbuf text = STRBUF_INIT;
	Dwarf_Off offset = dwarf_dieoffset(named);
	unsigned entries = DEBUGINFO_LOOKUP;
	Dwarf_Die at;

	if (!dwarf_diecu(named, &at, NULL, NULL))
		return NULL;
	for (int depth = 0; depth < DEBUGINFO_DEPTH; depth++) {
		Dwarf_Die child;
		if (!child_towards(&at, offset, &entries, &child) ||
		    dwarf_dieoffset(&child) == offset)
			break;
		at = child;
		if (!is_scope(dwarf_tag(&at)))
			continue;
		const char *scope = die_text(&at, DW_AT_name);
		if (!scope)
			scope = dwarf_tag(&at) == DW_TAG_namespace ? "(anonymous namespace)"
								   : "(anonymous)";
		TRY(strbuf_addf(&text, "%s::", scope));
	}
	if (!text.length)
		return NULL;
	TRY(strbuf_addf(&text, "%s", name));
	*ret = take(text.text);
	return NULL;
}

bool die_number(Dwarf_Die *die, unsigned attribute, uint64_t *ret)
{
	Dwarf_Attribute value;
	Dwarf_Word word;

	if (!dwarf_attr(die, attribute, &value) || dwarf_formudata(&value, &word) != 0)
		return false;
	*ret = word;
	return true;
}
