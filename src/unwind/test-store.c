/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/store.h"

#include <stdlib.h>

#include "base/array.h"
#include "starved.h"
#include "unit.h"

static struct error *heap_segment(void *context, unsigned number, struct unwind_segment **ret)
{
	struct unwind_segment **segments = context;

	segments[number] = calloc(1, sizeof(struct unwind_segment));
	if (!segments[number])
		return error_oom();
	*ret = segments[number];
	return NULL;
}

/* A store in plain memory, as large as SEGMENTS allow. */
struct bench {
	struct unwind_segment *segments[STORE_SEGMENTS_MAX];
	struct counters counters;
	struct unwind_module *modules;
	struct unwind_rule *rules;
	struct store *store;
};

static void bench_init(struct bench *bench, unsigned segments)
{
	*bench = (struct bench){0};
	bench->modules = calloc(STORE_MODULES_MAX, sizeof(*bench->modules));
	bench->rules = calloc(UNWIND_RULES_MAX, sizeof(*bench->rules));
	struct store_options options = {
		.segments_max = segments,
		.segment = heap_segment,
		.context = bench->segments,
		.modules = bench->modules,
		.rules = bench->rules,
		.counters = &bench->counters,
	};
	ASSERT_OK(store_new(&options, &bench->store));
}

static void bench_deinit(struct bench *bench)
{
	store_free(bench->store);
	for (size_t i = 0; i < STORE_SEGMENTS_MAX; i++)
		free(bench->segments[i]);
	free(bench->modules);
	free(bench->rules);
}

/* COUNT rows, STEP apart from START on, whose rules take turns: offset 8, 16, ... of rsp. */
static struct rows make_rows(uint64_t start, uint64_t step, size_t count)
{
	struct rows rows = ROWS_INIT;

	rows.row = calloc(count, sizeof(*rows.row));
	rows.rules = calloc(4, sizeof(*rows.rules));
	rows.count = count;
	rows.rule_count = 4;
	for (int i = 0; i < 4; i++)
		rows.rules[i] = (struct unwind_rule){.cfa = UNWIND_CFA_reg,
						     .base = UNWIND_RSP,
						     .offset = 8 * (i + 1),
						     .ra_offset = -8};
	for (size_t i = 0; i < count; i++)
		rows.row[i] = (struct row){start + i * step, i % 4};
	rows.text_start = start;
	rows.text_end = start + count * step;
	return rows;
}

static void free_rows(struct rows *rows)
{
	free(rows->row);
	free(rows->rules);
}

/* Memory of a made-up process: a stack at STACK whose words are the return addresses to be. */
enum { STACK = 0x7000, STACK_WORDS = 64 };

static int read_words(void *context, uint64_t addr, void *to, size_t size)
{
	const uint64_t *words = context;

	if (addr < STACK || addr + size > STACK + 8 * STACK_WORDS)
		return -1;
	memcpy(to, (const char *)words + (addr - STACK), size);
	return 0;
}

/* Walk one step from object address ADDR; the stack pointer tells which rule was found. */
static struct host_walk step(const struct bench *bench, uint32_t module, uint64_t addr)
{
	static uint64_t words[STACK_WORDS];
	static uint64_t frames[2];
	static struct unwind_mapping map;
	static struct host_tables tables;
	struct host_walk walk = {.memory = {read_words, words}, .words = frames};

	for (int i = 0; i < STACK_WORDS; i++)
		words[i] = 0x10; // a caller outside every mapping
	map = (struct unwind_mapping){.start = 0x100000, .end = UINT64_MAX / 2, .module = module};
	map.bias = 0x100000;
	tables = store_tables(bench->store);
	tables.mapping = &map;
	tables.mappings = 1;
	walk.tables = &tables;
	walk.walk.mappings = 1;
	walk.walk.depth = 2;
	walk.walk.flags = WALK_leaf;
	walk.walk.at.pc = addr + 0x100000;
	walk.walk.at.sp = STACK;
	host_walk_native(&walk);
	return walk;
}

TEST(every_row_is_found_at_its_start_and_up_to_the_next)
{
	struct bench bench;
	struct rows rows = make_rows(0x1fff0, 24, 40000); // across 15 pages, first one nearly empty
	uint32_t module;

	bench_init(&bench, 4);
	ASSERT_OK(store_add_module(bench.store, &module));
	ASSERT_OK(store_load(bench.store, module, &rows));
	for (size_t i = 0; i < rows.count; i += i < 100 ? 1 : 37) {
		for (uint64_t within = 0; within < 24; within += 23) {
			struct host_walk walk = step(&bench, module, rows.row[i].addr + within);
			ASSERT_EQ(walk.walk.end, END_unknown_pc);
			ASSERT_EQ(walk.walk.at.sp, STACK + 8 * (i % 4 + 1));
		}
	}
	ASSERT_EQ(step(&bench, module, 0x1ffe0).walk.end, END_no_rows);
	ASSERT_EQ(step(&bench, module, 0xfff).walk.end, END_no_rows);
	ASSERT_EQ(step(&bench, module, 0x40000000).walk.end, END_no_rows);
	free_rows(&rows);
	bench_deinit(&bench);
}

