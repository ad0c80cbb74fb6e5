/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and inlined calls. */
#include "object/go-steps.h"
#include "object/go-table.h"
#include "object/go.h"

enum {
	PCDATA_INLINE = 2,   /* PCDATA_InlTreeIndex */
	FUNCDATA_INLINE = 3, /* FUNCDATA_InlTree */
	NO_FILE = 0xffffffff,
	INLINE_WIDE = 20,   /* bytes of a tree entry before Go 1.20 */
	INLINE_NARROW = 16, /* and since */
};

/* An entry of the tree of inlined calls. */
struct inlined {
	uint32_t name;
	uint32_t parent_pc; /* offset of an instruction that stands for the call */
	uint32_t start_line;
	/* before Go 1.20 the call's place is given, and where it is inlined */
	int32_t parent;
	uint32_t file, line;
};

/* The name of file NUMBER of the record's compilation unit. */
static const char *file_name(struct go_table *table, const struct go_record *record,
			     uint32_t number)
{
	uint64_t units = (table->at.files - table->at.units) / 4;
	uint32_t offset;

	if ((uint64_t)record->unit + number >= units ||
	    !go_view_u32(&table->view, table->at.units + 4ull * (record->unit + number), &offset) ||
	    offset == NO_FILE || offset >= table->at.values - table->at.files)
		return NULL;
	return go_table_string(table, table->at.files + offset);
}

static int32_t value_at(struct go_table *table, const struct go_record *record, uint32_t values,
			uint64_t addr)
{
	// Offset 0 holds no table: every table but that one is referred to.
	if (!values)
		return -1;
	return go_steps_find(go_steps_begin(table, record, values), addr, -1);
}

static void find_place(struct go_table *table, const struct go_record *record, uint64_t addr,
		       struct go_call *ret)
{
	int32_t line = value_at(table, record, record->line_values, addr);
	int32_t file = value_at(table, record, record->file_values, addr);

	ret->line = line > 0 ? (uint32_t)line : 0;
	ret->file = file >= 0 ? file_name(table, record, (uint32_t)file) : NULL;
}

bool go_line(struct go_table *table, const struct go_function *function, uint64_t addr,
	     const char **ret_file, uint32_t *ret_line)
{
	struct go_call place = {0};
	struct go_record record;

	if (!go_record_of(table, function, &record))
		return false;
	find_place(table, &record, addr, &place);
	if (!place.file || !place.line)
		return false;
	*ret_file = place.file;
	*ret_line = place.line;
	return true;
}

static bool read_words(struct go_table *table, uint64_t addr, uint32_t *ret, int count)
{
	for (int i = 0; i < count; i++)
		if (!go_view_u32(&table->view, addr + 4ull * i, &ret[i]))
			return false;
	return true;
}

static bool read_inlined(struct go_table *table, uint64_t tree, int32_t index, struct inlined *ret)
{
	bool narrow = table->at.form == GO_FORM_1_20;
	uint64_t size = narrow ? INLINE_NARROW : INLINE_WIDE;
	uint32_t word[INLINE_WIDE / 4];

	// An index that no function has: a tree has one entry per inlined call.
	if (index < 0 || index > 1 << 20 ||
	    !read_words(table, tree + size * (uint32_t)index, word, (int)(size / 4)))
		return false;
	if (narrow)
		*ret = (struct inlined){
			.name = word[1], .parent_pc = word[2], .start_line = word[3], .parent = -1};
	else
		*ret = (struct inlined){.parent = (int16_t)(word[0] & 0xffff),
					.file = word[1],
					.line = word[2],
					.name = word[3],
					.parent_pc = word[4]};
	return true;
}

/* A walk from the innermost inlined call outwards. */
struct chain {
	struct go_table *table;
	const struct go_record *record;
	uint64_t tree;
	uint32_t values; /* the pc-value table of tree indices */
	int32_t index;   /* below 0: in the function itself */
	struct go_call place;
};

static bool chain_begin(struct chain *chain, uint64_t addr)
{
	if (!go_record_pcdata(chain->table, chain->record, PCDATA_INLINE, &chain->values) ||
	    !go_record_funcdata(chain->table, chain->record, FUNCDATA_INLINE, &chain->tree))
		return false;
	chain->index = value_at(chain->table, chain->record, chain->values, addr);
	return true;
}

/* The call that the chain is in; the chain moves to its caller. */
static bool chain_next(struct chain *chain, struct go_call *ret)
{
	struct go_table *table = chain->table;
	struct inlined at;

	if (!read_inlined(table, chain->tree, chain->index, &at))
		return false;
	const char *name = go_table_name(table, at.name);
	if (!name)
		return false;
	*ret = (struct go_call){.function = name,
				.file = chain->place.file,
				.line = chain->place.line,
				.start_line = at.start_line,
				.inlined = true};
	if (table->at.form != GO_FORM_1_20) {
		chain->place.file = file_name(table, chain->record, at.file);
		chain->place.line = at.line;
		chain->index = at.parent;
		return true;
	}
	uint64_t caller = chain->record->entry + at.parent_pc;
	find_place(table, chain->record, caller, &chain->place);
	chain->index = value_at(table, chain->record, chain->values, caller);
	return true;
}

size_t go_inlines(struct go_table *table, const struct go_function *function, uint64_t addr,
		  struct go_call ret[GO_CALLS_MAX])
{
	struct go_record record;
	struct chain chain = {.table = table, .record = &record, .index = -1};
	size_t count = 0;

	if (go_record_of(table, function, &record)) {
		find_place(table, &record, addr, &chain.place);
		if (!chain_begin(&chain, addr))
			chain.index = -1;
		// A damaged tree may run in circles; the limit ends that too.
		while (count < GO_CALLS_MAX - 1 && chain.index >= 0 &&
		       chain_next(&chain, &ret[count]))
			count++;
	}
	ret[count++] = (struct go_call){.function = function->name,
					.file = chain.place.file,
					.line = chain.place.line,
					.start_line = function->start_line};
	return count;
}
