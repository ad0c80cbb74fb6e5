/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing; removal shifts back, so that there are no tombstones. */
#include "base/hash.h"

#include <string.h>

void hash_index_deinit(struct hash_index *index)
{
	free(index->slots);
	*index = (struct hash_index)HASH_INDEX_INIT;
}

void hash_index_clear(struct hash_index *index)
{
	if (index->slots)
		memset(index->slots, 0, ((size_t)index->mask + 1) * sizeof(*index->slots));
	index->count = 0;
}

static uint32_t fold(uint64_t hash)
{
	return (uint32_t)(hash ^ hash >> 32);
}

bool hash_find(const struct hash_index *index, uint64_t hash, hash_equal_fn *equal,
	       const void *context, uint32_t *ret)
{
	uint32_t folded = fold(hash);

	if (!index->slots)
		return false;
	for (uint32_t i = folded & index->mask;; i = (i + 1) & index->mask) {
		const struct hash_slot *slot = &index->slots[i];
		if (!slot->item_plus_1)
			return false;
		if (slot->hash == folded && equal(context, slot->item_plus_1 - 1)) {
			*ret = slot->item_plus_1 - 1;
			return true;
		}
	}
}

static void insert(struct hash_slot *slots, uint32_t mask, struct hash_slot slot)
{
	uint32_t i = slot.hash & mask;

	while (slots[i].item_plus_1)
		i = (i + 1) & mask;
	slots[i] = slot;
}

static struct error *grow(struct hash_index *index)
{
	uint32_t room = index->slots ? (index->mask + 1) * 2 : 16;
	struct hash_slot *slots = room ? calloc(room, sizeof(*slots)) : NULL;

	if (!slots)
		return error_oom();
	if (index->slots)
		for (uint32_t i = 0; i <= index->mask; i++)
			if (index->slots[i].item_plus_1)
				insert(slots, room - 1, index->slots[i]);
	free(index->slots);
	index->slots = slots;
	index->mask = room - 1;
	return NULL;
}

struct error *hash_add(struct hash_index *index, uint64_t hash, uint32_t item)
{
	// At most 3/4 full: linear probing degrades quickly beyond that.
	if (!index->slots || (uint64_t)(index->count + 1) * 4 > (uint64_t)(index->mask + 1) * 3)
		TRY(grow(index));
	insert(index->slots, index->mask, (struct hash_slot){fold(hash), item + 1});
	index->count++;
	return NULL;
}

void hash_remove(struct hash_index *index, uint64_t hash, uint32_t item)
{
	uint32_t mask = index->mask;

	if (!index->slots)
		return;

	uint32_t hole = fold(hash) & mask;
	while (index->slots[hole].item_plus_1 && index->slots[hole].item_plus_1 != item + 1)
		hole = (hole + 1) & mask;
	if (!index->slots[hole].item_plus_1)
		return;

	// A later slot may move into the hole if its home position does not lie behind the hole.
	for (uint32_t i = (hole + 1) & mask; index->slots[i].item_plus_1; i = (i + 1) & mask) {
		uint32_t home = index->slots[i].hash & mask;
		if (((i - home) & mask) >= ((i - hole) & mask)) {
			index->slots[hole] = index->slots[i];
			hole = i;
		}
	}
	index->slots[hole] = (struct hash_slot){0};
	index->count--;
}

uint64_t hash_bytes(const void *data, size_t size, uint64_t seed)
{
	const uint8_t *at = data;
	uint64_t hash = seed ^ (size * 0x9e3779b97f4a7c15ull);

	for (; size >= 8; at += 8, size -= 8) {
		uint64_t word;
		memcpy(&word, at, 8);
		hash = hash_u64(hash ^ word) + 0x9e3779b97f4a7c15ull;
	}
	uint64_t tail = 0;
	memcpy(&tail, at, size);
	return hash_u64(hash ^ tail ^ (uint64_t)size << 56);
}
