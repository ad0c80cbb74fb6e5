/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/python/tasks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "runtimes/python/dicts.h"
#include "runtimes/python/instances.h"
#include "runtimes/python/numbers.h"
#include "runtimes/python/text.h"

#define TASK_NAME "_asyncio.Task"

enum {
	BASES_MAX = 32,
	HEADER = 16, /* of the objects that tasks.def was made with */
	OBJECT_MAX = 256,
	/* FutureObj_HEAD begins alike in all versions; behind callback0 stands a context. */
	MEMBER_LOOP = 16,
	MEMBER_CALLBACK = 24,
	MEMBER_CALLBACKS = 40,
	STATE_PENDING = 0,
	CHILDREN_MAX = 1024,
	CALLBACKS_MAX = 8, /* of one task that are looked at */
	CLOSURE_MAX = 8,   /* variables of one */
	LOOPS_KEPT = 16,
	SHIFT_MAX = 64, /* bytes */
};

/* What a thread's dict calls the loop that it runs: _asynciomodule.c, 3.7 to 3.12. */
#define RUNNING_LOOP "__asyncio_running_event_loop__"
#define RUNNING_LOOP_HOLDER "_RunningLoopHolder"

struct layout {
	uint16_t version;
	uint32_t size, state, waiter, coroutine, title, awaited_by, node, loop, ring;
};

static const struct layout layouts[] = {
#define TASK(version, size, state, waiter, coroutine, title, awaited_by, node, loop, ring)         \
	{version, size, state, waiter, coroutine, title, awaited_by, node, loop, ring},
#include "runtimes/python/tasks.def"
#undef TASK
};

/* An event loop, and the thread that runs it. */
struct loop {
	uint64_t addr, thread_id;
};

struct look {
	const struct python_tasks_from *from;
	struct python_heap heap;
	const struct layout *layout; /* NULL: of this version tasks in C are not known */
	struct python_tasks *tasks;
	struct hash_index by_addr, by_waiter; /* of tasks of this interpreter */
	struct loop loop[LOOPS_KEPT];
	uint64_t type, type_size;         /* of the task before, and what find_base() said of it */
	const struct python_thread *ring; /* whose tasks are being read; NULL: nobody's */
	bool incomplete, unknown;
};

static void look_deinit(struct look *look)
{
	hash_index_deinit(&look->by_addr);
	hash_index_deinit(&look->by_waiter);
}

void python_tasks_deinit(struct python_tasks *tasks)
{
	if (!tasks)
		return;
	free(tasks->task);
	*tasks = (struct python_tasks){0};
}

/* Whether TYPE is the task written in C, or made of it; *RET_SIZE: what that one says of its size.
 * False: unreadable. */
