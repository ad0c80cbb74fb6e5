/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens often is counted, not logged. The rows are in counters.def; a set of counters
 * belongs to one session or one thread and sets are added up, so counting needs no lock.
 */
#pragma once

#include <stdint.h>

enum counter_id {
#define COUNTER(name, id, help) COUNTER_##name = id,
#include "base/counters.def"
#undef COUNTER
	COUNTER_MAX = 64
};

struct counters {
	uint64_t value[COUNTER_MAX];
};

struct counter_row {
	const char *name;
	const char *help;
};

/* The row of ID; NULL for an id that has none. */
const struct counter_row *counter_find(enum counter_id id);

static inline void counter_add(struct counters *counters, enum counter_id id, uint64_t count)
{
	counters->value[id] += count;
}

void counters_merge(struct counters *into, const struct counters *from);
