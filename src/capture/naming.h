/* SPDX-License-Identifier: Apache-2.0 */
/* Names for the numbers of a session: once per distinct frame, after sampling. */
#pragma once

#include "base/error.h"
#include "capture/objects.h"
#include "profile/profile.h"

struct naming_options {
	bool lines, debuginfod;
	/*
	 * Called now and then: naming takes long, and whoever asked may have other things to do.
	 * NULL: they have not.
	 */
	struct error *(*pulse)(void *context);
	void *context;
};

/*
 * The profile of NUMBERS (capture/stacks.h) with names: stacks, processes and samples are the
 * same, inlined calls become frames of their own. Facts are not copied.
 */
struct error *naming_run(const struct naming_options *options, const struct profile *numbers,
			 struct objects *objects, struct profile **ret);
