/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests: a test is TEST(a_sentence_about_what_holds) { ... }, a file ends with TESTS(the,
 * tests, ...). Thin over cmocka, which prints and counts.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

#define TEST(name) static void name(void **state)

/* The call must not fail; its sentence is shown if it does. */
#define ASSERT_OK(call)                                                                            \
	do {                                                                                       \
		struct error *_error = (call);                                                     \
		if (_error) {                                                                      \
			print_error("%s: %s\n", #call, error_text(_error));                        \
			error_free(_error);                                                        \
			fail();                                                                    \
		}                                                                                  \
	} while (0)

/* The call must fail with a sentence that holds TEXT. */
#define ASSERT_FAILS(call, text)                                                                   \
	do {                                                                                       \
		struct error *_error = (call);                                                     \
		if (!_error) {                                                                     \
			print_error("%s: did not fail\n", #call);                                  \
			fail();                                                                    \
		}                                                                                  \
		if (!strstr(error_text(_error), text)) {                                           \
			print_error("%s: says \"%s\"\n", #call, error_text(_error));               \
			error_free(_error);                                                        \
			fail();                                                                    \
		}                                                                                  \
		error_free(_error);                                                                \
	} while (0)

#define ASSERT_TRUE(value) assert_true(value)
#define ASSERT_FALSE(value) assert_false(value)
#define ASSERT_EQ(a, b) assert_int_equal((uint64_t)(a), (uint64_t)(b))
#define ASSERT_STREQ(a, b) assert_string_equal(a, b)

/* Leave this test out, with the reason. */
#define SKIP(reason)                                                                               \
	do {                                                                                       \
		print_message("skipped: %s\n", reason);                                            \
		skip();                                                                            \
	} while (0)

#define UNIT_TEST(name) cmocka_unit_test(name)
#define RUN_TESTS(...)                                                                             \
	int main(void)                                                                             \
	{                                                                                          \
		const struct CMUnitTest tests[] = {__VA_ARGS__};                                   \
		return cmocka_run_group_tests(tests, NULL, NULL);                                  \
	}
