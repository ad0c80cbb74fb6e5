/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over a made-up process: a C stack with frame pointers, and the objects of CPython. */
#include "runtimes/walk-host.h"

#include <string.h>

#include "abi/runtimes.h"
#include "base/array.h"
#include "unit.h"

enum {
	CODE = 0x1000, /* machine code: the evaluator to EVAL_END, then everything else */
	EVAL_END = 0x2000,
	CODE_END = 0x4000,
	MEMORY = 0x100000, /* everything that is read */
	WORDS = 2048,
	STACK = MEMORY,
	HEAP = MEMORY + 8 * 512,
	INTERPRETERS = HEAP, /* the pointer to the first */
	SELF = 0x7000,       /* pthread_self() of the thread */
	OTHER = 0x7100,
	RESULT_WORDS = 64,
};

struct world {
	uint64_t word[WORDS];
	uint64_t heap, stack; /* next free addresses; the stack is made from the leaf outwards */
	uint64_t leaf_fp, last_fp, leaf_pc;
	int reads, fail_at; /* the FAIL_ATth read fails; 0: none */
	struct python_layout layout;
	struct python_process process;
	/* Frames that are given to the walk, outwards from the thread's innermost. */
	struct python_kept kept[8];
	size_t kepts;
	struct python_kept_state state;
};

static int read_world(void *context, uint64_t addr, void *to, size_t size)
{
	struct world *world = context;

	if (++world->reads == world->fail_at)
		return -1;
	if (addr < MEMORY || addr + size > MEMORY + sizeof(world->word) || addr + size < addr)
		return -1;
	memcpy(to, (const char *)world->word + (addr - MEMORY), size);
	return 0;
}

static void put(struct world *world, uint64_t addr, uint64_t value)
{
	world->word[(addr - MEMORY) / 8] = value;
}

static uint64_t make(struct world *world, unsigned words)
{
	uint64_t addr = world->heap;

	world->heap += 8ull * words;
	return addr;
}

/* Offsets of our own: what a version has is data. */
static void begin(struct world *world, enum python_frames frames)
{
	*world = (struct world){
		.heap = HEAP + 8,
		.stack = STACK + 8,
		.process = {.interpreters = INTERPRETERS, .eval = {{CODE, EVAL_END}}, .evals = 1},
		.layout = {
			.frames = frames,
			.shim = 3,
			.interpreter_next = 0,
			.interpreter_threads = 8,
			.interpreter_gil = PYTHON_ABSENT,
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
			.frame_tlbc_index = PYTHON_ABSENT,
			.code_first_line = 0,
			.code_name = 8,
			.code_bytes = 16,
			.code_tlbc = PYTHON_ABSENT,
		}};
}

/* One C frame outwards of the last, with PC in it; returns a word inside of it. */
static uint64_t push_c(struct world *world, uint64_t pc)
{
	uint64_t inside = world->stack + 8, fp = world->stack + 32;

	if (!world->leaf_pc)
		world->leaf_pc = pc;
	else
		put(world, world->last_fp + 8, pc);
	if (world->last_fp)
		put(world, world->last_fp, fp);
	else
		world->leaf_fp = fp;
	world->last_fp = fp;
	world->stack = fp + 16;
	return inside;
}

static uint64_t add_interpreter(struct world *world, uint64_t next)
{
	uint64_t addr = make(world, 2);

	put(world, addr, next);
	put(world, INTERPRETERS, addr);
	return addr;
}

static uint64_t add_thread(struct world *world, uint64_t interpreter, uint64_t id)
{
	uint64_t addr = make(world, 4);

	put(world, addr, world->word[(interpreter + 8 - MEMORY) / 8]);
	put(world, addr + 8, interpreter);
	put(world, addr + 16, id);
	put(world, interpreter + 8, addr);
	return addr;
}

/* A frame at ADDR of function number LINE, called by PREVIOUS. */
static uint64_t set_frame(struct world *world, uint64_t addr, unsigned line, uint64_t previous)
{
	uint64_t code = make(world, 4);

	put(world, code, line);
	put(world, addr, code);
	put(world, addr + 8, previous);
	put(world, addr + 16,
	    world->layout.frames == PYTHON_FRAMES_objects ? 2 * line : code + 16 + 2 * line);
	return addr;
}

