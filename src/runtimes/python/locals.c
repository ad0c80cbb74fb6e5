/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/python/locals.h"

#include <string.h>

#include "runtimes/python/dicts.h"
#include "runtimes/python/heap.h"
#include "runtimes/python/text.h"

enum {
	VARIABLES_MAX = 1000,
	NAME_MAX_BYTES = 256,
	TAG_BITS = 7, /* of an address: objects are aligned to 8 bytes at least */
	/* Include/code.h, Include/cpython/code.h */
	CODE_OPTIMIZED = 1,
	CODE_VARARGS = 4,
	CODE_VARKEYWORDS = 8,
	/* Include/internal/pycore_code.h (3.11 and later): kinds of variables. */
	KIND_CELL = 0x40,
	KIND_FREE = 0x80,
	/* pycore_stackref.h (3.14): a word in a frame is an address whose lowest bit tells who
	 * counts the reference, 1 for nothing, or a small int with both lowest bits set. */
	STACKREF_INT = 3,
};

struct look {
	struct python_heap heap;
	struct python_frame frame;
	python_local_fn *fn;
	void *context;
	uint32_t arguments; /* how many of the first variables are */
	bool definitions, stopped, incomplete, too_many;
};

/* What the names of a tuple stand for. */
struct names {
	uint64_t items, count; /* address of the first, and how many there are */
	uint64_t first;        /* slot of the first */
	uint8_t kind;          /* KIND_, 0 */
};

static bool open_names(struct look *look, uint32_t member, struct names *names)
{
	const struct python_offsets *at = look->heap.offsets;
	uint64_t tuple;

	if (!python_heap_u64(&look->heap, look->frame.code, member, &tuple) ||
	    !python_heap_u64(&look->heap, tuple, at->tuple_size, &names->count)) {
		look->incomplete = true;
		return false;
	}
	if (names->count > VARIABLES_MAX) {
		names->count = VARIABLES_MAX;
		look->too_many = true;
	}
	names->items = tuple + at->tuple_items;
	return true;
}

/* The object in SLOT, 0 for none. */
static bool read_slot(struct look *look, uint64_t slot, uint64_t *ret)
{
	uint64_t word;

	if (!python_heap_u64(&look->heap, look->frame.addr + slot * 8,
			     look->heap.offsets->frame_fast, &word)) {
		look->incomplete = true;
		return false;
	}
	*ret = (word & STACKREF_INT) == STACKREF_INT ? 0 : word & ~(uint64_t)TAG_BITS;
	return true;
}

/* What the cell at ADDR holds. Before MAKE_CELL has run the argument itself is in its place. */
static uint64_t cell_content(struct look *look, uint64_t addr)
{
	struct python_type type;
	uint64_t value;

	if (!python_heap_type(&look->heap, addr, &type)) {
		look->incomplete = true;
		return 0;
	}
	if (type.kind != PYTHON_KIND_cell)
		return addr;
	if (python_heap_u64(&look->heap, addr, look->heap.offsets->cell_value, &value))
		return value;
	look->incomplete = true;
	return 0;
}

static bool is_internal(const char *name)
{
	size_t length = strlen(name);

	return length > 4 && !strncmp(name, "__", 2) && !strcmp(name + length - 2, "__");
}

static void give(struct look *look, uint64_t name, uint64_t value, enum python_local_kind kind)
{
	char text[NAME_MAX_BYTES];
	const struct python_local local = {.name = text, .value = value, .kind = kind};

	if (python_text_read(&look->heap.memory, look->heap.offsets, name, text, sizeof(text)) !=
	    PYTHON_TEXT_read) {
		look->incomplete = true;
		return;
	}
	if (!look->definitions && is_internal(text))
		return;
	if (!look->fn(look->context, &local))
		look->stopped = true;
}

