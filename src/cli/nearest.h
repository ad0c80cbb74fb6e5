/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the name with the fewest edits from what was typed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct nearest {
	const char *typed; /* borrowed */
	size_t edits;      /* fewer than these are an improvement */
};

/* Begin a search; names that differ in more than a third of TYPED are never near. */
struct nearest nearest_to(const char *typed);

/* Is NAME nearer than all before it? */
bool nearest_offer(struct nearest *nearest, const char *name);
