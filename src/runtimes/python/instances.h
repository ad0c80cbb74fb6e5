/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What instances have: their attributes, wherever a version keeps them (a dict, a dict that shares
 * its keys with others of the class, values beside or in the object, slots), and the name of their
 * class.
 */
#pragma once

#include "runtimes/python/dicts.h"
#include "runtimes/python/heap.h"

enum {
	PYTHON_ATTRIBUTE_NAME_MAX = 64,
	PYTHON_ATTRIBUTES_MAX = 4096,
};

struct python_attribute {
	char name[PYTHON_ATTRIBUTE_NAME_MAX]; /* UTF-8; a longer one ends in U+2026 */
	uint64_t value;                       /* address of an object */
};

/* One attribute. False: no more are wanted. */
typedef bool python_attribute_fn(void *context, const struct python_attribute *attribute);

/*
 * Give each attribute of the object at ADDR, whose type is TYPE, to FN: its own, not those of its
 * class. False: some could not be read.
 */
bool python_attributes(struct python_heap *heap, uint64_t addr, const struct python_type *type,
		       python_attribute_fn *fn, void *context);

/* The value of the attribute NAME. */
enum python_find python_attribute_find(struct python_heap *heap, uint64_t addr, const char *name,
				       uint64_t *ret);

/*
 * "module.Class"; without the module if that is the one of the built-in names. A name that cannot
 * be read is "?".
 */
void python_type_name(struct python_heap *heap, const struct python_type *type,
		      char ret[static PYTHON_TYPE_NAME_MAX]);
