/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code objects: what the frames of a process are called and where they are. They do not change
 * while they live, but their memory may be another one's by the time it is read: who holds an
 * address from a sample compares the cookie.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "proc/memory.h"
#include "runtimes/python/layout.h"

/* Where code objects are read. */
struct python_codes {
	const struct memory *memory;     /* borrowed */
	const struct python_offsets *at; /* borrowed */
	uint64_t type;                   /* address of PyCode_Type; 0: not known */
};

enum python_code_outcome {
	PYTHON_CODE_read,
	PYTHON_CODE_unreadable,
	PYTHON_CODE_no_code, /* something else is at that address */
};

/* What became of the table of lines. */
enum python_code_lines {
	PYTHON_CODE_LINES_read,
	PYTHON_CODE_LINES_too_long,
	PYTHON_CODE_LINES_unreadable,
};

struct python_code {
	/* Of texts that could not be read, "". Cut ones end in U+2026. */
	const char *function; /* co_qualname; co_name before 3.11, which has none */
	const char *name;     /* co_name */
	const char *file;     /* co_filename */
	uint32_t first_line;
	uint32_t cookie; /* python_cookie() */
	uint32_t flags;  /* co_flags */
	/* co_argcount, co_kwonlyargcount, co_nlocals as they are; 0 if the version has none. */
	uint32_t argcount, kwonly, nlocals;
	uint16_t version;    /* 0x030b: 3.11 */
	uint8_t lasti_bytes; /* of a unit of a position */
	enum python_code_lines lines;
	const uint8_t *table; /* the table of lines; NULL: none */
	uint32_t table_size;
	void *block;       /* what all of these are in; owned */
	size_t block_size; /* for whoever has a budget */
};

#define PYTHON_CODE_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

void python_code_deinit(struct python_code *code);

/*
 * Read the code object at ADDR; its lowest 3 bits, in which 3.14 keeps a tag, are ignored. RET is
 * set with PYTHON_CODE_read alone. A name or table that cannot be read is missing, no more.
 */
struct error *python_code_read(const struct python_codes *from, uint64_t addr,
			       enum python_code_outcome *ret_outcome, struct python_code *ret);

/*
 * The line at POSITION (abi/python.h): of what runs there, whether it is the innermost frame or has
 * called the next one. 0: that instruction has no line. Without a table it is the first line.
 */
uint32_t python_code_line(const struct python_code *code, uint32_t position);
