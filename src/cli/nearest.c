/* SPDX-License-Identifier: Apache-2.0 */
/* Edit distance between short names. */
#include "cli/nearest.h"

#include <string.h>

enum { NEAREST_LENGTH = 64 }; /* longer names are nobody's typing mistake */

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Levenshtein's distance, one row of its table at a time. */
static size_t edits_between(const char *a, const char *b)
{
	size_t a_length = strlen(a), b_length = strlen(b);
	size_t row[NEAREST_LENGTH + 1];

	for (size_t j = 0; j <= b_length; j++)
		row[j] = j;
	for (size_t i = 0; i < a_length; i++) {
		size_t diagonal = row[0];
		row[0] = i + 1;
		for (size_t j = 0; j < b_length; j++) {
			size_t above = row[j + 1];
			row[j + 1] = smaller(smaller(above, row[j]) + 1, diagonal + (a[i] != b[j]));
			diagonal = above;
		}
	}
	return row[b_length];
}

struct nearest nearest_to(const char *typed)
{
	return (struct nearest){.typed = typed, .edits = strlen(typed) / 3 + 2};
}

bool nearest_offer(struct nearest *nearest, const char *name)
{
	if (strlen(nearest->typed) > NEAREST_LENGTH || strlen(name) > NEAREST_LENGTH)
		return false;

	size_t edits = edits_between(nearest->typed, name);
	// Replacing every letter makes any name of any other.
	if (edits >= nearest->edits || edits >= strlen(name))
		return false;
	nearest->edits = edits;
	return true;
}
