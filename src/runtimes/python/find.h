/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is there a CPython in an object file, of which version, and where are the things from which all
 * others are found? What a file is called decides nothing: an interpreter may be linked into any
 * program. Addresses are the object's own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/python.h"
#include "base/error.h"

struct object;

struct python_range {
	uint64_t start, end; /* end exclusive */
};

struct python_object {
	bool pypy;             /* this is PyPy, and nothing else is known of it */
	uint16_t version;      /* 0x030b: 3.11 */
	uint32_t version_hex;  /* PY_VERSION_HEX; 0: it does not tell, up to 3.10 */
	uint8_t unicode_width; /* 2.7: bytes of a unit of unicode; else 0 */
	uint64_t runtime;      /* _PyRuntime; 0 up to 3.6 */
	uint64_t interpreters; /* up to 3.6: the pointer to the first interpreter, interp_head */
	uint64_t holder;       /* up to 3.6: the pointer _PyThreadState_Current */
	uint64_t code_type;    /* PyCode_Type; 0: not known */
	/* Without runtime and interpreters: somewhere in here is what leads to the interpreters. */
	struct python_range data;
	struct python_range eval[PYTHON_EVALS];
	uint32_t evals;
};

/*
 * False: there is none, or nothing that a process could be read by. For an object that has nothing
 * to do with Python that takes a few reads of a few bytes. What was read of OBJECT is released.
 */
bool python_object_find(struct object *object, struct python_object *ret);
