/* SPDX-License-Identifier: Apache-2.0 */
/* Notices runtimes that are not named. */
#define LOG_DOMAIN "agent"
#include "cli/agent-met.h"

#include <string.h>

#include "base/log.h"
#include "base/str.h"

bool agent_has_met(const struct profile *profile, const char *name, const char *object)
{
	for (uint32_t i = 0; i < profile_processes(profile); i++)
		if (!strcmp(profile_text(profile, profile_process_at(profile, i)->name, NULL),
			    name))
			return true;
	for (frame_id id = 0; id < profile_frames(profile); id++) {
		const char *path =
			profile_text(profile, profile_frame_at(profile, id)->object, NULL);
		const char *slash = strrchr(path, '/');
		if (slash && str_starts(slash + 1, object))
			return true;
	}
	return false;
}

/* What gProfiler names unless it is told not to: PHP, .NET and Node.js have to be asked for. */
void agent_tell_met(const struct agent_args *args, const struct profile *profile,
		    struct agent_met *met)
{
	static const char text[] = "%s programs were met: this version samples them as native "
				   "code, without their functions' names";

	if (!met->java && !agent_mode_off(args->java_mode) &&
	    agent_has_met(profile, "java", "libjvm.so")) {
		met->java = true;
		log_warning(text, "Java");
	}
	if (!met->ruby && !agent_mode_off(args->ruby_mode) &&
	    agent_has_met(profile, "ruby", "libruby")) {
		met->ruby = true;
		log_warning(text, "Ruby");
	}
}
