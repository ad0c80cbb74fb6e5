/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing arrays. The array, its count and its room are plain fields of whoever owns them, so that
 * readers see the real type; only the growing is here. Every array states its maximum where it
 * grows.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

/*
 * Make room for MORE items of SIZE bytes behind COUNT ones. ARRAY points at the array pointer; it
 * and ROOM change only on success. More than MAX items in all is a failure that names WHAT.
 */
struct error *array_reserve(void *array, size_t *room, size_t count, size_t more, size_t size,
			    size_t max, const char *what);

/* Set ARRAY, which points at an array pointer, to COUNT items of SIZE bytes, all zero. */
struct error *array_new(void *array, size_t count, size_t size);

/* array_reserve() with the item size taken from the array itself. */
#define ARRAY_RESERVE(array, room, count, more, max, what)                                         \
	array_reserve(&(array), &(room), (count), (more), sizeof(*(array)), (max), (what))

/* array_new() with the item size taken from the array itself. */
#define ARRAY_NEW(array, count) array_new(&(array), (count), sizeof(*(array)))

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))
