/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a profiling session in an output directory, named and linked as gProfiler does:
 * profile_<END>.col and .html, and last_profile.col and last_flamegraph.html pointing at the
 * newest.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "profile/profile.h"

struct session_files {
	const char *directory; /* borrowed */
	bool flamegraph;       /* write the .html, too */
	bool rotate;           /* keep only the newest of each */
};

/*
 * See that the directory is there and can be written to; one that is missing is made, with its
 * parents.
 */
struct error *session_files_check(const struct session_files *files);

/*
 * Remove what a run that was killed has left in the directory: files that it had not finished.
 * Those of processes that still run are spared. RET_COUNT: how many there were.
 */
struct error *session_files_clean(const struct session_files *files, size_t *ret_count);

/*
 * Write PROFILE. Each file and each link appears whole or not at all. RET_COL is the path of the
 * .col file; the caller frees it.
 */
struct error *session_files_write(const struct session_files *files, const struct profile *profile,
				  char **ret_col);
