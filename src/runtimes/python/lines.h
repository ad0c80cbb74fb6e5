/* SPDX-License-Identifier: Apache-2.0 */
/* Which line an instruction belongs to, by the tables that CPython's versions keep for it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum python_line {
	PYTHON_LINE_found,
	PYTHON_LINE_none, /* the compiler gave this instruction no line, or the table does not */
	PYTHON_LINE_odd,  /* the table says what no program has */
};

struct python_lines {
	const uint8_t *table; /* borrowed; co_lnotab up to 3.9, co_linetable from 3.10 on */
	size_t size;
	uint32_t first_line; /* co_firstlineno */
	uint16_t version;    /* 0x030b: 3.11 */
};

/*
 * The line of the instruction at OFFSET, in bytes from the first; below 0: before the first one has
 * run. RET is set with PYTHON_LINE_found alone.
 */
enum python_line python_lines_find(const struct python_lines *lines, int64_t offset, uint32_t *ret);
