/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/python/neighbours.h"

#include <string.h>

#include "base/str.h"

bool python_starts_in(const char *path)
{
	static const char *const names[] = {"libc.so.", "libc-2.", "libpthread",
					    "ld-linux", "ld-musl", "libc.musl"};
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (str_starts(name, names[i]))
			return true;
	return false;
}

/* From the root to the first Python frame: nothing but the interpreter and what starts threads? */
static bool begins_as_interpreter(const struct python_neighbour *frame, size_t count)
{
	for (size_t i = count; i-- > 0 && !frame[i].python;)
		if (!frame[i].interpreter && !frame[i].start)
			return false;
	return true;
}

void python_hide_interpreter(struct python_neighbour *frame, size_t count)
{
	size_t innermost = count, i;

	for (i = 0; i < count; i++)
		frame[i].keep = true;
	for (i = 0; i < count && innermost == count; i++)
		if (frame[i].python)
			innermost = i;
	if (innermost == count)
		return;
	// The evaluator stands before the frames that it evaluates.
	for (i = innermost ? innermost - 1 : 0; i < count; i++)
		frame[i].keep = frame[i].python || !frame[i].interpreter;
	if (!begins_as_interpreter(frame, count))
		return;
	for (i = count; !frame[i - 1].python; i--)
		frame[i - 1].keep = false;
}
