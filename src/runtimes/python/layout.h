/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How CPython lays out what the host reads: for each version and build, from layouts.def, and from
 * 3.13 on corrected by the table that the interpreter carries (_Py_DebugOffsets).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/python.h"
#include "proc/memory.h"

/* Builds of one version that lay out their objects differently. Py_DEBUG alone moves nothing. */
enum python_build {
	PYTHON_BUILD_PLAIN = 0,
	/* Py_TRACE_REFS; up to 3.7 debug builds have it, from 3.13 on it changes nothing. */
	PYTHON_BUILD_TRACED,
	PYTHON_BUILD_FREE, /* free-threaded, 3.13 and later */
	PYTHON_BUILDS,
};

struct python_offsets {
	uint16_t version;      /* 0x030b: 3.11 */
	uint8_t build;         /* enum python_build */
	uint8_t unicode_width; /* 2.7: bytes of a unit of unicode, 2 or 4; 3 and later: 0 */
#define FIELD(name, help) uint32_t name;
#include "runtimes/python/fields.def"
#undef FIELD
};

/* The offsets of VERSION (0x030b: 3.11) in BUILD. False: nothing is known of it. */
bool python_offsets_find(uint16_t version, enum python_build build, struct python_offsets *ret);

enum python_table {
	PYTHON_TABLE_ok,
	PYTHON_TABLE_unreadable,
	PYTHON_TABLE_none,    /* no cookie */
	PYTHON_TABLE_version, /* of a version that nothing is known of */
	PYTHON_TABLE_odd,     /* its numbers make no sense */
};

/* The offsets of an interpreter of 3.13 or later whose _PyRuntime is at ADDR. */
enum python_table python_offsets_read(const struct memory *memory, uint64_t addr,
				      struct python_offsets *ret);

/* What walkers need of them. */
struct python_layout python_offsets_layout(const struct python_offsets *at);
