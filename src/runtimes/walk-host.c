/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/walk-host.h"

#include "runtimes/walk.h"

void host_walk(struct host_walk *walk)
{
	// A walk pushes a frame, or looks at a thread state, or leaves a segment: more steps than
	// this are a mistake of ours.
	const uint64_t steps = 4ull * walk->walk.depth + 2 * PYTHON_LOOKS;

	for (uint64_t i = 0; i < steps; i++)
		if (walk_one(&walk->walk))
			return;
	walk->walk.end = END_depth;
}
