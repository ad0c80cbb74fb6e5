/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the path of a control group says about containers: runtimes name the groups that they make
 * after the container. Whether the hierarchy is v1's or v2's, and whether systemd or the runtime
 * made the group, shows in prefixes and suffixes only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CONTAINER_ID_MAX = 64,
	CONTAINER_NAME_MAX = 512, /* Kubernetes allows 63 + 253 + 63 characters, a uid and more */
	CONTAINER_LEVELS_MAX = 8,
};

struct container_level {
	bool named; /* the path has the name itself; else TEXT is the id that a runtime gave */
	char text[CONTAINER_NAME_MAX];
};

/* The containers that a process is inside of, the innermost first. */
struct container_path {
	struct container_level level[CONTAINER_LEVELS_MAX];
	size_t count;
	uint32_t uid; /* whose session the runtime runs in (rootless); 0: root's */
};

/* TEXT is /proc/PID/cgroup's; it is changed. Levels beyond the maximum, the outermost, are left
 * out. */
void container_path_parse(char *text, struct container_path *ret);
