/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as /proc/PID/maps: refused with a reason, or sorted mappings without overlap. */
#include "proc/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct maps *maps)
{
	for (size_t i = 0; i < maps->count; i++) {
		const struct map *map = &maps->map[i];
		if (map->start >= map->end || (i && maps->map[i - 1].end > map->start))
			__builtin_trap();
		if (maps_find(maps, map->start) != map || maps_find(maps, map->end - 1) != map)
			__builtin_trap();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int which = MAPS_all; which <= MAPS_executable; which++) {
		_cleanup_(maps_deinit) struct maps maps = MAPS_INIT;
		_cleanup_error_ struct error *err =
			maps_parse(bytes_over(data, size, "input"), which, &maps);
		check(&maps);
		if (err && maps.count)
			__builtin_trap();
	}
	return 0;
}
