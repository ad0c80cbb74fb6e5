/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose samples they are: the processes of a session, each looked at once, when its first sample
 * comes; at the session's end it may be gone.
 */
#pragma once

#include <stdint.h>

#include "abi/sample.h"
#include "base/error.h"
#include "capture/processes.h"
#include "identity/containers.h"
#include "profile/profile.h"

struct owners;

/* All borrowed. */
struct owners_options {
	struct processes *processes;
	struct containers *containers; /* NULL: nobody wants their names */
};

struct error *owners_new(const struct owners_options *options, struct owners **ret);
void owners_free(struct owners *owners);

/*
 * The process of PROFILE that SAMPLE is of. Beyond a maximum processes are not told apart any more
 * but by name, container and application, as pid 0; none is lost. A process that has changed its
 * name or runs another application is another one.
 */
struct error *owners_find(struct owners *owners, struct profile *profile,
			  const struct sample *sample, uint32_t *ret);

/* A new session, with another profile. */
void owners_clear(struct owners *owners);