static bool find_base(struct look *look, const struct python_type *type, uint64_t *ret_size)
{
	const struct python_offsets *at = look->heap.offsets;
	uint64_t addr = type->addr;

	*ret_size = look->type_size;
	if (addr == look->type)
		return true;
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

/* The fixed part of a task in C. */
struct object {
	uint8_t data[OBJECT_MAX];
	uint32_t shift; /* what its header is longer by than that of tasks.def */
};

static uint64_t member(const struct object *object, uint32_t offset)
{
	uint64_t value = 0;

	if (offset + object->shift <= sizeof(object->data) - sizeof(value))
		memcpy(&value, object->data + offset + object->shift, sizeof(value));
	return value;
}

/* A task in C, whose type says SIZE. False: unreadable. */
static bool read_fast(struct look *look, uint64_t size, struct python_task *task,
		      uint64_t *ret_loop, bool *ret_pending)
{
	const struct layout *layout = look->layout;
	struct object object = {.shift = look->heap.offsets->object_header - HEADER};

	if (size > sizeof(object.data) ||
	    !python_heap_bytes(&look->heap, task->addr, 0, object.data, size))
		return false;
	*ret_loop = member(&object, MEMBER_LOOP);
	task->callback = member(&object, MEMBER_CALLBACK);
	task->callbacks = member(&object, MEMBER_CALLBACKS);
	*ret_pending = (uint32_t)member(&object, layout->state) == STATE_PENDING;
	task->waiter = member(&object, layout->waiter);
	task->coroutine = member(&object, layout->coroutine);
	if (!layout->title)
		return true;
	uint64_t name = member(&object, layout->title);
	return !name || read_name(look, name, task->name);
}

/* A task in Python: Lib/asyncio/tasks.py, futures.py. Its class says that it is pending. */
static bool read_slow(struct look *look, struct python_task *task, uint64_t *ret_loop,
		      bool *ret_pending)
{
	struct python_heap *heap = &look->heap;
	struct python_type type;
	uint64_t state, waiter, name;
	enum python_find stated = python_attribute_find(heap, task->addr, "_state", &state);
	enum python_find waits = python_attribute_find(heap, task->addr, "_fut_waiter", &waiter);
	enum python_find named = python_attribute_find(heap, task->addr, "_name", &name);

	if (stated == PYTHON_FIND_unreadable || waits != PYTHON_FIND_found ||
	    named == PYTHON_FIND_unreadable || !python_heap_type(heap, waiter, &type) ||
	    python_attribute_find(heap, task->addr, "_coro", &task->coroutine) !=
		    PYTHON_FIND_found ||
	    python_attribute_find(heap, task->addr, "_loop", ret_loop) != PYTHON_FIND_found)
		return false;
	if (python_attribute_find(heap, task->addr, "_callbacks", &task->callbacks) !=
	    PYTHON_FIND_found)
		task->callbacks = 0;
	*ret_pending = stated != PYTHON_FIND_found || python_text_is(heap, state, "PENDING");
	if (type.kind != PYTHON_KIND_none)
		task->waiter = waiter;
	return named != PYTHON_FIND_found || read_name(look, name, task->name);
}

/* --- whose they are */

/* What a state of a thread holds where members may be that patches of a version move. */
struct window {
	uint64_t addr, word[2 * SHIFT_MAX / 8 + 2];
};

/* Around the member at OFFSET. False: unreadable. */
static bool read_window(struct look *look, const struct python_thread *thread, uint32_t offset,
			struct window *ret)
{
	ret->addr = thread->state + offset - SHIFT_MAX;
	return python_heap_bytes(&look->heap, ret->addr, 0, ret->word, sizeof(ret->word));
}

/* Does THREAD say that it runs the loop at ADDR? Unreadable is no. */
static bool runs_loop(struct look *look, const struct python_thread *thread, uint64_t addr)
{
	struct python_heap *heap = &look->heap;
	char name[PYTHON_TYPE_NAME_MAX];
	struct python_type type;
	struct window window;
	uint64_t dict, loop;

	if (look->layout && look->layout->loop) {
		if (!read_window(look, thread, look->layout->loop, &window))
			return false;
		for (size_t i = 0; i < ARRAY_COUNT(window.word); i++)
			if (window.word[i] == addr)
				return true;
		return false;
	}
	if (!python_heap_u64(heap, thread->state, heap->offsets->thread_dict, &dict) || !dict ||
	    python_dict_find(heap, dict, RUNNING_LOOP, &loop) != PYTHON_FIND_found ||
	    !python_heap_type(heap, loop, &type))
		return false;
	python_type_name(heap, &type, name);
	// Its first member is the loop.
	if (strstr(name, RUNNING_LOOP_HOLDER) &&
	    !python_heap_u64(heap, loop, heap->offsets->object_header, &loop))
		return false;
	return loop == addr;
}

/* The thread that runs the loop at ADDR. A loop in Python says so; others (uvloop) are told by the
 * thread. */
static uint64_t find_thread(struct look *look, uint64_t addr)
{
	const struct python_tasks_from *from = look->from;
	struct python_type type;
	uint64_t value, id;

	if (python_attribute_find(&look->heap, addr, "_thread_id", &value) == PYTHON_FIND_found)
		return python_heap_type(&look->heap, value, &type) &&
				       python_int_u64(&look->heap, value, type.kind, &id)
			       ? id
			       : 0;
	for (size_t i = 0; i < from->threads_count; i++)
		if (runs_loop(look, &from->threads[i], addr))
			return from->threads[i].thread_id;
	return 0;
}

static uint64_t thread_of_loop(struct look *look, uint64_t addr)
{
	struct loop *kept = &look->loop[hash_u64(addr) % LOOPS_KEPT];

	if (kept->addr != addr)
		*kept = (struct loop){addr, find_thread(look, addr)};
	return kept->thread_id;
}

/* --- all of them */

struct task_key {
	const struct python_tasks *tasks;
	uint64_t addr;
};

static bool task_equal(const void *context, uint32_t item)
{
	const struct task_key *key = context;

	return key->tasks->task[item].addr == key->addr;
}

static long find_task(const struct look *look, uint64_t addr)
{
	struct task_key key = {look->tasks, addr};
	uint32_t item;

	return addr && hash_find(&look->by_addr, hash_u64(addr), task_equal, &key, &item)
		       ? (long)item
		       : -1;
}

static bool waiter_equal(const void *context, uint32_t item)
{
	const struct task_key *key = context;

	return key->tasks->task[item].waiter == key->addr;
}

/* The task that waits for the future at ADDR. */
static long find_waiting(const struct look *look, uint64_t addr)
{
	struct task_key key = {look->tasks, addr};
	uint32_t item;

	return addr && hash_find(&look->by_waiter, hash_u64(addr), waiter_equal, &key, &item)
		       ? (long)item
		       : -1;
}

static struct error *keep_task(struct look *look, const struct python_task *task)
{
	struct python_tasks *tasks = look->tasks;

	TRY(ARRAY_RESERVE(tasks->task, tasks->room, tasks->count, 1, PYTHON_TASKS_MAX,
			  "tasks of asyncio"));
	TRY(hash_add(&look->by_addr, hash_u64(task->addr), (uint32_t)tasks->count));
	if (task->waiter)
		TRY(hash_add(&look->by_waiter, hash_u64(task->waiter), (uint32_t)tasks->count));
	tasks->task[tasks->count++] = *task;
	return NULL;
}

static struct error *add_task(struct look *look, uint64_t addr)
{
	struct python_task task = {.addr = addr, .awaited_by = -1, .waits_for = -1};
	struct python_type type;
	bool pending = false;
	uint64_t size, loop = 0;

	if (find_task(look, addr) >= 0)
		return NULL;
	if (look->tasks->count == PYTHON_TASKS_MAX || !python_heap_type(&look->heap, addr, &type) ||
	    !find_base(look, &type, &size)) {
		look->incomplete = true;
		return NULL;
	}
	look->type = type.addr;
	look->type_size = size;
	if (size && (!look->layout ||
		     size + HEADER != look->layout->size + look->heap.offsets->object_header)) {
		look->unknown = true;
		return NULL;
	}
	if (!(size ? read_fast(look, size, &task, &loop, &pending)
		   : read_slow(look, &task, &loop, &pending))) {
		look->incomplete = true;
		return NULL;
	}
	if (!pending)
		return NULL;
	task.thread_id = thread_of_loop(look, loop);
	if (!task.thread_id && look->ring)
		task.thread_id = look->ring->thread_id;
	python_awaits_read(&look->heap, task.coroutine, &task.stack);
	look->incomplete |= !task.stack.whole;
	return keep_task(look, &task);
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
static enum python_find find_class_set(struct look *look, uint64_t dict, uint64_t *ret)
{
	struct python_type type;
	uint64_t class;
	enum python_find found = python_dict_find(&look->heap, dict, "Task", &class);

	if (found != PYTHON_FIND_found)
		return found;
	if (!python_heap_type_at(&look->heap, class, &type))
		return PYTHON_FIND_unreadable;
	found = python_dict_find(&look->heap, type.dict, "_all_tasks", ret);
	look->unknown |= found == PYTHON_FIND_missing;
	return found;
}

static bool is_found(struct look *look, enum python_find found)
{
	look->incomplete |= found == PYTHON_FIND_changed || found == PYTHON_FIND_unreadable;
	return found == PYTHON_FIND_found;
}

static struct error *add_sets(struct look *look, bool *ret_found)
{
	static const char *const names[] = {"_all_tasks", "_scheduled_tasks", "_eager_tasks"};
	struct python_heap *heap = &look->heap;
	uint64_t dict, addr;

	if (!is_found(look,
		      python_module_find_dict(heap, look->from->modules, "asyncio.tasks", &dict)))
		return NULL;
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		if (!is_found(look, python_dict_find(heap, dict, names[i], &addr)))
			continue;
		*ret_found = true;
		TRY(add_variable(look, addr));
	}
	if (*ret_found || heap->offsets->version > 0x0306 ||
	    !is_found(look, find_class_set(look, dict, &addr)))
		return NULL;
	*ret_found = true;
	return add_variable(look, addr);
}

/* The task that NODE, in a ring of tasks, is a part of. */
static uint64_t task_of_node(const struct look *look, uint64_t node)
{
	return node - (look->layout->node - HEADER + look->heap.offsets->object_header);
}

/* Is there a ring of tasks whose head at HEAD leads to NODE? */
static bool is_ring(struct look *look, uint64_t head, uint64_t node, bool *ret_unreadable)
{
	struct python_type type;
	uint64_t back, size;

	*ret_unreadable = false;
	if (!node || node & 7)
		return false;
	*ret_unreadable = true;
	if (!python_heap_u64(&look->heap, node, 8, &back))
		return false;
	*ret_unreadable = back == head;
	if (back != head || !python_heap_type(&look->heap, task_of_node(look, node), &type) ||
	    !find_base(look, &type, &size))
		return false;
	*ret_unreadable = false;
	return size != 0;
}

/*
 * The head of the ring of THREAD's tasks; 0: it has none. Patches of a version move it (in 3.13.18
 * what stands there begins 8 bytes behind where 3.13.0 has it); another empty ring is its
 * neighbour.
 */
static uint64_t find_ring(struct look *look, const struct python_thread *thread)
{
	const size_t middle = SHIFT_MAX / 8;
	struct window window;
	bool empty = false, unreadable = false;

	if (!read_window(look, thread, look->layout->ring, &window)) {
		look->incomplete = true;
		return 0;
	}
	for (size_t i = 0; i + 1 < ARRAY_COUNT(window.word); i++) {
		// Where it is expected first, then from the begin on.
		size_t at = !i ? middle : i <= middle ? i - 1 : i;
		uint64_t head = window.addr + at * 8, node = window.word[at];
		empty |= node == head;
		if (!i && node == head)
			return 0;
		if (node != head && is_ring(look, head, node, &unreadable))
			return head;
		look->incomplete |= !i && unreadable;
	}
	look->incomplete |= !empty;
	return 0;
}

/* 3.14: a ring of {next, previous} through the tasks of a thread, whose head is in its state. */
static struct error *add_ring(struct look *look, const struct python_thread *thread)
{
	uint64_t head = find_ring(look, thread), node = 0, previous = head, back;

	look->ring = thread;
	if (!head)
		return NULL;
	if (!python_heap_u64(&look->heap, head, 0, &node)) {
		look->incomplete = true;
		return NULL;
	}
	for (int i = 0; i < PYTHON_TASKS_MAX && node != head; i++) {
		if (!node || !python_heap_u64(&look->heap, node, 8, &back) || back != previous) {
			look->incomplete = true;
			return NULL;
		}
		TRY(add_task(look, task_of_node(look, node)));
		previous = node;
		if (!python_heap_u64(&look->heap, node, 0, &node)) {
			look->incomplete = true;
			return NULL;
		}
	}
	look->incomplete |= node != head;
	return NULL;
}

/* --- who waits for whom */

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
		long number = find_task(look, child);
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
	    !python_heap_u64(&look->heap, task->addr,
			     look->layout->awaited_by - HEADER + look->heap.offsets->object_header,
			     &by) ||
	    !by || !python_heap_type(&look->heap, by, &type))
		return;
	if (type.kind == PYTHON_KIND_set &&
	    (!python_set_open(&look->heap, by, &entries) ||
	     !python_entries_next(&look->heap, &entries, &by, &value)))
		return;
	long number = find_task(look, by);
	if (number >= 0 && &look->tasks->task[number] != task)
		task->awaited_by = number;
}

