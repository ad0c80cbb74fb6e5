/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index from hash to item number. The items themselves stay in their owner's array; the owner
 * compares. One implementation therefore serves every key type without generated code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct hash_slot {
	uint32_t hash;
	uint32_t item_plus_1; /* 0: free */
};

struct hash_index {
	struct hash_slot *slots;
	uint32_t mask;  /* slots - 1, slots being a power of two */
	uint32_t count; /* items in it */
};

#define HASH_INDEX_INIT                                                                            \
	{                                                                                          \
		0                                                                                  \
	}

/* Is item number ITEM the one looked for? CONTEXT is what the caller of hash_find() passed. */
typedef bool hash_equal_fn(const void *context, uint32_t item);

void hash_index_deinit(struct hash_index *index);
void hash_index_clear(struct hash_index *index);

/* The item with this hash for which EQUAL holds. False: there is none and RET is untouched. */
bool hash_find(const struct hash_index *index, uint64_t hash, hash_equal_fn *equal,
	       const void *context, uint32_t *ret);

/* Add an item that is known to be absent. ITEM is below 2^32 - 1. */
struct error *hash_add(struct hash_index *index, uint64_t hash, uint32_t item);

/* Remove ITEM, added under the same hash; an absent one is ignored. */
void hash_remove(struct hash_index *index, uint64_t hash, uint32_t item);

/* Hashes: not for adversaries alone, since every table here is bounded. */
uint64_t hash_bytes(const void *data, size_t size, uint64_t seed);

static inline uint64_t hash_u64(uint64_t value)
{
	value ^= value >> 32;
	value *= 0xd6e8feb86659fd93ull;
	value ^= value >> 32;
	value *= 0xd6e8feb86659fd93ull;
	return value ^ value >> 32;
}
