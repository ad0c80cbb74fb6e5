/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of any object that opens, however damaged; for the fuzz target and for tests. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "object/object.h"
#include "object/rows.h"

#define HOLD(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			__builtin_trap();                                                          \
	} while (0)

static inline void check_rules(const struct rows *rows)
{
	for (size_t i = 0; i < rows->rule_count; i++) {
		const struct unwind_rule *rule = &rows->rules[i];
		HOLD(rule->cfa < UNWIND_CFA_kinds && rule->base < UNWIND_REGISTERS);
		HOLD(rule->fp <= UNWIND_FP_undefined && rule->ra <= UNWIND_RA_reg);
		HOLD(rule->ra != UNWIND_RA_reg || (uint16_t)rule->ra_offset < UNWIND_REGISTERS);
		HOLD(rule->cfa != UNWIND_CFA_none || !rule->aux);
	}
}

static inline void check_rows(const struct rows *rows)
{
	static const struct unwind_rule gap = {.cfa = UNWIND_CFA_none};
	uint64_t start;

	HOLD(rows->rule_count <= ROWS_RULES_MAX && rows->count <= ROWS_MAX);
	check_rules(rows);
	for (size_t i = 0; i < rows->count; i++) {
		HOLD(rows->row[i].rule < rows->rule_count);
		HOLD(!i || rows->row[i - 1].addr < rows->row[i].addr);
		HOLD(!i || rows->row[i - 1].rule != rows->row[i].rule);
		const struct unwind_rule *rule = rows_find(rows, rows->row[i].addr);
		HOLD(rule ? rule == &rows->rules[rows->row[i].rule] : i + 1 == rows->count);
		if (rows_find_start(rows, rows->row[i].addr, &start))
			HOLD(start <= rows->row[i].addr);
	}
	for (size_t i = 1; i < rows->start_count; i++)
		HOLD(rows->starts[i - 1] < rows->starts[i]);
	if (!rows->count)
		return;
	const struct row *last = &rows->row[rows->count - 1];
	HOLD(rows->text_start == rows->row[0].addr && rows->text_end == last->addr);
	HOLD(memcmp(&rows->rules[last->rule], &gap, sizeof(gap)) == 0);
}

/* Read every byte of B, so that sanitizers see one that is not there. */
static inline unsigned check_bytes(const struct bytes *b)
{
	unsigned sum = 0;

	for (const uint8_t *at = b->at; at < b->end; at++)
		sum += *at;
	return sum;
}

static inline void check_sections(struct object *object)
{
	size_t count;
	const struct object_section *sections = object_sections(object, &count);
	const struct object_segment *segments;
	volatile unsigned sum = 0;
	struct bytes b;
	uint64_t addr;

	for (size_t i = 0; i < count; i++) {
		HOLD(sections[i].name);
		if (object_section(object, sections[i].name, &b, &addr))
			sum += check_bytes(&b);
	}
	object_release(object);
	segments = object_segments(object, &count);
	for (size_t i = 0; i < count; i++) {
		if (object_at(object, segments[i].addr, &b))
			sum += check_bytes(&b);
		if (object_addr_of_offset(object, segments[i].offset, &addr))
			sum += (unsigned)addr;
	}
	(void)sum;
	object_release(object);
}

/* Do with DATA what can be done with an object. False: it does not open, or has no rows to give. */
static inline bool check_object(const void *data, size_t size)
{
	_cleanup_object_ struct object *object = NULL;
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
	_cleanup_error_ struct error *err = object_open_memory(data, size, "input", &object);

	if (err)
		return false;
	const struct object_id *id = object_id(object);
	HOLD(id->length > 0 && id->length <= OBJECT_BUILD_ID_MAX);
	check_sections(object);
	err = rows_compile(object, &rows);
	if (!err)
		check_rows(&rows);
	return !err && rows.count > 0;
}
