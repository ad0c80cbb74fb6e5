/* SPDX-License-Identifier: Apache-2.0 */
/* Doing what the server commands: --enable-heartbeat-server. */
#pragma once

#include <stdbool.h>

#include "agent/heartbeat.h"
#include "base/error.h"
#include "cli/agent-options.h"

struct follow {
	struct heartbeat *heartbeat;   /* borrowed */
	const struct agent_args *args; /* what commands do not say */
	/* Sample as ARGS say, until that is done, the agent is told to end, or a command comes that
	 * goes before: any while it is continuous, else a stop. */
	struct error *(*profile)(void *data, const struct agent_args *args);
	/* Is the agent to go on? With IDLE a second may pass. */
	bool (*goes_on)(void *data, bool idle);
	void *data;
};

/*
 * Follow commands until the agent is told to end. One with an end is done first; one without runs
 * whenever nothing else does, until a stop or another without an end. A command that fails is
 * reported and ends nothing else.
 */
void follow_server(const struct follow *follow);
