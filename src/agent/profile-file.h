/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile in a file, made here or elsewhere, as the text of a session that can be sent: a .col
 * file with its header as it is; plain folded stacks, "a;b;c 10" in a line, with a header of this
 * machine and without containers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { PROFILE_FILE_MAX = 256 << 20 };

struct profile_file {
	char *col; /* owned */
	size_t size;
	uint64_t start_ns, end_ns;                   /* wall clock */
	int64_t cpu_thousandths, memory_thousandths; /* of a percent; negative: not known */
};

#define PROFILE_FILE_INIT                                                                          \
	{                                                                                          \
		0                                                                                  \
	}

void profile_file_deinit(struct profile_file *file);

/* Times are start_time and end_time of the header (both or none), else current_time of its metadata
 * for both, else now. */
struct error *profile_file_read(const char *path, struct profile_file *ret);