TEST(a_module_without_rows_is_not_loaded_and_says_so)
{
	struct bench bench;
	uint32_t module;

	bench_init(&bench, 1);
	ASSERT_OK(store_add_module(bench.store, &module));
	ASSERT_EQ(step(&bench, module, 0x1000).walk.end, END_not_loaded);
	bench_deinit(&bench);
}

TEST(the_budget_holds_and_the_least_recently_used_module_gives_way)
{
	struct bench bench;
	struct rows rows = make_rows(0, 16, 100000); // 400 KB: two fit into a segment
	uint32_t module[6];

	bench_init(&bench, 2);
	for (size_t i = 0; i < ARRAY_COUNT(module); i++) {
		ASSERT_OK(store_add_module(bench.store, &module[i]));
		ASSERT_OK(store_load(bench.store, module[i], &rows));
		store_touch(bench.store, module[0], UINT64_MAX); // always in use
	}
	ASSERT_EQ(store_segments(bench.store), 2);
	ASSERT_TRUE(store_loaded(bench.store, module[0]));
	ASSERT_FALSE(store_loaded(bench.store, module[1]));
	ASSERT_TRUE(store_loaded(bench.store, module[5]));
	ASSERT_TRUE(bench.counters.value[COUNTER_objects_evicted] >= 1);
	ASSERT_EQ(step(&bench, module[5], 16 * 5001).walk.at.sp, STACK + 8 * (5001 % 4 + 1));
	ASSERT_EQ(step(&bench, module[0], 16 * 99999).walk.at.sp, STACK + 8 * (99999 % 4 + 1));
	free_rows(&rows);
	bench_deinit(&bench);
}

TEST(rows_larger_than_the_budget_are_refused_and_leave_nothing_behind)
{
	struct bench bench;
	struct rows large = make_rows(0, 16, 600000), small = make_rows(0, 16, 1000);
	uint32_t module;

	bench_init(&bench, 1);
	ASSERT_OK(store_add_module(bench.store, &module));
	ASSERT_FAILS(store_load(bench.store, module, &large), "budget of 1 MiB");
	ASSERT_FALSE(store_loaded(bench.store, module));
	usleep(150 * 1000); // the grace period of what was half loaded
	ASSERT_OK(store_load(bench.store, module, &small));
	free_rows(&large);
	free_rows(&small);
	bench_deinit(&bench);
}

TEST(equal_rules_are_one_rule)
{
	struct bench bench;
	struct rows rows = make_rows(0, 16, 1000);
	uint32_t module;

	bench_init(&bench, 1);
	for (int i = 0; i < 3; i++) {
		ASSERT_OK(store_add_module(bench.store, &module));
		ASSERT_OK(store_load(bench.store, module, &rows));
	}
	ASSERT_EQ(store_tables(bench.store).rules, 5); // and the gap, number 0
	free_rows(&rows);
	bench_deinit(&bench);
}

/* Walk by frame pointer with CODE under the pc; FP is what rbp holds. */
static struct host_walk by_frame_pointer(uint64_t code, uint64_t fp, uint64_t *words)
{
	static uint64_t frames[8];
	static struct unwind_mapping map;
	static struct host_tables tables;
	struct host_walk walk = {.memory = {read_words, words}, .words = frames};

	// The code is in the stack's last word, which is as readable as any.
	words[STACK_WORDS - 1] = code;
	map = (struct unwind_mapping){.start = STACK, .end = 2 * STACK};
	map.module = UNWIND_MODULE_frame_ptr;
	tables = (struct host_tables){.mapping = &map, .mappings = 1};
	walk.tables = &tables;
	walk.walk.mappings = 1;
	walk.walk.depth = 8;
	walk.walk.flags = WALK_leaf;
	walk.walk.at.pc = STACK + 8 * (STACK_WORDS - 1);
	walk.walk.at.sp = STACK;
	walk.walk.at.fp = fp;
	host_walk_native(&walk);
	return walk;
}

