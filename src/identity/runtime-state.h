/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name that a container runtime gave to a container, from the files in which it keeps its
 * state. Asking over its socket would need it to be alive and quick, and a gRPC client for half of
 * them; the files are there before the container runs.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "identity/cgroup-path.h"

/* ID is of hex digits and dashes. */
struct container_asked {
	int root_fd; /* of the machine; borrowed */
	const char *id;
	uint32_t uid; /* whose runtime it is; 0: root's */
};

/*
 * The name; "" when no runtime that we know tells it. Kubernetes' containers are called
 * k8s_CONTAINER_POD_NAMESPACE_UID_RESTARTS, as dockershim did and gProfiler does.
 */
struct error *runtime_state_find(const struct container_asked *asked, char ret[CONTAINER_NAME_MAX]);
