/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that gProfiler would have named the functions of without being asked, and that cairn
 * does not name yet. Whoever comes from there would look for them in vain.
 */
#pragma once

#include <stdbool.h>

#include "cli/agent-options.h"
#include "profile/profile.h"

/* Which runtimes have been told about. */
struct agent_met {
	bool java, ruby;
};

/* Say in the log, once for each, which of them PROFILE has met, unless ARGS leave them out. */
void agent_tell_met(const struct agent_args *args, const struct profile *profile,
		    struct agent_met *met);

/* Has PROFILE a process called NAME, or frames of an object whose file name begins with OBJECT? */
bool agent_has_met(const struct profile *profile, const char *name, const char *object);
