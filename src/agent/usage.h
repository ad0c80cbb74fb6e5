/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent itself takes: CPU time and memory of its control group, of version 1 or 2. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct usage {
	bool has_cpu, has_memory; /* could it be found out? */
	uint64_t cpu_ns;          /* since the group was made */
	uint64_t memory_bytes;    /* now */
};

/*
 * GROUPS is the text of /proc/self/cgroup, ROOT where hierarchies are mounted, /sys/fs/cgroup. What
 * cannot be found out is left out.
 */
struct error *usage_read_from(const char *groups, const char *root, struct usage *ret);

/* The same of this process. */
struct error *usage_read(struct usage *ret);
