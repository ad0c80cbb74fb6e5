/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files: read with a maximum, and written so that a final name never holds half a file. */
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"

/* All of FD, at most MAX bytes (more is a failure), with a NUL behind it. The caller frees RET. */
struct error *file_read_fd(int fd, const char *name, size_t max, char **ret, size_t *ret_size);

/* file_read_fd() of PATH below DIR_FD (AT_FDCWD for a plain path). */
struct error *file_read(int dir_fd, const char *path, size_t max, char **ret, size_t *ret_size);

/* Make the directory PATH and what is missing above it, each with MODE. */
struct error *file_make_directories(const char *path, mode_t mode);

/*
 * A new empty file without a name, open for reading and writing, where large temporary files
 * belong: in $TMPDIR, else in /var/tmp. The caller closes RET_FD.
 */
struct error *file_open_unnamed(int *ret_fd);

/*
 * A file being written: an unnamed file in the target's directory, linked in under its name when
 * complete. Where the file system has no unnamed files, a temporary name is used and removed on
 * failure.
 */
struct file_writer {
	FILE *stream;
	char *path;      /* the final name; owned */
	char *temporary; /* NULL while the file has no name; owned */
};

#define FILE_WRITER_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

/* Begin to write PATH. Regular files are replaced whole; a path that exists and is no regular file
 * is written directly. */
struct error *file_writer_open(const char *path, struct file_writer *ret);

/* Flush, make durable and put under the final name, replacing what was there. On failure nothing
 * stays behind. */
struct error *file_writer_commit(struct file_writer *writer);

/* Forget what was not committed. */
void file_writer_deinit(struct file_writer *writer);
