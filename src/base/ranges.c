/* SPDX-License-Identifier: Apache-2.0 */
/* First fit over a sorted list; neighbours are joined when both are free. */
#include "base/ranges.h"

#include <string.h>

#include "base/array.h"

enum { RANGES_MAX = 1 << 20 };

void ranges_deinit(struct ranges *ranges)
{
	free(ranges->range);
	ranges->range = NULL;
	ranges->count = ranges->room = 0;
}

/* Number of the first range that does not start before START. */
static size_t position(const struct ranges *ranges, uint32_t start)
{
	size_t low = 0, high = ranges->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (ranges->range[middle].start < start)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void remove_at(struct ranges *ranges, size_t i)
{
	memmove(ranges->range + i, ranges->range + i + 1,
		(ranges->count - i - 1) * sizeof(*ranges->range));
	ranges->count--;
}

/* Join range I with its successor if both are free now and no boundary lies between them. */
static bool join_next(struct ranges *ranges, size_t i)
{
	struct range *a = &ranges->range[i];
	const struct range *b = a + 1;

	if (i + 1 >= ranges->count || a->free_at_ns || b->free_at_ns ||
	    a->start + a->count != b->start)
		return false;
	if (ranges->boundary_bits &&
	    a->start >> ranges->boundary_bits != b->start >> ranges->boundary_bits)
		return false;
	a->count += b->count;
	remove_at(ranges, i + 1);
	return true;
}

struct error *ranges_add(struct ranges *ranges, struct range range)
{
	TRY(ARRAY_RESERVE(ranges->range, ranges->room, ranges->count, 1, RANGES_MAX,
			  "free ranges"));
	size_t at = position(ranges, range.start);
	memmove(ranges->range + at + 1, ranges->range + at, (ranges->count - at) * sizeof(range));
	ranges->range[at] = range;
	ranges->count++;
	join_next(ranges, at);
	if (at > 0)
		join_next(ranges, at - 1);
	return NULL;
}

/* Ranges whose time has come become free, and are joined. */
static bool settle(struct ranges *ranges, uint64_t now_ns)
{
	bool any = false;

	for (size_t i = 0; i < ranges->count; i++) {
		struct range *range = &ranges->range[i];
		if (!range->free_at_ns || range->free_at_ns > now_ns)
			continue;
		range->free_at_ns = 0;
		any = true;
	}
	for (size_t i = 0; any && i + 1 < ranges->count;)
		if (!join_next(ranges, i))
			i++;
	return any;
}

static bool first_fit(struct ranges *ranges, uint32_t count, uint32_t *ret)
{
	for (size_t i = 0; i < ranges->count; i++) {
		struct range *range = &ranges->range[i];
		if (range->free_at_ns || range->count < count)
			continue;
		*ret = range->start;
		range->start += count;
		range->count -= count;
		if (!range->count)
			remove_at(ranges, i);
		return true;
	}
	return false;
}

bool ranges_take(struct ranges *ranges, uint32_t count, uint64_t now_ns, uint32_t *ret)
{
	return first_fit(ranges, count, ret) ||
	       (settle(ranges, now_ns) && first_fit(ranges, count, ret));
}
