/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a pclntab, for the files go*.c. The layouts follow the Go runtime (pcHeader,
 * moduledata and _func in src/runtime/symtab.go and runtime2.go of Go 1.16 to 1.26):
 *
 *   header   magic u32 | 0 u16 | instruction quantum u8 | pointer size u8 | functions u64 |
 *            files u64 | text start u64 (from 1.18 on; zero in 1.26) | offsets from the header of:
 *            names, units (u32 file numbers), files, pc-value tables, functions
 *   functab  at "functions": entry and offset of the record, of each function and of the end;
 *            u64 and absolute before 1.18, then u32 and from the text start
 *   record   see struct go_record; behind it the offsets of its pcdata tables, then its funcdata
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"
#include "object/go-view.h"
#include "object/go.h"

enum go_form {
	GO_FORM_1_16, /* 0xfffffffa */
	GO_FORM_1_18, /* 0xfffffff0 */
	GO_FORM_1_20, /* 0xfffffff1 */
};

/* Where the parts of a table are: object addresses. */
struct go_parts {
	enum go_form form;
	uint8_t quantum;
	uint32_t count;
	uint64_t start, end; /* of everything */
	uint64_t text_hint;  /* text start as the header says; 0: it does not */
	uint64_t names, units, files, values, functions;
};

struct go_string {
	uint64_t addr;
	const char *text;
};

struct go_table {
	struct object *object; /* borrowed */
	struct go_view view;
	struct go_parts at;
	uint64_t text; /* what entries are counted from; 0 before 1.18 */
	uint64_t
		func_data; /* what funcdata is counted from; 0: absolute (before 1.18) or unknown */
	struct arena arena;
	struct go_string *strings;
	size_t string_count, string_room;
	struct hash_index string_index;
};

enum {
	GO_FLAG_TOP_FRAME = 1, /* outermost frame of a stack (since 1.17) */
	GO_FLAG_SP_WRITE = 2,  /* sets the stack pointer to something else */
};

/* A function as the table describes it. */
struct go_record {
	uint64_t entry, end;
	uint64_t addr;                                /* of the record */
	uint32_t name;                                /* offset among the names */
	uint32_t sp_values, file_values, line_values; /* offsets among the pc-value tables */
	uint32_t unit;                                /* first of its units */
	uint32_t start_line;
	uint32_t pcdata_count;
	uint8_t flags, funcdata_count;
	uint64_t pcdata; /* addresses of the two arrays */
	uint64_t funcdata;
};

/* Number INDEX. False: damaged. */
bool go_record_read(struct go_table *table, uint32_t index, struct go_record *ret);

/* The one FUNCTION stands for. */
bool go_record_of(struct go_table *table, const struct go_function *function,
		  struct go_record *ret);

/* Offset of pc-value table NUMBER of the record's pcdata. False: there is none. */
bool go_record_pcdata(struct go_table *table, const struct go_record *record, uint32_t number,
		      uint32_t *ret);

/* Address of the record's funcdata NUMBER. False: there is none. */
bool go_record_funcdata(struct go_table *table, const struct go_record *record, uint32_t number,
			uint64_t *ret);

/* The string at ADDR, kept in the table. NULL: damaged, or no memory or room for it. */
const char *go_table_string(struct go_table *table, uint64_t addr);
const char *go_table_name(struct go_table *table, uint32_t offset);
