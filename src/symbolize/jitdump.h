/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A jitdump file: code made at run time with its names, source lines and times. The layout is that
 * of the kernel's tools/perf/Documentation/jitdump-specification.txt:
 *
 *   header  u32 magic, version, header size, machine, pad, pid; u64 time, flags
 *   record  u32 id, size; u64 time; then by id
 *     0 LOAD   u32 pid, tid; u64 vma, address, size, index; name; code
 *     1 MOVE   u32 pid, tid; u64 vma, old address, new address, size, index
 *     2 LINES  u64 address, count; per line: u64 address, u32 line, u32 discriminator, file
 *     3 CLOSE
 *     4 UNWIND u64 sizes; data
 *
 * in the byte order of the writer. LINES stands before the LOAD that it is about.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/str.h"

enum {
	JITDUMP_FUNCTIONS = 1 << 20,
	JITDUMP_LINES = 2 << 20,
	JITDUMP_RECORDS = 8 << 20,
	JITDUMP_NAME_BYTES = 4 << 10,   /* longer names are cut */
	JITDUMP_TEXT_BYTES = 64 << 20,  /* all names and files together */
	JITDUMP_RECORD_BYTES = 4 << 20, /* of one record are looked at; lines beyond are dropped */
};

struct jitdump_line {
	uint64_t addr;
	uint32_t line;
	uint32_t file; /* offset in text */
};

/* Code that was at START from FROM_NS on, until it was moved away at UNTIL_NS. */
struct jitdump_function {
	uint64_t start, size;
	uint64_t from_ns, until_ns;
	uint32_t name; /* offset in text */
	uint32_t first_line, line_count;
};

struct jitdump {
	struct jitdump_function *function; /* in the order of the file */
	size_t count, room;
	struct jitdump_line *line;
	size_t line_count, line_room;
	struct strbuf text;
	uint32_t *order;      /* functions sorted by start */
	uint64_t *end;        /* at the middle of each range of order: the greatest end in it */
	size_t ordered;       /* how many functions order and end are about */
	struct hash_index at; /* the latest function that starts at an address */
	uint64_t offset;      /* of what has not been read */
	uint64_t records;
	dev_t device; /* the file that was read */
	ino_t inode;
	bool big_endian;
	bool timeless; /* times are of a clock that is not CLOCK_MONOTONIC and say nothing */
	bool closed;
	struct {
		uint64_t addr;
		uint32_t first, count;
	} lines; /* waiting for their LOAD */
};

#define JITDUMP_INIT                                                                               \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Read what FD (borrowed, NAME for messages) holds beyond what DUMP has read before; everything, if
 * it is another file or has shrunk. A record that is not complete yet is left for the next time.
 * On failure what was read up to the damage stays usable.
 */
struct error *jitdump_update(struct jitdump *dump, int fd, const char *name);
void jitdump_deinit(struct jitdump *dump);

struct jitdump_found {
	const char *name; /* borrowed until the next update */
	const char *file; /* NULL: unknown */
	uint32_t line;    /* 0: unknown */
	uint64_t start;
};

/* What was at PC at TIME_NS: of all that was loaded there by then the latest. TIME_NS 0: the latest
 * of all. */
bool jitdump_find(const struct jitdump *dump, uint64_t pc, uint64_t time_ns,
		  struct jitdump_found *ret);

size_t jitdump_bytes(const struct jitdump *dump);
