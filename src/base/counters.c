/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of counters.def as an array. */
#include "base/counters.h"

#include <stddef.h>

static const struct counter_row rows[COUNTER_MAX] = {
#define COUNTER(row_name, id, row_help) [id] = {.name = #row_name, .help = row_help},
#include "base/counters.def"
#undef COUNTER
};

const struct counter_row *counter_find(enum counter_id id)
{
	return id < COUNTER_MAX && rows[id].name ? &rows[id] : NULL;
}

void counters_merge(struct counters *into, const struct counters *from)
{
	for (int i = 0; i < COUNTER_MAX; i++)
		into->value[i] += from->value[i];
}
