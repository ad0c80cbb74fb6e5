/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"
#include "cli/config-file.h"

#include "unit.h"

/* A file as config_file_open() would give it. */
static struct config_file file_of(const char *text)
{
	struct config_file file = {.name = "x.ini", .text = strdup(text)};

	ASSERT_TRUE(file.text != NULL);
	file.next = file.text;
	return file;
}

TEST(keys_and_values_are_separated_in_every_way_that_configargparse_takes)
{
	static const struct {
		const char *text, *key, *value;
	} cases[] = {
		{"duration = 60", "duration", "60"},
		{"duration=60", "duration", "60"},
		{"  duration : 60  \r", "duration", "60"},
		{"duration\t60", "duration", "60"},
		{"continuous", "continuous", NULL},
		{"continuous  # always", "continuous", NULL},
		{"token =", "token", ""},
		{"token = # none", "token", ""},
		{"token = a#b;c", "token", "a#b;c"},
		{"token = a b ; comment", "token", "a b"},
		{"token = \"a ; b\"  # comment", "token", "a ; b"},
		{"token = 'a' b", "token", "'a' b"},
		{"token = \"a", "token", "\"a"},
		{"token = \"\"", "token", ""},
		{"url = http://[::1]:8080/?a=b", "url", "http://[::1]:8080/?a=b"},
		{"pids = [4, 5]", "pids", "[4, 5]"},
		{"--mode = cpu", "--mode", "cpu"},
		{"\n# x\n; y\n[section]\n---\n\n  mode cpu", "mode", "cpu"},
	};

	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct config_line line;
		_cleanup_(config_file_deinit) struct config_file file = file_of(cases[i].text);
		ASSERT_OK(config_file_next(&file, &line));
		ASSERT_STREQ(line.key, cases[i].key);
		if (cases[i].value)
			ASSERT_STREQ(line.value, cases[i].value);
		else
			ASSERT_TRUE(line.value == NULL);
		ASSERT_OK(config_file_next(&file, &line));
		ASSERT_TRUE(line.key == NULL);
	}
}

TEST(a_line_that_is_none_is_named_with_its_number)
{
	static const char *const cases[] = {"= 5", ": x", "key#x", "key;",
					    "\x01"
					    "= 5\n=1"};

	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct config_line line = {.key = ""};
		struct error *err = NULL;
		_cleanup_(config_file_deinit) struct config_file file = file_of(cases[i]);
		while (!err && line.key)
			err = config_file_next(&file, &line);
		ASSERT_FAILS(err, i < 4 ? "x.ini:1: expected" : "x.ini:2: expected");
	}
}

TEST(what_is_no_text_file_is_a_failure)
{
	struct config_file file = CONFIG_FILE_INIT;

	ASSERT_FAILS(config_file_open("/nowhere/x.ini", &file), "/nowhere/x.ini");
	ASSERT_FAILS(config_file_open("/proc/self/exe", &file), "/proc/self/exe");
	ASSERT_FAILS(config_file_open("/tmp", &file), "/tmp");
}

RUN_TESTS(UNIT_TEST(keys_and_values_are_separated_in_every_way_that_configargparse_takes),
	  UNIT_TEST(a_line_that_is_none_is_named_with_its_number),
	  UNIT_TEST(what_is_no_text_file_is_a_failure))
