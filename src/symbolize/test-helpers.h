/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of this folder share: files in memory, and files and commands in a directory of
 * their own. */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "unit.h"

/* An unnamed regular file that holds SIZE bytes of DATA. */
static inline int memory_file(const void *data, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	ASSERT_TRUE(fd >= 0);
	ASSERT_EQ(write(fd, data, size), size);
	return fd;
}

/* A generator with a fixed seed, so that a failure comes back. */
static inline uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33);
}
