/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/python/tasks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "runtimes/python/dicts.h"
#include "runtimes/python/instances.h"
#include "runtimes/python/numbers.h"
#include "runtimes/python/text.h"

#define TASK_NAME "_asyncio.Task"

enum {
	READS_MAX = 4 << 20,
	BASES_MAX = 32,
	HEADER = 16, /* of the objects that tasks.def was made with */
	STATE_PENDING = 0,
	CHILDREN_MAX = 1024,
	/* _PyThreadStateImpl.asyncio_tasks_head of 3.14: pycore_tstate.h; debug builds, too. */
	THREAD_TASKS = 880,
};

struct layout {
	uint16_t version;
	uint32_t size, state, waiter, coroutine, title, awaited_by, node;
};

static const struct layout layouts[] = {
#define TASK(version, size, state, waiter, coroutine, title, awaited_by, node)                     \
	{version, size, state, waiter, coroutine, title, awaited_by, node},
#include "runtimes/python/tasks.def"
#undef TASK
};

struct look {
	struct python_heap heap;
	const struct layout *layout; /* NULL: of this version tasks in C are not known */
	struct python_tasks *tasks;
	bool incomplete, unknown;
};

void python_tasks_deinit(struct python_tasks *tasks)
{
	if (!tasks)
		return;
	free(tasks->task);
	*tasks = (struct python_tasks){0};
}

/* Reads a member of the task in C at ADDR. */
static bool read_member(struct look *look, uint64_t addr, uint32_t offset, uint64_t *ret)
{
	return python_heap_u64(&look->heap, addr,
			       offset - HEADER + look->heap.offsets->object_header, ret);
}

/* Whether TYPE is the task written in C, or made of it; *RET_SIZE: what that one says of its size.
 * False: unreadable. */
static bool find_base(struct look *look, const struct python_type *type, uint64_t *ret_size)
{
	const struct python_offsets *at = look->heap.offsets;
	uint64_t addr = type->addr;

	*ret_size = 0;
	for (int i = 0; i < BASES_MAX && addr; i++) {
		char name[sizeof(TASK_NAME) + 1];
		uint64_t text;

		if (!python_heap_u64(&look->heap, addr, at->type_name, &text) ||
		    !python_heap_string(&look->heap, text, name, sizeof(name)))
			return false;
		if (!strcmp(name, TASK_NAME))
			return python_heap_u64(&look->heap, addr, at->type_basicsize, ret_size);
		if (!python_heap_u64(&look->heap, addr, at->type_base, &addr))
			return false;
	}
	return true;
}

/* A name is a string, or since 3.12 the number in "Task-7" until somebody asks for it. */
static bool read_name(struct look *look, uint64_t addr, char *ret)
{
	struct python_type type;
	uint64_t number;

	if (!python_heap_type(&look->heap, addr, &type))
		return false;
	if (python_int_u64(&look->heap, addr, type.kind, &number)) {
		snprintf(ret, PYTHON_TASK_NAME_MAX, "Task-%" PRIu64, number);
		return true;
	}
	return python_text_read(&look->heap.memory, look->heap.offsets, addr, ret,
				PYTHON_TASK_NAME_MAX) != PYTHON_TEXT_unreadable;
}

/* A task in C. False: unreadable. */
static bool read_fast(struct look *look, struct python_task *task, bool *ret_pending)
{
	const struct layout *layout = look->layout;
	uint64_t name, state;

	if (!read_member(look, task->addr, layout->state, &state) ||
	    !read_member(look, task->addr, layout->waiter, &task->waiter) ||
	    !read_member(look, task->addr, layout->coroutine, &task->coroutine))
		return false;
	*ret_pending = (uint32_t)state == STATE_PENDING;
	if (!layout->title)
		return true;
	return read_member(look, task->addr, layout->title, &name) &&
	       (!name || read_name(look, name, task->name));
}

/* A task in Python: Lib/asyncio/tasks.py, futures.py. Its class says that it is pending. */
static bool read_slow(struct look *look, struct python_task *task, bool *ret_pending)
{
	struct python_heap *heap = &look->heap;
	struct python_type type;
	uint64_t state, waiter, name;
	enum python_find stated = python_attribute_find(heap, task->addr, "_state", &state);
	enum python_find waits = python_attribute_find(heap, task->addr, "_fut_waiter", &waiter);
	enum python_find named = python_attribute_find(heap, task->addr, "_name", &name);

	if (stated == PYTHON_FIND_unreadable || waits != PYTHON_FIND_found ||
	    named == PYTHON_FIND_unreadable || !python_heap_type(heap, waiter, &type) ||
	    python_attribute_find(heap, task->addr, "_coro", &task->coroutine) != PYTHON_FIND_found)
		return false;
	*ret_pending = stated != PYTHON_FIND_found || python_text_is(heap, state, "PENDING");
	if (type.kind != PYTHON_KIND_none)
		task->waiter = waiter;
	return named != PYTHON_FIND_found || read_name(look, name, task->name);
}