static uint64_t add_frame(struct world *world, unsigned line, uint64_t previous)
{
	return set_frame(world, make(world, 4), line, previous);
}

/* A shim needs 4 words, which the C frame has behind the word that push_c() returned. */
static uint64_t set_shim(struct world *world, uint64_t addr, uint64_t previous)
{
	put(world, addr + 8, previous);
	put(world, addr + 24, 3);
	return addr;
}

/*
 * The stack in letters, leaf first: e evaluator, c any other machine code, digits the lines of
 * Python frames, ! no Python frames.
 */
static enum walk_end walk(struct world *world, unsigned depth, char ret[RESULT_WORDS])
{
	static uint64_t words[2 * SAMPLE_USER_FRAMES];
	const struct unwind_mapping mapping = {CODE, CODE_END, 0, UNWIND_MODULE_frame_ptr, 0};
	const struct host_tables tables = {.mapping = &mapping,
					   .mappings = 1,
					   .python = &world->process,
					   .layout = &world->layout};
	struct host_walk host = {
		.tables = &tables,
		.memory = {.read = read_world, .context = world},
		.words = words,
		.kept = world->kept,
		.kepts = world->kepts,
		.walk = {.depth = depth,
			 .mappings = 1,
			 .fs_base = SELF,
			 .flags = WALK_call,
			 .python = {.process = 1},
			 .at = {.pc = world->leaf_pc, .sp = STACK + 8, .fp = world->leaf_fp}}};
	size_t length = 0;

	if (world->kepts) {
		host.walk.python.found = 1;
		host.walk.python.state = world->state.state;
		host.walk.python.interpreter = world->state.interpreter;
		host.walk.python.frame = world->kept[0].at;
	}
	world->reads = 0;
	host_walk(&host);
	for (uint32_t i = 0; i < host.walk.words && length < RESULT_WORDS - 1; i++) {
		if (!(words[i] & SAMPLE_RUNTIME)) {
			ret[length++] = words[i] <= EVAL_END ? 'e' : 'c';
			continue;
		}
		uint64_t head = words[i++] & ((1ull << SAMPLE_RUNTIME_SHIFT) - 1);
		ret[length++] = head ? (char)('0' + (words[i] & 0xffffffff) / 2) : '!';
	}
	ret[length] = 0;
	return (enum walk_end)host.walk.end;
}

static void check(struct world *world, const char *expected)
{
	char stack[RESULT_WORDS];

	ASSERT_EQ(walk(world, SAMPLE_USER_FRAMES, stack), END_root);
	ASSERT_STREQ(stack, expected);
}

enum { IN_EVAL = CODE + 0x10, IN_OTHER = EVAL_END + 0x10 };

/* leaf; evaluator; other; evaluator; start */
static void two_evaluators(struct world *world, uint64_t inside[2])
{
	push_c(world, IN_OTHER);
	inside[0] = push_c(world, IN_EVAL);
	push_c(world, IN_OTHER);
	inside[1] = push_c(world, IN_EVAL);
	push_c(world, IN_OTHER);
}

static void with_objects(struct world *world)
{
	uint64_t inside[2];

	begin(world, PYTHON_FRAMES_objects);
	two_evaluators(world, inside);
	uint64_t thread = add_thread(world, add_interpreter(world, 0), SELF);
	put(world, thread + 24, add_frame(world, 1, add_frame(world, 2, 0)));
}

/* Frames 1 and 2 in the inner evaluator, 3 in the outer one. */
static void with_entries(struct world *world)
{
	uint64_t inside[2];

	begin(world, PYTHON_FRAMES_entry);
	two_evaluators(world, inside);
	uint64_t thread = add_thread(world, add_interpreter(world, 0), SELF);
	uint64_t outer = add_frame(world, 3, 0), middle = add_frame(world, 2, outer);
	put(world, outer + 24, 1);
	put(world, middle + 24, 1);
	put(world, inside[1], outer);
	put(world, inside[0], add_frame(world, 1, middle));
	put(world, inside[0] + 8, inside[1]);
	put(world, thread + 24, inside[0]);
}

