/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a string object in a process's memory: str of Python 3 in all its forms, unicode and
 * str of Python 2. Nothing of it is trusted; what it costs depends on the room for the text alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proc/memory.h"
#include "runtimes/python/layout.h"

enum python_text {
	PYTHON_TEXT_read,
	PYTHON_TEXT_unreadable,
	PYTHON_TEXT_not_a_string,
};

/* Where a string keeps its units. */
struct python_string {
	uint64_t data;   /* address of the first unit */
	uint64_t length; /* how many units it says it has */
	uint8_t width;   /* bytes of a unit: 1, 2 or 4 */
	bool bytes;      /* str of Python 2: bytes of no known encoding */
	bool pairs;      /* two surrogates are one character */
};

/* Of the object at ADDR. RET is set with PYTHON_TEXT_read alone. */
enum python_text python_string_find(const struct memory *memory, const struct python_offsets *at,
				    uint64_t addr, struct python_string *ret);

/*
 * Its text as UTF-8 with a NUL behind it, in the SIZE bytes at RET (at least 4). A text that is
 * longer ends in U+2026. What UTF-8 cannot say is written as Python's repr() writes it: \ud800 for
 * a surrogate, \xff for a byte that is no UTF-8, and \x00. Unless the outcome
 * is PYTHON_TEXT_read RET holds the empty string.
 */
enum python_text python_string_read(const struct memory *memory, const struct python_string *string,
				    char *ret, size_t size);

/* Both in one. */
enum python_text python_text_read(const struct memory *memory, const struct python_offsets *at,
				  uint64_t addr, char *ret, size_t size);
