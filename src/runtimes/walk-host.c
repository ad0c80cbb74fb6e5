/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/walk-host.h"

#include "runtimes/walk.h"

enum {
	/* A walk pushes a frame, or looks at a thread state, or leaves a segment: more steps than
	 * this are a mistake of ours. */
	STEPS_MAX = 4 * SAMPLE_USER_FRAMES + 2 * PYTHON_LOOKS,
};

void host_walk(struct host_walk *walk)
{
	for (int i = 0; i < STEPS_MAX; i++)
		if (walk_one(&walk->walk))
			return;
	walk->walk.end = END_depth;
}
