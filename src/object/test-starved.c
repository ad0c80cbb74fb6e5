/* SPDX-License-Identifier: Apache-2.0 */
/* Cores and objects, with memory running out at any moment. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "base/array.h"
#include "base/file.h"
#include "object/core.h"
#include "object/object.h"
#include "object/rows.h"
#include "starved.h"
#include "unit.h"

enum { ALL = 1000 };

static void path_of(const char *folder, const char *name, char ret[PATH_MAX])
{
	snprintf(ret, PATH_MAX, "%s/corpus/%s/%s", getenv("CAIRN_TESTS"), folder, name);
}

static struct error *open_corpus(const char *folder, const char *name, int *ret_fd)
{
	char path[PATH_MAX];

	path_of(folder, name, path);
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? error_errno("open %s", path) : NULL;
}

/* Every mapped file is an object of the corpus. */
static struct error *open_file(void *context, const char *path, enum root_outcome *ret, int *ret_fd)
{
	*ret = ROOT_opened;
	return open_corpus("object", "frames", ret_fd);
}

static struct error *open_temporary(void *context, int *ret_fd)
{
	return file_open_unnamed(ret_fd);
}

static struct error *ask_core(struct core *core)
{
	const struct maps *maps = core_maps(core);
	struct memory memory = core_memory(core);
	enum core_file look;
	uint64_t word;
	size_t count;

	(void)core_threads(core, &count);
	for (size_t i = 0; i < maps->count; i++) {
		_cleanup_close_ int fd = -1;
		(void)memory_read_u64(&memory, maps->map[i].start, &word);
		TRY(core_open_file(core, &maps->map[i], &look, &fd));
	}
	(void)core_remarks(core, &count);
	return NULL;
}

static struct error *look_at_core(void *context)
{
	const char *name = context;
	const struct core_options options = {.open = open_file, .temporary = open_temporary};
	_cleanup_core_ struct core *core = NULL;
	_cleanup_close_ int fd = -1;

	TRY(open_corpus("core", name, &fd));
	TRY(core_open(fd, name, &options, &core));
	fd = -1;
	return ask_core(core);
}

TEST(a_core_is_read_or_memory_ran_out)
{
	static const char *const names[] = {"usual", "usual.gz", "usual.xz", "usual.zst", "cut"};

	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		print_message("%s\n", names[i]);
		starved_try(look_at_core, (void *)names[i], ALL);
	}
}

static struct error *look_at_object(void *context)
{
	const char *name = context;
	_cleanup_object_ struct object *object = NULL;
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
	_cleanup_close_ int fd = -1;

	TRY(open_corpus("object", name, &fd));
	TRY(object_open(fd, name, &object));
	fd = -1;
	return rows_compile(object, &rows);
}

TEST(an_object_is_compiled_or_memory_ran_out)
{
	static const char *const names[] = {"code", "frames", "stubs", "zlib", "zstd"};

	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		print_message("%s\n", names[i]);
		starved_try(look_at_object, (void *)names[i], ALL);
	}
}

RUN_TESTS(UNIT_TEST(a_core_is_read_or_memory_ran_out),
	  UNIT_TEST(an_object_is_compiled_or_memory_ran_out))
