/* SPDX-License-Identifier: Apache-2.0 */
/* Small files that tell others that the agent is there: its process id, and its heartbeat. */
#pragma once

#include "base/error.h"

/* Write our process id to PATH, in decimal and without a line's end, as gProfiler does. */
struct error *marks_write_pid(const char *path);

/* Remove PATH if it holds our process id. Failing is silent: the next agent writes over it. */
void marks_remove_pid(const char *path);

/* Give PATH the time of now; it is made if it is missing, with mode 0644. */
struct error *marks_touch(const char *path);
