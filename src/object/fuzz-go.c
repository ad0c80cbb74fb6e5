/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a Go program: every lookup ends, and what is found is consistent. */
#include "object/go.h"
#include "object/object.h"
#include "object/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUNCTIONS_ASKED = 64 };

static void check_rows(struct object *object)
{
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
	_cleanup_error_ struct error *err = go_rows_add(object, &rows);

	if (err && rows.count)
		__builtin_trap();
	for (size_t i = 0; i < rows.count; i++)
		if (rows.row[i].rule >= rows.rule_count ||
		    (i && rows.row[i - 1].addr >= rows.row[i].addr))
			__builtin_trap();
}

static void check_function(struct go_table *table, const struct go_function *function,
			   uint64_t addr)
{
	struct go_call calls[GO_CALLS_MAX];
	struct go_function found;
	size_t count = go_inlines(table, function, addr, calls);

	if (!count || count > GO_CALLS_MAX || calls[count - 1].function != function->name)
		__builtin_trap();
	if (go_function_find(table, addr, &found) && (addr < found.entry || addr >= found.end))
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_object_ struct object *object = NULL;
	_cleanup_go_table_ struct go_table *table = NULL;
	_cleanup_error_ struct error *err = object_open_memory(data, size, "input", &object);
	struct go_function function;

	if (err)
		return 0;
	check_rows(object);
	err = go_table_open(object, &table);
	if (err || !table)
		return 0;
	for (uint32_t i = 0; i < go_function_count(table) && i < FUNCTIONS_ASKED; i++) {
		if (!go_function_get(table, i, &function))
			continue;
		check_function(table, &function, function.entry);
		check_function(table, &function, function.end - 1);
	}
	return 0;
}
