/* SPDX-License-Identifier: Apache-2.0 */
/* What asyncio's tasks are doing, beside the threads that run them. */
#pragma once

#include "base/error.h"
#include "capture/dump.h"
#include "capture/dump-process.h"

/*
 * Read the tasks of DUMP's target, whose threads have been looked at: those of the threads that are
 * in it, and, unless some were not wanted, those whose thread is not known.
 */
struct error *dump_read_tasks(struct dump *dump, const struct dump_options *options);
