/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that dies together: the strings and frames of one profile, the tables of one batch. */
#pragma once

#include <stddef.h>

#include "base/error.h"

struct arena_block;

struct arena {
	struct arena_block *blocks;
	size_t used_bytes; /* handed out */
	size_t max_bytes;  /* 0: no limit of its own */
};

#define ARENA_INIT                                                                                 \
	{                                                                                          \
		0                                                                                  \
	}

void arena_deinit(struct arena *arena);

/* SIZE zeroed bytes, aligned to 8, valid until arena_deinit(). Beyond max_bytes it fails. */
struct error *arena_alloc(struct arena *arena, size_t size, void *ret);

/* A copy of LENGTH bytes of TEXT with a NUL behind them. */
struct error *arena_copy(struct arena *arena, const char *text, size_t length, const char **ret);