/* The variable whose name is number INDEX of NAMES, of KIND. */
static void visit_variable(struct look *look, const struct names *names, uint64_t index,
			   uint8_t kind)
{
	uint64_t name, value;

	if (!python_heap_u64(&look->heap, names->items + index * 8, 0, &name)) {
		look->incomplete = true;
		return;
	}
	if (!read_slot(look, names->first + index, &value) || !value)
		return;
	if (kind & (KIND_CELL | KIND_FREE))
		value = cell_content(look, value);
	if (value)
		give(look, name, value,
		     kind & KIND_FREE                         ? PYTHON_LOCAL_free
		     : names->first + index < look->arguments ? PYTHON_LOCAL_argument
							      : PYTHON_LOCAL_local);
}

/* 3.11 and later: one tuple of all names, and bytes that tell the kind of each. */
static void visit_kinds(struct look *look)
{
	const struct python_offsets *at = look->heap.offsets;
	struct names names = {0};
	uint64_t bytes;
	uint8_t kinds[VARIABLES_MAX];

	if (!open_names(look, at->code_local_names, &names))
		return;
	if (!python_heap_u64(&look->heap, look->frame.code, at->code_local_kinds, &bytes) ||
	    !python_heap_bytes(&look->heap, bytes, at->bytes_data, kinds, names.count)) {
		look->incomplete = true;
		return;
	}
	for (uint64_t i = 0; i < names.count && !look->stopped; i++)
		visit_variable(look, &names, i, kinds[i]);
}

/* Which of the first COUNT of NAMES is NAME, which is interned; COUNT: none. False: unreadable. */
static bool find_name(struct look *look, const struct names *names, uint64_t count, uint64_t name,
		      uint64_t *ret)
{
	uint64_t other;

	*ret = count;
	for (uint64_t i = 0; i < names->count && i < count && *ret == count; i++) {
		if (!python_heap_u64(&look->heap, names->items + i * 8, 0, &other)) {
			look->incomplete = true;
			return false;
		}
		if (other == name)
			*ret = i;
	}
	return true;
}

/*
 * Up to 3.10 an argument that is a cell is among the cells. Its own slot is empty then, but in 2.7
 * keeps the value that it was called with.
 */
static void visit_argument(struct look *look, const struct names *locals, uint64_t index,
			   const struct names *cells)
{
	uint64_t name, cell;

	if (!python_heap_u64(&look->heap, locals->items + index * 8, 0, &name)) {
		look->incomplete = true;
		return;
	}
	if (find_name(look, cells, cells->count, name, &cell) && cell == cells->count)
		visit_variable(look, locals, index, 0);
}

static void visit_cell(struct look *look, const struct names *names, uint64_t index,
		       const struct names *locals)
{
	enum python_local_kind kind = PYTHON_LOCAL_free;
	uint64_t name, cell, argument;

	if (!python_heap_u64(&look->heap, names->items + index * 8, 0, &name)) {
		look->incomplete = true;
		return;
	}
	if (names->kind == KIND_CELL) {
		if (!find_name(look, locals, look->arguments, name, &argument))
			return;
		kind = argument < look->arguments ? PYTHON_LOCAL_argument : PYTHON_LOCAL_local;
	}
	if (!read_slot(look, names->first + index, &cell) || !cell)
		return;
	uint64_t value = cell_content(look, cell);
	if (value)
		give(look, name, value, kind);
}

/* Up to 3.10: locals, cells and free variables, one behind the other. */
static void visit_tuples(struct look *look)
{
	const struct python_offsets *at = look->heap.offsets;
	struct names locals = {0}, cells = {.kind = KIND_CELL}, frees = {.kind = KIND_FREE};

	if (!open_names(look, at->code_varnames, &locals) ||
	    !open_names(look, at->code_cellvars, &cells) ||
	    !open_names(look, at->code_freevars, &frees))
		return;
	cells.first = locals.count;
	frees.first = locals.count + cells.count;
	for (uint64_t i = 0; i < locals.count && !look->stopped; i++) {
		if (i < look->arguments && cells.count)
			visit_argument(look, &locals, i, &cells);
		else
			visit_variable(look, &locals, i, 0);
	}
	for (uint64_t i = 0; i < cells.count && !look->stopped; i++)
		visit_cell(look, &cells, i, &locals);
	for (uint64_t i = 0; i < frees.count && !look->stopped; i++)
		visit_cell(look, &frees, i, &locals);
}

