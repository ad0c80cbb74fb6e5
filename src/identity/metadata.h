/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The description of the machine and of the agent in the header of a .col: gProfiler's keys
 * ("metadata"), most of which its server insists on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "profile/profile.h"

struct metadata;

/* WHOLE: look at everything once, now; else only the host's name is told. ROOT_FD is the machine's
 * root directory, borrowed for the call. */
struct error *metadata_new(int root_fd, bool whole, struct metadata **ret);
void metadata_free(struct metadata *metadata);
static inline void cleanup_metadata(struct metadata **metadata)
{
	metadata_free(*metadata);
}
#define _cleanup_metadata_ _cleanup_(cleanup_metadata)

/*
 * Describe the session of PROFILE in its facts. ARGUMENTS is what the agent was told to do, a JSON
 * object in ASCII without anything secret in it.
 */
struct error *metadata_fill(const struct metadata *metadata, const char *arguments,
			    struct profile *profile);
