/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a process, wherever it is: of a live one, of a core file, of a snapshot in a test.
 * Whoever reads it trusts nothing: it may change between two reads, and hold anything.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Read SIZE bytes at ADDR into TO. Non-zero: not all of them could be read. */
typedef int memory_read_fn(void *context, uint64_t addr, void *to, size_t size);

struct memory {
	memory_read_fn *read;
	void *context; /* borrowed */
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
