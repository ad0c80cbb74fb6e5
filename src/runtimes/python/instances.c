/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/python/instances.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "runtimes/python/dicts.h"
#include "runtimes/python/text.h"

enum {
	BASES_MAX = 32,
	SLOTS_MAX = 128, /* members of one class */
	/* struct PyMemberDef {name, type, offset, flags, doc}: Include/structmember.h. */
	MEMBER_SIZE = 40,
	MEMBER_TYPE = 8,
	MEMBER_OFFSET = 16,
	MEMBER_OBJECT_EX = 16, /* T_OBJECT_EX, what __slots__ makes */
	/* tp_members, tp_getset, tp_base: in this order in all versions. */
	MEMBERS_BEFORE_BASE = 16,
};

struct visit {
	struct python_heap *heap;
	python_attribute_fn *fn;
	void *context;
	unsigned seen;
	bool stopped, incomplete;
};

static void visit_one(struct visit *visit, struct python_attribute *attribute)
{
	if (++visit->seen > PYTHON_ATTRIBUTES_MAX || !visit->fn(visit->context, attribute))
		visit->stopped = true;
}

static void visit_entries(struct visit *visit, struct python_entries *entries)
{
	struct python_heap *heap = visit->heap;
	uint64_t key;
	struct python_attribute attribute;

	while (!visit->stopped && python_entries_next(heap, entries, &key, &attribute.value)) {
		enum python_text outcome = python_text_read(&heap->memory, heap->offsets, key,
							    attribute.name, sizeof(attribute.name));
		if (outcome == PYTHON_TEXT_unreadable)
			visit->incomplete = true;
		else if (outcome == PYTHON_TEXT_read)
			visit_one(visit, &attribute);
	}
	if (entries->unreadable)
		visit->incomplete = true;
}

static void visit_dict(struct visit *visit, uint64_t dict)
{
	struct python_entries entries;
	struct python_type type;

	if (!python_heap_type(visit->heap, dict, &type) || type.kind != PYTHON_KIND_dict ||
	    !python_dict_open(visit->heap, dict, &entries)) {
		visit->incomplete = true;
		return;
	}
	visit_entries(visit, &entries);
}

/* Values at VALUES, whose keys the class has. */
static void visit_values(struct visit *visit, const struct python_type *type, uint64_t values)
{
	struct python_heap *heap = visit->heap;
	struct python_entries entries;
	uint64_t keys;

	if (!python_heap_u64(heap, type->addr, heap->offsets->type_heap_keys, &keys) ||
	    !python_keys_open(heap, keys, values + heap->offsets->values_items, &entries)) {
		visit->incomplete = true;
		return;
	}
	visit_entries(visit, &entries);
}

/*
 * 3.13 and later: values in the object, behind its own size (pycore_object.h,
 * _PyObject_InlineValues()), as long as they are valid. False: there are none.
 */
static bool visit_inline(struct visit *visit, uint64_t addr, const struct python_type *type)
{
	const struct python_offsets *at = visit->heap->offsets;
	uint64_t values = addr + type->basic_size;
	uint8_t valid, capacity;

	if (at->type_flag_values == PYTHON_ABSENT || !(type->flags & at->type_flag_values))
		return false;
	if (!python_heap_bytes(visit->heap, values, at->values_valid, &valid, 1) ||
	    !python_heap_bytes(visit->heap, values, at->values_capacity, &capacity, 1)) {
		visit->incomplete = true;
		return true;
	}
	if (!valid || !capacity)
		return false;
	visit_values(visit, type, values);
	return true;
}

