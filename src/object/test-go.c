/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pclntab of a program made here, in every form and damaged in every way. Real programs are in
 * test-go-programs.c.
 */
#include "object/go.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/file.h"
#include "base/str.h"
#include "object/object.h"
#include "object/rows.h"
#include "object/test-go-tiny.h"
#include "unit.h"

static const enum go_form forms[] = {GO_FORM_1_16, GO_FORM_1_18, GO_FORM_1_20};

enum { FORMS = 3 };

static const char *const corpus[FORMS] = {"go-1.16", "go-1.18", "go-1.20"};

struct opened {
	struct object *object;
	struct go_table *table;
};

static void cleanup_opened(struct opened *opened)
{
	go_table_free(opened->table);
	object_free(opened->object);
}

static void open_tiny(const struct tiny *tiny, struct opened *ret)
{
	*ret = (struct opened){0};
	ASSERT_OK(object_open_memory(tiny->data, tiny->size, "tiny", &ret->object));
	ASSERT_OK(go_table_open(ret->object, &ret->table));
	ASSERT_TRUE(ret->table != NULL);
}

TEST(functions_are_found_by_any_of_their_addresses_in_every_form)
{
	static const char *const names[] = {"main.leaf", "main.framed", "runtime.goexit",
					    "runtime.sigreturn", "runtime.mcall"};

	for (int i = 0; i < FORMS; i++) {
		_cleanup_(cleanup_opened) struct opened opened;
		struct go_function f;
		struct tiny tiny;

		tiny_build(forms[i], &tiny);
		open_tiny(&tiny, &opened);
		ASSERT_EQ(go_function_count(opened.table), TINY_FUNCTIONS);
		for (int k = 0; k < TINY_FUNCTIONS; k++)
			for (uint64_t addr = tiny_entries[k]; addr < tiny_entries[k + 1]; addr++) {
				ASSERT_TRUE(go_function_find(opened.table, addr, &f));
				ASSERT_STREQ(f.name, names[k]);
				ASSERT_EQ(f.entry, tiny_entries[k]);
				ASSERT_EQ(f.end, tiny_entries[k + 1]);
			}
		ASSERT_FALSE(go_function_find(opened.table, TINY_TEXT - 1, &f));
		ASSERT_FALSE(go_function_find(opened.table, TINY_END, &f));
	}
}

TEST(start_lines_are_known_from_go_1_20_on)
{
	for (int i = 0; i < FORMS; i++) {
		_cleanup_(cleanup_opened) struct opened opened;
		struct go_function f;
		struct tiny tiny;

		tiny_build(forms[i], &tiny);
		open_tiny(&tiny, &opened);
		ASSERT_TRUE(go_function_find(opened.table, TINY_FRAMED, &f));
		ASSERT_EQ(f.start_line, forms[i] == GO_FORM_1_20 ? 19 : 0);
	}
}

TEST(lines_follow_the_code_in_every_form)
{
	static const struct {
		uint64_t offset;
		uint32_t line;
	} cases[] = {{0, 20}, {0xf, 20}, {0x10, 7}, {0x17, 7}, {0x18, 21}, {0x28, 22}, {0x3f, 22}};

	for (int i = 0; i < FORMS; i++) {
		_cleanup_(cleanup_opened) struct opened opened;
		struct go_function f;
		struct tiny tiny;
		const char *file;
		uint32_t line;

		tiny_build(forms[i], &tiny);
		open_tiny(&tiny, &opened);
		ASSERT_TRUE(go_function_find(opened.table, TINY_FRAMED, &f));
		for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
			ASSERT_TRUE(go_line(opened.table, &f, TINY_FRAMED + cases[k].offset, &file,
					    &line));
			ASSERT_STREQ(file, "/src/main.go");
			ASSERT_EQ(line, cases[k].line);
		}
		// A function without a line table has no lines, and no made-up ones.
		ASSERT_TRUE(go_function_find(opened.table, TINY_LEAF, &f));
		ASSERT_FALSE(go_line(opened.table, &f, TINY_LEAF, &file, &line));
	}
}

