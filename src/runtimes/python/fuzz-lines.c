/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a table of lines of any version: each offset has one line, and that one is small. */
#include <stdbool.h>
#include <string.h>

#include "runtimes/python/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint16_t versions[] = {0x0207, 0x0309, 0x030a, 0x030b, 0x030e};

enum { HEAD = 5, VERSIONS = sizeof(versions) / sizeof(versions[0]) };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct python_lines lines = {0};

	if (size < HEAD)
		return 0;
	lines.version = versions[data[0] % VERSIONS];
	memcpy(&lines.first_line, data + 1, sizeof(lines.first_line));
	lines.table = data + HEAD;
	lines.size = size - HEAD;
	for (int64_t offset = -1; offset < 256; offset++) {
		// What the table cannot say stays as it was.
		uint32_t line = UINT32_MAX;
		bool found = python_lines_find(&lines, offset, &line) == PYTHON_LINE_found;
		if (found != (line <= INT32_MAX))
			__builtin_trap();
	}
	return 0;
}
