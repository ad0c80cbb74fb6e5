/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Function symbols of one object, merged from several symbol tables. A symbol takes 16 bytes; names
 * stay in the string tables of the file and are read when one is asked for.
 *
 * Of several symbols at one address the better one is kept: global before weak before local,
 * functions before indirect functions before labels, sized before unsized, no leading underscore
 * before one ("puts" rather than "_IO_puts"), and names of the file's own tables before those made
 * up for its PLT.
 *
 * A symbol without a size extends to the next symbol, but not beyond its section.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"
#include "object/object.h"

enum {
	SYMTAB_MAX = 16 << 20, /* symbols */
	SYMTAB_SOURCES = 8,
	SYMTAB_ADDR_BITS = 56, /* symbols at higher addresses are left out */
};

struct symtab_entry {
	uint64_t key; /* address << 8 | rank; a lower rank is a better name */
	uint32_t size;
	uint32_t name; /* source << 29 | offset in its strings */
};

/* A string table. */
struct symtab_source {
	struct object *object; /* borrowed from whoever added it */
	const char *section;   /* a constant */
	const char *suffix;    /* a constant: "@plt" */
	struct bytes strings;  /* borrowed from object while loaded */
	bool loaded;
};

struct symtab_range {
	uint64_t start, end;
};

struct symtab {
	struct symtab_entry *entry;
	size_t count, room;
	struct symtab_range *text; /* executable sections, sorted */
	size_t text_count, text_room;
	struct symtab_source source[SYMTAB_SOURCES];
	size_t source_count;
};

#define SYMTAB_INIT                                                                                \
	{                                                                                          \
		0                                                                                  \
	}

void symtab_deinit(struct symtab *symtab);

/* Where code is: the executable sections of OBJECT, or its executable segments if it has no section
 * table. Comes before symbols are added. */
struct error *symtab_set_text(struct symtab *symtab, struct object *object);

/* Add the function symbols of section TABLE (".symtab") of OBJECT, whose names are in STRINGS. No
 * such section is no failure; what is damaged in it is left out. */
struct error *symtab_add(struct symtab *symtab, struct object *object, const char *table,
			 const char *strings);

/* Add a symbol of its own: SOURCE is the number of a source, NAME an offset in its strings. */
struct error *symtab_add_made(struct symtab *symtab, uint64_t addr, uint32_t size, size_t source,
			      uint32_t name);
struct error *symtab_add_source(struct symtab *symtab, struct object *object, const char *strings,
				const char *suffix, size_t *ret);

/* Sort, and keep one symbol per address. Comes between adding and finding. */
void symtab_finish(struct symtab *symtab);

/* Forget string tables, which object_release() is about to take away. */
void symtab_release(struct symtab *symtab);

struct symtab_found {
	const char *name;   /* NUL-terminated; borrowed until symtab_release() */
	const char *suffix; /* "" or "@plt" */
	uint64_t start;
	bool sized; /* the file says how long it is */
};

/* The symbol that holds ADDR. False: none does. */
bool symtab_find(struct symtab *symtab, uint64_t addr, struct symtab_found *ret);

size_t symtab_bytes(const struct symtab *symtab);

/* Reads words of the file's class: 4 or 8 bytes. */
struct error *symtab_word(struct bytes *b, bool is_64, uint64_t *ret);
