/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of dicts and sets of every generation: open tables (2.7), combined and split tables
 * (3.3 and later), tables that keep the order (3.6 and later), those of strings alone (3.11 and
 * later). A dict may grow or go while it is read.
 */
#pragma once

#include "runtimes/python/heap.h"

enum {
	/* More slots of one table are not looked at. */
	PYTHON_SLOTS_MAX = 1 << 20,
	PYTHON_ENTRIES_AT_ONCE = 32,
	PYTHON_ENTRY_SIZE_MAX = 32,
};

/* What has been read of the table of a dict or a set, and how far. */
struct python_entries {
	uint64_t addr;   /* the dict or set */
	uint64_t used;   /* how many it says it holds */
	uint64_t table;  /* address of the first entry */
	uint64_t values; /* of a split table: address of the first value; else 0 */
	uint64_t slots;
	uint32_t size, key, value; /* of an entry; offsets in it, PYTHON_ABSENT */
	uint32_t hash;             /* of a set's; PYTHON_ABSENT */

	uint64_t next;   /* slot */
	uint64_t found;  /* entries given out */
	bool unreadable; /* it ended because something could not be read */
	uint32_t held, held_at;
	uint8_t entries[PYTHON_ENTRIES_AT_ONCE * PYTHON_ENTRY_SIZE_MAX];
};

/* False: unreadable, or its numbers make no sense. */
bool python_dict_open(const struct python_heap *heap, uint64_t addr, struct python_entries *ret);
bool python_set_open(const struct python_heap *heap, uint64_t addr, struct python_entries *ret);

/*
 * Entries of shared keys (3.3 and later), whose values are elsewhere: instances' attributes.
 * VALUES: address of the first value.
 */
bool python_keys_open(const struct python_heap *heap, uint64_t keys, uint64_t values,
		      struct python_entries *ret);

/* The next entry; RET_VALUE is 0 in a set. False: there is none, or see unreadable. */
bool python_entries_next(const struct python_heap *heap, struct python_entries *entries,
			 uint64_t *ret_key, uint64_t *ret_value);

/* Whether two looks at one dict or set saw the same table with as many entries. */
bool python_entries_same(const struct python_entries *a, const struct python_entries *b);

enum python_find {
	PYTHON_FIND_found,
	PYTHON_FIND_missing,
	PYTHON_FIND_changed, /* it is not there, but the dict changed meanwhile: it may be now */
	PYTHON_FIND_unreadable,
};

/* The value whose key is the string NAME, in ASCII, in the dict at ADDR. */
enum python_find python_dict_find(struct python_heap *heap, uint64_t addr, const char *name,
				  uint64_t *ret);

/* The dict with the variables of the module MODULE, in the dict sys.modules at MODULES. */
enum python_find python_module_find_dict(struct python_heap *heap, uint64_t modules,
					 const char *module, uint64_t *ret);

/* The variable NAME of the module MODULE, in the dict sys.modules at MODULES. */
enum python_find python_module_find(struct python_heap *heap, uint64_t modules, const char *module,
				    const char *name, uint64_t *ret);

/* Whether the object at ADDR is the string NAME. */
bool python_text_is(struct python_heap *heap, uint64_t addr, const char *name);
