/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays, doubling. */
#include "base/array.h"

#include <stdint.h>
#include <string.h>

struct error *array_reserve(void *array, size_t *room, size_t count, size_t more, size_t size,
			    size_t max, const char *what)
{
	void *old, *new;

	if (more > max || count > max - more)
		return error_new("more than %zu %s", max, what);
	size_t need = count + more;
	if (need <= *room)
		return NULL;

	size_t want = *room < 8 ? 8 : *room * 2;
	if (want < need)
		want = need;
	if (want > max)
		want = max;
	if (want > SIZE_MAX / size)
		return error_oom();

	// The caller's pointer has a type of its own; copying its bytes keeps the aliasing rules.
	memcpy(&old, array, sizeof(old));
	new = realloc(old, want * size);
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
