/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source lines and inlined calls from DWARF, found lazily: of the unit that holds an address only
 * the functions are listed, and of the function that holds it only the blocks around it are read.
 *
 * libdw does the decoding, on its own or a borrowed libelf handle. What it would open by itself is
 * kept from it: the shared file of dwz is looked for here first, and units whose content is in .dwo
 * files give lines but no inlined calls.
 *
 * Limits on hostile DWARF: bytes of all debug sections (unpacked), of one line program, units,
 * entries visited, depth, steps from an entry to the one it comes from, and time. Beyond them there
 * are fewer names, not a failure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "object/object.h"
#include "symbolize/debugfile.h"

enum {
	DEBUGINFO_BYTES = 512 << 20,    /* all .debug_ sections */
	DEBUGINFO_LINE_BYTES = 4 << 20, /* the line program of one unit */
	DEBUGINFO_UNITS = 1 << 20,
	DEBUGINFO_RANGES = 4 << 20,   /* address ranges of units, and of functions of one unit */
	DEBUGINFO_ENTRIES = 4 << 20,  /* looked at in one unit to list its functions */
	DEBUGINFO_LOOKUP = 256 << 10, /* looked at for one address */
	DEBUGINFO_LOOKUP_MS = 1000,   /* for one address */
	DEBUGINFO_TOTAL_MS = 30000,   /* for all of one object; then it has no lines any more */
	DEBUGINFO_DEPTH = 64,         /* blocks inside blocks, scopes inside scopes */
	DEBUGINFO_ORIGINS = 8,        /* steps to an abstract origin or a declaration */
};

struct debuginfo;

/* The DWARF of OBJECT, borrowed; NULL: it has none, or none that may be used. */
struct error *debuginfo_open(const struct debugfile_search *search, struct object *object,
			     struct debuginfo **ret);
void debuginfo_free(struct debuginfo *info);

/* A function at an address. Strings are borrowed until debuginfo_free(); name is owned by the
 * caller if scoped. */
struct debuginfo_call {
	const char *linkage_name; /* mangled; NULL: unknown */
	const char *name;         /* as in the source, without its scope; NULL: unknown */
	char *scoped_name; /* "scope::name" where there is no linkage name but a scope; owned */
	const char *file;  /* where the pc is in this function; NULL: unknown */
	const char *dir;   /* what FILE is relative to, unless it begins with '/'; may be NULL */
	uint32_t line;
	uint64_t start; /* of the machine code of a function that is not inlined; 0: unknown */
};

/* Calls at ADDR, innermost first; the last is the function that the others were inlined into. None:
 * RET_COUNT is 0. At most MAX, what is beyond is dropped from the inside. */
struct error *debuginfo_find(struct debuginfo *info, uint64_t addr, size_t max,
			     struct debuginfo_call *ret, size_t *ret_count);
void debuginfo_calls_deinit(struct debuginfo_call *calls, size_t count);

/* Memory held, libdw's part being estimated. */
size_t debuginfo_bytes(const struct debuginfo *info);
