/* SPDX-License-Identifier: Apache-2.0 */
/* The two clocks that cairn reads, and the one way in which it writes a time. */
#include "base/clock.h"

#include <time.h>

static uint64_t now_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

uint64_t clock_realtime_ns(void)
{
	return now_ns(CLOCK_REALTIME);
}

void clock_format_utc(uint64_t realtime_ns, char ret[20])
{
	time_t seconds = (time_t)(realtime_ns / 1000000000u);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(ret, 20, "%Y-%m-%dT%H:%M:%S", &tm);
}