TEST(an_inlined_call_comes_before_the_function_it_was_inlined_into)
{
	for (int i = 0; i < FORMS; i++) {
		_cleanup_(cleanup_opened) struct opened opened;
		struct go_call calls[GO_CALLS_MAX];
		struct go_function f;
		struct tiny tiny;

		tiny_build(forms[i], &tiny);
		open_tiny(&tiny, &opened);
		ASSERT_TRUE(go_function_find(opened.table, TINY_FRAMED, &f));
		ASSERT_EQ(go_inlines(opened.table, &f, TINY_FRAMED + 0x14, calls), 2);
		ASSERT_STREQ(calls[0].function, "main.inner");
		ASSERT_TRUE(calls[0].inlined);
		ASSERT_EQ(calls[0].line, 7);
		ASSERT_EQ(calls[0].start_line, forms[i] == GO_FORM_1_20 ? 5 : 0);
		ASSERT_STREQ(calls[1].function, "main.framed");
		ASSERT_FALSE(calls[1].inlined);
		ASSERT_EQ(calls[1].line, 21);
		ASSERT_STREQ(calls[1].file, "/src/main.go");

		ASSERT_EQ(go_inlines(opened.table, &f, TINY_FRAMED + 0x18, calls), 1);
		ASSERT_STREQ(calls[0].function, "main.framed");
		ASSERT_EQ(calls[0].line, 21);
	}
}

static const struct unwind_rule *rule_at(const struct rows *rows, uint64_t addr)
{
	const struct unwind_rule *rule = rows_find(rows, addr);

	ASSERT_TRUE(rule != NULL);
	return rule;
}

/* CFA = rsp + OFFSET at ADDR, with the frame pointer saved or not. */
static void assert_by_sp(const struct rows *rows, uint64_t addr, int32_t offset, bool saved)
{
	const struct unwind_rule *rule = rule_at(rows, addr);

	ASSERT_EQ(rule->cfa, UNWIND_CFA_reg);
	ASSERT_EQ(rule->base, UNWIND_RSP);
	ASSERT_EQ(rule->offset, offset);
	ASSERT_EQ(rule->fp, saved ? UNWIND_FP_cfa : UNWIND_FP_same);
	ASSERT_EQ(rule->ra_offset, -8);
}

TEST(rows_follow_the_stack_pointer_and_say_when_the_frame_pointer_is_saved)
{
	for (int i = 0; i < FORMS; i++) {
		_cleanup_(cleanup_opened) struct opened opened;
		_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
		struct tiny tiny;

		tiny_build(forms[i], &tiny);
		open_tiny(&tiny, &opened);
		ASSERT_OK(go_rows_add(opened.object, &rows));
		ASSERT_EQ(rows.start_count, TINY_FUNCTIONS);
		ASSERT_EQ(rows.facts.damaged, 0);
		assert_by_sp(&rows, TINY_LEAF, 8, false);
		assert_by_sp(&rows, TINY_FRAMED, 8, false);
		if (forms[i] == GO_FORM_1_20) {
			assert_by_sp(&rows, TINY_FRAMED + 1, 16, true);
			assert_by_sp(&rows, TINY_FRAMED + 8, 32, true);
			assert_by_sp(&rows, TINY_FRAMED + 0x3e, 16, true);
		} else {
			// Between the two instructions the frame is there, and nothing in it.
			assert_by_sp(&rows, TINY_FRAMED + 4, 32, false);
			assert_by_sp(&rows, TINY_FRAMED + 9, 32, true);
			assert_by_sp(&rows, TINY_FRAMED + 0x3e, 32, true);
		}
		assert_by_sp(&rows, TINY_FRAMED + 0x3f, 8, false);
	}
}

TEST(stacks_end_and_signal_handlers_return_where_the_runtime_says)
{
	for (int i = 0; i < FORMS; i++) {
		_cleanup_(cleanup_opened) struct opened opened;
		_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
		struct tiny tiny;

		tiny_build(forms[i], &tiny);
		open_tiny(&tiny, &opened);
		ASSERT_OK(go_rows_add(opened.object, &rows));
		ASSERT_EQ(rule_at(&rows, TINY_GOEXIT)->cfa, UNWIND_CFA_root);
		ASSERT_EQ(rule_at(&rows, TINY_SIGRETURN - 2)->cfa, UNWIND_CFA_root);
		// The byte before belongs to it: its first is looked up as a return address.
		ASSERT_EQ(rule_at(&rows, TINY_SIGRETURN - 1)->cfa, UNWIND_CFA_signal);
		ASSERT_EQ(rule_at(&rows, TINY_SIGRETURN)->cfa, UNWIND_CFA_signal);
		assert_by_sp(&rows, TINY_MCALL + 4, 8, false);
		ASSERT_EQ(rule_at(&rows, TINY_MCALL + 8)->cfa, UNWIND_CFA_root);
	}
}

