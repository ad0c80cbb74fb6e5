// SPDX-License-Identifier: Apache-2.0
/* The thread states of a process, and who holds the lock. */
#include "runtimes/python/attach.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum {
	STATE_MAX = 4096 + 8,
	// Where libc keeps a thread's number, from pthread_self() on: struct pthread of glibc (2.10
	// and later, nptl/descr.h, x86-64) and of musl (1.2, pthread_impl.h). A guess that is
	// checked: the number there must be the thread's.
	GLIBC_TID = 0x2d0,
	MUSL_TID = 0x30,
};

/* The members of a thread state, read at once. */
struct state {
	uint8_t bytes[STATE_MAX];
};

static size_t state_size(const struct python_offsets *at)
{
	const uint32_t members[] = {
		at->thread_next,  at->thread_interpreter, at->thread_id,
		at->thread_frame, at->thread_native_id,
	};
	size_t size = 0;

	for (size_t i = 0; i < ARRAY_COUNT(members); i++)
		if (members[i] != PYTHON_ABSENT && members[i] + sizeof(uint64_t) > size)
			size = members[i] + sizeof(uint64_t);
	return size <= STATE_MAX ? size : 0;
}

static uint64_t member(const struct state *state, uint32_t offset)
{
	uint64_t value = 0;

	if (offset != PYTHON_ABSENT)
		memcpy(&value, state->bytes + offset, sizeof(value));
	return value;
}

/* 0: not readable. */
static uint32_t number_at(const struct memory *memory, uint64_t addr)
{
	uint32_t number;

	return memory_read_u32(memory, addr, &number) ? 0 : number;
}

/* Add the thread state at ADDR. RET_NEXT: the next one's address, 0 if it is not one. */
static struct error *add_thread(const struct python_instance *instance, const struct memory *memory,
				const struct python_thread *model, struct python_threads *threads,
				uint64_t *ret_next)
{
	const struct python_offsets *at = &instance->at;
	struct python_thread thread = *model;
	size_t size = state_size(at);
	struct state state;

	*ret_next = 0;
	threads->whole = false;
	if (!size || memory_read(memory, thread.state, state.bytes, size) ||
	    member(&state, at->thread_interpreter) != thread.interpreter)
		return NULL;
	thread.thread_id = member(&state, at->thread_id);
	thread.native_id = member(&state, at->thread_native_id);
	if (!thread.native_id) {
		thread.glibc_tid = number_at(memory, thread.thread_id + GLIBC_TID);
		thread.musl_tid = number_at(memory, thread.thread_id + MUSL_TID);
	}
	thread.frame = member(&state, at->thread_frame);
	if (thread.frame && at->cframe_frame != PYTHON_ABSENT &&
	    memory_read_u64(memory, thread.frame + at->cframe_frame, &thread.frame))
		thread.frame = 0;
	TRY(ARRAY_RESERVE(threads->thread, threads->room, threads->count, 1, PYTHON_THREADS_MAX,
			  "thread states"));
	threads->thread[threads->count++] = thread;
	threads->whole = true;
	*ret_next = member(&state, at->thread_next);
	return NULL;
}

static struct error *add_interpreter(const struct python_instance *instance,
				     const struct memory *memory, struct python_thread model,
				     struct python_threads *threads)
{
	const struct python_offsets *at = &instance->at;
	uint64_t holder = python_holder(instance, memory, model.interpreter), next;

	if (memory_read_u64(memory, model.interpreter + at->interpreter_threads, &next)) {
		threads->whole = false;
		return NULL;
	}
	while (next && threads->count < PYTHON_THREADS_MAX) {
		model.state = next;
		model.holds_gil = next == holder;
		TRY(add_thread(instance, memory, &model, threads, &next));
	}
	if (next)
		threads->whole = false;
	return NULL;
}

struct error *python_threads(const struct python_instance *instance, const struct memory *memory,
			     struct python_threads *ret)
{
	const struct python_offsets *at = &instance->at;
	struct python_threads threads = {.whole = true};
	uint64_t link = instance->process.interpreters, interpreter = 0;
	bool whole = true;

	for (int i = 0; i < PYTHON_INTERPRETERS_MAX; i++) {
		if (memory_read_u64(memory, link, &interpreter)) {
			whole = false;
			break;
		}
		if (!interpreter)
			break;
		struct python_thread model = {.interpreter = interpreter, .interpreter_id = i};
		uint64_t id;
		if (at->interpreter_id != PYTHON_ABSENT &&
		    !memory_read_u64(memory, interpreter + at->interpreter_id, &id))
			model.interpreter_id = (int64_t)id;
		threads.whole = true;
		struct error *err = add_interpreter(instance, memory, model, &threads);
		if (err) {
			python_threads_deinit(&threads);
			return err;
		}
		whole &= threads.whole;
		link = interpreter + at->interpreter_next;
	}
	threads.whole = whole && !interpreter;
	*ret = threads;
	return NULL;
}

bool python_thread_is(const struct python_thread *thread, pid_t ns_tid)
{
	uint32_t number = (uint32_t)ns_tid;

	if (thread->native_id)
		return thread->native_id == number;
	return number && (number == thread->glibc_tid || number == thread->musl_tid);
}

void python_threads_deinit(struct python_threads *threads)
{
	free(threads->thread);
	*threads = (struct python_threads)PYTHON_THREADS_INIT;
}

uint64_t python_holder(const struct python_instance *instance, const struct memory *memory,
		       uint64_t interpreter)
{
	const struct python_offsets *at = &instance->at;
	uint64_t gil, holder;
	uint32_t locked;

	if (instance->process.holder)
		return memory_read_u64(memory, instance->process.holder, &holder) ? 0 : holder;
	if (at->interpreter_gil == PYTHON_ABSENT ||
	    memory_read_u64(memory, interpreter + at->interpreter_gil, &gil) || !gil ||
	    memory_read_u32(memory, gil + at->gil_locked, &locked) || locked != 1 ||
	    memory_read_u64(memory, gil + at->gil_holder, &holder))
		return 0;
	return holder;
}
