// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python/roots.h"

#include "base/array.h"
#include "unit.h"

enum {
	DATA = 0x400000,
	DATA_SIZE = 3 * 4096 + 20,
	HEAP = 0x7000000,
	HEAP_SIZE = 8192,
	INTERPRETER = HEAP + 1024,
	THREAD = HEAP + 4096,
	AT = 4096 + 96, /* in the data: what leads to the interpreter */
};

/* A process's data and heap. */
struct process {
	uint64_t data[DATA_SIZE / 8], heap[HEAP_SIZE / 8];
	uint64_t hole; /* a page of the data that is not readable; 0: none */
};

static int read_process(void *context, uint64_t addr, void *to, size_t size)
{
	const struct process *process = context;

	if (addr >= DATA && addr + size <= DATA + sizeof(process->data) && addr != process->hole)
		memcpy(to, (const char *)process->data + (addr - DATA), size);
	else if (addr >= HEAP && addr + size <= HEAP + HEAP_SIZE)
		memcpy(to, (const char *)process->heap + (addr - HEAP), size);
	else
		return -1;
	return 0;
}

static void put_heap(struct process *process, uint64_t addr, uint64_t value)
{
	process->heap[(addr - HEAP) / 8] = value;
}

/* One of 3.8 with a thread, and a pointer to it in data that is full of other pointers. */
static struct process make(const struct python_offsets *at)
{
	struct process process = {0};

	for (size_t i = 0; i < ARRAY_COUNT(process.data); i++)
		process.data[i] = i % 3 ? HEAP + 8 * i % HEAP_SIZE : DATA + i;
	process.data[AT / 8] = INTERPRETER;
	put_heap(&process, INTERPRETER + at->interpreter_threads, THREAD);
	put_heap(&process, THREAD + at->thread_interpreter, INTERPRETER);
	put_heap(&process, THREAD + at->thread_id, 0x7f0012345740);
	return process;
}

static struct python_offsets offsets(void)
{
	struct python_offsets at;

	ASSERT_TRUE(python_offsets_find(0x0308, PYTHON_BUILD_PLAIN, &at));
	return at;
}

static struct python_roots roots_of(const struct memory *memory, const struct python_offsets *at)
{
	const struct python_range data = {DATA, DATA + DATA_SIZE};

	return (struct python_roots){.memory = memory, .at = at, .object = data, .data = data};
}

TEST(an_interpreter_is_found_in_data_that_does_not_name_it)
{
	struct python_offsets at = offsets();
	struct process process = make(&at);
	const struct memory memory = {read_process, &process};
	struct python_roots roots = roots_of(&memory, &at);
	uint64_t link;
	bool found = false;

	while (python_roots_next(&roots, &link)) {
		// Other pointers may happen to meet the same words.
		ASSERT_EQ(process.data[(link - DATA) / 8], INTERPRETER);
		found |= link == DATA + AT;
	}
	ASSERT_TRUE(found);
}

TEST(a_page_that_cannot_be_read_is_left_out)
{
	struct python_offsets at = offsets();
	struct process process = make(&at);
	const struct memory memory = {read_process, &process};
	struct python_roots roots = roots_of(&memory, &at);
	uint64_t link;
	bool found = false;

	process.hole = DATA;
	while (python_roots_next(&roots, &link))
		found |= link == DATA + AT;
	ASSERT_TRUE(found);
	process.hole = DATA + 4096;
	roots = roots_of(&memory, &at);
	while (python_roots_next(&roots, &link))
		ASSERT_TRUE(link != DATA + AT);
}

/* All of memory looks like interpreters. */
static int read_anything(void *context, uint64_t addr, void *to, size_t size)
{
	unsigned *reads = context;

	++*reads;
	for (size_t i = 0; i < size / 8; i++)
		((uint64_t *)to)[i] = size > 8 ? 0x10000 + 8 * i : addr & ~7ull;
	return 0;
}

TEST(hostile_data_is_searched_in_bounded_time)
{
	struct python_offsets at = offsets();
	unsigned reads = 0;
	const struct memory memory = {read_anything, &reads};
	struct python_roots roots = roots_of(&memory, &at);
	uint64_t link;

	roots.data.end = UINT64_MAX;
	while (python_roots_next(&roots, &link))
		;
	ASSERT_TRUE(reads < 1 << 20);
	roots = roots_of(&memory, &at);
	roots.data = (struct python_range){UINT64_MAX - 3, UINT64_MAX};
	ASSERT_FALSE(python_roots_next(&roots, &link));
}

RUN_TESTS(UNIT_TEST(an_interpreter_is_found_in_data_that_does_not_name_it),
	  UNIT_TEST(a_page_that_cannot_be_read_is_left_out),
	  UNIT_TEST(hostile_data_is_searched_in_bounded_time))
