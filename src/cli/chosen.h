/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes the user has chosen: by number, by name, with their children. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/option.h"

enum {
	CHOSEN_MAX = 4096,
	CHOSEN_PID_MAX = 4 << 20, /* PID_MAX_LIMIT of 64-bit kernels */
};

struct chosen {
	uint32_t *pids; /* in the order in which they were chosen, each once */
	size_t count, room;
};

#define CHOSEN_INIT                                                                                \
	{                                                                                          \
		0                                                                                  \
	}

void chosen_deinit(struct chosen *chosen);

/* A process; one that is not there is a failure. */
struct error *chosen_add(struct chosen *chosen, uint64_t pid);

struct error *chosen_add_pids(struct chosen *chosen, const struct uint_list *pids);

/* The processes whose names match; a name that matches none but ourselves is a failure. */
struct error *chosen_add_names(struct chosen *chosen, const struct text_list *names);

/* What the chosen processes have forked, and what that has forked, as of now. */
struct error *chosen_add_children(struct chosen *chosen);
