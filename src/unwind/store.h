/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where unwind rows live: segments within a budget, modules, one table of distinct rules. The
 * memory comes from the owner (BPF maps mapped into this process, or plain memory in tests), so
 * that BPF and host read the same bytes. When the budget is full the least recently used modules
 * give way.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/unwind.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/hash.h"
#include "object/rows.h"
#include "unwind/env-host.h"

enum {
	STORE_SEGMENTS_MAX = 256,
	STORE_MODULES_MAX = 8192,
};

/* Make segment NUMBER and put it where the walkers look. RET is its memory, zeroed. */
typedef struct error *store_segment_fn(void *context, unsigned number, struct unwind_segment **ret);

struct store_options {
	unsigned segments_max; /* the budget, in MiB */
	store_segment_fn *segment;
	void *context;
	struct unwind_module
		*modules;          /* STORE_MODULES_MAX of them, read by the walkers; borrowed */
	struct unwind_rule *rules; /* UNWIND_RULES_MAX of them; borrowed */
	struct counters *counters; /* borrowed */
};

struct store;

struct error *store_new(const struct store_options *options, struct store **ret);
void store_free(struct store *store);

/* A module number for a new object. Its rows are not loaded. A failure: all numbers are taken. */
struct error *store_add_module(struct store *store, uint32_t *ret);

/* Give a module number back. Walkers must not use it any more. */
void store_remove_module(struct store *store, uint32_t module);

/*
 * Load ROWS for MODULE, making room by evicting modules that were not used for the longest time;
 * they become "not loaded". A failure leaves MODULE not loaded: the rows alone exceed the budget,
 * or memory is out.
 */
struct error *store_load(struct store *store, uint32_t module, const struct rows *rows);

/* MODULE is not loaded any more. */
void store_unload(struct store *store, uint32_t module);

bool store_loaded(const struct store *store, uint32_t module);

/* A walk went through MODULE at NOW_NS. */
void store_touch(struct store *store, uint32_t module, uint64_t now_ns);

/* The tables for a host walk; the owner adds the mappings. */
struct host_tables store_tables(const struct store *store);

size_t store_segments(const struct store *store);