static long find_task(const struct python_tasks *tasks, uint64_t addr)
{
	for (size_t i = 0; i < tasks->count && addr; i++)
		if (tasks->task[i].addr == addr)
			return (long)i;
	return -1;
}

static struct error *add_task(struct look *look, uint64_t addr)
{
	struct python_tasks *tasks = look->tasks;
	struct python_task task = {.addr = addr, .awaited_by = -1};
	struct python_type type;
	bool pending = false;
	uint64_t size;

	if (find_task(tasks, addr) >= 0)
		return NULL;
	if (tasks->count == PYTHON_TASKS_MAX || !python_heap_type(&look->heap, addr, &type) ||
	    !find_base(look, &type, &size)) {
		look->incomplete = true;
		return NULL;
	}
	if (size && (!look->layout ||
		     size + HEADER != look->layout->size + look->heap.offsets->object_header)) {
		look->unknown = true;
		return NULL;
	}
	if (!(size ? read_fast(look, &task, &pending) : read_slow(look, &task, &pending))) {
		look->incomplete = true;
		return NULL;
	}
	if (!pending)
		return NULL;
	python_awaits_read(&look->heap, task.coroutine, &task.stack);
	look->incomplete |= !task.stack.whole;
	TRY(ARRAY_RESERVE(tasks->task, tasks->room, tasks->count, 1, PYTHON_TASKS_MAX,
			  "tasks of asyncio"));
	tasks->task[tasks->count++] = task;
	return NULL;
}

/* All of the set at ADDR: tasks, or weak references to them. */
static struct error *add_set(struct look *look, uint64_t addr)
{
	struct python_entries entries;
	struct python_type type;
	uint64_t key, value;

	if (!python_heap_type(&look->heap, addr, &type) || type.kind != PYTHON_KIND_set ||
	    !python_set_open(&look->heap, addr, &entries)) {
		look->incomplete = true;
		return NULL;
	}
	while (python_entries_next(&look->heap, &entries, &key, &value)) {
		if (!python_heap_type(&look->heap, key, &type)) {
			look->incomplete = true;
			continue;
		}
		if (type.kind == PYTHON_KIND_weakref) {
			if (!python_heap_u64(&look->heap, key, look->heap.offsets->weakref_object,
					     &key) ||
			    !python_heap_type(&look->heap, key, &type)) {
				look->incomplete = true;
				continue;
			}
		}
		// The object of a weak reference may be gone: None.
		if (type.kind != PYTHON_KIND_none)
			TRY(add_task(look, key));
	}
	look->incomplete |= entries.unreadable;
	return NULL;
}

/* A variable of asyncio.tasks: a set, or a WeakSet, whose set is its attribute data. */
static struct error *add_variable(struct look *look, uint64_t addr)
{
	struct python_type type;
	uint64_t data;

	if (python_heap_type(&look->heap, addr, &type) && type.kind == PYTHON_KIND_set)
		return add_set(look, addr);
	if (python_attribute_find(&look->heap, addr, "data", &data) == PYTHON_FIND_found)
		return add_set(look, data);
	look->incomplete = true;
	return NULL;
}

/*
 * Up to 3.6 the class has the set, since then the module. The class in C of 3.6 has none: its set
 * is a variable of the library that nothing points at.
 */
static enum python_find find_class_set(struct look *look, uint64_t modules, uint64_t *ret)
{
	struct python_type type;
	uint64_t class;
	enum python_find found =
		python_module_find(&look->heap, modules, "asyncio.tasks", "Task", &class);

	if (found != PYTHON_FIND_found)
		return found;
	if (!python_heap_type_at(&look->heap, class, &type))
		return PYTHON_FIND_unreadable;
	found = python_dict_find(&look->heap, type.dict, "_all_tasks", ret);
	look->unknown |= found == PYTHON_FIND_missing;
	return found;
}

static struct error *add_sets(struct look *look, uint64_t modules, bool *ret_found)
{
	static const char *const names[] = {"_all_tasks", "_scheduled_tasks", "_eager_tasks"};
	uint64_t addr;
	enum python_find found;

	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		found = python_module_find(&look->heap, modules, "asyncio.tasks", names[i], &addr);
		look->incomplete |= found == PYTHON_FIND_changed || found == PYTHON_FIND_unreadable;
		if (found != PYTHON_FIND_found)
			continue;
		*ret_found = true;
		TRY(add_variable(look, addr));
	}
	if (*ret_found || look->heap.offsets->version > 0x0306)
		return NULL;
	found = find_class_set(look, modules, &addr);
	look->incomplete |= found == PYTHON_FIND_changed || found == PYTHON_FIND_unreadable;
	if (found == PYTHON_FIND_found)
		TRY(add_variable(look, addr));
	*ret_found |= found == PYTHON_FIND_found;
	return NULL;
}

