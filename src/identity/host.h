/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the machine itself, which is not what cairn sees as / when it runs in a container: then
 * it is the root of process 1, if cairn shares the machine's processes and may look there.
 */
#pragma once

#include <dirent.h>
#include <stddef.h>

#include "base/error.h"

/* The root directory; the caller closes RET_FD. */
struct error *host_open_root(int *ret_fd);

/*
 * All of the file PATH below ROOT_FD, at most MAX bytes, with a NUL behind it; links are followed
 * and never lead out. *RET is NULL when there is no such file or it cannot be read: what is not
 * known is no failure. The caller frees it.
 */
struct error *host_read(int root_fd, const char *path, size_t max, char **ret);

/* The same with its size: what it holds may not be text. */
struct error *host_read_sized(int root_fd, const char *path, size_t max, char **ret,
			      size_t *ret_size);

/* The directory PATH below ROOT_FD, to be listed; NULL when there is none. */
struct error *host_open_directory(int root_fd, const char *path, DIR **ret);
