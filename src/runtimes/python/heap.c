/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/python/heap.h"

#include <string.h>

#include "base/array.h"

enum {
	BASES_MAX = 32, /* a class of more generations than this has no kind */
	STATIC_NAME_MAX = 40,
};

/* Flags by which the interpreter itself tells the built-in types: Include/object.h. */
static const struct {
	uint8_t bit;
	enum python_kind kind;
} flagged[] = {
	{23, PYTHON_KIND_small}, /* 2.7; in 3.12 and later ITEMS_AT_END: see kind_by_flags() */
	{24, PYTHON_KIND_long},  {25, PYTHON_KIND_list},      {26, PYTHON_KIND_tuple},
	{27, PYTHON_KIND_bytes}, {28, PYTHON_KIND_text},      {29, PYTHON_KIND_dict},
	{31, PYTHON_KIND_type},  {30, PYTHON_KIND_exception},
};

/* Names of types written in C, as tp_name has them. */
static const struct {
	const char *name;
	enum python_kind kind;
} named[] = {
	{"NoneType", PYTHON_KIND_none},
	{"ellipsis", PYTHON_KIND_ellipsis},
	{"NotImplementedType", PYTHON_KIND_not_implemented},
	{"bool", PYTHON_KIND_bool},
	{"float", PYTHON_KIND_float},
	{"complex", PYTHON_KIND_complex},
	{"bytearray", PYTHON_KIND_bytearray},
	{"set", PYTHON_KIND_set},
	{"frozenset", PYTHON_KIND_frozenset},
	{"mappingproxy", PYTHON_KIND_mapping_proxy},
	{"dictproxy", PYTHON_KIND_mapping_proxy},
	{"range", PYTHON_KIND_range},
	{"slice", PYTHON_KIND_slice},
	{"classobj", PYTHON_KIND_old_class},
	{"instance", PYTHON_KIND_old_instance},
	{"module", PYTHON_KIND_module},
	{"function", PYTHON_KIND_function},
	{"builtin_function_or_method", PYTHON_KIND_builtin},
	{"method", PYTHON_KIND_method},
	{"instancemethod", PYTHON_KIND_method},
	{"code", PYTHON_KIND_code},
	{"cell", PYTHON_KIND_cell},
	{"generator", PYTHON_KIND_generator},
	{"coroutine", PYTHON_KIND_coroutine},
	{"async_generator", PYTHON_KIND_async_generator},
	{"coroutine_wrapper", PYTHON_KIND_awaiter},
	{"async_generator_asend", PYTHON_KIND_awaiter},
	{"async_generator_athrow", PYTHON_KIND_awaiter},
	{"_asyncio.FutureIter", PYTHON_KIND_awaiter},
	{"weakref", PYTHON_KIND_weakref},
	{"weakref.ReferenceType", PYTHON_KIND_weakref},
	{"numpy.ndarray", PYTHON_KIND_array},
};

/* Names of those that flagged[] tells; other types with their flags are made of them. */
static const char *const flagged_names[] = {
	"int", "long", "list", "tuple", "bytes", "str", "unicode", "dict", "type",
};

static int pay_and_read(void *context, uint64_t addr, void *to, size_t size)
{
	struct python_heap *heap = context;

	if (!heap->reads_left)
		return -1;
	heap->reads_left--;
	return memory_read(heap->target, addr, to, size);
}

static void pay_and_read_many(void *context, struct memory_item *items, size_t count)
{
	struct python_heap *heap = context;
	size_t paid = count < heap->reads_left ? count : heap->reads_left;

	heap->reads_left -= (uint32_t)paid;
	memory_read_many(heap->target, items, paid);
	for (size_t i = paid; i < count; i++)
		items[i].read = false;
}

void python_heap_init(struct python_heap *heap, const struct memory *memory,
		      const struct python_offsets *offsets, uint32_t reads)
{
	*heap = (struct python_heap){
		.memory = {.read = pay_and_read, .context = heap, .read_many = pay_and_read_many},
		.target = memory,
		.offsets = offsets,
		.reads_left = reads,
	};
}

bool python_heap_bytes(const struct python_heap *heap, uint64_t addr, uint32_t offset, void *to,
		       size_t size)
{
	return addr && offset != PYTHON_ABSENT &&
	       !memory_read(&heap->memory, addr + offset, to, size);
}

bool python_heap_string(const struct python_heap *heap, uint64_t addr, char *ret, size_t size)
{
	size_t length = 0;

	while (length + 1 < size) {
		// What is behind its end may be unmapped: never beyond eight aligned bytes.
		size_t step = 8 - ((addr + length) & 7);
		if (step > size - 1 - length)
			step = size - 1 - length;
		if (!python_heap_bytes(heap, addr, (uint32_t)length, ret + length, step))
			return false;
		if (memchr(ret + length, 0, step))
			return true;
		length += step;
	}
	ret[length] = 0;
	return true;
}

