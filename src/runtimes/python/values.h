/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a value looks like, without asking the program: the text that repr() would give for numbers,
 * strings and containers of them; for anything else its class, its name and where it is. A reader
 * sees what was left out: "…", "… 5 more", "<1000 characters>".
 *
 * An object may be torn, cyclic or hostile: what a value costs is in its limits, and the text is
 * UTF-8 without controls.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proc/memory.h"
#include "runtimes/python/layout.h"

struct python_value_limits {
	uint32_t depth;      /* containers within each other; at most 16 */
	uint32_t items;      /* of each container */
	uint32_t characters; /* of each string; at most 2048 */
	uint32_t attributes; /* of each instance; 0: none */
	uint32_t reads;      /* of memory, for the whole value */
};

/* For a line per value, and for those who want to know all. */
extern const struct python_value_limits python_value_line, python_value_more;

/* Where values are. */
struct python_values {
	const struct memory *memory;              /* borrowed */
	const struct python_offsets *offsets;     /* borrowed */
	const struct python_value_limits *limits; /* borrowed */
};

/*
 * The object at ADDR as text with a NUL behind it, in the SIZE bytes at TO (at least 8). Its length
 * without the NUL.
 */
size_t python_value_print(const struct python_values *from, uint64_t addr, char *to, size_t size);
