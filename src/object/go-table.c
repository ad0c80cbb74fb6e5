/* SPDX-License-Identifier: Apache-2.0 */
#include "object/go-table.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "object/go-find.h"
#include "object/object.h"

enum {
	STRINGS_MAX = 4 << 20,
	PCDATA_MAX = 64, /* Go 1.26 has 5 */
	FUNCDATA_NONE = 0xffffffff,
};

/* Where a record has its fields. The u32 ones come first, in one order in all forms. */
struct record_layout {
	uint8_t name, sp_values, file_values, line_values, pcdata_count, unit;
	uint8_t start_line; /* 0: there is none */
	uint8_t flags, funcdata_count, size;
};

static const struct record_layout layouts[] = {
	[GO_FORM_1_16] = {8, 20, 24, 28, 32, 36, 0, 41, 43, 44},
	[GO_FORM_1_18] = {4, 16, 20, 24, 28, 32, 0, 37, 39, 40},
	[GO_FORM_1_20] = {4, 16, 20, 24, 28, 32, 36, 41, 43, 44},
};

enum { RECORD_SIZE_MAX = 44 };

/* Before 1.18 every function's address is a word of its own, which some linkers leave to the loader
 * (lld, for a position-independent program). */
static struct error *check_absolute(struct go_table *table)
{
	uint64_t entry;

	if (go_view_u64(&table->view, table->at.functions, &entry) && entry != 0)
		return NULL;
	return error_new("%s: pclntab at 0x%llx has its addresses in relocations, which is not "
			 "supported before Go 1.18",
			 object_name(table->object), (unsigned long long)table->at.start);
}

static struct error *open_table(struct go_table *table, uint64_t addr)
{
	struct go_module module;

	if (!go_parts_read(&table->view, addr, &table->at))
		return error_new("%s: pclntab at 0x%llx cannot be read", object_name(table->object),
				 (unsigned long long)addr);
	if (table->at.form == GO_FORM_1_16)
		return check_absolute(table);
	if (go_module_find(&table->view, &table->at, &module)) {
		table->text = module.text;
		table->func_data = module.func_data;
		return NULL;
	}
	// Lines and rows need the text start alone.
	table->text = table->at.text_hint;
	if (!table->text)
		return error_new("%s: pclntab at 0x%llx: no moduledata says where its text is",
				 object_name(table->object), (unsigned long long)addr);
	return NULL;
}

struct error *go_table_open(struct object *object, struct go_table **ret)
{
	_cleanup_go_table_ struct go_table *table = NULL;
	uint64_t addr;

	if (!go_table_find(object, &addr)) {
		*ret = NULL;
		return NULL;
	}
	table = calloc(1, sizeof(*table));
	if (!table)
		return error_oom();
	table->object = object;
	table->view.object = object;
	table->arena.max_bytes = GO_STRINGS_MAX;
	TRY(open_table(table, addr));
	*ret = take(table);
	return NULL;
}

void go_table_free(struct go_table *table)
{
	if (!table)
		return;
	go_view_deinit(&table->view);
	hash_index_deinit(&table->string_index);
	free(table->strings);
	arena_deinit(&table->arena);
	free(table);
}

uint32_t go_function_count(const struct go_table *table)
{
	return table->at.count;
}

/* Entry INDEX of the function table. The one behind the last has an address only. */
static bool read_entry(struct go_table *table, uint32_t index, uint64_t *ret_entry)
{
	uint32_t offset;

	if (table->at.form == GO_FORM_1_16)
		return go_view_u64(&table->view, table->at.functions + 16ull * index, ret_entry);
	if (!go_view_u32(&table->view, table->at.functions + 8ull * index, &offset))
		return false;
	*ret_entry = table->text + offset;
	return true;
}

static bool read_record_addr(struct go_table *table, uint32_t index, uint64_t *ret)
{
	uint64_t wide;
	uint32_t narrow;

	if (table->at.form == GO_FORM_1_16) {
		if (!go_view_u64(&table->view, table->at.functions + 16ull * index + 8, &wide))
			return false;
	} else {
		if (!go_view_u32(&table->view, table->at.functions + 8ull * index + 4, &narrow))
			return false;
		wide = narrow;
	}
	if (wide >= table->at.end - table->at.functions)
		return false;
	*ret = table->at.functions + wide;
	return true;
}

static uint32_t field(const uint8_t *data, uint8_t offset)
{
	uint32_t value;

	memcpy(&value, data + offset, sizeof(value));
	return le32toh(value);
}

