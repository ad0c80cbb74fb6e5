/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tasks of asyncio that are not done, in all threads of one interpreter: which coroutine each
 * is in, what it waits for, and which task waits for it. 3.14 keeps lists of them; before, asyncio
 * remembers them in a set of weak references, which 3.6 keeps
 * out of reach. Tasks written in C are read by tasks.def and only if
 * their type has the size that it says; those written in Python (3.5, and who makes them so) by
 * their attributes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "proc/memory.h"
#include "runtimes/python/attach.h"
#include "runtimes/python/coroutines.h"
#include "runtimes/python/layout.h"

enum {
	PYTHON_TASKS_MAX = 1 << 14, /* in all interpreters of a process */
	PYTHON_TASK_NAME_MAX = 128,
	PYTHON_TASKS_READS = 2 << 20, /* of memory, for all of them */
};

struct python_task {
	uint64_t addr, coroutine;
	uint64_t waiter;    /* the future or task it waits for; 0: it is ready, or runs */
	uint64_t thread_id; /* of the thread that runs its loop; 0: none does, or not known */
	long waits_for;     /* number of the waiter in the list; -1: it is no task */
	long awaited_by;    /* number of a task in the list; -1: none that is known */
	/* What is called when it is done: the first, and a list of others; 0: none. */
	uint64_t callback, callbacks;
	char name[PYTHON_TASK_NAME_MAX]; /* UTF-8; "" up to 3.7, which have no names */
	struct python_awaits stack;
};

struct python_tasks {
	struct python_task *task; /* owned */
	size_t count, room;
};

enum python_tasks_outcome {
	PYTHON_TASKS_none, /* the program never imported asyncio */
	PYTHON_TASKS_read,
	PYTHON_TASKS_incomplete, /* what there is, is right; the rest was unreadable or changed */
	PYTHON_TASKS_unknown,    /* its tasks are not laid out as any version's that is known */
};

/* An interpreter: its dict sys.modules, and its threads. */
struct python_tasks_from {
	const struct memory *memory;
	const struct python_offsets *offsets;
	uint64_t modules;
	const struct python_thread *threads;
	size_t threads_count;
	uint32_t *reads_left; /* what all interpreters together may cost */
};

void python_tasks_deinit(struct python_tasks *tasks);

/* What was found is added to RET, with every outcome. */
struct error *python_tasks_read(const struct python_tasks_from *from,
				enum python_tasks_outcome *ret_outcome, struct python_tasks *ret);