/* The task that waits for one of the items of TUPLE, or for what is in one that is a cell. */
static long find_in_items(struct look *look, uint64_t tuple)
{
	const struct python_offsets *at = look->heap.offsets;
	uint64_t count, item;
	struct python_type type;
	long number = -1;

	if (!python_heap_type(&look->heap, tuple, &type) || type.kind != PYTHON_KIND_tuple ||
	    !python_heap_u64(&look->heap, tuple, at->tuple_size, &count))
		return -1;
	for (uint64_t i = 0; i < count && i < CLOSURE_MAX && number < 0; i++) {
		if (!python_heap_u64(&look->heap, tuple + i * 8, at->tuple_items, &item) ||
		    !python_heap_type(&look->heap, item, &type))
			return -1;
		if (type.kind == PYTHON_KIND_cell &&
		    !python_heap_u64(&look->heap, item, at->cell_value, &item))
			return -1;
		number = find_waiting(look, item);
	}
	return number;
}

/*
 * The task that waits for what CALLBACK will set: Lib/asyncio/tasks.py and taskgroups.py. wait()
 * and shield() call functions that have the future in their closure; wait_for(), up to 3.11, a
 * functools.partial with it as argument; a group one of its methods.
 */
static long find_by_callback(struct look *look, uint64_t callback)
{
	const struct python_offsets *at = look->heap.offsets;
	char name[PYTHON_TYPE_NAME_MAX];
	struct python_type type;
	uint64_t inner;

	if (!python_heap_type(&look->heap, callback, &type))
		return -1;
	if (type.kind == PYTHON_KIND_function)
		return python_heap_u64(&look->heap, callback, at->function_closure, &inner) && inner
			       ? find_in_items(look, inner)
			       : -1;
	if (type.kind == PYTHON_KIND_method)
		return python_heap_u64(&look->heap, callback, at->method_self, &inner) &&
				       python_attribute_find(&look->heap, inner, "_parent_task",
							     &inner) == PYTHON_FIND_found
			       ? find_task(look, inner)
			       : -1;
	// partialobject of _functoolsmodule.c: what it calls, and the arguments.
	python_type_name(&look->heap, &type, name);
	return !strcmp(name, "functools.partial") &&
			       python_heap_u64(&look->heap, callback, at->object_header + 8, &inner)
		       ? find_in_items(look, inner)
		       : -1;
}