static void with_shims(struct world *world)
{
	uint64_t inside[2];

	begin(world, PYTHON_FRAMES_shim);
	two_evaluators(world, inside);
	uint64_t thread = add_thread(world, add_interpreter(world, 0), SELF);
	uint64_t outer = add_frame(world, 3, set_shim(world, inside[1] - 8, 0));
	uint64_t inner = add_frame(world, 2, set_shim(world, inside[0] - 8, outer));
	put(world, thread + 24, add_frame(world, 1, inner));
}

TEST(each_call_of_an_evaluator_runs_one_frame_object)
{
	struct world world;

	with_objects(&world);
	check(&world, "ce1ce2c");
}

TEST(a_call_of_an_evaluator_runs_frames_up_to_its_entry)
{
	struct world world;

	with_entries(&world);
	check(&world, "ce12ce3c");
}

TEST(a_call_of_an_evaluator_runs_frames_up_to_its_shim)
{
	struct world world;

	with_shims(&world);
	check(&world, "ce12ce3c");
}

TEST(an_evaluator_that_has_linked_no_frame_gets_none)
{
	struct world world;
	uint64_t inside[2], thread, outer;

	begin(&world, PYTHON_FRAMES_shim);
	two_evaluators(&world, inside);
	thread = add_thread(&world, add_interpreter(&world, 0), SELF);
	outer = add_frame(&world, 2, set_shim(&world, inside[1] - 8, 0));
	put(&world, thread + 24, add_frame(&world, 1, outer));
	check(&world, "cece12c");

	begin(&world, PYTHON_FRAMES_entry);
	two_evaluators(&world, inside);
	thread = add_thread(&world, add_interpreter(&world, 0), SELF);
	outer = add_frame(&world, 1, 0);
	put(&world, outer + 24, 1);
	put(&world, inside[1], outer);
	put(&world, thread + 24, inside[1]);
	check(&world, "cece1c");
}

/*
 * Evaluator (the leaf); other; evaluator; start: the outer one runs frame 2, and the innermost has
 * linked a _PyCFrame that points at LEFTOVER.
 */
static void with_unfilled(struct world *world, enum python_frames frames, uint64_t leftover)
{
	uint64_t inside[2], thread, outer;

	begin(world, frames);
	world->layout.cframe_frame = 0;
	inside[0] = push_c(world, IN_EVAL);
	push_c(world, IN_OTHER);
	inside[1] = push_c(world, IN_EVAL);
	push_c(world, IN_OTHER);
	thread = add_thread(world, add_interpreter(world, 0), SELF);
	outer = add_frame(world, 2, set_shim(world, make(world, 4), 0));
	if (frames == PYTHON_FRAMES_entry)
		put(world, outer + 24, 1);
	else // the one that ends its frames lies in the evaluator's C frame, on top of the rest
		put(world, outer + 8, set_shim(world, inside[1] - 8, 0));
	put(world, inside[1], outer);
	put(world, inside[0], leftover);
	put(world, thread + 24, inside[0]);
}

TEST(what_an_evaluator_has_linked_and_not_filled_is_passed_by)
{
	static const enum python_frames kinds[] = {PYTHON_FRAMES_entry, PYTHON_FRAMES_shim};
	struct world world;

	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
		// Nothing; what cannot be read; what is no frame, but can be read.
		with_unfilled(&world, kinds[i], 0);
		check(&world, "ece2c");
		with_unfilled(&world, kinds[i], 1);
		check(&world, "ece2c");
		with_unfilled(&world, kinds[i], MEMORY + 8 * (WORDS - 4));
		put(&world, MEMORY + 8 * (WORDS - 2), 1ull << 40);
		check(&world, "ece2c");
	}
	// A shim of an evaluator further out, or of this one and with nothing behind it.
	with_unfilled(&world, PYTHON_FRAMES_shim, MEMORY + 8 * (WORDS - 4));
	set_shim(&world, MEMORY + 8 * (WORDS - 4), 0);
	check(&world, "ece2c");
}

TEST(a_thread_has_the_state_with_its_own_identity)
{
	struct world world;

	with_shims(&world);
	uint64_t interpreter = world.word[(INTERPRETERS - MEMORY) / 8];
	add_thread(&world, interpreter, OTHER);
	add_thread(&world, add_interpreter(&world, interpreter), OTHER);
	check(&world, "ce12ce3c");
}

