// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python/find.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "object/object.h"
#include "runtimes/python/dispatch.h"
#include "runtimes/python/evaluator.h"
#include "runtimes/python/pieces.h"
#include "runtimes/python/test-interpreters.h"

enum {
	DAMAGES = 300,
	HEAD = 128 << 10, /* headers and the tables of exports */
};

static bool find_in(const char *path, struct python_object *ret)
{
	_cleanup_object_ struct object *object = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	ASSERT_TRUE(fd >= 0);
	ASSERT_OK(object_open(fd, path, &object));
	return python_object_find(object, ret);
}

/* Interpreters that are in a file of their own, and not in a libpython. */
static bool next_static(const struct interpreters *found, size_t *at, struct python_object *ret)
{
	while (*at < found->count)
		if (find_in(found->path[(*at)++], ret))
			return true;
	return false;
}

TEST(an_interpreter_is_found_under_any_name_and_without_symbols)
{
	_cleanup_(interpreters_deinit) struct interpreters found = interpreters_find();
	char folder[] = "/tmp/cairn-test-XXXXXX", copy[64], command[PATH_MAX + 128];
	struct python_object whole, stripped;
	size_t at = 0, count = 0;

	ASSERT_TRUE(mkdtemp(folder));
	snprintf(copy, sizeof(copy), "%s/server", folder);
	while (next_static(&found, &at, &whole)) {
		print_message("%s\n", found.path[at - 1]);
		ASSERT_TRUE(whole.version && whole.code_type && whole.evals);
		ASSERT_EQ(!whole.runtime, !!whole.interpreters);
		ASSERT_EQ(!whole.runtime, !!whole.holder);
		snprintf(command, sizeof(command), "strip -o %s %s", copy, found.path[at - 1]);
		ASSERT_EQ(system(command), 0);
		ASSERT_TRUE(find_in(copy, &stripped));
		ASSERT_EQ(stripped.version, whole.version);
		ASSERT_EQ(stripped.runtime, whole.runtime);
		ASSERT_EQ(stripped.interpreters, whole.interpreters);
		ASSERT_EQ(stripped.code_type, whole.code_type);
		ASSERT_EQ(stripped.eval[0].start, whole.eval[0].start);
		ASSERT_EQ(stripped.eval[0].end, whole.eval[0].end);
		unlink(copy);
		count++;
	}
	rmdir(folder);
	ASSERT_TRUE(count);
}

/* The next interpreter, in a program or in the library that it is a small stub for. */
static struct object *next_any(const struct interpreters *found, size_t *at)
{
	while (*at < 2 * found->count) {
		const char *path = found->path[*at / 2];
		glob_t paths = {0};
		char pattern[PATH_MAX];
		snprintf(pattern, sizeof(pattern), "%s", path);
		const char *slash = strrchr(path, '/');
		if (*at % 2)
			snprintf(pattern, sizeof(pattern), "%.*s/../lib/libpython?.*.so.1.0",
				 (int)(slash - path), path);
		++*at;
		if (glob(pattern, 0, NULL, &paths))
			continue;
		print_message("%s\n", paths.gl_pathv[0]);
		struct object *object;
		int fd = open(paths.gl_pathv[0], O_RDONLY | O_CLOEXEC);
		ASSERT_TRUE(fd >= 0);
		ASSERT_OK(object_open(fd, paths.gl_pathv[0], &object));
		globfree(&paths);
		return object;
	}
	return NULL;
}

static bool has_range(const struct python_object *python, struct python_range range)
{
	for (uint32_t i = 0; i < python->evals; i++)
		if (python->eval[i].start == range.start && python->eval[i].end == range.end)
			return true;
	return false;
}

TEST(the_evaluator_is_found_by_its_table_of_opcodes)
{
	_cleanup_(interpreters_deinit) struct interpreters found = interpreters_find();
	struct object *next;
	size_t at = 0, count = 0;

	while ((next = next_any(&found, &at))) {
		_cleanup_object_ struct object *object = next;
		struct python_object whole, by_table = {0};
		struct python_pieces pieces;
		if (!python_object_find(object, &whole))
			continue;
		// Made for another machine than it was built on, 3.13 with musl has no computed
		// gotos.
		bool expected = python_pieces_open(object, &pieces);
		ASSERT_EQ(python_dispatch_find(object, &by_table), expected);
		python_evaluator_follow(object, &by_table);
		ASSERT_EQ(by_table.evals, expected ? whole.evals : 0);
		for (uint32_t i = 0; i < by_table.evals; i++)
			ASSERT_TRUE(has_range(&whole, by_table.eval[i]));
		count += expected;
	}
	ASSERT_TRUE(count);
}

TEST(other_programs_have_no_interpreter)
{
	static const char *const paths[] = {"/bin/true", "/bin/sh", "/proc/self/exe"};
	struct python_object python;

	for (size_t i = 0; i < ARRAY_COUNT(paths); i++)
		ASSERT_FALSE(find_in(paths[i], &python));
}

TEST(pypy_is_told_from_cpython)
{
	struct python_object python;
	glob_t paths = {0};

	if (glob("/usr/lib/*/libpypy3*-c.so", 0, NULL, &paths)) {
		globfree(&paths);
		SKIP("there is no PyPy here");
	}
	ASSERT_TRUE(find_in(paths.gl_pathv[0], &python));
	ASSERT_TRUE(python.pypy);
	ASSERT_FALSE(python.version || python.evals);
	globfree(&paths);
}

TEST(damaged_files_harm_nobody)
{
	_cleanup_(interpreters_deinit) struct interpreters found = interpreters_find();
	struct python_object python;
	uint32_t random = 1;
	size_t at = 0;

	ASSERT_TRUE(next_static(&found, &at, &python));
	_cleanup_fclose_ FILE *file = fopen(found.path[at - 1], "re");
	struct stat st;
	ASSERT_TRUE(file && !fstat(fileno(file), &st));
	_cleanup_free_ uint8_t *data = malloc(st.st_size);
	ASSERT_TRUE(data && fread(data, st.st_size, 1, file) == 1);
	for (int i = 0; i < DAMAGES; i++) {
		_cleanup_object_ struct object *object = NULL;
		random = random * 1103515245 + 12345;
		data[random / 7 % HEAD] ^= random >> 24;
		struct error *err = object_open_memory(data, st.st_size, "damaged", &object);
		if (!err)
			python_object_find(object, &python);
		error_free(err); // headers that make no sense
	}
}

RUN_TESTS(UNIT_TEST(an_interpreter_is_found_under_any_name_and_without_symbols),
	  UNIT_TEST(the_evaluator_is_found_by_its_table_of_opcodes),
	  UNIT_TEST(other_programs_have_no_interpreter), UNIT_TEST(pypy_is_told_from_cpython),
	  UNIT_TEST(damaged_files_harm_nobody))
