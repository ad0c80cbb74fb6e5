/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/python/neighbours.h"

#include <string.h>

#include "abi/runtimes.h"
#include "abi/sample.h"
#include "unit.h"

enum { FRAMES_MAX = 16 };

/*
 * Leaf first: P Python, i interpreter, s start of the C library, n any other machine code. The
 * answer: the same with a dot for what is hidden.
 */
static void check(const char *stack, const char *expected)
{
	struct python_neighbour frame[FRAMES_MAX] = {0};
	char shown[FRAMES_MAX + 1] = {0};
	size_t count = strlen(stack);

	for (size_t i = 0; i < count; i++)
		frame[i] = (struct python_neighbour){.python = stack[i] == 'P',
						     .interpreter = stack[i] == 'i',
						     .start = stack[i] == 's'};
	python_hide_interpreter(frame, count);
	for (size_t i = 0; i < count; i++)
		shown[i] = frame[i].keep ? stack[i] : '.';
	ASSERT_STREQ(shown, expected);
}

TEST(a_stack_without_python_frames_stays_as_it_is)
{
	check("", "");
	check("niis", "niis");
	check("iiiiss", "iiiiss");
}

TEST(the_evaluator_and_what_leads_to_it_are_hidden)
{
	check("iPPPiiiss", ".PPP.....");
	check("iPiPiiis", ".P.P....");
}

TEST(what_the_interpreter_does_for_the_innermost_frame_stays)
{
	check("iiiPPis", "ii.PP..");
	check("niiPis", "ni.P..");
}

TEST(extension_modules_and_libraries_between_python_frames_stay)
{
	check("iPiinsiPis", ".P..ns.P..");
}

TEST(a_program_that_embeds_the_interpreter_is_shown_with_its_start)
{
	check("iPiinnss", ".P..nnss");
}

TEST(a_walk_that_was_cut_below_python_frames_hides_what_it_saw_of_the_interpreter)
{
	check("iPii", ".P..");
	check("P", "P");
}

TEST(c_libraries_are_told_by_their_names)
{
	ASSERT_TRUE(python_starts_in("/lib/x86_64-linux-gnu/libc.so.6"));
	ASSERT_TRUE(python_starts_in("/lib/ld-musl-x86_64.so.1"));
	ASSERT_TRUE(python_starts_in("libpthread-2.31.so"));
	ASSERT_TRUE(python_starts_in("/root/.pyenv/versions/3.6.15/bin/python3.6m"));
	ASSERT_TRUE(python_starts_in("/usr/local/bin/python"));
	ASSERT_FALSE(python_starts_in("/usr/lib/libpython3.11.so.1.0"));
	ASSERT_FALSE(python_starts_in("/usr/bin/pythonic"));
	ASSERT_FALSE(python_starts_in("/usr/lib/libcurl.so.4"));
	ASSERT_FALSE(python_starts_in("/srv/libc.so.6/app"));
	ASSERT_FALSE(python_starts_in(""));
}

enum { CODE = 0x1000, EVAL_END = 0x2000 };

/* Leaf first: e evaluator, n other machine code, digits Python frames, 0 the word for none. */
static void check_dealt(const char *stack, const char *expected)
{
	const struct python_process process = {.eval = {{CODE, EVAL_END}}, .evals = 1};
	uint64_t words[2 * FRAMES_MAX];
	char shown[2 * FRAMES_MAX] = {0};
	size_t count = 0, length = 0;

	for (const char *at = stack; *at; at++) {
		if (*at == 'e' || *at == 'n') {
			words[count++] = *at == 'e' ? EVAL_END : EVAL_END + 0x10;
			continue;
		}
		words[count++] = sample_runtime_word(RUNTIME_python, (uint64_t)(*at - '0'));
		words[count++] = (uint64_t)*at;
	}
	python_deal_frames(&process, words, count);
	for (size_t i = 0; i < count; i++) {
		if (sample_is_runtime(words[i]))
			shown[length++] = (char)words[++i];
		else
			shown[length++] = words[i] == EVAL_END ? 'e' : 'n';
	}
	ASSERT_STREQ(shown, expected);
}

TEST(as_many_frames_as_calls_stay_where_they_are)
{
	check_dealt("nn", "nn");
	check_dealt("e1ne2n", "e1ne2n");
}

TEST(a_call_that_has_linked_no_frame_gets_none)
{
	check_dealt("e1nen", "ene1n");
	check_dealt("e1ne2e3nnenn", "ene1e2nne3nn");
	check_dealt("nne1nen", "nnene1n");
}

TEST(stacks_that_lack_a_frame_elsewhere_stay_as_they_are)
{
	check_dealt("e1enen", "e1enen");
	check_dealt("nnne1nen", "nnne1nen");
	check_dealt("en", "en");
}

TEST(greenlets_are_told_by_their_library)
{
	ASSERT_TRUE(python_switches_stacks("/v/greenlet/_greenlet.cpython-38-x86_64-linux-gnu.so"));
	ASSERT_TRUE(python_switches_stacks("greenlet.so"));
	ASSERT_FALSE(python_switches_stacks("/srv/greenlet/libpython3.8.so"));
}

TEST(where_no_frames_were_read_nothing_is_dealt)
{
	check_dealt("e0nen", "e0nen");
}

RUN_TESTS(UNIT_TEST(a_stack_without_python_frames_stays_as_it_is),
	  UNIT_TEST(the_evaluator_and_what_leads_to_it_are_hidden),
	  UNIT_TEST(what_the_interpreter_does_for_the_innermost_frame_stays),
	  UNIT_TEST(extension_modules_and_libraries_between_python_frames_stay),
	  UNIT_TEST(a_program_that_embeds_the_interpreter_is_shown_with_its_start),
	  UNIT_TEST(a_walk_that_was_cut_below_python_frames_hides_what_it_saw_of_the_interpreter),
	  UNIT_TEST(c_libraries_are_told_by_their_names),
	  UNIT_TEST(as_many_frames_as_calls_stay_where_they_are),
	  UNIT_TEST(a_call_that_has_linked_no_frame_gets_none),
	  UNIT_TEST(stacks_that_lack_a_frame_elsewhere_stay_as_they_are),
	  UNIT_TEST(greenlets_are_told_by_their_library),
	  UNIT_TEST(where_no_frames_were_read_nothing_is_dealt))