/* The record at ADDR, all but entry and end. */
static bool read_record(struct go_table *table, uint64_t addr, struct go_record *ret)
{
	const struct record_layout *at = &layouts[table->at.form];
	uint8_t data[RECORD_SIZE_MAX];

	if (!go_view_read(&table->view, addr, data, at->size))
		return false;
	ret->addr = addr;
	ret->name = field(data, at->name);
	ret->sp_values = field(data, at->sp_values);
	ret->file_values = field(data, at->file_values);
	ret->line_values = field(data, at->line_values);
	ret->unit = field(data, at->unit);
	ret->start_line = at->start_line ? field(data, at->start_line) : 0;
	ret->flags = data[at->flags];
	ret->funcdata_count = data[at->funcdata_count];
	ret->pcdata_count = field(data, at->pcdata_count);
	if (ret->pcdata_count > PCDATA_MAX)
		return false;
	ret->pcdata = addr + at->size;
	ret->funcdata = ret->pcdata + 4ull * ret->pcdata_count;
	// Pointers are aligned; records are too.
	if (table->at.form == GO_FORM_1_16)
		ret->funcdata = (ret->funcdata + 7) & ~7ull;
	return true;
}

bool go_record_read(struct go_table *table, uint32_t index, struct go_record *ret)
{
	uint64_t addr;

	return index < table->at.count && read_entry(table, index, &ret->entry) &&
	       read_entry(table, index + 1, &ret->end) && ret->entry < ret->end &&
	       read_record_addr(table, index, &addr) && read_record(table, addr, ret);
}

bool go_record_of(struct go_table *table, const struct go_function *function, struct go_record *ret)
{
	ret->entry = function->entry;
	ret->end = function->end;
	return read_record(table, function->record, ret);
}

bool go_record_pcdata(struct go_table *table, const struct go_record *record, uint32_t number,
		      uint32_t *ret)
{
	return number < record->pcdata_count &&
	       go_view_u32(&table->view, record->pcdata + 4ull * number, ret) && *ret != 0;
}

bool go_record_funcdata(struct go_table *table, const struct go_record *record, uint32_t number,
			uint64_t *ret)
{
	uint32_t offset;

	if (number >= record->funcdata_count)
		return false;
	if (table->at.form == GO_FORM_1_16)
		return go_view_u64(&table->view, record->funcdata + 8ull * number, ret) &&
		       *ret != 0;
	if (!table->func_data ||
	    !go_view_u32(&table->view, record->funcdata + 4ull * number, &offset) ||
	    offset == FUNCDATA_NONE)
		return false;
	*ret = table->func_data + offset;
	return true;
}

struct string_key {
	const struct go_table *table;
	uint64_t addr;
};

static bool string_equal(const void *context, uint32_t item)
{
	const struct string_key *key = context;

	return key->table->strings[item].addr == key->addr;
}

static struct error *string_add(struct go_table *table, uint64_t addr, size_t length,
				const char **ret)
{
	_cleanup_free_ char *copy = malloc(length + 1);
	const char *text;

	if (!copy)
		return error_oom();
	if (!go_view_read(&table->view, addr, copy, length))
		return error_new("%s: name at 0x%llx cannot be read", object_name(table->object),
				 (unsigned long long)addr);
	TRY(ARRAY_RESERVE(table->strings, table->string_room, table->string_count, 1, STRINGS_MAX,
			  "names in a pclntab"));
	TRY(arena_copy(&table->arena, copy, length, &text));
	TRY(hash_add(&table->string_index, hash_u64(addr), (uint32_t)table->string_count));
	table->strings[table->string_count++] = (struct go_string){.addr = addr, .text = text};
	*ret = text;
	return NULL;
}

const char *go_table_string(struct go_table *table, uint64_t addr)
{
	struct string_key key = {.table = table, .addr = addr};
	const char *text = NULL;
	uint32_t item;
	size_t length;

	if (hash_find(&table->string_index, hash_u64(addr), string_equal, &key, &item))
		return table->strings[item].text;
	if (addr < table->at.start || addr >= table->at.end ||
	    !go_view_length(&table->view, addr, GO_NAME_MAX, &length))
		return NULL;
	// Whatever the reason, a name that cannot be kept is a name that is not known.
	error_free(string_add(table, addr, length, &text));
	return text;
}

const char *go_table_name(struct go_table *table, uint32_t offset)
{
	return offset < table->at.units - table->at.names
		       ? go_table_string(table, table->at.names + offset)
		       : NULL;
}

bool go_function_get(struct go_table *table, uint32_t index, struct go_function *ret)
{
	struct go_record record;
	const char *name;

	if (!go_record_read(table, index, &record))
		return false;
	name = go_table_name(table, record.name);
	if (!name)
		return false;
	*ret = (struct go_function){.name = name,
				    .entry = record.entry,
				    .end = record.end,
				    .start_line = record.start_line,
				    .record = record.addr};
	return true;
}

bool go_function_find(struct go_table *table, uint64_t addr, struct go_function *ret)
{
	uint32_t low = 0, high = table->at.count;
	uint64_t entry;

	// Invariant: entry[low] <= addr < entry[high], should the table be sorted; if it is not,
	// the check at the end fails.
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (!read_entry(table, middle, &entry))
			return false;
		if (entry <= addr)
			low = middle;
		else
			high = middle;
	}
	return go_function_get(table, low, ret) && addr >= ret->entry && addr < ret->end;
}
