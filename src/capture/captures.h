/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways to take samples. What they share (objects, processes, stacks, the end of a session) is
 * capture.c's; a source says when and whose stacks are walked, and with which registers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/counters.h"
#include "base/error.h"
#include "capture/capture.h"
#include "capture/kernel.h"
#include "capture/processes.h"
#include "capture/stacks.h"
#include "unwind/store.h"

/* Where the tables are that walks look up. All of it is the source's. */
struct source_tables {
	struct kernel_side *kernel; /* NULL: only the host walks */
	struct store_options store;
	struct python_process *pythons; /* TABLE_PYTHONS */
	struct python_layout *layouts;  /* TABLE_PYTHON_LAYOUTS */
	uint32_t mappings;              /* entries of the kernel's table of mappings */
};

/* What a source works with; borrowed, and valid until it is closed. */
struct source_parts {
	const struct capture_options *options; /* pointers in it hold during the call only */
	struct counters *counters;
	struct pythons *pythons; /* NULL: no Python frames */
	struct processes *processes;
	struct stacks *stacks;
};

struct source {
	/* What its profiles do not show, for a note; NULL: nothing is missing. */
	const char *lacks;
	/* Is this allowed and possible here? A failure says what is missing. */
	struct error *(*probe)(void);
	/*
	 * Get what the kernel has to give, and the tables. A failure says what the machine or the
	 * privileges lack, or which option the source cannot meet. Closed by close().
	 */
	struct error *(*open)(const struct capture_options *options, struct counters *counters,
			      void **ret, struct source_tables *ret_tables);
	struct error *(*join)(void *source, const struct source_parts *parts);
	void (*close)(void *source); /* after what uses the tables */
	struct error *(*start)(void *source);
	struct error *(*wait)(void *source, unsigned timeout_ms, int wake_fd);
	void (*stop)(void *source);
	/* Everything that was sampled so far into the stacks. */
	struct error *(*settle)(void *source);
	/* Called now and then while names are looked up. NULL: nothing to do. */
	struct error *(*pulse)(void *context);
	/*
	 * The stacks' session is over: add to the counters what was lost of it, and to PROFILE
	 * notes of what only the source knows.
	 */
	struct error *(*end_session)(void *source, struct profile *profile);
};

enum { CAPTURE_IDS = 8 }; /* ids are below */

struct capture_row {
	const char *name;
	unsigned id;
	const char *help;
	const struct source *source;
};

/* Add a sentence for the reader of PROFILE. */
struct error *capture_note(struct profile *profile, const char *text);

/* The row at INDEX, best first; NULL behind the last. */
const struct capture_row *capture_row_at(size_t index);
