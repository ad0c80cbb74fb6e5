/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that wait to be sent, oldest first, in a directory: NUMBER.session, a file each
 * (agent/parcel.h). Each is written whole and made durable before spool_add() returns, so neither a
 * kill nor a reboot loses one. Where the directory cannot be written to (it is read-only, the disk
 * is full) sessions wait in memory, and move to the directory once that is possible.
 *
 * Bytes and sessions have a maximum: what is oldest gives way, and is counted. Files are numbered
 * in the order of arrival, not by a clock, which may jump.
 *
 * One process at a time has a directory; a kill frees it. Calls may come from two threads: one that
 * adds and one that takes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/parcel.h"
#include "base/error.h"

enum { SPOOL_SESSIONS_MAX = 65536 };

struct spool_limits {
	uint64_t bytes;        /* in the directory */
	uint32_t sessions;     /* in all; at most SPOOL_SESSIONS_MAX */
	uint64_t memory_bytes; /* of those that are in no file */
};

struct spool_counts {
	uint64_t waiting, waiting_bytes;
	uint64_t in_memory; /* of those waiting */
	uint64_t added;
	uint64_t dropped; /* gave way to younger ones */
	uint64_t damaged; /* were found not to be what had been written */
};

enum spool_place {
	SPOOL_on_disk,
	SPOOL_in_memory,
	SPOOL_dropped, /* there was no room for it anywhere */
};

struct spool;

/*
 * The spool in DIRECTORY, which is made if it is missing, with what waits there. A failure: another
 * process has it. *RET_PROBLEM: the directory cannot be used, and everything waits in memory; NULL
 * otherwise.
 */
struct error *spool_open(const char *directory, const struct spool_limits *limits,
			 struct spool **ret, struct error **ret_problem);
void spool_close(struct spool *spool);

/* Put PARCEL behind the others. *RET_WHY: why it is not on the disk; NULL if it is. */
enum spool_place spool_add(struct spool *spool, const struct parcel *parcel,
			   struct error **ret_why);

/*
 * The oldest that waits. It does not give way to others until spool_done() or spool_release().
 * False: none waits, or
 * memory is too short to look.
 */
bool spool_first(struct spool *spool, uint64_t *ret_number, struct parcel *ret);

/* NUMBER, which spool_first() gave, was sent or will never be: forget it. */
void spool_done(struct spool *spool, uint64_t number);

/* What spool_first() gave stays where it is. */
void spool_release(struct spool *spool);

struct spool_counts spool_count(struct spool *spool);
