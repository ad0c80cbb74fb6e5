/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a configuration file: keys are never empty, and have no separators in them. */
#include "cli/config-file.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config_file file = {.name = "fuzz", .text = malloc(size + 1)};
	struct config_line line = {.key = ""};
	struct error *err = NULL;

	if (!file.text)
		return 0;
	memcpy(file.text, data, size);
	file.text[size] = 0;
	file.next = file.text;
	while (!err && line.key) {
		err = config_file_next(&file, &line);
		if (!err && line.key && (!*line.key || strpbrk(line.key, ":=;# \t\n")))
			__builtin_trap();
		if (!err && line.key && line.value && strlen(line.value) > size)
			__builtin_trap();
	}
	error_free(err);
	config_file_deinit(&file);
	return 0;
}
