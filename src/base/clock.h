/* SPDX-License-Identifier: Apache-2.0 */
/* Time. Every record that cairn orders carries CLOCK_MONOTONIC, the clock of bpf_ktime_get_ns(). */
#pragma once

#include <stdint.h>

uint64_t clock_monotonic_ns(void);

/* Wall clock, nanoseconds since 1970. */
uint64_t clock_realtime_ns(void);

/* "2026-01-02T03:04:05" in UTC, gProfiler's form; RET holds 20 characters. */
void clock_format_utc(uint64_t realtime_ns, char ret[20]);
