/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any memory of any version as values, as variables of a frame, as names of threads and as tasks.
 * The input:
 *
 *   u8 version, u8 build (highest bit: every pointer leads somewhere), u64 address, then pieces of
 *   memory (fuzz-memory.h)
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/utf8.h"
#include "runtimes/python/fuzz-memory.h"
#include "runtimes/python/locals.h"
#include "runtimes/python/tasks.h"
#include "runtimes/python/thread-names.h"
#include "runtimes/python/values.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint16_t versions[] = {0x0207, 0x0305, 0x0306, 0x0307, 0x0308, 0x0309,
				    0x030a, 0x030b, 0x030c, 0x030d, 0x030e};

enum {
	HEAD = 10,
	AROUND = 0x80,
	ROOM = 4096,
};

/* What a terminal may be sent. */
static void check_text(const char *text, size_t length)
{
	struct bytes bytes = bytes_over(text, length, "text");

	if (strlen(text) != length)
		abort();
	while (bytes_left(&bytes)) {
		size_t offset = bytes_offset(&bytes);
		uint32_t code = utf8_next(&bytes);
		char again[4];
		size_t encoded = utf8_encode(code, again);
		if (code < 0x20 || (code >= 0x7f && code < 0xa0) ||
		    encoded != bytes_offset(&bytes) - offset ||
		    memcmp(again, text + offset, encoded) != 0)
			abort();
	}
}

static void print(const struct python_values *from, uint64_t addr)
{
	char text[ROOM];
	size_t sizes[] = {8, 100, ROOM};

	for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
		struct fuzz_memory *input = from->memory->context;
		input->reads = 0;
		size_t length = python_value_print(from, addr, text, sizes[i]);
		if (length >= sizes[i] || input->reads > from->limits->reads)
			abort();
		check_text(text, length);
	}
}

static bool take_local(void *context, const struct python_local *local)
{
	unsigned *left = context;

	return (*left)-- > 1;
}

/* Any address as an interpreter's modules, a thread's state, a set of tasks. */
static void read_threads(const struct memory *memory, const struct python_offsets *at,
			 uint64_t addr)
{
	const struct python_thread thread = {.state = addr};
	uint32_t reads_left = PYTHON_TASKS_READS;
	const struct python_tasks_from from = {
		.memory = memory,
		.offsets = at,
		.modules = addr,
		.threads = &thread,
		.threads_count = 1,
		.reads_left = &reads_left,
	};
	struct fuzz_memory *input = memory->context;
	enum python_thread_names_outcome names_outcome;
	enum python_tasks_outcome tasks_outcome;
	struct python_thread_names names = {0};
	struct python_tasks tasks = {0};

	input->reads = 0;
	error_free(python_thread_names_read(memory, at, addr, &names_outcome, &names));
	python_thread_names_deinit(&names);
	input->reads = 0;
	error_free(python_tasks_read(&from, &tasks_outcome, &tasks));
	python_tasks_deinit(&tasks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_memory input = {.data = data, .size = size, .head = HEAD};
	const struct memory memory = {.read = fuzz_memory_read, .context = &input};
	struct python_values values = {.memory = &memory, .limits = &python_value_line};
	struct python_offsets at;
	struct python_frame frame;
	unsigned locals = 2000;

	if (size < HEAD + FUZZ_PIECE_HEAD)
		return 0;
	input.around = data[1] & AROUND;
	if (!python_offsets_find(versions[data[0] % ARRAY_COUNT(versions)],
				 data[1] % AROUND % PYTHON_BUILDS, &at))
		return 0;
	at.unicode_width = at.version < 0x0300 ? 2 + (data[1] >> 5 & 2) : 0;
	values.offsets = &at;
	memcpy(&frame.addr, data + 2, sizeof(frame.addr));
	print(&values, frame.addr);
	values.limits = &python_value_more;
	print(&values, frame.addr);
	input.reads = 0;
	if (memory_read_u64(&memory, frame.addr + at.frame_code, &frame.code))
		frame.code = frame.addr;
	python_locals(&values, &frame, data[1] >> 4 & 1, take_local, &locals);
	read_threads(&memory, &at, frame.addr);
	return 0;
}
