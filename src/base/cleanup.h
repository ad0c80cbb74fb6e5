/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scope guards: a local that owns something is released when its scope ends.
 * A value is given away with take() (pointers, descriptors) or take_struct().
 */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

/* Move a pointer out of its variable; the variable is NULL afterwards. */
#define take(pointer)                                                                              \
	({                                                                                         \
		__typeof__(pointer) _taken = (pointer);                                            \
		(pointer) = NULL;                                                                  \
		_taken;                                                                            \
	})

/* Move a file descriptor out of its variable; the variable is -1 afterwards. */
static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* Move a structure out of its variable; what stays behind is all zero, which every type here
 * accepts as empty. */
#define take_struct(value)                                                                         \
	({                                                                                         \
		__typeof__(value) _taken = (value);                                                \
		(value) = (__typeof__(value)){0};                                                  \
		_taken;                                                                            \
	})

static inline void cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

static inline void cleanup_fclose(FILE **file)
{
	if (*file)
		fclose(*file);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_closedir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_fclose_ _cleanup_(cleanup_fclose)
#define _cleanup_close_ _cleanup_(cleanup_close)
#define _cleanup_closedir_ _cleanup_(cleanup_closedir)
