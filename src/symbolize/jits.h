/* SPDX-License-Identifier: Apache-2.0 */
/* What processes say about the code they make: a perf map and jitdump files for each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "symbolize/jitdump.h"
#include "symbolize/perfmap.h"

enum { JITS_PROCESSES = 4096, JITS_DUMPS = 64 /* files of one process */ };

struct jit_process {
	uint32_t pid;
	struct perfmap map;
	uint64_t map_read_ns; /* CLOCK_MONOTONIC; 0: never */
	struct jitdump *dump; /* one per file */
	size_t dump_count, dump_room;
	uint64_t used; /* clock of the last use */
	bool used_since_trim;
};

struct jits {
	struct jit_process **process; /* owned; sorted by pid */
	size_t count, room;
};

#define JITS_INIT                                                                                  \
	{                                                                                          \
		0                                                                                  \
	}

void jits_deinit(struct jits *jits);

/* The process PID, added if it is new; the least recently used one makes room. */
struct error *jits_get(struct jits *jits, uint32_t pid, uint64_t clock, struct jit_process **ret);

/* Forget PROCESS, which is freed. */
void jits_remove(struct jits *jits, struct jit_process *process);

/* Forget processes not used since the last call. */
void jits_trim(struct jits *jits);

/* Read the jitdump file FD (borrowed) of PROCESS, or its new end. */
struct error *jit_process_load(struct jit_process *process, int fd, const char *name);

/* The name by jitdump files, then by the map. */
bool jit_process_find(const struct jit_process *process, uint64_t pc, uint64_t time_ns,
		      struct jitdump_found *ret);

size_t jit_process_bytes(const struct jit_process *process);
