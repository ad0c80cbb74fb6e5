/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many samples a look is worth. A thread that runs all the time gets one each period, as from a
 * timer; one that ran for a part of the time gets that part. Its CPU time is credit, and a look
 * that meets it running takes as many samples as there is credit for, to the nearest. What is left
 * over stays, so that nothing is rounded away but at its end.
 *
 * A thread begins with a credit from minus to plus half a period: else threads that end within half
 * a period, however many, would never be seen.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	/* At one look. What is above is for the next looks, which meet other stacks. */
	CREDIT_SAMPLES_MAX = 8,
};

struct credit {
	int64_t ns;
};

/* The credit of thread number SEQUENCE: evenly spread, whatever piece of the sequence is looked at
 * (multiples of the golden ratio). */
static inline struct credit credit_begin(uint32_t sequence, uint64_t period_ns)
{
	uint32_t share = sequence * 2654435769u; /* 2^32 / 1.618... */

	return (struct credit){(int64_t)(period_ns * share >> 32) - (int64_t)(period_ns / 2)};
}

static inline void credit_add(struct credit *credit, uint64_t cpu_ns)
{
	credit->ns += (int64_t)(cpu_ns < INT64_MAX / 4 ? cpu_ns : INT64_MAX / 4);
	if (credit->ns > INT64_MAX / 2)
		credit->ns = INT64_MAX / 2;
}

/* Samples that a look at the running thread is worth now. */
static inline unsigned credit_due(const struct credit *credit, uint64_t period_ns)
{
	int64_t half = (int64_t)(period_ns / 2);

	if (credit->ns < half)
		return 0;
	uint64_t samples = (uint64_t)(credit->ns + half) / period_ns;
	return samples < CREDIT_SAMPLES_MAX ? (unsigned)samples : CREDIT_SAMPLES_MAX;
}

static inline void credit_take(struct credit *credit, unsigned samples, uint64_t period_ns)
{
	credit->ns -= (int64_t)(samples * period_ns);
}

/* Samples that no look could take: the thread, or the session, is over. They are taken. */
static inline uint64_t credit_lose(struct credit *credit, uint64_t period_ns)
{
	int64_t half = (int64_t)(period_ns / 2);
	uint64_t samples = credit->ns < half ? 0 : (uint64_t)(credit->ns + half) / period_ns;

	credit->ns -= (int64_t)(samples * period_ns);
	return samples;
}

/* Looks at a steady rate. */
struct poll_schedule {
	uint64_t due_ns, period_ns;
};

/* It is NOW_NS and a look is due: when the next one is. Returns how many are left out as too late.
 */
static inline uint64_t poll_schedule_advance(struct poll_schedule *schedule, uint64_t now_ns)
{
	uint64_t late = (now_ns - schedule->due_ns) / schedule->period_ns;

	schedule->due_ns += (late + 1) * schedule->period_ns;
	return late;
}
