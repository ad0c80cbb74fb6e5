/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mappings of a process, as /proc/PID/maps lists them. What the files behind them are, and
 * whether a path still leads to the file that was mapped, is for the caller (proc/root.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"

enum maps_prot {
	MAPS_READ = 1,
	MAPS_WRITE = 2,
	MAPS_EXECUTE = 4,
	MAPS_SHARED = 8,
};

struct map {
	uint64_t start, end; /* addresses; end is exclusive */
	uint64_t offset;     /* in the file */
	uint64_t inode;      /* 0: no file */
	/* Device of the file system's super block. stat() may report another one for the same file
	 * (btrfs subvolumes, overlayfs), so that a difference alone does not prove another file. */
	uint32_t dev_major, dev_minor;
	uint8_t prot; /* enum maps_prot */
	bool deleted; /* the kernel wrote " (deleted)" behind the path, which is cut off here */
	/* "/usr/bin/x", "[vdso]", "anon_inode:[perf_event]"; "" for anonymous memory. A file whose
	 * name holds the four characters \012 cannot be told from one with a newline; it is read
	 * as a newline. Owned by the struct maps. */
	const char *path;
};

/* Sorted by address, without overlap. */
struct maps {
	struct map *map;
	size_t count, room;
	struct arena paths;
};

#define MAPS_INIT                                                                                  \
	{                                                                                          \
		0                                                                                  \
	}

/* More mappings, or more text of paths, than this is a failure. */
enum { MAPS_MAX = 1 << 20, MAPS_PATHS_BYTES = 64 << 20 };

enum maps_which {
	MAPS_all,
	MAPS_executable, /* only those with execute permission are kept */
};

void maps_deinit(struct maps *maps);

/*
 * The mappings of PID now. None for a kernel thread and for a process that has ended. The kernel
 * lists mappings piecewise while they change; where two lines contradict each other the later one
 * holds. RET is untouched on failure; free it with maps_deinit().
 */
struct error *maps_read(pid_t pid, enum maps_which which, struct maps *ret);

/* The same from text in the form of /proc/PID/maps. */
struct error *maps_parse(struct bytes text, enum maps_which which, struct maps *ret);

/* The mapping that holds ADDR; NULL when there is none. */
const struct map *maps_find(const struct maps *maps, uint64_t addr);

/* Is a file behind it, reachable by a path or not? (Not [vdso], not anonymous memory.) */
bool map_is_file(const struct map *map);
