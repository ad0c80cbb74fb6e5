/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variables of a frame: arguments, locals, cells and free variables of a function; the names of
 * a module or of a class whose body runs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proc/memory.h"
#include "runtimes/python/layout.h"
#include "runtimes/python/values.h"

enum python_local_kind {
	PYTHON_LOCAL_argument,
	PYTHON_LOCAL_local,
	PYTHON_LOCAL_free, /* of a function around this one */
	PYTHON_LOCAL_name, /* in the namespace of a module or class */
};

struct python_local {
	const char *name; /* UTF-8; a long one ends in U+2026 */
	uint64_t value;   /* address of an object, for python_value_print() */
	enum python_local_kind kind;
};

/* False: no more are wanted. */
typedef bool python_local_fn(void *context, const struct python_local *local);

enum python_locals {
	PYTHON_LOCALS_read,
	PYTHON_LOCALS_unreadable, /* some or all; those given are right */
	PYTHON_LOCALS_too_many,   /* more than 1,000 */
};

/* A frame, as a walk finds it (abi/python.h). */
struct python_frame {
	uint64_t addr;
	uint64_t code; /* address of its code object; its lowest 3 bits are ignored */
};

/*
 * Give each variable of FRAME that has a value to FN, arguments first. The limits of FROM bound
 * nothing but the reads. What a module or class defines (functions, classes, imported modules) and
 * names with two underscores on both sides are given only with DEFINITIONS.
 */
enum python_locals python_locals(const struct python_values *from, const struct python_frame *frame,
				 bool definitions, python_local_fn *fn, void *context);
