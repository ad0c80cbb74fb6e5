/* SPDX-License-Identifier: Apache-2.0 */
/* The native walker compiled for the host, and the texts of abi/ends.def. */
#include "unwind/native.h"

void host_walk_native(struct host_walk *walk)
{
	while (!native_walk_one(&walk->walk))
		;
}

struct end_row {
	const char *text;
	int whole;
};

static const struct end_row rows[END_MAX] = {
#define END(name, id, is_whole, words) [id] = {.text = words, .whole = is_whole},
#include "abi/ends.def"
#undef END
};

const char *walk_end_text(enum walk_end end)
{
	return end < END_MAX && rows[end].text ? rows[end].text : "unknown end";
}

int walk_end_whole(enum walk_end end)
{
	return end < END_MAX && rows[end].whole;
}