TEST(the_prologue_tells_whose_frame_pointer_it_is)
{
	static const struct {
		const char *what;
		uint64_t code, fp;
		size_t return_at; /* word of the leaf's return address */
	} cases[] = {
		{"push %rbp", 0x55, STACK + 32, 0},
		{"endbr64; push %rbp", 0x55fa1e0ff3, STACK + 32, 0},
		{"mov %rsp,%rbp", 0xe58948, STACK + 32, 1},
		{"body", 0x90, STACK + 32, 5},
		{"ret", 0xc3, STACK + 32, 0},
	};

	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		uint64_t words[STACK_WORDS] = {0};
		words[cases[i].return_at] = STACK + 8;
		struct host_walk walk = by_frame_pointer(cases[i].code, cases[i].fp, words);
		ASSERT_TRUE(walk.walk.frames >= 2);
		ASSERT_EQ(walk.words[1], STACK + 8);
	}
}

TEST(a_frame_pointer_of_zero_ends_the_stack_and_one_that_points_down_cuts_it)
{
	uint64_t words[STACK_WORDS] = {0};

	words[4] = 0; // saved frame pointer of the leaf's caller
	words[5] = STACK + 8;
	ASSERT_EQ(by_frame_pointer(0x90, STACK + 32, words).walk.end, END_root);
	words[4] = STACK + 16; // below the frame it was saved in
	ASSERT_EQ(by_frame_pointer(0x90, STACK + 32, words).walk.end, END_no_frame_ptr);
	ASSERT_EQ(by_frame_pointer(0x90, 0, words).walk.end, END_no_frame_ptr);
	ASSERT_EQ(by_frame_pointer(0x90, STACK + 36, words).walk.end, END_no_frame_ptr);
	// Not a frame pointer at all, but the address of zeros.
	ASSERT_EQ(by_frame_pointer(0x90, STACK + 64, words).walk.end, END_no_frame_ptr);
	ASSERT_EQ(by_frame_pointer(0x90, 0x90000, words).walk.end, END_unreadable);
}

TEST(every_end_has_a_text_of_its_own)
{
	for (int i = 0; i < END_MAX; i++)
		for (int k = 0; k < i; k++)
			if (strcmp(walk_end_text(i), "unknown end"))
				assert_string_not_equal(walk_end_text(i), walk_end_text(k));
	ASSERT_TRUE(walk_end_whole(END_root));
	ASSERT_FALSE(walk_end_whole(END_no_rows));
}

static struct error *load(struct bench *bench, const struct rows *rows)
{
	uint32_t module;

	TRY(store_add_module(bench->store, &module));
	struct error *err = store_load(bench->store, module, rows);
	// What lacked memory once has it the next time.
	if (err)
		ASSERT_OK(store_load(bench->store, module, rows));
	ASSERT_TRUE(store_loaded(bench->store, module));
	return err;
}

static struct error *load_and_free(void *context)
{
	static struct unwind_module modules[STORE_MODULES_MAX];
	static struct unwind_rule rules[UNWIND_RULES_MAX];
	struct bench bench = {0};
	const struct store_options options = {
		.segments_max = 2,
		.segment = heap_segment,
		.context = bench.segments,
		.modules = modules,
		.rules = rules,
		.counters = &bench.counters,
	};
	struct error *err = store_new(&options, &bench.store);

	if (!err)
		err = load(&bench, context);
	store_free(bench.store);
	for (size_t i = 0; i < options.segments_max; i++)
		free(bench.segments[i]);
	memset(modules, 0, sizeof(modules));
	return err;
}

TEST(rows_are_loaded_or_memory_ran_out_and_then_the_next_time)
{
	struct rows rows = make_rows(0x10000, 16, 1000);

	starved_try(load_and_free, &rows, 1000);
	free_rows(&rows);
}

RUN_TESTS(UNIT_TEST(every_row_is_found_at_its_start_and_up_to_the_next),
	  UNIT_TEST(a_module_without_rows_is_not_loaded_and_says_so),
	  UNIT_TEST(the_budget_holds_and_the_least_recently_used_module_gives_way),
	  UNIT_TEST(rows_larger_than_the_budget_are_refused_and_leave_nothing_behind),
	  UNIT_TEST(equal_rules_are_one_rule),
	  UNIT_TEST(the_prologue_tells_whose_frame_pointer_it_is),
	  UNIT_TEST(a_frame_pointer_of_zero_ends_the_stack_and_one_that_points_down_cuts_it),
	  UNIT_TEST(every_end_has_a_text_of_its_own),
	  UNIT_TEST(rows_are_loaded_or_memory_ran_out_and_then_the_next_time))
