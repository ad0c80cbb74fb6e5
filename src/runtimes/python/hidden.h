/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CPython that was linked into a program which exports none of its names, and stripped: known by
 * what it imports, and by data that is in each of them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtimes/python/find.h"

struct object;

struct python_hidden {
	uint16_t version;
	uint64_t runtime;         /* _PyRuntime; 0: not known */
	struct python_range data; /* of the object, where it or the interpreters' list is */
};

/*
 * False: there is none, or its version is not told. Of most objects a few kilobytes are read for
 * that, of the others their constants and data.
 */
bool python_hidden_find(struct object *object, struct python_hidden *ret);
