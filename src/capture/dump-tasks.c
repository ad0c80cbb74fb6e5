/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/dump-tasks.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static const struct dump_thread *find_thread(const struct dump *dump, uint64_t python_id)
{
	for (size_t i = 0; i < dump->count && python_id; i++)
		if (dump->thread[i].python_id == python_id)
			return &dump->thread[i];
	return NULL;
}

static int by_name(const void *a, const void *b)
{
	const struct python_task *one = *(const struct python_task *const *)a;
	const struct python_task *other = *(const struct python_task *const *)b;
	// Task-9 before Task-10.
	int order = strverscmp(one->name, other->name);

	return order ? order : (one->addr > other->addr) - (one->addr < other->addr);
}

static enum dump_task_state state_of(const struct python_task *task)
{
	if (task->stack.running)
		return DUMP_TASK_running;
	return task->waiter ? DUMP_TASK_waiting : DUMP_TASK_ready;
}

static struct error *add_task(struct dump *dump, const struct dump_options *options,
			      const struct python_task *task)
{
	struct dump_task to = {
		.addr = task->addr,
		.state = state_of(task),
		.waits_for = -1,
		.awaited_by = -1,
	};
	struct dump_thread *thread = (struct dump_thread *)find_thread(dump, task->thread_id);

	TRY(ARRAY_RESERVE(dump->task, dump->task_room, dump->tasks, 1, PYTHON_TASKS_MAX,
			  "tasks of asyncio"));
	if (task->name[0])
		TRY(dump_text(dump, task->name, &to.name));
	if (thread) {
		to.tid = thread->tid;
		thread->tasks++;
	}
	dump->task[dump->tasks] = to;
	return target_name_task(dump->target, task, options->locals,
				&dump->task[dump->tasks++].frames);
}

static bool is_wanted(const struct dump *dump, const struct python_task *task)
{
	return !dump->chosen || find_thread(dump, task->thread_id);
}

/* Add what is wanted of TASKS, by name, and let the dump's own numbers say who waits for whom. */
static struct error *add_tasks(struct dump *dump, const struct dump_options *options,
			       const struct python_tasks *tasks)
{
	_cleanup_free_ const struct python_task **order = NULL;
	_cleanup_free_ long *number = NULL;
	size_t count = 0;

	TRY(ARRAY_NEW(order, tasks->count + 1));
	TRY(ARRAY_NEW(number, tasks->count + 1));
	for (size_t i = 0; i < tasks->count; i++) {
		number[i] = -1;
		if (is_wanted(dump, &tasks->task[i]))
			order[count++] = &tasks->task[i];
	}
	qsort(order, count, sizeof(struct python_task *), by_name);
	for (size_t i = 0; i < count; i++) {
		number[order[i] - tasks->task] = (long)i;
		TRY(add_task(dump, options, order[i]));
	}
	for (size_t i = 0; i < count; i++) {
		if (order[i]->waits_for >= 0)
			dump->task[i].waits_for = number[order[i]->waits_for];
		if (order[i]->awaited_by >= 0)
			dump->task[i].awaited_by = number[order[i]->awaited_by];
	}
	return NULL;
}

struct error *dump_read_tasks(struct dump *dump, const struct dump_options *options)
{
	_cleanup_(python_tasks_deinit) struct python_tasks tasks = {0};
	enum python_tasks_outcome outcome;

	TRY(target_read_tasks(dump->target, &outcome, &tasks));
	switch (outcome) {
	case PYTHON_TASKS_none:
	case PYTHON_TASKS_read:
		break;
	case PYTHON_TASKS_incomplete:
		TRY(dump_note(dump, "not all tasks of asyncio could be read, or they changed "
				    "meanwhile"));
		break;
	case PYTHON_TASKS_unknown:
		TRY(dump_note(dump, "there are tasks of asyncio that cannot be seen in Python %s",
			      dump->python));
		break;
	}
	return add_tasks(dump, options, &tasks);
}
