/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strings this layer hands out, one copy of each. Control characters are replaced here and
 * nowhere else, so that no name of a stranger breaks a line of output.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"

struct names {
	struct arena arena;
	struct hash_index index;
	const char **text;
	size_t count, room;
};

#define NAMES_INIT                                                                                 \
	{                                                                                          \
		0                                                                                  \
	}

enum { NAMES_MAX = 4 << 20, NAMES_BYTES_MAX = 256 << 20 };

void names_deinit(struct names *names);

/* TEXT with every byte below 0x20, and 0x7f, replaced by '?'. Lives as long as NAMES. */
struct error *names_add(struct names *names, const char *text, size_t length, const char **ret);

/* The readable form of the symbol NAME, followed by SUFFIX ("@plt"). A symbol version ("@@GLIBC_2")
 * is not shown. */
struct error *names_add_symbol(struct names *names, const char *name, const char *suffix,
			       const char **ret);
