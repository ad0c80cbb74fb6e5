/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of struct core, for the files of this folder that fill it. Others see core.h. */
#pragma once

#include "base/hash.h"
#include "object/core.h"
#include "object/object.h"

/* A PT_LOAD: memory, of which the file has the first part. */
struct core_segment {
	uint64_t start, end; /* addresses */
	uint64_t offset;     /* in the core */
	uint64_t file_size;  /* bytes that should be there */
	uint64_t held;       /* bytes that are */
	uint32_t flags;      /* PF_R, ... */
};

/* A row of NT_FILE. */
struct core_mapped {
	uint64_t start, end, offset;
	uint32_t file; /* number */
};

/* A file that was mapped. */
struct core_mapped_file {
	const char *path; /* without " (deleted)"; in maps.paths */
	bool deleted;
	uint64_t end;    /* it is at least as long as this, up to a page */
	uint64_t header; /* address of the mapping of its first page; 0: there is none */
	int given_fd;    /* -1: to be opened by path; else owned */
	bool asked;      /* what it is is known */
	enum core_file look;
	struct object *object; /* NULL: not open now */
};

enum { CORE_OPEN_FILES = 200, CORE_NOTES_MAX = 16, CORE_BLOCK = 64 << 10 };

struct core {
	char *name;
	int fd;
	struct core_options options;
	struct core_facts facts;

	uint64_t program_table;
	uint32_t program_count;
	unsigned notes;               /* segments of notes that were read, of CORE_NOTES_MAX */
	struct core_segment *segment; /* sorted, without overlap */
	size_t segment_count, segment_room;
	size_t last; /* the segment of the last read: the next is near, as a rule */

	struct core_thread *thread;
	size_t thread_count, thread_room;

	struct core_mapped *mapped;
	size_t mapped_count, mapped_room;
	struct core_mapped_file *file;
	size_t file_count, file_room;
	struct hash_index file_by_path;
	struct maps maps; /* paths of files are in its arena; inode is the file's number + 1 */
	uint32_t opened[CORE_OPEN_FILES]; /* numbers of files, plus 1; a ring */
	size_t open_next;

	char *remark[CORE_REMARKS_MAX]; /* owned */
	size_t remark_count;

	uint8_t *block; /* read ahead: the bytes at block_offset */
	uint64_t block_offset;
	size_t block_size;
};

/* Copy SIZE bytes of the core at OFFSET. A failure names the offset. */
struct error *core_read_file(struct core *core, uint64_t offset, void *to, size_t size);

/* Remember a sentence; beyond CORE_REMARKS_MAX they are dropped. */
struct error *core_remark(struct core *core, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Read a segment of notes. What is damaged or cut becomes a remark; segments beyond CORE_NOTES_MAX
 * are left out. */
struct error *core_read_notes(struct core *core, uint64_t offset, uint64_t size);

/* A row of NT_FILE: its file is entered if it is new. */
struct error *core_add_mapped(struct core *core, const struct core_mapped *row, const char *path);

/* Fill core->maps from segments and rows of NT_FILE. */
struct error *core_make_maps(struct core *core);

/* SIZE bytes at ADDR, which the core itself holds. Non-zero: it does not. */
int core_read_held(struct core *core, uint64_t addr, void *to, size_t size);

/* SIZE bytes at ADDR within MAP, from its file. Non-zero: not to be had. */
int core_read_mapped(struct core *core, const struct map *map, uint64_t addr, void *to,
		     size_t size);

void core_close_files(struct core *core);
