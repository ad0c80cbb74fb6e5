/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a process, wherever it is: of a live one (proc/process-memory.h), of a core file
 * (object/core.h), of a snapshot in a test. Whoever reads it trusts nothing: it may change between
 * two reads, and hold anything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Read SIZE bytes at ADDR into TO. Non-zero: not all of them could be read, and TO holds anything.
 */
typedef int memory_read_fn(void *context, uint64_t addr, void *to, size_t size);

/* One of several reads that are done together. */
struct memory_item {
	uint64_t addr;
	void *to; /* room for size bytes; borrowed */
	uint32_t size;
	bool read; /* set by the read: all of it is in TO */
};

typedef void memory_read_many_fn(void *context, struct memory_item *items, size_t count);

struct memory {
	memory_read_fn *read;
	void *context;                  /* borrowed */
	memory_read_many_fn *read_many; /* NULL: items are read one by one */
};

static inline int memory_read(const struct memory *memory, uint64_t addr, void *to, size_t size)
{
	return memory->read(memory->context, addr, to, size);
}

static inline int memory_read_u64(const struct memory *memory, uint64_t addr, uint64_t *ret)
{
	return memory->read(memory->context, addr, ret, sizeof(*ret));
}

static inline int memory_read_u32(const struct memory *memory, uint64_t addr, uint32_t *ret)
{
	return memory->read(memory->context, addr, ret, sizeof(*ret));
}

/*
 * Read all ITEMS, of a live process in one system call as long as none fails. Each says for itself
 * whether it was read; the count of those that were is returned.
 */
size_t memory_read_many(const struct memory *memory, struct memory_item *items, size_t count);

/*
 * A copy of a piece of somebody's memory, made at once: a stack that is walked in it does not
 * change meanwhile, and costs one read instead of one for each frame.
 */
struct memory_window {
	struct memory from;
	uint8_t *data; /* owned */
	size_t room, size;
	uint64_t start;
};

#define MEMORY_WINDOW_INIT                                                                         \
	{                                                                                          \
		0                                                                                  \
	}

enum { MEMORY_WINDOW_MAX = 16 << 20 };

/* A window of up to ROOM bytes, at most MEMORY_WINDOW_MAX, over FROM; it is empty. */
struct error *memory_window_init(struct memory_window *window, const struct memory *from,
				 size_t room);
void memory_window_deinit(struct memory_window *window);

/*
 * Copy what is at ADDR: SIZE bytes, or as many as the window has room for, up to the first page
 * that cannot be read. Returns how many; 0: none, and the window is empty.
 */
size_t memory_window_fill(struct memory_window *window, uint64_t addr, size_t size);

/*
 * Memory through WINDOW, which is borrowed: reads that lie inside the copy are answered from it,
 * all others by the memory below.
 */
struct memory memory_window_memory(struct memory_window *window);

/*
 * Copies of whole pages, each made when something on it is first read: a walk follows pointers from
 * one small thing to the next, and many of them lie together. What is read is what was there at
 * that moment, until it is forgotten.
 */
struct memory_pages {
	struct memory from;
	struct memory_page *page; /* owned */
};

#define MEMORY_PAGES_INIT                                                                          \
	{                                                                                          \
		0                                                                                  \
	}

/* No copies yet of what is in FROM. */
struct error *memory_pages_init(struct memory_pages *pages, const struct memory *from);
void memory_pages_deinit(struct memory_pages *pages);

/* Read everything anew from now on. */
void memory_pages_forget(struct memory_pages *pages);

/* Memory through PAGES, which is borrowed. */
struct memory memory_pages_memory(struct memory_pages *pages);
