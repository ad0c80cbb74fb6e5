/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any memory under a walk, of machine frames by any rules and of CPython's in each of the ways that
 * they hang together: it ends within its bounds, and what it pushed is a stack. The input:
 *
 *   u8 kind of frames, u8 flags, u16 depth, 4 bytes unused, u64 each: pc, sp, fp, thread pointer,
 *   thread state; 4 unwind rules of 16 bytes; 8 rows of 4 bytes; then memory from MEMORY on
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "runtimes/python/neighbours.h"
#include "runtimes/walk-host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	RULES = 4,
	ROWS = 8,
	MEMORY = 0x10000,
	FRAMED = 0x1000, /* machine code with frame pointers; its first half evaluates */
	WITH_ROWS = 0x2000,
	NO_WALKER = 0x4000,
	NOTHING_KNOWN = 0x5000,
	CODE_END = 0x6000,
	EVALUATOR_BYTES = 0x800,
	STEP_READS_MAX = 40,
};

enum flag {
	AROUND = 1, /* every pointer leads somewhere */
	LEAF = 2,
	ASK_GIL = 4,
	KNOWN_STATE = 8,
	COPIES = 16, /* of instructions: free-threaded 3.14 */
	HOLDER = 32,
	PLACES = 64,
	NO_PYTHON = 128,
};

struct head {
	uint8_t frames, flags;
	uint16_t depth;
	uint32_t unused;
	uint64_t pc, sp, fp, fs_base, state;
	struct unwind_rule rule[RULES];
	uint32_t row[ROWS];
};

struct input {
	const uint8_t *data;
	size_t size;
	bool around;
	uint64_t reads;
};

static int read_input(void *context, uint64_t addr, void *to, size_t size)
{
	struct input *input = context;

	input->reads++;
	if (addr >= MEMORY && addr - MEMORY <= input->size &&
	    size <= input->size - (addr - MEMORY)) {
		memcpy(to, input->data + (addr - MEMORY), size);
		return 0;
	}
	if (!input->around || !input->size)
		return -1;
	for (size_t i = 0; i < size; i++)
		((uint8_t *)to)[i] = input->data[(addr + i) % input->size];
	return 0;
}

/* Offsets of our own: what a version has is data. */
static struct python_layout layout_of(const struct head *head)
{
	const uint8_t kinds[] = {PYTHON_FRAMES_objects, PYTHON_FRAMES_entry, PYTHON_FRAMES_shim};
	const uint8_t frames = kinds[head->frames % ARRAY_COUNT(kinds)];

	return (struct python_layout){
		.frames = frames,
		.shim = 3,
		.interpreter_next = 0,
		.interpreter_threads = 8,
		.interpreter_gil = frames == PYTHON_FRAMES_shim ? 16 : PYTHON_ABSENT,
		.gil_holder = 0,
		.gil_locked = 8,
		.thread_next = 0,
		.thread_interpreter = 8,
		.thread_id = 16,
		.thread_frame = 24,
		.cframe_frame = frames == PYTHON_FRAMES_entry ? 0 : PYTHON_ABSENT,
		.cframe_previous = 8,
		.frame_code = 0,
		.frame_previous = 8,
		.frame_ip = 16,
		.frame_owner = frames == PYTHON_FRAMES_objects ? PYTHON_ABSENT : 24,
		.frame_tlbc_index = head->flags & COPIES ? 28 : PYTHON_ABSENT,
		.code_first_line = 0,
		.code_name = 8,
		.code_bytes = 16,
		.code_tlbc = 24,
	};
}

/* Whole frames, and no more than were asked for. */
static void check_words(const uint64_t *words, const struct walk *walk)
{
	uint32_t frames = 0, at = 0;

	for (; at < walk->words; frames++)
		at += sample_is_runtime(words[at]) ? 2 : 1;
	if (at != walk->words || frames != walk->frames || walk->frames > walk->depth ||
	    walk->end == END_none || walk->end >= END_MAX)
		abort();
}

static void run(const struct head *head, const struct host_tables *tables, struct input *input)
{
	static uint64_t words[2 * SAMPLE_USER_FRAMES], places[2 * SAMPLE_USER_FRAMES];
	struct host_walk host = {.tables = tables,
				 .memory = {.read = read_input, .context = input},
				 .words = words,
				 .places = head->flags & PLACES ? places : NULL,
				 .thread_state = head->flags & KNOWN_STATE ? head->state : 0,
				 .walk = {.at = {.pc = head->pc, .sp = head->sp, .fp = head->fp},
					  .depth = 1 + head->depth % SAMPLE_USER_FRAMES,
					  .mappings = (uint32_t)tables->mappings,
					  .fs_base = head->fs_base,
					  .flags = (head->flags & LEAF ? WALK_leaf : WALK_call) |
						   (head->flags & ASK_GIL ? WALK_ask_gil : 0),
					  .python = {.process = !(head->flags & NO_PYTHON)}}};

	memcpy(host.walk.at.reg, &head->rule, sizeof(head->rule)); // any registers
	host_walk(&host);
	if (input->reads > STEP_READS_MAX * (4ull * host.walk.depth + 2ull * PYTHON_LOOKS))
		abort();
	check_words(words, &host.walk);
	python_deal_frames(tables->python, words, host.walk.words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct unwind_mapping mapping[] = {
		{FRAMED, WITH_ROWS, 0, UNWIND_MODULE_frame_ptr, 0},
		{WITH_ROWS, NO_WALKER, 0, UNWIND_MODULE_first, 0},
		{NO_WALKER, NOTHING_KNOWN, 0, UNWIND_MODULE_no_walker, 0},
		{NOTHING_KNOWN, CODE_END, 0, UNWIND_MODULE_none, 0},
	};
	static const struct unwind_module module[] = {
		[UNWIND_MODULE_first] = {.page_table = 0, .pages = 1, .start = 0}};
	static struct unwind_segment segment = {.word = {2, ROWS}};
	static const struct unwind_segment *const segments[] = {&segment};
	struct head head;

	if (size < sizeof(head))
		return 0;
	memcpy(&head, data, sizeof(head));
	memcpy(segment.word + 2, head.row, sizeof(head.row));
	struct python_layout layout = layout_of(&head);
	struct python_process process = {
		.interpreters = MEMORY + 8,
		.holder = head.flags & HOLDER ? MEMORY : 0,
		.eval = {{FRAMED, FRAMED + EVALUATOR_BYTES},
			 {WITH_ROWS, WITH_ROWS + EVALUATOR_BYTES}},
		.evals = 2,
	};
	const struct host_tables tables = {
		.mapping = mapping,
		.mappings = ARRAY_COUNT(mapping),
		.module = module,
		.modules = ARRAY_COUNT(module),
		.segment = segments,
		.segments = ARRAY_COUNT(segments),
		.rule = head.rule,
		.rules = RULES,
		.python = &process,
		.layout = &layout,
	};
	struct input input = {data + sizeof(head), size - sizeof(head), head.flags & AROUND, 0};
	run(&head, &tables, &input);
	return 0;
}
