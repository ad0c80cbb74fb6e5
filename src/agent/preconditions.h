/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold before the agent begins, in gProfiler's order and in its words. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct preconditions {
	bool rootless;     /* asked for running without root */
	bool any_pidns;    /* a PID namespace of its own will do */
	bool log_usage;    /* asked for what only a container can tell */
	bool in_container; /* is this one? */
	bool several;      /* other agents may run at the same time */
};

/* RET_LOCK is a descriptor for the caller to close at the end, or -1. */
struct error *preconditions_check(const struct preconditions *wanted, int *ret_lock);

/* Was the agent told by its image or manifest that it runs in a container? */
bool preconditions_in_container(void);
