/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a perf map, read in two pieces: sorted pieces without overlap, each with a name. */
#include "symbolize/perfmap.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct perfmap *map)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct perfmap_piece *piece = &map->piece[i];
		if (!piece->size || piece->name >= map->names.length)
			__builtin_trap();
		if (i && map->piece[i - 1].start + map->piece[i - 1].size > piece->start)
			__builtin_trap();
		if (!perfmap_find(map, piece->start) ||
		    !perfmap_find(map, piece->start + piece->size - 1))
			__builtin_trap();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(perfmap_deinit) struct perfmap map = PERFMAP_INIT;
	_cleanup_close_ int fd = memfd_create("perfmap", MFD_CLOEXEC);

	for (int half = 0; half < 2; half++) {
		size_t from = half ? size / 2 : 0, until = half ? size : size / 2;
		if (write(fd, data + from, until - from) != (ssize_t)(until - from))
			return 0;
		error_free(perfmap_update(&map, fd, "input"));
		check(&map);
	}
	return 0;
}
