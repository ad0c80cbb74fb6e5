/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /tmp/perf-PID.map, which programs write about code they make: lines of "START SIZE NAME", both
 * numbers hexadecimal, the name up to the end of the line, appended as code is made. Code is moved
 * and thrown away without a word, so that of two entries that overlap the later one is right.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"

enum {
	PERFMAP_FILE_BYTES = 64 << 20, /* what is behind is not read */
	PERFMAP_LINES = 4 << 20,
	PERFMAP_NAME_BYTES = 4 << 10, /* longer names are cut */
};

struct perfmap_piece {
	uint64_t start;
	uint32_t size;
	uint32_t name; /* offset in names */
};

struct perfmap {
	struct perfmap_piece *piece; /* sorted by start, without overlaps */
	size_t count, room;
	struct strbuf names;
	uint64_t offset; /* of what has not been read */
	dev_t device;    /* the file that was read */
	ino_t inode;
};

#define PERFMAP_INIT                                                                               \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Read what FD (borrowed, NAME for messages) holds beyond what MAP has read before; everything, if
 * it is another file or has shrunk. It must be a regular file; whether its owner may speak for the
 * process is for the caller to check, and so is that opening it did not block (a FIFO with this
 * name). A last line without an end is left for the next time. On failure MAP is as before.
 */
struct error *perfmap_update(struct perfmap *map, int fd, const char *name);
void perfmap_deinit(struct perfmap *map);

/* The name of the code at PC, borrowed until the next update; NULL: none. */
const char *perfmap_find(const struct perfmap *map, uint64_t pc);

size_t perfmap_bytes(const struct perfmap *map);
