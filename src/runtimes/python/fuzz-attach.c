/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any memory as that of a process with an interpreter of any version: attaching to it, its threads,
 * a walk from a thread in the evaluator, and the names of what the walk met. The input:
 *
 *   u8 version, u8 build (highest bit: every pointer leads somewhere), u64 each: bias, runtime,
 *   interpreters, holder, type of code objects, stack pointer, frame pointer; then pieces of memory
 *   (fuzz-memory.h)
 */
#include <stdlib.h>

#include "abi/runtimes.h"
#include "base/array.h"
#include "runtimes/python/attach.h"
#include "runtimes/python/code.h"
#include "runtimes/python/fuzz-memory.h"
#include "runtimes/python/neighbours.h"
#include "runtimes/walk-host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint16_t versions[] = {0x0207, 0x0305, 0x0306, 0x0307, 0x0308, 0x0309,
				    0x030a, 0x030b, 0x030c, 0x030d, 0x030e};

enum {
	WORDS = 7,
	HEAD = 2 + 8 * WORDS,
	AROUND = 0x80,
	DEPTH = 512,
	THREADS_WALKED = 3,
	CODES_READ = 16,
	EVALUATOR = 0x10000, /* machine code: the evaluator to EVALUATOR_END, then any other */
	EVALUATOR_END = 0x20000,
	CODE_END = 0x40000,
};

struct input {
	struct fuzz_memory from;
	struct memory memory; /* from's */
	uint64_t bias, sp, fp;
	struct python_object object;
	enum python_build build;
};

static void read_head(const uint8_t *data, size_t size, struct input *ret)
{
	uint64_t word[WORDS];

	memcpy(word, data + 2, sizeof(word));
	*ret = (struct input){
		.from = {data, size, HEAD, .around = data[1] & AROUND},
		.bias = word[0],
		.object = {.version = versions[data[0] % ARRAY_COUNT(versions)],
			   .unicode_width = 4,
			   .runtime = word[1],
			   .interpreters = word[2],
			   .holder = word[3],
			   .code_type = word[4],
			   .eval = {{EVALUATOR, EVALUATOR_END}},
			   .evals = 1},
		.sp = word[5],
		.fp = word[6],
		.build = data[1] % AROUND % PYTHON_BUILDS,
	};
}

/* Attach, or take it for what the input says. False: there is no such build. */
static bool attach(struct input *input, struct python_instance *ret)
{
	char reason[PYTHON_REASON_MAX];

	if (python_attach(&input->object, input->bias, &input->memory, ret, reason) ==
	    PYTHON_ATTACH_ok)
		return true;
	if (!reason[0] || !memchr(reason, 0, sizeof(reason)))
		abort();
	*ret = (struct python_instance){
		.code_type = input->object.code_type,
		.process = {.interpreters = input->object.interpreters, .evals = 1},
	};
	if (!python_offsets_find(input->object.version, input->build, &ret->at))
		return false;
	ret->layout = python_offsets_layout(&ret->at);
	return true;
}

static void name(const struct input *input, const struct python_instance *instance,
		 const uint64_t word[2])
{
	const struct python_codes codes = {&input->memory, &instance->at, instance->code_type};
	_cleanup_(python_code_deinit) struct python_code code = PYTHON_CODE_INIT;
	enum python_code_outcome outcome;

	error_free(python_code_read(&codes, word[0] & ((1ull << SAMPLE_RUNTIME_SHIFT) - 1),
				    &outcome, &code)); // no memory left
	if (outcome == PYTHON_CODE_read)
		(void)python_code_line(&code, (uint32_t)word[1]);
}

static void walk(struct input *input, const struct python_instance *instance, uint64_t id)
{
	static const struct unwind_mapping mapping = {EVALUATOR, CODE_END, 0,
						      UNWIND_MODULE_frame_ptr, 0};
	const struct host_tables tables = {.mapping = &mapping,
					   .mappings = 1,
					   .python = &instance->process,
					   .layout = &instance->layout};
	uint64_t words[2 * DEPTH];
	struct host_walk host = {
		.tables = &tables,
		.memory = input->memory,
		.words = words,
		.walk = {.depth = DEPTH,
			 .mappings = 1,
			 .fs_base = id,
			 .flags = WALK_ask_gil,
			 .python = {.process = 1},
			 .at = {.pc = EVALUATOR + 1, .sp = input->sp, .fp = input->fp}}};
	unsigned codes = 0;

	input->from.reads = 0;
	host_walk(&host);
	if (host.walk.frames > DEPTH || host.walk.words > 2 * DEPTH || host.walk.end == END_none)
		abort();
	for (size_t i = 0; i < host.walk.words && codes < CODES_READ; i++)
		if (sample_is_runtime(words[i])) {
			name(input, instance, words + i++);
			codes++;
		}
	python_deal_frames(&instance->process, words, host.walk.words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(python_threads_deinit) struct python_threads threads = PYTHON_THREADS_INIT;
	struct python_instance instance;
	struct input input;

	if (size < HEAD + FUZZ_PIECE_HEAD)
		return 0;
	read_head(data, size, &input);
	input.memory = (struct memory){.read = fuzz_memory_read, .context = &input.from};
	if (!attach(&input, &instance))
		return 0;
	instance.process.eval[0].start = EVALUATOR;
	instance.process.eval[0].end = EVALUATOR_END;
	input.from.reads = 0;
	error_free(python_threads(&instance, &input.memory, &threads)); // too many
	for (size_t i = 0; i < threads.count && i < THREADS_WALKED; i++) {
		(void)python_holder(&instance, &input.memory, threads.thread[i].interpreter);
		walk(&input, &instance, threads.thread[i].thread_id);
	}
	return 0;
}
