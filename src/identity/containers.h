/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of the containers that processes are in. What was found is remembered, also after the
 * container's end, and looked for once per container.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "identity/cgroup-path.h"

struct containers;

/* ROOT_FD is the machine's root directory (identity/host.h); consumed on success. */
struct error *containers_new(int root_fd, struct containers **ret);
void containers_free(struct containers *containers);
static inline void cleanup_containers(struct containers **containers)
{
	containers_free(*containers);
}
#define _cleanup_containers_ _cleanup_(cleanup_containers)

/*
 * The container of the process whose /proc/PID/cgroup is TEXT (which is changed). "": none. Inside
 * several, the innermost that a name is known of; if there is none, the innermost's id as
 * "docker ps" shortens it.
 */
struct error *containers_find(struct containers *containers, char *text,
			      char ret[CONTAINER_NAME_MAX]);

/* The same of PID. False: it has ended, and RET is untouched. */
struct error *containers_find_process(struct containers *containers, pid_t pid, bool *ret_there,
				      char ret[CONTAINER_NAME_MAX]);