/* 3.11 and later: words in front of the object (pycore_object.h, MANAGED_DICT_OFFSET). */
static void visit_managed(struct visit *visit, uint64_t addr, const struct python_type *type)
{
	const struct python_offsets *at = visit->heap->offsets;
	uint64_t word;

	if (visit_inline(visit, addr, type))
		return;
	if (at->managed_values_before != PYTHON_ABSENT &&
	    at->managed_values_before != at->managed_dict_before) {
		if (!python_heap_u64(visit->heap, addr - at->managed_values_before, 0, &word)) {
			visit->incomplete = true;
			return;
		}
		if (word) {
			visit_values(visit, type, word);
			return;
		}
	}
	if (!python_heap_u64(visit->heap, addr - at->managed_dict_before, 0, &word)) {
		visit->incomplete = true;
		return;
	}
	// 3.12: one word is a dict or, with its lowest bit set, the values minus 1.
	if (word & 1)
		visit_values(visit, type, word + 1);
	else if (word)
		visit_dict(visit, word);
}

/*
 * Where tp_dictoffset says. Below 0 it counts from the end (Objects/object.c,
 * _PyObject_GetDictPtr()).
 */
static void visit_offset(struct visit *visit, uint64_t addr, const struct python_type *type)
{
	int64_t offset = type->dict_offset, items;
	uint64_t dict;

	if (offset < 0) {
		if (!python_heap_bytes(visit->heap, addr, visit->heap->offsets->object_header,
				       &items, sizeof(items))) {
			visit->incomplete = true;
			return;
		}
		items = items < 0 ? -items : items;
		if (items > 1 << 30 || type->item_size > 1 << 16)
			return;
		uint64_t size = type->basic_size + (uint64_t)items * type->item_size;
		offset += (int64_t)((size + 7) & ~7ull);
	}
	if (!python_heap_u64(visit->heap, addr + (uint64_t)offset, 0, &dict))
		visit->incomplete = true;
	else if (dict)
		visit_dict(visit, dict);
}

/* The slots that the class at TYPE itself has; false at the end of its members. */
static bool visit_member(struct visit *visit, uint64_t addr, uint64_t member)
{
	struct python_attribute attribute;
	uint8_t row[MEMBER_SIZE];
	uint64_t name, offset;
	uint32_t type;

	if (!python_heap_bytes(visit->heap, member, 0, row, sizeof(row))) {
		visit->incomplete = true;
		return false;
	}
	memcpy(&name, row, sizeof(name));
	memcpy(&type, row + MEMBER_TYPE, sizeof(type));
	memcpy(&offset, row + MEMBER_OFFSET, sizeof(offset));
	if (!name)
		return false;
	if (type != MEMBER_OBJECT_EX)
		return true;
	if (offset > 1 << 20 ||
	    !python_heap_string(visit->heap, name, attribute.name, sizeof(attribute.name)) ||
	    !python_heap_u64(visit->heap, addr + offset, 0, &attribute.value)) {
		visit->incomplete = true;
		return true;
	}
	if (attribute.value)
		visit_one(visit, &attribute);
	return !visit->stopped;
}

/* __slots__ of the class and of those it is made of. */
static void visit_slots(struct visit *visit, uint64_t addr, const struct python_type *type)
{
	const struct python_offsets *at = visit->heap->offsets;
	uint64_t base = type->addr;

	for (int i = 0; i < BASES_MAX && base && !visit->stopped; i++) {
		uint64_t flags, members = 0;
		if (!python_heap_u64(visit->heap, base, at->type_flags, &flags)) {
			visit->incomplete = true;
			return;
		}
		// Members of a class that was made at run time are its slots.
		if (flags & PYTHON_TYPE_HEAP &&
		    !python_heap_u64(visit->heap, base, at->type_base - MEMBERS_BEFORE_BASE,
				     &members))
			visit->incomplete = true;
		for (int k = 0; k < SLOTS_MAX && members; k++)
			if (!visit_member(visit, addr, members + (uint64_t)k * MEMBER_SIZE))
				break;
		if (!python_heap_u64(visit->heap, base, at->type_base, &base)) {
			visit->incomplete = true;
			return;
		}
	}
}

