/* SPDX-License-Identifier: Apache-2.0 */
#include "object/go-steps.h"

struct go_steps go_steps_begin(struct go_table *table, const struct go_record *record,
			       uint32_t offset)
{
	return (struct go_steps){.table = table,
				 .addr = table->at.values + offset,
				 .limit = record->end,
				 .start = record->entry,
				 .end = record->entry,
				 .value = -1};
}

static bool read_number(struct go_steps *steps, uint32_t *ret)
{
	uint32_t value = 0;

	for (unsigned shift = 0; shift < 35; shift += 7) {
		size_t size;
		const uint8_t *at = steps->addr < steps->table->at.end
					    ? go_view_at(&steps->table->view, steps->addr, &size)
					    : NULL;
		if (!at)
			return false;
		steps->addr++;
		value |= (uint32_t)(*at & 0x7f) << shift;
		if (!(*at & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

bool go_steps_next(struct go_steps *steps)
{
	uint32_t value, pc;

	if (steps->end >= steps->limit || !read_number(steps, &value) ||
	    (value == 0 && steps->begun) || !read_number(steps, &pc) || pc == 0)
		return false;
	steps->begun = true;
	// Zigzag; what overflows is damaged, and any value will do for that.
	steps->value = (int32_t)((uint32_t)steps->value + (value >> 1 ^ -(value & 1)));
	steps->start = steps->end;
	steps->end += (uint64_t)pc * steps->table->at.quantum;
	if (steps->end > steps->limit)
		steps->end = steps->limit;
	return true;
}

int32_t go_steps_find(struct go_steps steps, uint64_t addr, int32_t fallback)
{
	while (go_steps_next(&steps))
		if (addr < steps.end)
			return steps.value;
	return fallback;
}
