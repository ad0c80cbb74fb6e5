/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a process that is made of a fuzzer's input: behind a head of the target's own come
 * pieces, each u64 address, u16 size, bytes. What is in no piece is unreadable, or all input again
 * and again, so that every pointer leads somewhere.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "proc/memory.h"

enum {
	FUZZ_PIECE_HEAD = 10,
	FUZZ_READS_MAX = 5000, /* of one input, in each of what is tried; all others fail */
};

struct fuzz_memory {
	const uint8_t *data;
	size_t size, head;
	bool around;
	unsigned reads;
};

/* The bytes at ADDR, SIZE of them, if one piece has them. */
static inline const uint8_t *fuzz_memory_find(const struct fuzz_memory *input, uint64_t addr,
					      size_t size)
{
	for (size_t at = input->head; input->size - at >= FUZZ_PIECE_HEAD;) {
		uint64_t start;
		uint16_t length;

		memcpy(&start, input->data + at, sizeof(start));
		memcpy(&length, input->data + at + 8, sizeof(length));
		at += FUZZ_PIECE_HEAD;
		if (length > input->size - at)
			return NULL;
		if (addr >= start && addr - start <= length && size <= length - (addr - start))
			return input->data + at + (addr - start);
		at += length;
	}
	return NULL;
}

static inline int fuzz_memory_read(void *context, uint64_t addr, void *to, size_t size)
{
	struct fuzz_memory *input = context;
	const uint8_t *found = fuzz_memory_find(input, addr, size);

	if (++input->reads > FUZZ_READS_MAX || (!found && !input->around))
		return -1;
	if (found) {
		memcpy(to, found, size);
		return 0;
	}
	for (size_t i = 0; i < size; i++)
		((uint8_t *)to)[i] = input->data[(addr + i) % input->size];
	return 0;
}