/* Whether VALUE is to be given; of what cannot be read nothing could be said. */
static bool is_wanted(struct look *look, const char *name, uint64_t value)
{
	struct python_type type;

	if (look->definitions)
		return true;
	if (is_internal(name))
		return false;
	if (python_heap_type(&look->heap, value, &type))
		return !python_kind_is_definition(type.kind);
	look->incomplete = true;
	return false;
}

static void visit_name(struct look *look, uint64_t key, uint64_t value)
{
	char name[NAME_MAX_BYTES];
	const struct python_local local = {.name = name, .value = value, .kind = PYTHON_LOCAL_name};

	if (python_text_read(&look->heap.memory, look->heap.offsets, key, name, sizeof(name)) !=
	    PYTHON_TEXT_read)
		return;
	if (is_wanted(look, name, value) && !look->fn(look->context, &local))
		look->stopped = true;
}

/* The namespace of a module or class. A class may have another mapping than a dict: no names. */
static void visit_namespace(struct look *look)
{
	struct python_entries entries;
	struct python_type type;
	uint64_t dict, key, value;

	if (!python_heap_u64(&look->heap, look->frame.addr, look->heap.offsets->frame_locals,
			     &dict)) {
		look->incomplete = true;
		return;
	}
	dict &= ~(uint64_t)TAG_BITS;
	if (!dict)
		return;
	if (!python_heap_type(&look->heap, dict, &type)) {
		look->incomplete = true;
		return;
	}
	if (type.kind != PYTHON_KIND_dict)
		return;
	if (!python_dict_open(&look->heap, dict, &entries)) {
		look->incomplete = true;
		return;
	}
	while (!look->stopped && entries.found < VARIABLES_MAX &&
	       python_entries_next(&look->heap, &entries, &key, &value))
		visit_name(look, key, value);
	look->too_many |= entries.found >= VARIABLES_MAX;
	look->incomplete |= entries.unreadable;
}

/* How many of the first variables are arguments. */
static bool count_arguments(struct look *look, uint32_t flags)
{
	const struct python_offsets *at = look->heap.offsets;
	uint32_t positional, keywords = 0;

	if (!python_heap_u32(&look->heap, look->frame.code, at->code_argcount, &positional) ||
	    (at->code_kwonly != PYTHON_ABSENT &&
	     !python_heap_u32(&look->heap, look->frame.code, at->code_kwonly, &keywords)))
		return false;
	if (positional > VARIABLES_MAX || keywords > VARIABLES_MAX)
		return false;
	look->arguments =
		positional + keywords + !!(flags & CODE_VARARGS) + !!(flags & CODE_VARKEYWORDS);
	return true;
}

enum python_locals python_locals(const struct python_values *from, const struct python_frame *frame,
				 bool definitions, python_local_fn *fn, void *context)
{
	struct look look = {
		.frame = *frame, .fn = fn, .context = context, .definitions = definitions};
	uint32_t flags;

	look.frame.code &= ~(uint64_t)TAG_BITS;
	python_heap_init(&look.heap, from->memory, from->offsets, from->limits->reads);
	if (!python_heap_u32(&look.heap, look.frame.code, from->offsets->code_flags, &flags) ||
	    !count_arguments(&look, flags))
		return PYTHON_LOCALS_unreadable;
	if (from->offsets->code_local_kinds != PYTHON_ABSENT)
		visit_kinds(&look);
	else
		visit_tuples(&look);
	// A function has a mapping of its locals, too, once somebody asked for it; it is old then.
	if (!(flags & CODE_OPTIMIZED) && !look.stopped)
		visit_namespace(&look);
	if (look.incomplete)
		return PYTHON_LOCALS_unreadable;
	return look.too_many ? PYTHON_LOCALS_too_many : PYTHON_LOCALS_read;
}