TEST(an_object_without_a_table_is_no_failure)
{
	_cleanup_object_ struct object *object = NULL;
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
	struct go_table *table = (void *)1;
	struct tiny tiny;

	tiny_build(GO_FORM_1_20, &tiny);
	tiny_set(&tiny, tiny.table, 0, 4);
	ASSERT_OK(object_open_memory(tiny.data, tiny.size, "tiny", &object));
	ASSERT_OK(go_table_open(object, &table));
	ASSERT_TRUE(table == NULL);
	ASSERT_OK(go_rows_add(object, &rows));
	ASSERT_EQ(rows.count, 0);
}

TEST(a_table_whose_text_cannot_be_found_is_refused)
{
	_cleanup_object_ struct object *object = NULL;
	struct go_table *table = NULL;
	struct tiny tiny;

	tiny_build(GO_FORM_1_20, &tiny);
	memset(tiny.data + tiny.size - 41 * 8, 0, 41 * 8);
	ASSERT_OK(object_open_memory(tiny.data, tiny.size, "tiny", &object));
	ASSERT_FAILS(go_table_open(object, &table), "tiny: pclntab at 0x402000: no moduledata");
}

TEST(functions_out_of_order_are_gaps_and_counted)
{
	_cleanup_(cleanup_opened) struct opened opened;
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
	struct tiny tiny;

	tiny_build(GO_FORM_1_20, &tiny);
	tiny_set(&tiny, tiny.functions + 8 * 2, 0x10, 4); // goexit "before" framed
	open_tiny(&tiny, &opened);
	ASSERT_OK(go_rows_add(opened.object, &rows));
	ASSERT_EQ(rows.facts.damaged, 2);
	ASSERT_EQ(rule_at(&rows, TINY_FRAMED)->cfa, UNWIND_CFA_none);
	ASSERT_EQ(rule_at(&rows, TINY_SIGRETURN)->cfa, UNWIND_CFA_signal);
}

TEST(a_tree_of_inlined_calls_that_runs_in_circles_ends)
{
	_cleanup_(cleanup_opened) struct opened opened;
	struct go_call calls[GO_CALLS_MAX];
	struct go_function f;
	struct tiny tiny;
	uint8_t *tree;

	tiny_build(GO_FORM_1_20, &tiny);
	// Its caller's place is inside of itself.
	static const uint8_t parent[] = {0x1e, 0, 0, 0, 5, 0, 0, 0};
	tree = memmem(tiny.data, tiny.size, parent, sizeof(parent));
	ASSERT_TRUE(tree != NULL);
	*tree = 0x12;
	open_tiny(&tiny, &opened);
	ASSERT_TRUE(go_function_find(opened.table, TINY_FRAMED, &f));
	ASSERT_EQ(go_inlines(opened.table, &f, TINY_FRAMED + 0x14, calls), GO_CALLS_MAX);
	ASSERT_STREQ(calls[GO_CALLS_MAX - 2].function, "main.inner");
	ASSERT_STREQ(calls[GO_CALLS_MAX - 1].function, "main.framed");
}