/* Kinds that are told by the name of a type written in C; NAME is "" for others. */
static bool kind_by_name(const char *name, enum python_kind *ret)
{
	for (size_t i = 0; i < ARRAY_COUNT(named); i++) {
		if (!strcmp(name, named[i].name)) {
			*ret = named[i].kind;
			return true;
		}
	}
	return false;
}

/* The name of a type written in C, "" of one made at run time. False: unreadable. */
static bool read_static_name(const struct python_heap *heap, const struct python_type *type,
			     char name[static STATIC_NAME_MAX])
{
	name[0] = 0;
	return type->flags & PYTHON_TYPE_HEAP ||
	       python_heap_string(heap, type->name, name, STATIC_NAME_MAX);
}

static bool kind_by_flags(const struct python_heap *heap, uint64_t flags, enum python_kind *ret)
{
	// The bit of 2.7's int was free from 3.0 on, until 3.12 gave it to Py_TPFLAGS_ITEMS_AT_END.
	bool small = heap->offsets->int_value != PYTHON_ABSENT;

	for (size_t i = small ? 0 : 1; i < ARRAY_COUNT(flagged); i++) {
		if (flags >> flagged[i].bit & 1) {
			*ret = flagged[i].kind;
			return true;
		}
	}
	return false;
}

static bool is_flagged_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(flagged_names); i++)
		if (!strcmp(name, flagged_names[i]))
			return true;
	return false;
}

static bool read_type(const struct python_heap *heap, uint64_t addr, struct python_type *ret)
{
	const struct python_offsets *at = heap->offsets;
	struct python_type type = {.addr = addr};

	if (!python_heap_u64(heap, addr, at->type_flags, &type.flags) ||
	    !python_heap_u64(heap, addr, at->type_name, &type.name) ||
	    !python_heap_u64(heap, addr, at->type_base, &type.base) ||
	    !python_heap_u64(heap, addr, at->type_dict, &type.dict) ||
	    !python_heap_u64(heap, addr, at->type_basicsize, &type.basic_size) ||
	    !python_heap_u64(heap, addr, at->type_itemsize, &type.item_size) ||
	    !python_heap_bytes(heap, addr, at->type_dictoffset, &type.dict_offset,
			       sizeof(type.dict_offset)))
		return false;
	*ret = type;
	return true;
}

/* Whether the object at ADDR is a type: the type of its type says so. */
static bool is_type(const struct python_heap *heap, uint64_t addr)
{
	uint64_t meta, flags;

	return !(addr & 7) && python_heap_u64(heap, addr, heap->offsets->object_type, &meta) &&
	       python_heap_u64(heap, meta, heap->offsets->type_flags, &flags) && flags >> 31 & 1;
}

/* False: unreadable. */
static bool find_kind(const struct python_heap *heap, struct python_type *type)
{
	struct python_type base = *type;
	char name[STATIC_NAME_MAX];

	if (!read_static_name(heap, type, name))
		return false;
	type->kind = PYTHON_KIND_object;
	if (kind_by_name(name, &type->kind)) {
		type->exact = true;
		return true;
	}
	if (kind_by_flags(heap, type->flags, &type->kind)) {
		type->exact = is_flagged_name(name);
		return true;
	}
	for (int i = 0; i < BASES_MAX && base.base; i++) {
		uint64_t addr = base.base;

		if (!python_heap_u64(heap, addr, heap->offsets->type_flags, &base.flags) ||
		    !python_heap_u64(heap, addr, heap->offsets->type_name, &base.name) ||
		    !python_heap_u64(heap, addr, heap->offsets->type_base, &base.base) ||
		    !read_static_name(heap, &base, name))
			return false;
		if (kind_by_name(name, &type->kind))
			return true;
	}
	return true;
}

bool python_heap_type_at(struct python_heap *heap, uint64_t addr, struct python_type *ret)
{
	struct python_type *kept = &heap->types[(addr >> 5 ^ addr >> 11) % PYTHON_TYPES_KEPT];
	struct python_type type;

	if (!addr)
		return false;
	if (kept->addr == addr) {
		*ret = *kept;
		return true;
	}
	if (!is_type(heap, addr) || !read_type(heap, addr, &type) || !find_kind(heap, &type))
		return false;
	*kept = type;
	*ret = type;
	return true;
}

bool python_heap_type(struct python_heap *heap, uint64_t addr, struct python_type *ret)
{
	uint64_t type;

	return !(addr & 7) && python_heap_u64(heap, addr, heap->offsets->object_type, &type) &&
	       python_heap_type_at(heap, type, ret);
}

bool python_kind_is_definition(enum python_kind kind)
{
	return kind == PYTHON_KIND_module || kind == PYTHON_KIND_function ||
	       kind == PYTHON_KIND_builtin || kind == PYTHON_KIND_type ||
	       kind == PYTHON_KIND_old_class;
}
