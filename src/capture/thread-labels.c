/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/thread-labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "proc/process-memory.h"
#include "proc/threads.h"
#include "runtimes/python/thread-names.h"

enum {
	LABELS_MAX = 1 << 16, /* more threads have no names */
	LOOKS_KEPT = 4,
	// Many threads of a process are seen first at about the same time: one look is for all.
	LOOK_KEPT_NS = 200 * 1000 * 1000,
	// A thread is sampled before it has told threading its name.
	ATTEMPTS_MAX = 3,
};

struct label {
	uint32_t pid, tid;
	unsigned attempts;
	uint64_t tried_ns;
	const char *name; /* NULL: none is known */
};

/* All threads of a process, with their names. */
struct look {
	uint32_t pid;
	uint64_t taken_ns;
	struct python_threads threads;
	struct python_thread_names names;
};

struct thread_labels {
	struct look look[LOOKS_KEPT];
	struct label *label;
	size_t count, room;
	struct hash_index index;
	struct arena texts;
};

struct error *thread_labels_new(struct thread_labels **ret)
{
	return ARRAY_NEW(*ret, 1);
}

static void look_deinit(struct look *look)
{
	python_threads_deinit(&look->threads);
	python_thread_names_deinit(&look->names);
	*look = (struct look){0};
}

void thread_labels_free(struct thread_labels *labels)
{
	if (!labels)
		return;
	for (size_t i = 0; i < LOOKS_KEPT; i++)
		look_deinit(&labels->look[i]);
	free(labels->label);
	hash_index_deinit(&labels->index);
	arena_deinit(&labels->texts);
	free(labels);
}

/* Read what there is of OF's process. */
static struct error *take_look(const struct thread_label_of *of, struct look *ret)
{
	const struct python_offsets *at = &of->instance->at;
	_cleanup_process_memory_ struct process_memory *process = NULL;
	enum python_thread_names_outcome outcome;
	enum process_memory_look there;
	uint64_t modules, last = 0;

	TRY(process_memory_open((pid_t)of->pid, &there, &process));
	if (there != PROCESS_MEMORY_opened)
		return NULL;
	struct memory memory = process_memory_reader(process);
	TRY(python_threads(of->instance, &memory, &ret->threads));
	for (size_t i = 0; i < ret->threads.count; i++) {
		uint64_t interpreter = ret->threads.thread[i].interpreter;
		// Threads of one interpreter stand together.
		if (interpreter == last ||
		    memory_read_u64(&memory, interpreter + at->interpreter_modules, &modules))
			continue;
		last = interpreter;
		TRY(python_thread_names_read(&memory, at, modules, &outcome, &ret->names));
	}
	return NULL;
}

/* A look at OF's process that is not older than LOOK_KEPT_NS. */
static struct error *get_look(struct thread_labels *labels, const struct thread_label_of *of,
			      uint64_t now_ns, const struct look **ret)
{
	struct look *oldest = &labels->look[0];

	for (size_t i = 0; i < LOOKS_KEPT; i++) {
		struct look *look = &labels->look[i];
		*ret = look;
		if (look->pid == of->pid && now_ns - look->taken_ns < LOOK_KEPT_NS)
			return NULL;
		if (look->taken_ns < oldest->taken_ns)
			oldest = look;
	}
	look_deinit(oldest);
	*oldest = (struct look){.pid = of->pid, .taken_ns = now_ns};
	*ret = oldest;
	return take_look(of, oldest);
}

static struct error *name_thread(struct thread_labels *labels, const struct thread_label_of *of,
				 struct label *label)
{
	enum process_look there;
	const struct look *look;
	struct thread thread;

	TRY(thread_read((pid_t)of->pid, (pid_t)of->tid, THREADS_status, &there, &thread));
	if (there != PROCESS_there) {
		label->attempts = ATTEMPTS_MAX;
		return NULL;
	}
	TRY(get_look(labels, of, label->tried_ns, &look));
	for (size_t i = 0; i < look->threads.count; i++) {
		const struct python_thread *each = &look->threads.thread[i];
		const char *name = python_thread_is(each, thread.ns_tid)
					   ? python_thread_name_find(&look->names, each->thread_id)
					   : NULL;
		if (name)
			return arena_copy(&labels->texts, name, strlen(name), &label->name);
	}
	return NULL;
}

struct label_key {
	const struct thread_labels *labels;
	uint32_t pid, tid;
};

static bool label_equal(const void *context, uint32_t item)
{
	const struct label_key *key = context;
	const struct label *label = &key->labels->label[item];

	return label->pid == key->pid && label->tid == key->tid;
}

struct error *thread_labels_find(struct thread_labels *labels, const struct thread_label_of *of,
				 const char **ret)
{
	struct label_key key = {labels, of->pid, of->tid};
	uint64_t hash = hash_u64((uint64_t)of->pid << 32 | of->tid);
	uint64_t now_ns = clock_monotonic_ns();
	uint32_t item;

	*ret = NULL;
	if (!hash_find(&labels->index, hash, label_equal, &key, &item)) {
		if (labels->count == LABELS_MAX)
			return NULL;
		TRY(ARRAY_RESERVE(labels->label, labels->room, labels->count, 1, LABELS_MAX,
				  "names of threads"));
		TRY(hash_add(&labels->index, hash, (uint32_t)labels->count));
		item = (uint32_t)labels->count++;
		labels->label[item] = (struct label){.pid = of->pid, .tid = of->tid};
	}
	struct label *label = &labels->label[item];
	if (!label->name && label->attempts < ATTEMPTS_MAX &&
	    now_ns - label->tried_ns >= LOOK_KEPT_NS) {
		label->attempts++;
		label->tried_ns = now_ns;
		TRY(name_thread(labels, of, label));
	}
	*ret = label->name;
	return NULL;
}
