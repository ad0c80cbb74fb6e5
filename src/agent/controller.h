/* SPDX-License-Identifier: Apache-2.0 */
/* The process that the agent works for: when it ends, so does the agent. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct controller {
	pid_t pid; /* 0: there is none */
	uint64_t start_ticks;
};

/* Remember who PID is now; it must run. PID 0: nobody. */
struct error *controller_find(pid_t pid, struct controller *ret);

/* Has it ended? Another process that got its number is not it. */
bool controller_ended(const struct controller *controller);
