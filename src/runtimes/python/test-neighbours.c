/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/python/neighbours.h"

#include <string.h>

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
	ASSERT_FALSE(python_starts_in("/usr/lib/libcurl.so.4"));
	ASSERT_FALSE(python_starts_in("/srv/libc.so.6/app"));
	ASSERT_FALSE(python_starts_in(""));
}

RUN_TESTS(UNIT_TEST(a_stack_without_python_frames_stays_as_it_is),
	  UNIT_TEST(the_evaluator_and_what_leads_to_it_are_hidden),
	  UNIT_TEST(what_the_interpreter_does_for_the_innermost_frame_stays),
	  UNIT_TEST(extension_modules_and_libraries_between_python_frames_stay),
	  UNIT_TEST(a_program_that_embeds_the_interpreter_is_shown_with_its_start),
	  UNIT_TEST(a_walk_that_was_cut_below_python_frames_hides_what_it_saw_of_the_interpreter),
	  UNIT_TEST(c_libraries_are_told_by_their_names))
