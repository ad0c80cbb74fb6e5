/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing arrays. The array, its count and its room are plain fields of whoever owns them, so that
 * readers see the real type; only the growing is here. Every array states its maximum where it
 * grows.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

/* What an array needs: room for MORE items of SIZE bytes behind COUNT ones. */
struct array_need {
	size_t count, more, size;
	size_t max;       /* more items than this in all is a failure */
	const char *what; /* that it names */
};

/* See that NEED is met. ARRAY points at the array pointer; it and ROOM change only on success. */
struct error *array_reserve(void *array, size_t *room, const struct array_need *need);

/* Set ARRAY, which points at an array pointer, to COUNT items of SIZE bytes, all zero. */
struct error *array_new(void *array, size_t count, size_t size);

/* array_reserve() with the item size taken from the array itself. */
#define ARRAY_RESERVE(array, room, count, more, max, what)                                         \
	array_reserve(&(array), &(room),                                                           \
		      &(struct array_need){(count), (more), sizeof(*(array)), (max), (what)})

/* array_new() with the item size taken from the array itself. */
#define ARRAY_NEW(array, count) array_new(&(array), (count), sizeof(*(array)))

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))
