/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/usage.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/str.h"

enum { FILE_BYTES = 64 * 1024 };

/* Where a number stands (Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst). */
struct place {
	const char *controller; /* "": version 2 */
	const char *mount;      /* below the root */
	const char *file;
	const char *key; /* the word before the number; NULL: the file is the number */
	uint64_t scale;
};

static const struct place cpu_places[] = {
	{"cpuacct", "/cpuacct", "cpuacct.usage", NULL, 1},
	{"cpuacct", "/cpu,cpuacct", "cpuacct.usage", NULL, 1},
	{"", "", "cpu.stat", "usage_usec ", 1000},
	{"", "/unified", "cpu.stat", "usage_usec ", 1000},
};

static const struct place memory_places[] = {
	{"memory", "/memory", "memory.usage_in_bytes", NULL, 1},
	{"", "", "memory.current", NULL, 1},
	{"", "/unified", "memory.current", NULL, 1},
};

/* Does the list NAMES, "cpu,cpuacct:", hold NAME? Version 2 has an empty list. */
static bool lists(const char *names, const char *name)
{
	size_t length = strlen(name);

	for (;;) {
		size_t item = strcspn(names, ",:");
		if (item == length && !strncmp(names, name, length))
			return true;
		if (names[item] != ',')
			return false;
		names += item + 1;
	}
}

/* The group of CONTROLLER in GROUPS, lines of "4:memory:/a/b"; RET holds PATH_MAX characters. */
static bool find_group(const char *groups, const char *controller, char *ret)
{
	for (const char *line = groups; *line;) {
		size_t length = strcspn(line, "\n");
		const char *names = memchr(line, ':', length);
		const char *path =
			names ? memchr(names + 1, ':', length - (size_t)(names + 1 - line)) : NULL;
		size_t path_length = path ? length - (size_t)(path + 1 - line) : 0;
		if (path && path_length < PATH_MAX && lists(names + 1, controller)) {
			memcpy(ret, path + 1, path_length);
			ret[path_length] = 0;
			return true;
		}
		line += length + (line[length] == '\n');
	}
	return false;
}

/* The number at PLACE in DIRECTORY. False: it is not there. */
static bool read_number(const char *directory, const struct place *place, uint64_t *ret)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	size_t size;
	struct error *err = str_format(&path, "%s/%s", directory, place->file);

	if (!err)
		err = file_read(AT_FDCWD, path, FILE_BYTES, &text, &size);
	if (err) {
		error_free(err); // not mounted, or not for us
		return false;
	}
	char *at = place->key ? strstr(text, place->key) : text;
	if (!at)
		return false;
	at += place->key ? strlen(place->key) : 0;
	at[strcspn(at, "\n")] = 0;
	if (!str_parse_u64(at, 0, UINT64_MAX / place->scale, ret))
		return false;
	*ret *= place->scale;
	return true;
}

static struct error *read_place(const char *groups, const char *root, const struct place *place,
				bool *ret_found, uint64_t *ret)
{
	_cleanup_free_ char *directory = NULL, *mount = NULL;
	char group[PATH_MAX];

	*ret_found = false;
	if (!find_group(groups, place->controller, group))
		return NULL;
	TRY(str_format(&mount, "%s%s", root, place->mount));
	TRY(str_format(&directory, "%s%s", mount, group));
	// A container without a cgroup namespace has its group mounted where the root would be.
	*ret_found = read_number(directory, place, ret) || read_number(mount, place, ret);
	return NULL;
}

struct error *usage_read_from(const char *groups, const char *root, struct usage *ret)
{
	struct usage usage = {0};

	for (size_t i = 0; i < ARRAY_COUNT(cpu_places) && !usage.has_cpu; i++)
		TRY(read_place(groups, root, &cpu_places[i], &usage.has_cpu, &usage.cpu_ns));
	for (size_t i = 0; i < ARRAY_COUNT(memory_places) && !usage.has_memory; i++)
		TRY(read_place(groups, root, &memory_places[i], &usage.has_memory,
			       &usage.memory_bytes));
	*ret = usage;
	return NULL;
}

struct error *usage_read(struct usage *ret)
{
	_cleanup_free_ char *groups = NULL;
	size_t size;

	TRY(file_read(AT_FDCWD, "/proc/self/cgroup", FILE_BYTES, &groups, &size));
	return usage_read_from(groups, "/sys/fs/cgroup", ret);
}
