/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of CPUs, as the kernel writes them: "0-3,8". */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"

/* The largest CPU number, and with it the longest list, that is accepted. */
enum { CPUS_MAX = 65536 };

/* Ascending, each once. */
struct cpus {
	uint32_t *cpu;
	size_t count, room;
};

#define CPUS_INIT                                                                                  \
	{                                                                                          \
		0                                                                                  \
	}

void cpus_deinit(struct cpus *cpus);

/* A list with or without a newline behind it; an empty one is no CPU. */
struct error *cpus_parse(struct bytes text, struct cpus *ret);

/* The CPUs that are online now. */
struct error *cpus_read_online(struct cpus *ret);