TEST(a_sub_interpreter_runs_inside_of_the_main_one)
{
	struct world world;
	uint64_t inside[2];

	begin(&world, PYTHON_FRAMES_shim);
	two_evaluators(&world, inside);
	uint64_t main = add_interpreter(&world, 0), thread = add_thread(&world, main, SELF);
	put(&world, thread + 24, add_frame(&world, 2, set_shim(&world, inside[1] - 8, 0)));
	thread = add_thread(&world, add_interpreter(&world, main), SELF);
	put(&world, thread + 24, add_frame(&world, 1, set_shim(&world, inside[0] - 8, 0)));
	check(&world, "ce1ce2c");
}

TEST(a_thread_without_a_state_says_so_once)
{
	struct world world;
	uint64_t inside[2];

	begin(&world, PYTHON_FRAMES_shim);
	two_evaluators(&world, inside);
	add_thread(&world, add_interpreter(&world, 0), OTHER);
	check(&world, "ce!cec");
}

TEST(a_list_of_frames_that_has_no_end_ends_with_the_depth)
{
	struct world world;
	char stack[RESULT_WORDS];

	with_shims(&world);
	uint64_t thread = world.word[(world.word[(INTERPRETERS - MEMORY) / 8] + 8 - MEMORY) / 8];
	uint64_t frame = world.word[(thread + 24 - MEMORY) / 8];
	put(&world, frame + 8, frame);
	ASSERT_EQ(walk(&world, 20, stack), END_depth);
	ASSERT_STREQ(stack, "ce111111111111111111");
}

TEST(a_return_address_does_not_pass_for_a_frame_of_an_interpreter)
{
	struct world world;
	char stack[RESULT_WORDS];

	begin(&world, PYTHON_FRAMES_objects);
	push_c(&world, IN_OTHER);
	push_c(&world, sample_runtime_word(RUNTIME_python, 0x123456));
	push_c(&world, IN_OTHER);
	ASSERT_EQ(walk(&world, SAMPLE_USER_FRAMES, stack), END_unknown_pc);
	ASSERT_STREQ(stack, "cc");
}

TEST(a_list_of_threads_that_has_no_end_is_given_up)
{
	struct world world;
	uint64_t inside[2];

	begin(&world, PYTHON_FRAMES_shim);
	two_evaluators(&world, inside);
	uint64_t thread = add_thread(&world, add_interpreter(&world, 0), OTHER);
	put(&world, thread, thread);
	check(&world, "ce!cec");
}

/* Every frame of the thread whose state is at STATE is kept, and then gone from memory. */
static void keep_frames_of(struct world *world, uint64_t state)
{
	uint64_t at = world->word[(state + 24 - MEMORY) / 8];

	while (at && world->kepts < sizeof(world->kept) / sizeof(*world->kept)) {
		uint64_t *frame = &world->word[(at - MEMORY) / 8];
		uint64_t owner = world->layout.frame_owner == PYTHON_ABSENT ? 0 : frame[3];
		uint64_t line = frame[0] ? world->word[(frame[0] - MEMORY) / 8] : 0;
		world->kept[world->kepts++] =
			(struct python_kept){at, frame[0] | owner << PYTHON_OWNER_SHIFT, line * 2};
		at = frame[1];
		frame[0] = frame[1] = frame[2] = frame[3] = 0;
	}
}

/* Of the thread that was added last to each interpreter, innermost first. */
static void keep_frames(struct world *world)
{
	uint64_t interpreter = world->word[(INTERPRETERS - MEMORY) / 8];

	world->state.interpreter = interpreter;
	world->state.state = world->word[(interpreter + 8 - MEMORY) / 8];
	for (; interpreter; interpreter = world->word[(interpreter - MEMORY) / 8])
		keep_frames_of(world, world->word[(interpreter + 8 - MEMORY) / 8]);
}

TEST(frames_that_were_kept_are_not_read)
{
	struct world world;

	with_objects(&world);
	keep_frames(&world);
	ASSERT_EQ(world.kepts, 2);
	check(&world, "ce1ce2c");

	with_shims(&world);
	keep_frames(&world);
	ASSERT_EQ(world.kepts, 5);
	check(&world, "ce12ce3c");
}

