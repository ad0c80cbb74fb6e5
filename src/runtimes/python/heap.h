/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of an interpreter, seen from outside: what type each has. Nothing read is trusted. A
 * graph of objects may be cyclic, torn or made to cost time, so that whoever looks at it pays from
 * a purse of reads and simply sees unreadable memory when it is empty.
 *
 * The kinds are those whose layout is known. An instance of a class that the program made of one of
 * them has that kind, too; it is not exact.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proc/memory.h"
#include "runtimes/python/layout.h"

enum python_kind {
	PYTHON_KIND_object, /* anything whose layout is not known */
	PYTHON_KIND_none,
	PYTHON_KIND_ellipsis,
	PYTHON_KIND_not_implemented,
	PYTHON_KIND_bool,
	PYTHON_KIND_small, /* int of 2.7 */
	PYTHON_KIND_long,
	PYTHON_KIND_float,
	PYTHON_KIND_complex,
	PYTHON_KIND_text, /* unicode of 2.7, str since */
	PYTHON_KIND_bytes,
	PYTHON_KIND_bytearray,
	PYTHON_KIND_tuple,
	PYTHON_KIND_list,
	PYTHON_KIND_dict,
	PYTHON_KIND_set,
	PYTHON_KIND_frozenset,
	PYTHON_KIND_mapping_proxy,
	PYTHON_KIND_range,
	PYTHON_KIND_slice,
	PYTHON_KIND_type,
	PYTHON_KIND_old_class,
	PYTHON_KIND_old_instance,
	PYTHON_KIND_exception,
	PYTHON_KIND_module,
	PYTHON_KIND_function,
	PYTHON_KIND_builtin,
	PYTHON_KIND_method,
	PYTHON_KIND_code,
	PYTHON_KIND_cell,
	PYTHON_KIND_generator,
	PYTHON_KIND_coroutine,
	PYTHON_KIND_async_generator,
	PYTHON_KIND_awaiter, /* forwards to its first member: coroutine_wrapper and the like */
	PYTHON_KIND_weakref,
	PYTHON_KIND_array, /* numpy.ndarray */
	PYTHON_KINDS,
};

enum {
	PYTHON_TYPE_NAME_MAX = 128,
	PYTHON_TYPES_KEPT = 32,
	/* Of type_flags, in all versions: Include/object.h, Py_TPFLAGS_HEAPTYPE. */
	PYTHON_TYPE_HEAP = 1 << 9,
};

struct python_type {
	uint64_t addr; /* 0: none */
	uint64_t flags, base, name, dict;
	uint64_t basic_size, item_size;
	int64_t dict_offset;
	enum python_kind kind;
	bool exact;
};

struct python_heap {
	struct memory memory; /* pays for each read; made by python_heap_init() */
	const struct memory *target;
	const struct python_offsets *offsets;
	uint32_t reads_left;
	struct python_type types[PYTHON_TYPES_KEPT];
};

/* A heap may not be moved after this. MEMORY and OFFSETS are borrowed. */
void python_heap_init(struct python_heap *heap, const struct memory *memory,
		      const struct python_offsets *offsets, uint32_t reads);

/* False: not readable, or OFFSET is PYTHON_ABSENT. */
bool python_heap_bytes(const struct python_heap *heap, uint64_t addr, uint32_t offset, void *to,
		       size_t size);

static inline bool python_heap_u64(const struct python_heap *heap, uint64_t addr, uint32_t offset,
				   uint64_t *ret)
{
	return python_heap_bytes(heap, addr, offset, ret, sizeof(*ret));
}

static inline bool python_heap_u32(const struct python_heap *heap, uint64_t addr, uint32_t offset,
				   uint32_t *ret)
{
	return python_heap_bytes(heap, addr, offset, ret, sizeof(*ret));
}

/* A string of C, as much of it as the SIZE bytes at RET have room for. */
bool python_heap_string(const struct python_heap *heap, uint64_t addr, char *ret, size_t size);

/*
 * The type of the object at ADDR, in RET. False: it could not be read or what is there is no
 * object.
 */
bool python_heap_type(struct python_heap *heap, uint64_t addr, struct python_type *ret);

/* The same of a type object itself, at ADDR. */
bool python_heap_type_at(struct python_heap *heap, uint64_t addr, struct python_type *ret);

/* What a program defines and does not compute: a module, function or class. */
bool python_kind_is_definition(enum python_kind kind);
