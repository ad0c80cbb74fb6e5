/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who called whom, learned from the instructions that ran: a call enters its return address, what
 * leaves a frame removes it. A thread may run on several stacks (signal stacks, goroutines); each
 * has its own list, told apart by the region of memory that the stack pointer is in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#include "base/error.h"

/* A caller that is waiting. */
struct shadow_entry {
	uint64_t slot;       /* where its return address is; for a signal, where the ucontext is */
	uint64_t pc, sp, fp; /* what it will have after the return */
	bool signal;         /* interrupted, not calling */
};

struct shadow_region {
	uint64_t low, high; /* addresses of the stack; high is exclusive */
	struct shadow_entry *entry;
	size_t count, room;
};

enum { SHADOW_REGIONS_MAX = 4096, SHADOW_DEPTH_MAX = 1 << 20 };

struct shadow {
	struct shadow_region region[SHADOW_REGIONS_MAX];
	size_t regions;
	struct shadow_region *main; /* the stack that the kernel made; NULL: not met yet */
};

/* What an instruction does to the list of callers. */
enum shadow_kind {
	SHADOW_other,
	SHADOW_call,
	SHADOW_return, /* also an indirect jump: longjmp() ends in one */
	SHADOW_syscall,
};

enum { SHADOW_CODE_BYTES = 16 };

enum shadow_kind shadow_decode(const uint8_t code[SHADOW_CODE_BYTES]);

void shadow_free(struct shadow *shadow);

/* The region that holds SP; NULL: none is known. */
struct shadow_region *shadow_find(struct shadow *shadow, uint64_t sp);

/* A region for LOW..HIGH; those that it overlaps are forgotten. */
struct error *shadow_add(struct shadow *shadow, uint64_t low, uint64_t high,
			 struct shadow_region **ret);

struct error *shadow_push(struct shadow_region *region, const struct shadow_entry *entry);

/* The frames below SP are gone. */
void shadow_pop(struct shadow_region *region, uint64_t sp);

/* A signal handler returned: it and what it interrupted are gone. */
void shadow_pop_signal(struct shadow_region *region);

/* Who waits for the code that runs now; NULL: nobody who was seen to call. */
const struct shadow_entry *shadow_top(const struct shadow_region *region);

/* Who waits for the frame at SP; NULL: nobody who was seen to call. */
const struct shadow_entry *shadow_caller(const struct shadow_region *region, uint64_t sp);
