/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's options about sending that gProfiler does not have. */
#pragma once

#include <stdint.h>

#include "cli/option.h"

/* Where the agent's sessions go unless it is told: a studio on this machine, on the port that
 * Performance Studio's own compose file gives it. */
#define SENDING_SERVER "http://localhost:8080"

struct sending_args {
	const char *token_file, *spool;
	uint64_t spool_mib, spool_sessions;
};
extern const struct option_row options_sending[];