/* Of LIST: callbacks, or (3.7 and later) tuples that begin with one. */
static long find_by_callbacks(struct look *look, uint64_t list)
{
	const struct python_offsets *at = look->heap.offsets;
	uint64_t items, count, callback;
	struct python_type type;
	long number = -1;

	if (!list || !python_heap_type(&look->heap, list, &type) || type.kind != PYTHON_KIND_list ||
	    !python_heap_u64(&look->heap, list, at->list_size, &count) ||
	    !python_heap_u64(&look->heap, list, at->list_items, &items))
		return -1;
	for (uint64_t i = 0; i < count && i < CALLBACKS_MAX && number < 0; i++) {
		if (!python_heap_u64(&look->heap, items + i * 8, 0, &callback) ||
		    !python_heap_type(&look->heap, callback, &type) ||
		    (type.kind == PYTHON_KIND_tuple &&
		     !python_heap_u64(&look->heap, callback, at->tuple_items, &callback)))
			return -1;
		number = find_by_callback(look, callback);
	}
	return number;
}

/* What waits for a task through asyncio itself is told by what the task calls in the end. */
static void link_callbacks(struct look *look, struct python_task *task)
{
	long number = -1;

	if (task->awaited_by >= 0)
		return;
	if (task->callback)
		number = find_by_callback(look, task->callback);
	if (number < 0)
		number = find_by_callbacks(look, task->callbacks);
	if (number >= 0 && &look->tasks->task[number] != task)
		task->awaited_by = number;
}

