// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python/layout.h"

#include "unit.h"

enum { TABLE_AT = 0x10000, TABLE_SIZE = 1024, FIRST_SHIFTED = 3 };

static const uint16_t versions[] = {0x0207, 0x0305, 0x0306, 0x0307, 0x0308, 0x0309,
				    0x030a, 0x030b, 0x030c, 0x030d, 0x030e};

/* A _PyRuntime that begins with a table of offsets. */
struct runtime {
	uint64_t word[TABLE_SIZE / 8];
	unsigned reads_left;
};

static int read_runtime(void *context, uint64_t addr, void *to, size_t size)
{
	struct runtime *runtime = context;

	if (!runtime->reads_left || addr < TABLE_AT || addr + size > TABLE_AT + TABLE_SIZE)
		return -1;
	runtime->reads_left--;
	memcpy(to, (char *)runtime->word + (addr - TABLE_AT), size);
	return 0;
}

static struct runtime made_runtime(uint64_t version, uint64_t free_threaded)
{
	struct runtime runtime = {.reads_left = 1000};

	memcpy(runtime.word, "xdebugpy", 8);
	runtime.word[1] = version;
	runtime.word[2] = free_threaded;
	for (size_t i = FIRST_SHIFTED; i < TABLE_SIZE / 8; i++)
		runtime.word[i] = 8 * i;
	return runtime;
}

static enum python_table read_table(struct runtime *runtime, struct python_offsets *ret)
{
	const struct memory memory = {read_runtime, runtime};

	return python_offsets_read(&memory, TABLE_AT, ret);
}

TEST(every_version_has_what_a_walk_needs)
{
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		struct python_offsets at;
		ASSERT_TRUE(python_offsets_find(versions[i], PYTHON_BUILD_PLAIN, &at));
		struct python_layout layout = python_offsets_layout(&at);
		ASSERT_EQ(layout.version, versions[i]);
		ASSERT_TRUE(layout.frames);
		ASSERT_TRUE(layout.interpreter_threads != PYTHON_ABSENT);
		ASSERT_TRUE(layout.thread_id != PYTHON_ABSENT);
		ASSERT_TRUE(layout.thread_frame != PYTHON_ABSENT);
		ASSERT_TRUE(layout.frame_ip != PYTHON_ABSENT);
		ASSERT_TRUE(layout.code_first_line != PYTHON_ABSENT);
		ASSERT_EQ(layout.code_bytes == PYTHON_ABSENT, versions[i] < 0x030b);
		ASSERT_EQ(layout.interpreter_gil == PYTHON_ABSENT, versions[i] < 0x030c);
	}
}

TEST(versions_and_builds_that_are_not_known_have_no_offsets)
{
	static const uint16_t unknown[] = {0, 0x0206, 0x0208, 0x0300, 0x0304, 0x030f, 0xffff};
	struct python_offsets at;

	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		for (int build = 0; build < PYTHON_BUILDS; build++)
			ASSERT_FALSE(python_offsets_find(unknown[i], build, &at));
	ASSERT_FALSE(python_offsets_find(0x030c, PYTHON_BUILD_FREE, &at));
	ASSERT_FALSE(python_offsets_find(0x030d, PYTHON_BUILD_TRACED, &at));
	ASSERT_TRUE(python_offsets_find(0x0207, PYTHON_BUILD_TRACED, &at));
	ASSERT_TRUE(python_offsets_find(0x030e, PYTHON_BUILD_FREE, &at));
}

TEST(links_of_traced_objects_move_what_is_behind_them)
{
	struct python_offsets plain, traced;

	ASSERT_TRUE(python_offsets_find(0x0308, PYTHON_BUILD_PLAIN, &plain));
	ASSERT_TRUE(python_offsets_find(0x0308, PYTHON_BUILD_TRACED, &traced));
	ASSERT_EQ(traced.object_type, plain.object_type + 16);
	ASSERT_EQ(traced.code_filename, plain.code_filename + 16);
	ASSERT_EQ(traced.interpreter_threads, plain.interpreter_threads);
}

TEST(what_an_interpreter_carries_is_believed)
{
	struct runtime runtime = made_runtime(0x030d00f0, 0);
	struct python_offsets at, table;

	ASSERT_EQ(read_table(&runtime, &at), PYTHON_TABLE_ok);
	ASSERT_TRUE(python_offsets_find(0x030d, PYTHON_BUILD_PLAIN, &table));
	ASSERT_EQ(at.version, 0x030d);
	// The words as they are in 3.13 (pycore_runtime.h): the table says of each where it is.
	ASSERT_EQ(at.runtime_finalizing, 8 * 4);
	ASSERT_EQ(at.interpreter_threads, 8 * 9);
	ASSERT_EQ(at.frame_owner, 8 * 33);
	ASSERT_EQ(at.frame_globals, table.frame_globals);
	ASSERT_EQ(at.frame_tlbc_index, PYTHON_ABSENT);

	runtime = made_runtime(0x030e04f0, 1);
	ASSERT_EQ(read_table(&runtime, &at), PYTHON_TABLE_ok);
	ASSERT_EQ(at.build, PYTHON_BUILD_FREE);
	ASSERT_TRUE(at.frame_tlbc_index != PYTHON_ABSENT);
}

TEST(tables_that_make_no_sense_are_refused)
{
	struct python_offsets at = {.version = 7};
	struct runtime runtime = made_runtime(0x030d00f0, 0);

	runtime.word[0]++;
	ASSERT_EQ(read_table(&runtime, &at), PYTHON_TABLE_none);
	static const uint64_t wrong[] = {0, 0x030c00f0, 0x030f00f0, 0x1030d00f0, UINT64_MAX};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		runtime = made_runtime(wrong[i], 0);
		ASSERT_EQ(read_table(&runtime, &at), PYTHON_TABLE_version);
	}
	runtime = made_runtime(0x030d00f0, 2);
	ASSERT_EQ(read_table(&runtime, &at), PYTHON_TABLE_version);
	runtime = made_runtime(0x030d00f0, 0);
	runtime.word[9] = UINT32_MAX;
	ASSERT_EQ(read_table(&runtime, &at), PYTHON_TABLE_odd);
	ASSERT_EQ(at.version, 7);
}

TEST(each_read_may_fail)
{
	struct python_offsets at = {.version = 7};
	enum python_table end;
	unsigned reads = 0;

	do {
		struct runtime runtime = made_runtime(0x030e00f0, 0);
		runtime.reads_left = reads++;
		end = read_table(&runtime, &at);
		ASSERT_EQ(at.version, end == PYTHON_TABLE_ok ? 0x030e : 7);
	} while (end == PYTHON_TABLE_unreadable);
	ASSERT_EQ(end, PYTHON_TABLE_ok);
	ASSERT_TRUE(reads > 40);
}

RUN_TESTS(UNIT_TEST(every_version_has_what_a_walk_needs),
	  UNIT_TEST(versions_and_builds_that_are_not_known_have_no_offsets),
	  UNIT_TEST(links_of_traced_objects_move_what_is_behind_them),
	  UNIT_TEST(what_an_interpreter_carries_is_believed),
	  UNIT_TEST(tables_that_make_no_sense_are_refused), UNIT_TEST(each_read_may_fail))