TEST(the_frames_of_an_evaluator_further_out_that_were_kept_wait_for_it)
{
	struct world world;
	uint64_t inside[2];

	begin(&world, PYTHON_FRAMES_shim);
	two_evaluators(&world, inside);
	uint64_t thread = add_thread(&world, add_interpreter(&world, 0), SELF);
	uint64_t outer = add_frame(&world, 2, set_shim(&world, inside[1] - 8, 0));
	put(&world, thread + 24, add_frame(&world, 1, outer));
	keep_frames(&world);
	ASSERT_EQ(world.kepts, 3);
	check(&world, "cece12c");
}

TEST(frames_of_two_interpreters_that_were_kept_are_one_list)
{
	struct world world;
	uint64_t inside[2];

	begin(&world, PYTHON_FRAMES_shim);
	two_evaluators(&world, inside);
	uint64_t main = add_interpreter(&world, 0), thread = add_thread(&world, main, SELF);
	put(&world, thread + 24, add_frame(&world, 2, set_shim(&world, inside[1] - 8, 0)));
	thread = add_thread(&world, add_interpreter(&world, main), SELF);
	put(&world, thread + 24, add_frame(&world, 1, set_shim(&world, inside[0] - 8, 0)));
	keep_frames(&world);
	ASSERT_EQ(world.kepts, 4);
	check(&world, "ce1ce2c");
}

TEST(in_the_place_of_a_frame_that_could_not_be_kept_is_the_reason)
{
	struct world world;

	with_shims(&world);
	keep_frames(&world);
	world.kepts = 2;
	world.kept[1].code = 0;
	world.kept[1].rest = PYTHON_LOST_memory;
	check(&world, "ce1!cec");
}

TEST(whatever_cannot_be_read_the_machine_frames_stay)
{
	static void (*const worlds[])(struct world *) = {with_objects, with_entries, with_shims};
	struct world world;
	char stack[RESULT_WORDS];

	for (size_t i = 0; i < sizeof(worlds) / sizeof(*worlds); i++) {
		worlds[i](&world);
		walk(&world, SAMPLE_USER_FRAMES, stack);
		int reads = world.reads;
		for (int fail = 1; fail <= reads; fail++) {
			world.fail_at = fail;
			enum walk_end end = walk(&world, SAMPLE_USER_FRAMES, stack);
			ASSERT_TRUE(end == END_root || end == END_unreadable);
			unsigned machine = 0;
			for (const char *at = stack; *at; at++)
				machine += *at == 'c' || *at == 'e';
			ASSERT_TRUE(machine == 5 || end == END_unreadable);
		}
		ASSERT_TRUE(reads > 20);
	}
}

RUN_TESTS(UNIT_TEST(each_call_of_an_evaluator_runs_one_frame_object),
	  UNIT_TEST(a_call_of_an_evaluator_runs_frames_up_to_its_entry),
	  UNIT_TEST(a_call_of_an_evaluator_runs_frames_up_to_its_shim),
	  UNIT_TEST(an_evaluator_that_has_linked_no_frame_gets_none),
	  UNIT_TEST(what_an_evaluator_has_linked_and_not_filled_is_passed_by),
	  UNIT_TEST(a_thread_has_the_state_with_its_own_identity),
	  UNIT_TEST(a_sub_interpreter_runs_inside_of_the_main_one),
	  UNIT_TEST(a_thread_without_a_state_says_so_once),
	  UNIT_TEST(a_list_of_frames_that_has_no_end_ends_with_the_depth),
	  UNIT_TEST(a_return_address_does_not_pass_for_a_frame_of_an_interpreter),
	  UNIT_TEST(a_list_of_threads_that_has_no_end_is_given_up),
	  UNIT_TEST(frames_that_were_kept_are_not_read),
	  UNIT_TEST(the_frames_of_an_evaluator_further_out_that_were_kept_wait_for_it),
	  UNIT_TEST(frames_of_two_interpreters_that_were_kept_are_one_list),
	  UNIT_TEST(in_the_place_of_a_frame_that_could_not_be_kept_is_the_reason),
	  UNIT_TEST(whatever_cannot_be_read_the_machine_frames_stay))
