/* SPDX-License-Identifier: Apache-2.0 */
/* An interpreter of a snapshot, and tasks of a corpus, with memory running out at any moment. */
#include <limits.h>

#include "base/file.h"
#include "runtimes/python/fuzz-memory.h"
#include "runtimes/python/tasks.h"
#include "runtimes/python/test-snapshot.h"
#include "starved.h"
#include "unit.h"

enum { ALL = 1000 };

static const char *const kinds[] = {"2.7", "3.9", "3.11", "3.14"};

static void path_of(const char *kind, char ret[PATH_MAX])
{
	snprintf(ret, PATH_MAX, "%s/snapshots/python-%s.txt", getenv("CAIRN_TESTS"), kind);
}

struct look {
	struct snapshot snapshot;
	struct snapshot_tables tables;
	FILE *nowhere;
};

static struct error *run(void *context)
{
	const struct look *look = context;
	struct memory memory = snapshot_memory(&look->snapshot);

	return snapshot_run(&look->snapshot, &look->tables, &memory, look->nowhere);
}

TEST(an_interpreter_is_read_or_memory_ran_out)
{
	static struct look look;
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
		print_message("%s\n", kinds[i]);
		path_of(kinds[i], path);
		look = (struct look){.nowhere = fopen("/dev/null", "we")};
		ASSERT_TRUE(look.nowhere);
		ASSERT_OK(snapshot_read(path, &look.snapshot));
		ASSERT_OK(snapshot_load(&look.tables, &look.snapshot));
		starved_try(run, &look, ALL);
		fclose(look.nowhere);
		snapshot_tables_deinit(&look.tables);
		snapshot_deinit(&look.snapshot);
	}
}

/* An input of fuzz-values.c: its head is 10 bytes, a kind of interpreter and an address. */
enum { VALUES_HEAD = 10 };

struct asked {
	struct fuzz_memory from;
	struct python_offsets at;
	uint64_t addr;
};

static struct error *read_tasks(void *context)
{
	struct asked *asked = context;
	const struct memory memory = {.read = fuzz_memory_read, .context = &asked->from};
	const struct python_thread thread = {.state = asked->addr};
	uint32_t reads_left = FUZZ_READS_MAX;
	const struct python_tasks_from from = {.memory = &memory,
					       .offsets = &asked->at,
					       .modules = asked->addr,
					       .threads = &thread,
					       .threads_count = 1,
					       .reads_left = &reads_left};
	_cleanup_(python_thread_names_deinit) struct python_thread_names names = {0};
	_cleanup_(python_tasks_deinit) struct python_tasks tasks = {0};
	enum python_thread_names_outcome names_outcome;
	enum python_tasks_outcome tasks_outcome;

	asked->from.reads = 0;
	TRY(python_thread_names_read(&memory, &asked->at, asked->addr, &names_outcome, &names));
	return python_tasks_read(&from, &tasks_outcome, &tasks);
}

TEST(tasks_are_read_or_memory_ran_out)
{
	static const uint16_t versions[] = {0x0309, 0x030b, 0x030e};
	static uint8_t data[1 << 16];
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_COUNT(versions); i++) {
		struct asked asked = {.from = {data, 0, VALUES_HEAD, false, 0}};
		snprintf(path, sizeof(path), "%s/corpus/python-values/3.%u-threads",
			 getenv("CAIRN_TESTS"), versions[i] & 0xff);
		_cleanup_fclose_ FILE *file = fopen(path, "re");
		ASSERT_TRUE(file);
		asked.from.size = fread(data, 1, sizeof(data), file);
		memcpy(&asked.addr, data + 2, sizeof(asked.addr));
		ASSERT_TRUE(python_offsets_find(versions[i], PYTHON_BUILD_PLAIN, &asked.at));
		starved_try(read_tasks, &asked, ALL);
	}
}

RUN_TESTS(UNIT_TEST(an_interpreter_is_read_or_memory_ran_out),
	  UNIT_TEST(tasks_are_read_or_memory_ran_out))
