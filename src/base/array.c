/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays, doubling. */
#include "base/array.h"

#include <stdint.h>
#include <string.h>

struct error *array_reserve(void *array, size_t *room, const struct array_need *need)
{
	void *old, *new;

	if (need->more > need->max || need->count > need->max - need->more)
		return error_new("more than %zu %s", need->max, need->what);
	size_t count = need->count + need->more;
	if (count <= *room)
		return NULL;

	size_t want = *room < 8 ? 8 : *room * 2;
	if (want < count)
		want = count;
	if (want > need->max)
		want = need->max;
	if (want > SIZE_MAX / need->size)
		return error_oom();

	// The caller's pointer has a type of its own; copying its bytes keeps the aliasing rules.
	memcpy(&old, array, sizeof(old));
	new = realloc(old, want * need->size);
	if (!new)
		return error_oom();
	memcpy(array, &new, sizeof(new));
	*room = want;
	return NULL;
}

struct error *array_new(void *array, size_t count, size_t size)
{
	// Of no items there is still an array: calloc() may give NULL for nothing.
	void *new = calloc(count ? count : 1, size);

	if (!new)
		return error_oom();
	memcpy(array, &new, sizeof(new));
	return NULL;
}
