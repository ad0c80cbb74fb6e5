/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One agent on a machine: a socket's name that only one process can have, and that the kernel frees
 * with it. It is gProfiler's own name, so that the two keep each other out.
 */
#pragma once

#include "base/error.h"

/*
 * Take the lock, in the network namespace of the first process if that may be entered, in our own
 * otherwise. It is held until the caller closes RET_FD. The failure is in gProfiler's words.
 */
struct error *lock_take(int *ret_fd);
