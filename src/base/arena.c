/* SPDX-License-Identifier: Apache-2.0 */
/* Bump allocation in blocks; large requests get a block of their own. */
#include "base/arena.h"

#include <stdint.h>
#include <string.h>

enum { BLOCK_BYTES = 64 * 1024 };

struct arena_block {
	struct arena_block *next;
	size_t room, used;
	_Alignas(8) char data[];
};

void arena_deinit(struct arena *arena)
{
	while (arena->blocks) {
		struct arena_block *next = arena->blocks->next;
		free(arena->blocks);
		arena->blocks = next;
	}
	arena->used_bytes = 0;
}

struct error *arena_alloc(struct arena *arena, size_t size, void *ret)
{
	struct arena_block *block = arena->blocks;

	if (size > SIZE_MAX / 2)
		return error_oom();
	size = (size + 7) & ~(size_t)7;
	if (arena->max_bytes && size > arena->max_bytes - arena->used_bytes)
		return error_new("more than %zu bytes in one arena", arena->max_bytes);

	if (!block || block->room - block->used < size) {
		size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;
		block = calloc(1, sizeof(*block) + room);
		if (!block)
			return error_oom();
		block->room = room;
		block->next = arena->blocks;
		arena->blocks = block;
	}

	void *at = block->data + block->used;
	block->used += size;
	arena->used_bytes += size;
	memcpy(ret, &at, sizeof(at));
	return NULL;
}

struct error *arena_copy(struct arena *arena, const char *text, size_t length, const char **ret)
{
	char *copy;

	if (length == SIZE_MAX)
		return error_oom();
	TRY(arena_alloc(arena, length + 1, &copy));
	memcpy(copy, text, length);
	*ret = copy;
	return NULL;
}
