/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as what an installer left: the first says as which file. */
#include <string.h>

#include "runtimes/python/packages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A shortest path has no step that could be left out. */
static void check_path(const char *path)
{
	if (*path == '/' || strstr(path, "//") || strstr(path, "/./") || strstr(path, "/../") ||
	    !strncmp(path, "../", 3) || !strcmp(path, ".."))
		__builtin_trap();
	if (strlen(path) >= PYTHON_PACKAGES_PATH_MAX)
		__builtin_trap();
}

static void run_list(struct bytes b, bool (*next)(struct bytes *b, char *ret), const char *from)
{
	char path[PYTHON_PACKAGES_PATH_MAX];

	for (const uint8_t *before = b.at; next(&b, path); before = b.at) {
		if (b.at <= before)
			__builtin_trap();
		if (python_packages_path(from, path, path))
			check_path(path);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct python_metadata metadata;

	if (!size)
		return 0;
	struct bytes b = bytes_over(data + 1, size - 1, "input");
	switch (data[0] % 3) {
	case 0:
		run_list(b, python_record_next, NULL);
		break;
	case 1:
		run_list(b, python_installed_next, "name.egg-info");
		break;
	case 2:
		python_metadata_parse(b, &metadata);
		if (strlen(metadata.name) >= sizeof(metadata.name) ||
		    strlen(metadata.version) >= sizeof(metadata.version))
			__builtin_trap();
		break;
	}
	return 0;
}
