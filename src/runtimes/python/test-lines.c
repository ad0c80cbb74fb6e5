/* SPDX-License-Identifier: Apache-2.0 */
/* tests/golden/python-lines.txt holds what the interpreters themselves say of their tables. */
#include "runtimes/python/lines.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "unit.h"

enum { TABLE_MAX = 4096, NO_LINE = -1 };

struct row {
	struct python_lines lines;
	uint8_t table[TABLE_MAX];
	long code_size;
};

static uint16_t version_of(const char *word)
{
	char *dot;
	unsigned long major = strtoul(word, &dot, 10);

	return (uint16_t)(major << 8 | strtoul(dot + 1, NULL, 10));
}

static size_t parse_hex(const char *word, uint8_t *ret)
{
	size_t size = strlen(word) / 2;

	ASSERT_TRUE(size <= TABLE_MAX);
	for (size_t i = 0; i < size; i++) {
		char digits[] = {word[2 * i], word[2 * i + 1], 0};
		ret[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return size;
}

/* VERSION NAME FIRST-LINE SIZE TABLE, the words before the lines. */
static void parse_row(char **words, struct row *ret)
{
	ret->lines.version = version_of(strtok_r(NULL, " ", words));
	ASSERT_TRUE(strtok_r(NULL, " ", words));
	ret->lines.first_line = (uint32_t)strtoul(strtok_r(NULL, " ", words), NULL, 10);
	ret->code_size = strtol(strtok_r(NULL, " ", words), NULL, 10);
	char *hex = strtok_r(NULL, " \n", words);
	ret->lines.size = *hex == '-' ? 0 : parse_hex(hex, ret->table);
	ret->lines.table = ret->table;
}

static long ask(const struct python_lines *lines, long offset)
{
	uint32_t line;

	switch (python_lines_find(lines, offset, &line)) {
	case PYTHON_LINE_found:
		return line;
	case PYTHON_LINE_none:
		return NO_LINE;
	case PYTHON_LINE_odd:
		break;
	}
	fail_msg("offset %ld: a line that makes no sense", offset);
	return 0;
}

/* Hold every byte of FROM..TO against LINE. */
static void check_range(const struct row *row, long from, long to, long line)
{
	for (long offset = from; offset < to; offset++)
		if (ask(&row->lines, offset) != line)
			fail_msg("%x, line %u: at %ld line %ld is %ld", row->lines.version,
				 row->lines.first_line, offset, line, ask(&row->lines, offset));
}

static void check_row(char *text, bool met[static 0x10000])
{
	struct row row;
	long from = -1, line = 0, next;
	char *words = text;

	parse_row(&words, &row);
	met[row.lines.version] = true;
	for (char *word; (word = strtok_r(NULL, " \n", &words)); from = next) {
		next = strtol(word, &word, 10);
		check_range(&row, from, next, line);
		ASSERT_EQ(*word, ':');
		line = word[1] == '-' ? NO_LINE : strtol(word + 1, NULL, 10);
	}
	check_range(&row, from, row.code_size, line);
}

TEST(each_byte_of_code_has_the_line_that_its_interpreter_says)
{
	static bool met[0x10000];
	static const uint16_t versions[] = {0x0207, 0x0306, 0x0307, 0x0308, 0x0309,
					    0x030a, 0x030b, 0x030c, 0x030d, 0x030e};
	_cleanup_free_ char *text = NULL;
	char path[4096];
	size_t room = 0;
	int rows = 0;

	snprintf(path, sizeof(path), "%s/golden/python-lines.txt", getenv("CAIRN_TESTS"));
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	ASSERT_TRUE(file);
	for (; getline(&text, &room, file) > 0; rows++)
		check_row(text, met);
	ASSERT_TRUE(rows > 90);
	for (size_t i = 0; i < ARRAY_COUNT(versions); i++)
		ASSERT_TRUE(met[versions[i]]);
}

TEST(the_first_lines_of_3_5_are_told_as_in_2_7)
{
	static const uint8_t table[] = {6, 200, 4, 1};
	struct python_lines lines = {
		.table = table, .size = sizeof(table), .first_line = 7, .version = 0x0305};

	ASSERT_EQ(ask(&lines, 5), 7);
	ASSERT_EQ(ask(&lines, 6), 207);
	lines.version = 0x0306;
	lines.first_line = 70;
	ASSERT_EQ(ask(&lines, 6), 70 - 56);
}

TEST(tables_that_no_compiler_made_give_no_odd_line)
{
	static const struct {
		uint16_t version;
		uint8_t size, table[12];
		int64_t offset;
		enum python_line outcome;
	} cases[] = {
		{0x0207, 1, {0}, 9, PYTHON_LINE_found},
		{0x0309, 2, {0, 0x80}, 9, PYTHON_LINE_odd},  // before line 0
		{0x030a, 1, {4}, 0, PYTHON_LINE_none},       // half a pair
		{0x030a, 2, {4, 0x81}, 0, PYTHON_LINE_odd},  // before line 0
		{0x030b, 0, {0}, 0, PYTHON_LINE_none},       // nothing at all
		{0x030b, 3, {1, 2, 3}, 0, PYTHON_LINE_none}, // no entry begins
		{0x030b, 1, {0xe8}, 0, PYTHON_LINE_found},   // a delta that is missing
		{0x030b, 2, {0xe8, 0x03}, 0, PYTHON_LINE_found},
		{0x030b, 2, {0xe8, 0x0b}, 0, PYTHON_LINE_odd}, // before line 0
		{0x030e,
		 12,
		 {0xe8, 127, 127, 127, 127, 127, 127, 127, 127, 127},
		 0,
		 PYTHON_LINE_odd},
		{0x030e, 7, {0xe8, 62, 127, 127, 127, 127, 63}, 1L << 62, PYTHON_LINE_none},
	};

	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		uint32_t line;
		struct python_lines lines = {
			.table = cases[i].table,
			.size = cases[i].size,
			.first_line = 4,
			.version = cases[i].version,
		};
		ASSERT_EQ(python_lines_find(&lines, cases[i].offset, &line), cases[i].outcome);
	}
}

RUN_TESTS(UNIT_TEST(each_byte_of_code_has_the_line_that_its_interpreter_says),
	  UNIT_TEST(the_first_lines_of_3_5_are_told_as_in_2_7),
	  UNIT_TEST(tables_that_no_compiler_made_give_no_odd_line))
