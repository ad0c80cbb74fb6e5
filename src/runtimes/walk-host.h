/* SPDX-License-Identifier: Apache-2.0 */
/* The walkers compiled for the host. */
#pragma once

#include "unwind/env-host.h"

/*
 * Walk until the end; walk.walk.at is the leaf (or where another walk stopped), walk.walk.phase
 * WALK_native. The end is in walk.end. Frames of a runtime appear if tables.python is set,
 * walk.python.process is not 0 and walk.fs_base is known.
 */
void host_walk(struct host_walk *walk);