bool python_attributes(struct python_heap *heap, uint64_t addr, const struct python_type *type,
		       python_attribute_fn *fn, void *context)
{
	const struct python_offsets *at = heap->offsets;
	struct visit visit = {.heap = heap, .fn = fn, .context = context};
	uint64_t dict;

	if (type->kind == PYTHON_KIND_old_instance) {
		// 2.7, Include/classobject.h: in_class, in_dict.
		if (!python_heap_u64(heap, addr, at->object_header + 8, &dict))
			return false;
		visit_dict(&visit, dict);
		return !visit.incomplete;
	}
	if (at->type_flag_dict != PYTHON_ABSENT && type->flags & at->type_flag_dict)
		visit_managed(&visit, addr, type);
	else if (type->dict_offset)
		visit_offset(&visit, addr, type);
	if (!visit.stopped)
		visit_slots(&visit, addr, type);
	return !visit.incomplete;
}

struct find {
	const char *name;
	uint64_t value;
};

static bool find_one(void *context, const struct python_attribute *attribute)
{
	struct find *find = context;

	if (strcmp(attribute->name, find->name) != 0)
		return true;
	find->value = attribute->value;
	return false;
}

enum python_find python_attribute_find(struct python_heap *heap, uint64_t addr, const char *name,
				       uint64_t *ret)
{
	struct find find = {.name = name};
	struct python_type type;

	if (!python_heap_type(heap, addr, &type))
		return PYTHON_FIND_unreadable;
	bool whole = python_attributes(heap, addr, &type, find_one, &find);
	if (!find.value)
		return whole ? PYTHON_FIND_missing : PYTHON_FIND_unreadable;
	*ret = find.value;
	return PYTHON_FIND_found;
}

static bool is_builtin_module(const char *module)
{
	static const char *const modules[] = {"builtins", "__builtin__", "exceptions"};

	for (size_t i = 0; i < ARRAY_COUNT(modules); i++)
		if (!strcmp(module, modules[i]))
			return true;
	return false;
}

/* What a class made at run time is called: its __qualname__, in 2.7 __name__. */
static bool heap_type_name(struct python_heap *heap, const struct python_type *type,
			   char ret[static PYTHON_TYPE_NAME_MAX])
{
	const struct python_offsets *at = heap->offsets;
	uint32_t offset = at->type_heap_qualname == PYTHON_ABSENT ? at->type_heap_name
								  : at->type_heap_qualname;
	char module[PYTHON_TYPE_NAME_MAX / 2], name[PYTHON_TYPE_NAME_MAX / 2];
	uint64_t addr;

	if (!python_heap_u64(heap, type->addr, offset, &addr) ||
	    python_text_read(&heap->memory, at, addr, name, sizeof(name)) != PYTHON_TEXT_read)
		return false;
	if (python_dict_find(heap, type->dict, "__module__", &addr) != PYTHON_FIND_found ||
	    python_text_read(&heap->memory, at, addr, module, sizeof(module)) != PYTHON_TEXT_read ||
	    is_builtin_module(module))
		snprintf(ret, PYTHON_TYPE_NAME_MAX, "%s", name);
	else
		snprintf(ret, PYTHON_TYPE_NAME_MAX, "%s.%s", module, name);
	return true;
}

void python_type_name(struct python_heap *heap, const struct python_type *type,
		      char ret[static PYTHON_TYPE_NAME_MAX])
{
	static const char builtin[] = "exceptions.";
	char name[PYTHON_TYPE_NAME_MAX];

	if (type->flags & PYTHON_TYPE_HEAP && heap_type_name(heap, type, ret))
		return;
	if (!python_heap_string(heap, type->name, name, sizeof(name)))
		snprintf(name, sizeof(name), "?");
	size_t skip = strncmp(name, builtin, sizeof(builtin) - 1) != 0 ? 0 : sizeof(builtin) - 1;
	snprintf(ret, PYTHON_TYPE_NAME_MAX, "%s", name + skip);
}