/* Those from number FIRST on. */
static void link_tasks(struct look *look, size_t first)
{
	struct python_tasks *tasks = look->tasks;

	for (size_t i = first; i < tasks->count; i++) {
		uint64_t waiter = tasks->task[i].waiter;
		long number = find_task(look, waiter);

		tasks->task[i].waits_for = number;
		if (number >= 0 && number != (long)i)
			tasks->task[number].awaited_by = (long)i;
		else if (waiter)
			link_children(look, waiter, (long)i);
	}
	for (size_t i = first; i < tasks->count; i++) {
		link_recorded(look, &tasks->task[i]);
		link_callbacks(look, &tasks->task[i]);
	}
}

struct error *python_tasks_read(const struct python_tasks_from *from,
				enum python_tasks_outcome *ret_outcome, struct python_tasks *ret)
{
	_cleanup_(look_deinit) struct look look = {.from = from, .tasks = ret};
	size_t first = ret->count;
	bool found = false;

	python_heap_init(&look.heap, from->memory, from->offsets, *from->reads_left);
	for (size_t i = 0; i < ARRAY_COUNT(layouts); i++)
		if (layouts[i].version == from->offsets->version)
			look.layout = &layouts[i];
	// Nobody has looked into a free-threaded 3.14: its tasks in C stay unknown.
	if (from->offsets->build == PYTHON_BUILD_FREE && from->offsets->version >= 0x030e)
		look.layout = NULL;
	TRY(add_sets(&look, &found));
	bool rings = found && look.layout && look.layout->ring;
	for (size_t i = 0; rings && i < from->threads_count; i++)
		TRY(add_ring(&look, &from->threads[i]));
	look.unknown |= found && !look.layout && from->offsets->version >= 0x030e;
	link_tasks(&look, first);
	*from->reads_left = look.heap.reads_left;
	*ret_outcome = look.unknown      ? PYTHON_TASKS_unknown
		       : look.incomplete ? PYTHON_TASKS_incomplete
		       : found           ? PYTHON_TASKS_read
					 : PYTHON_TASKS_none;
	return NULL;
}
