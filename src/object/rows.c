/* SPDX-License-Identifier: Apache-2.0 */
/* Looking rows up. How they come about is in rows-compile.c. */
#include "object/rows.h"

#include "object/rows-build.h"

void rows_deinit(struct rows *rows)
{
	free(rows->row);
	free(rows->rules);
	free(rows->starts);
	*rows = (struct rows)ROWS_INIT;
}

size_t rows_index(const struct rows *rows, uint64_t addr)
{
	size_t low = 0, high = rows->count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (rows->row[middle].addr <= addr)
			low = middle;
		else
			high = middle;
	}
	return low;
}

const struct unwind_rule *rows_find(const struct rows *rows, uint64_t addr)
{
	if (!rows->count || addr < rows->text_start || addr >= rows->text_end)
		return NULL;
	return &rows->rules[rows->row[rows_index(rows, addr)].rule];
}

/* The largest start that is not above ADDR. False: all are. */
static bool start_below(const struct rows *rows, uint64_t addr, uint64_t *ret)
{
	size_t low = 0, high = rows->start_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (rows->starts[middle] <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return false;
	*ret = rows->starts[low - 1];
	return true;
}

static bool is_gap(const struct unwind_rule *rule)
{
	return rule->cfa == UNWIND_CFA_none || rule->cfa == UNWIND_CFA_frame_ptr;
}

bool rows_find_start(const struct rows *rows, uint64_t addr, uint64_t *ret)
{
	uint64_t start;

	const struct unwind_rule *rule = rows_find(rows, addr);

	if (!rule || rule->cfa == UNWIND_CFA_none || !start_below(rows, addr, &start))
		return false;
	// A gap between the start and here, even one filled by a guess, ends that function.
	for (size_t i = rows_index(rows, addr); i && rows->row[i].addr > start; i--)
		if (is_gap(&rows->rules[rows->row[i].rule]))
			return false;
	*ret = start;
	return true;
}