/*
 * 3.14: a ring of {next, previous} through the tasks of a thread, whose head is in its state. A
 * head that does not lead back to itself is none.
 */
static struct error *add_ring(struct look *look, uint64_t thread)
{
	uint64_t head = thread + THREAD_TASKS, node, previous = head, back;
	uint32_t header = look->heap.offsets->object_header;

	if (!python_heap_u64(&look->heap, head, 0, &node)) {
		look->incomplete = true;
		return NULL;
	}
	for (int i = 0; i < PYTHON_TASKS_MAX && node != head; i++) {
		if (!node || !python_heap_u64(&look->heap, node, 8, &back) || back != previous) {
			look->incomplete = true;
			return NULL;
		}
		TRY(add_task(look, node - (look->layout->node - HEADER + header)));
		previous = node;
		if (!python_heap_u64(&look->heap, node, 0, &node)) {
			look->incomplete = true;
			return NULL;
		}
	}
	look->incomplete |= node != head;
	return NULL;
}

/* Who waits for gather() waits for all its children: Lib/asyncio/tasks.py, _GatheringFuture. */
static void link_children(struct look *look, uint64_t future, long parent)
{
	struct python_tasks *tasks = look->tasks;
	const struct python_offsets *at = look->heap.offsets;
	struct python_type type;
	uint64_t list, items, count, child;

	if (python_attribute_find(&look->heap, future, "_children", &list) != PYTHON_FIND_found ||
	    !python_heap_type(&look->heap, list, &type) || type.kind != PYTHON_KIND_list ||
	    !python_heap_u64(&look->heap, list, at->list_size, &count) ||
	    !python_heap_u64(&look->heap, list, at->list_items, &items))
		return;
	for (uint64_t i = 0; i < count && i < CHILDREN_MAX; i++) {
		if (!python_heap_u64(&look->heap, items + i * 8, 0, &child))
			return;
		long number = find_task(tasks, child);
		if (number >= 0 && number != parent)
			tasks->task[number].awaited_by = parent;
	}
}

/* 3.14 keeps who waits, a task or a set of them, for groups of tasks, too (gh-91048). */
static void link_recorded(struct look *look, struct python_task *task)
{
	struct python_entries entries;
	struct python_type type;
	uint64_t by, value;

	if (!look->layout || !look->layout->awaited_by || task->awaited_by >= 0 ||
	    !read_member(look, task->addr, look->layout->awaited_by, &by) || !by ||
	    !python_heap_type(&look->heap, by, &type))
		return;
	if (type.kind == PYTHON_KIND_set &&
	    (!python_set_open(&look->heap, by, &entries) ||
	     !python_entries_next(&look->heap, &entries, &by, &value)))
		return;
	long number = find_task(look->tasks, by);
	if (number >= 0 && &look->tasks->task[number] != task)
		task->awaited_by = number;
}

static void link_tasks(struct look *look)
{
	struct python_tasks *tasks = look->tasks;

	for (size_t i = 0; i < tasks->count; i++) {
		uint64_t waiter = tasks->task[i].waiter;
		long number = find_task(tasks, waiter);

		if (number >= 0 && number != (long)i)
			tasks->task[number].awaited_by = (long)i;
		else if (waiter)
			link_children(look, waiter, (long)i);
	}
	for (size_t i = 0; i < tasks->count; i++)
		link_recorded(look, &tasks->task[i]);
}

struct error *python_tasks_read(const struct python_tasks_from *from,
				enum python_tasks_outcome *ret_outcome, struct python_tasks *ret)
{
	struct look look = {.tasks = ret};
	bool found = false;

	python_heap_init(&look.heap, from->memory, from->offsets, READS_MAX);
	for (size_t i = 0; i < ARRAY_COUNT(layouts); i++)
		if (layouts[i].version == from->offsets->version)
			look.layout = &layouts[i];
	// Nobody has looked into a free-threaded 3.14: its tasks in C stay unknown.
	if (from->offsets->build == PYTHON_BUILD_FREE && from->offsets->version >= 0x030e)
		look.layout = NULL;
	TRY(add_sets(&look, from->modules, &found));
	bool rings = found && look.layout && look.layout->node;
	for (size_t i = 0; rings && i < from->threads_count; i++)
		TRY(add_ring(&look, from->threads[i]));
	look.unknown |= found && !look.layout && from->offsets->version >= 0x030e;
	link_tasks(&look);
	*ret_outcome = look.unknown      ? PYTHON_TASKS_unknown
		       : look.incomplete ? PYTHON_TASKS_incomplete
		       : found           ? PYTHON_TASKS_read
					 : PYTHON_TASKS_none;
	return NULL;
}
