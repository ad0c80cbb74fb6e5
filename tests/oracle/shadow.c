/* SPDX-License-Identifier: Apache-2.0 */
#include "shadow.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static bool is_prefix(uint8_t byte)
{
	return (byte >= 0x40 && byte <= 0x4f) || byte == 0x66 || byte == 0x67 || byte == 0xf2 ||
	       byte == 0xf3 || byte == 0x2e || byte == 0x3e || byte == 0x26 || byte == 0x36 ||
	       byte == 0x64 || byte == 0x65;
}

enum shadow_kind shadow_decode(const uint8_t code[SHADOW_CODE_BYTES])
{
	size_t i = 0;

	while (i < SHADOW_CODE_BYTES - 2 && is_prefix(code[i]))
		i++;
	if (code[i] == 0xe8)
		return SHADOW_call;
	if (code[i] == 0xff && (code[i + 1] >> 3 & 7) == 2)
		return SHADOW_call;
	if (code[i] == 0xff && (code[i + 1] >> 3 & 7) == 4)
		return SHADOW_return;
	if (code[i] == 0xc3 || code[i] == 0xc2)
		return SHADOW_return;
	if (code[i] == 0x0f && code[i + 1] == 0x05)
		return SHADOW_syscall;
	return SHADOW_other;
}

void shadow_free(struct shadow *shadow)
{
	for (size_t i = 0; shadow && i < shadow->regions; i++)
		free(shadow->region[i].entry);
	free(shadow);
}

struct shadow_region *shadow_find(struct shadow *shadow, uint64_t sp)
{
	for (size_t i = 0; i < shadow->regions; i++)
		if (sp >= shadow->region[i].low && sp < shadow->region[i].high)
			return &shadow->region[i];
	return NULL;
}

struct error *shadow_add(struct shadow *shadow, uint64_t low, uint64_t high,
			 struct shadow_region **ret)
{
	// An emptied region keeps its place, so that pointers to others stay valid.
	struct shadow_region *to = NULL;

	for (size_t i = 0; i < shadow->regions; i++) {
		struct shadow_region *region = &shadow->region[i];
		if (region->low < high && low < region->high)
			region->low = region->high = region->count = 0;
		if (!region->high)
			to = region;
	}
	if (!to) {
		if (shadow->regions == SHADOW_REGIONS_MAX)
			return error_new("more than %d stacks", SHADOW_REGIONS_MAX);
		to = &shadow->region[shadow->regions++];
	}
	to->low = low;
	to->high = high;
	to->count = 0;
	*ret = to;
	return NULL;
}

struct error *shadow_push(struct shadow_region *region, const struct shadow_entry *entry)
{
	// What lies at or below the new slot was left without a return (Go's mcall).
	shadow_pop(region, entry->slot + 1);
	TRY(ARRAY_RESERVE(region->entry, region->room, region->count, 1, SHADOW_DEPTH_MAX,
			  "nested calls"));
	region->entry[region->count++] = *entry;
	return NULL;
}

void shadow_pop(struct shadow_region *region, uint64_t sp)
{
	while (region->count && region->entry[region->count - 1].slot < sp)
		region->count--;
}

void shadow_pop_signal(struct shadow_region *region)
{
	while (region->count && !region->entry[region->count - 1].signal)
		region->count--;
	region->count -= region->count != 0;
}

const struct shadow_entry *shadow_top(const struct shadow_region *region)
{
	return region->count ? &region->entry[region->count - 1] : NULL;
}

const struct shadow_entry *shadow_caller(const struct shadow_region *region, uint64_t sp)
{
	for (size_t i = region->count; i-- > 0;)
		if (region->entry[i].slot >= sp)
			return &region->entry[i];
	return NULL;
}
