/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent was told to do, for the header of its profiles. */
#pragma once

#include "base/error.h"
#include "cli/agent-options.h"

/*
 * gProfiler's options and their values as a JSON object in ASCII, under the names that its header
 * has for them. The token is not among them. RET is the caller's.
 */
struct error *agent_arguments_print(const struct agent_args *args, char **ret);
