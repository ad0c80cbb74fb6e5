/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Side-band records of all CPUs as events in the order of time: what was mapped, forked, renamed,
 * ended.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/counters.h"
#include "base/error.h"
#include "object/object.h"

enum side_kind {
	SIDE_map,  /* an executable mapping */
	SIDE_fork, /* of a process or a thread */
	SIDE_exec, /* pid runs another program, called text */
	SIDE_exit, /* of a thread */
};

struct side_event {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	enum side_kind kind;
	uint32_t pid, tid, parent_pid;
	uint64_t start, end, offset, inode; /* SIDE_map */
	struct object_id build_id;          /* SIDE_map; length 0: not given */
	const char *text;                   /* path or name; lives until side_band_forget() */
};

struct side_band;

/* DATA_BYTES of ring in all, shared out over the CPUs. COUNTERS is borrowed. */
struct error *side_band_new(size_t data_bytes, struct counters *counters, struct side_band **ret);
void side_band_free(struct side_band *side);

/* Listen on CPU from now on; one that is listened on already is left alone. */
struct error *side_band_add_cpu(struct side_band *side, unsigned cpu, unsigned cpus);
void side_band_remove_cpu(struct side_band *side, unsigned cpu);

struct perf_event_header;

/*
 * Enter one record, as perf_event_open(2) describes it with the sample id of TID, TIME and CPU.
 * One that contradicts itself is a failure; those that say nothing to us are skipped.
 */
struct error *side_band_enter(struct side_band *side, const struct perf_event_header *record);

/* Read all rings. New events join those not yet taken, in the order of time. */
struct error *side_band_read(struct side_band *side);

/*
 * The oldest event if it is not younger than UNTIL_NS; NULL: there is none. Valid until
 * side_band_forget().
 */
const struct side_event *side_band_next(struct side_band *side, uint64_t until_ns);

/* The events taken so far are done with. */
struct error *side_band_forget(struct side_band *side);
