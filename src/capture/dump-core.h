/* SPDX-License-Identifier: Apache-2.0 */
/* A process as a core file has it. */
#pragma once

#include "base/error.h"
#include "capture/dump-process.h"

struct dump_core_source {
	const char *path; /* of the core */
	const char *exe;  /* of the program; NULL: where the core says */
};

/*
 * Look at the process in the core SOURCE names. What the core lacks is in the dump's notes. Of
 * OPTIONS those that concern stopping and the kernel mean nothing here.
 */
struct error *dump_core(const struct dump_core_source *source, const struct dump_options *options,
			struct dump *ret);
