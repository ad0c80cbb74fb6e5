/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a file as a process sees it: below its root directory, whatever links the target has
 * planted there, and only if it is a regular file (or, where one is asked for, a directory).
 * Nothing else is opened at all, not even for a look: opening a FIFO blocks, and opening a device
 * may act on it.
 *
 * Whether the file is the one that was mapped, the caller decides: compare fstat() with the
 * mapping's device and inode (and see struct map about devices).
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum root_outcome {
	ROOT_opened,
	ROOT_absent,     /* no such process, no such file, or it cannot be reached */
	ROOT_denied,     /* we may not */
	ROOT_not_a_file, /* it is there, and no regular file or not the directory asked for */
};

/*
 * Open PATH for reading in the root directory of PID (0: our own root). Links are followed as the
 * process would follow them and never lead out of its root. RET_FD is set only with ROOT_opened; it
 * is closed by the caller. A failure is one of ours (no descriptors left), not of the path.
 */
struct error *root_open(pid_t pid, const char *path, enum root_outcome *ret, int *ret_fd);

/* root_open() of a directory, to be listed. What it lists is opened by path again. */
struct error *root_open_directory(pid_t pid, const char *path, enum root_outcome *ret, int *ret_fd);

/*
 * Open the file that PID has mapped at START..END, also when it has been deleted or replaced
 * since. START and END must be exactly those of a mapping. Needs CAP_CHECKPOINT_RESTORE or
 * CAP_SYS_ADMIN, else ROOT_denied.
 */
struct error *root_open_map(pid_t pid, uint64_t start, uint64_t end, enum root_outcome *ret,
			    int *ret_fd);

enum root_type {
	ROOT_FILE,
	ROOT_DIRECTORY,
};

/*
 * root_open() or root_open_directory() below the directory ROOT_FD (borrowed), resolved step by
 * step without openat2(): what they do on kernels before 5.6 and where a filter forbids the call.
 */
struct error *root_open_by_steps(int root_fd, const char *path, enum root_type type,
				 enum root_outcome *ret, int *ret_fd);
