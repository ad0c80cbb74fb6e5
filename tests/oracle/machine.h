/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that is stopped, as the walkers see it: its mappings, the rows of its objects, its
 * memory. The oracles compare what the host walker says of it with what they know from elsewhere.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/counters.h"
#include "base/error.h"
#include "capture/objects.h"
#include "symbolize/symbolizer.h"
#include "unwind/env-host.h"
#include "unwind/store.h"

enum { MACHINE_SEGMENTS = STORE_SEGMENTS_MAX, MACHINE_MAPPINGS = 1 << 14 };

struct machine {
	pid_t pid;
	struct counters counters;
	struct unwind_module *modules;
	struct unwind_rule *rules;
	struct unwind_segment *segment[MACHINE_SEGMENTS]; /* owned */
	struct store *store;
	struct objects *objects;
	struct symbolizer *symbolizer;
	struct symbol_object **symbols; /* by object number */
	struct rows *starts;            /* by object number */
	struct unwind_mapping *mapping;
	uint32_t *object; /* by mapping: its object, OBJECT_NONE for memory without a file */
	size_t mappings;
};

struct error *machine_new(pid_t pid, struct machine **ret);
void machine_free(struct machine *machine);

/* Read the mappings again. */
struct error *machine_refresh(struct machine *machine);

/* All of SIZE bytes at ADDR. False: not all of them can be read. */
bool machine_read(const struct machine *machine, uint64_t addr, void *to, size_t size);

/*
 * Walk at most DEPTH frames of a thread with the registers REGS; where that leaves off is in
 * ret->walk. FRAMES has room for DEPTH. Rows that are not loaded yet are.
 */
struct error *machine_walk(struct machine *machine, const struct user_regs_struct *regs,
			   unsigned depth, uint64_t *frames, struct host_walk *ret);

/* What is at PC. Strings live as long as the machine. */
struct machine_place {
	const char *object; /* path; "[anonymous]" */
	const char *function;
	bool named;
	uint64_t start; /* of the function, in the object; 0: unknown */
	uint64_t addr;  /* in the object */
};

struct error *machine_place(struct machine *machine, uint64_t pc, bool return_address,
			    struct machine_place *ret);
