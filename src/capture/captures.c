/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/captures.h"

#include "base/array.h"

#define CAPTURE(name, id, help) extern const struct source source_##name;
#include "capture/captures.def"
#undef CAPTURE

static const struct capture_row rows[] = {
#define CAPTURE(name, id, help) {#name, id, help, &source_##name},
#include "capture/captures.def"
#undef CAPTURE
};

const struct capture_row *capture_row_at(size_t index)
{
	// As many rows have smaller ids.
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		size_t better = 0;
		for (size_t k = 0; k < ARRAY_COUNT(rows); k++)
			better += rows[k].id < rows[i].id;
		if (better == index)
			return &rows[i];
	}
	return NULL;
}
