/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wall-clock sampling: beside the ticks, which meet the threads that run, a look at all others at
 * the same rate. Nothing is stopped: a thread that is off its CPU has left its registers in the
 * kernel, and its stack stays as it is until it runs again. One that has not run since the last
 * look has the same stack still.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/counters.h"
#include "base/error.h"
#include "capture/stacks.h"

struct wall_options {
	unsigned hz;
	struct stacks *stacks;      /* borrowed, as the next two */
	struct kernel_side *kernel; /* knows which processes are to be sampled */
	struct counters *counters;
	const uint32_t *tids; /* only these threads; count 0: all; copied */
	size_t tid_count;
};

struct wall;

/* A failure says what the kernel or the privileges lack. */
struct error *wall_open(const struct wall_options *options, struct wall **ret);
void wall_close(struct wall *wall);

/* When the next look is due (CLOCK_MONOTONIC). */
uint64_t wall_due_ns(const struct wall *wall);

/* Look, if it is time. Looks that came too late are left out and counted. */
struct error *wall_look(struct wall *wall, uint64_t now_ns);

/* The stacks' session is over: nothing that was added to it is referred to any more. */
void wall_end_session(struct wall *wall);
