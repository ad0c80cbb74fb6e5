/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of asyncio in real interpreters, as tests/targets/python-tasks.py tells them. */
#include "runtimes/python/tasks.h"

#include "runtimes/python/test-rows.h"
#include "runtimes/python/text.h"

struct counts {
	long tasks, frames, links, failures;
	bool every;      /* read fails once */
	uint64_t thread; /* that runs the loop: its ident */
};

enum { SOME = 23 };

/* "outer>inner": what the coroutines of TASK are called. */
static void functions_of(struct telling *telling, const struct python_task *task, char *ret)
{
	size_t length = 0;

	ret[0] = 0;
	for (size_t i = 0; i < task->stack.count; i++) {
		char name[64];
		uint64_t text;
		ASSERT_EQ(memory_read_u64(&telling->memory,
					  task->stack.frame[i].code + telling->at.code_name, &text),
			  0);
		ASSERT_EQ(
			python_text_read(&telling->memory, &telling->at, text, name, sizeof(name)),
			PYTHON_TEXT_read);
		length += (size_t)snprintf(ret + length, ROW_TEXT_MAX - length, "%s%s",
					   i ? ">" : "", name);
	}
}

static void check_task(struct telling *telling, const struct python_tasks *tasks,
		       struct counts *counts)
{
	char *row = telling_row(telling), text[ROW_TEXT_MAX], functions[ROW_TEXT_MAX];
	uint64_t addr = row_number(&row), by = row_number(&row);

	for (size_t i = 0; i < tasks->count; i++) {
		const struct python_task *task = &tasks->task[i];
		if (task->addr != addr)
			continue;
		row_text(&row, text);
		ASSERT_STREQ(task->name, text);
		row_text(&row, text);
		functions_of(telling, task, functions);
		if ((task->awaited_by < 0 ? 0 : tasks->task[task->awaited_by].addr) != by)
			print_error("%s\n", functions);
		// What asyncio itself is in differs from version to version.
		ASSERT_EQ(strncmp(functions, text, strlen(text)), 0);
		ASSERT_EQ(task->awaited_by < 0 ? 0 : tasks->task[task->awaited_by].addr, by);
		ASSERT_EQ(task->thread_id, counts->thread);
		ASSERT_FALSE(task->stack.running);
		counts->tasks++;
		counts->frames += (long)task->stack.count;
		counts->links += by != 0;
		return;
	}
	print_error("no task at %lx\n", (unsigned long)addr);
	fail();
}

/* One read failing, each in turn or some of them: fewer tasks, and told so. */
static void check_failures(struct telling *telling, const struct python_tasks_from *from,
			   size_t count, struct counts *counts)
{
	long reads = telling->failing.reads, step = counts->every ? 1 : SOME;

	for (long i = 0; i < reads; i += step) {
		_cleanup_(python_tasks_deinit) struct python_tasks fewer = {0};
		enum python_tasks_outcome outcome;
		*from->reads_left = PYTHON_TASKS_READS;
		telling->failing.reads = 0;
		telling->failing.fails_at = i;
		ASSERT_OK(python_tasks_read(from, &outcome, &fewer));
		ASSERT_TRUE(fewer.count <= count);
		ASSERT_TRUE(fewer.count == count || outcome != PYTHON_TASKS_read);
		counts->failures++;
	}
	telling->failing.fails_at = -1;
}

static void check_tasks(struct telling *telling, struct counts *counts)
{
	_cleanup_(python_tasks_deinit) struct python_tasks tasks = {0};
	enum python_tasks_outcome outcome;
	char *row = telling_row(telling);
	struct python_thread thread = {0};
	uint32_t reads_left = PYTHON_TASKS_READS;
	struct python_tasks_from from = {.memory = &telling->memory,
					 .offsets = &telling->at,
					 .threads = &thread,
					 .reads_left = &reads_left};

	ASSERT_EQ(telling->row[0], 'K');
	from.modules = row_number(&row);
	thread.state = row_number(&row);
	thread.thread_id = counts->thread = row_number(&row);
	uint64_t count = row_number(&row);
	from.threads_count = thread.state != 0;
	telling->failing.reads = 0;
	ASSERT_OK(python_tasks_read(&from, &outcome, &tasks));
	long reads = telling->failing.reads;
	if (telling->at.version == 0x0306) {
		ASSERT_EQ(outcome, PYTHON_TASKS_unknown);
		return;
	}
	ASSERT_EQ(outcome, PYTHON_TASKS_read);
	ASSERT_EQ(tasks.count, count);
	for (uint64_t i = 0; i < count; i++)
		check_task(telling, &tasks, counts);
	telling_row(telling);
	ASSERT_STREQ(telling->row, "E\n");
	telling->failing.reads = reads;
	check_failures(telling, &from, count, counts);
}

TEST(each_interpreter_s_own_word_on_its_tasks_is_met)
{
	_cleanup_(interpreters_deinit) struct interpreters found = interpreters_find();
	bool debian = false;

	for (size_t i = 0; i < found.count; i++) {
		_cleanup_(telling_deinit) struct telling telling = {0};
		// Thousands of reads to look for a module, thousands of times: all of them once.
		bool house = str_starts(found.path[i], "/usr/bin/");
		struct counts counts = {.every = house};
		if (!telling_start(found.path[i], "targets/python-tasks.py", &telling)) {
			print_message("skipped: %s has no asyncio, or is of an unknown version\n",
				      found.path[i]);
			continue;
		}
		check_tasks(&telling, &counts);
		print_message("%s: %ld tasks, %ld frames, %ld waited for, %ld reads that failed\n",
			      found.path[i], counts.tasks, counts.frames, counts.links,
			      counts.failures);
		debian |= house;
	}
	ASSERT_TRUE(debian);
}

RUN_TESTS(UNIT_TEST(each_interpreter_s_own_word_on_its_tasks_is_met))
