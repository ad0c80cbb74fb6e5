/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols by their names, for whoever has to know whether an object has one: what it exports, in a
 * few reads through the hash table that the dynamic loader uses, and all that it has. (Names of
 * addresses are symbolize/'s.)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct object;

/* A symbol that the object defines. */
struct object_symbol {
	uint64_t addr, size;
	uint8_t type; /* STT_FUNC, STT_OBJECT, ... */
};

/* Where an object keeps what it exports. */
struct object_exports {
	struct object *object; /* borrowed */
	uint64_t symbols, strings, strings_size;
	uint64_t gnu_hash, hash; /* 0: none */
	/* The head of gnu_hash. */
	uint32_t buckets, first, words, shift;
};

/* False: it exports nothing by name, or its tables make no sense. Sections are not needed. */
bool object_exports_open(struct object *object, struct object_exports *ret);

/* The definition of NAME, at most 100 characters. False: there is none. */
bool object_export_find(const struct object_exports *exports, const char *name,
			struct object_symbol *ret);

/* NAME is valid during the call. */
typedef void object_symbol_fn(void *context, const char *name, const struct object_symbol *symbol);

/*
 * Call EACH for every definition in .symtab or, without one, in .dynsym. Their bytes stay in memory
 * until object_release().
 */
void object_symbols(struct object *object, object_symbol_fn *each, void *context);