/* Everything there is to ask of a table that may say anything. */
static void ask_everything(const struct tiny *tiny)
{
	_cleanup_(cleanup_opened) struct opened opened = {0};
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
	struct go_call calls[GO_CALLS_MAX];
	struct go_function f;
	const char *file;
	uint32_t line;

	struct error *err = object_open_memory(tiny->data, tiny->size, "tiny", &opened.object);
	if (!err)
		err = go_rows_add(opened.object, &rows);
	if (!err)
		err = go_table_open(opened.object, &opened.table);
	error_free(err);
	for (size_t i = 1; i < rows.count; i++)
		ASSERT_TRUE(rows.row[i - 1].addr < rows.row[i].addr &&
			    rows.row[i].rule < rows.rule_count);
	for (uint64_t addr = TINY_TEXT - 1; opened.table && addr <= TINY_END; addr += 5) {
		if (!go_function_find(opened.table, addr, &f))
			continue;
		ASSERT_TRUE(addr >= f.entry && addr < f.end && f.name);
		size_t count = go_inlines(opened.table, &f, addr, calls);
		ASSERT_TRUE(count >= 1 && count <= GO_CALLS_MAX);
		ASSERT_STREQ(calls[count - 1].function, f.name);
		go_line(opened.table, &f, addr, &file, &line);
	}
}

TEST(no_single_flipped_bit_does_harm)
{
	for (int i = 0; i < FORMS; i++) {
		struct tiny tiny;

		tiny_build(forms[i], &tiny);
		for (size_t bit = 0; bit < tiny.size * 8; bit++) {
			tiny.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
			ask_everything(&tiny);
			tiny.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
}

TEST(many_changed_bytes_do_no_harm)
{
	uint64_t seed = 1;

	for (int round = 0; round < 6000; round++) {
		struct tiny tiny;

		tiny_build(forms[round % FORMS], &tiny);
		for (int k = 0; k < 1 + round % 12; k++) {
			seed = hash_u64(seed + 1);
			// The ELF headers have tests of their own.
			size_t room = tiny.size - TINY_DATA_OFFSET;
			tiny.data[TINY_DATA_OFFSET + seed % room] = (uint8_t)(seed >> 32);
		}
		ask_everything(&tiny);
	}
}

TEST(a_file_cut_anywhere_does_no_harm)
{
	for (int i = 0; i < FORMS; i++) {
		struct tiny tiny;

		tiny_build(forms[i], &tiny);
		while (tiny.size-- > 0)
			ask_everything(&tiny);
	}
}

/* With CAIRN_WRITE_CORPUS set the files are written instead. */
TEST(the_fuzz_corpus_is_what_is_built_here)
{
	const char *tests = getenv("CAIRN_TESTS");

	if (!tests)
		SKIP("CAIRN_TESTS does not say where the corpus is");
	for (int i = 0; i < FORMS; i++) {
		_cleanup_free_ char *path = NULL, *data = NULL;
		struct tiny tiny;
		size_t size;

		tiny_build(forms[i], &tiny);
		ASSERT_OK(str_format(&path, "%s/corpus/go/%s", tests, corpus[i]));
		if (getenv("CAIRN_WRITE_CORPUS")) {
			_cleanup_fclose_ FILE *file = fopen(path, "we");
			ASSERT_TRUE(file != NULL);
			ASSERT_EQ(fwrite(tiny.data, 1, tiny.size, file), tiny.size);
			continue;
		}
		ASSERT_OK(file_read(AT_FDCWD, path, TINY_SIZE_MAX, &data, &size));
		ASSERT_EQ(size, tiny.size);
		assert_memory_equal(data, tiny.data, size);
	}
}

RUN_TESTS(UNIT_TEST(functions_are_found_by_any_of_their_addresses_in_every_form),
	  UNIT_TEST(start_lines_are_known_from_go_1_20_on),
	  UNIT_TEST(lines_follow_the_code_in_every_form),
	  UNIT_TEST(an_inlined_call_comes_before_the_function_it_was_inlined_into),
	  UNIT_TEST(rows_follow_the_stack_pointer_and_say_when_the_frame_pointer_is_saved),
	  UNIT_TEST(stacks_end_and_signal_handlers_return_where_the_runtime_says),
	  UNIT_TEST(an_object_without_a_table_is_no_failure),
	  UNIT_TEST(a_table_whose_text_cannot_be_found_is_refused),
	  UNIT_TEST(functions_out_of_order_are_gaps_and_counted),
	  UNIT_TEST(a_tree_of_inlined_calls_that_runs_in_circles_ends),
	  UNIT_TEST(no_single_flipped_bit_does_harm), UNIT_TEST(many_changed_bytes_do_no_harm),
	  UNIT_TEST(a_file_cut_anywhere_does_no_harm),
	  UNIT_TEST(the_fuzz_corpus_is_what_is_built_here))
