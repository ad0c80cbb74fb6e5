/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "base/array.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "unit.h"

TEST(a_wrapped_error_reads_from_the_outside_in)
{
	struct error *err = error_wrap(error_new("no such page"), "map of pid %d", 7);

	ASSERT_STREQ(error_text(err), "map of pid 7: no such page");
	error_free(err);
}

TEST(an_array_states_its_maximum)
{
	_cleanup_free_ int *items = NULL;
	size_t room = 0;

	ASSERT_OK(ARRAY_RESERVE(items, room, 0, 3, 4, "items"));
	ASSERT_TRUE(room >= 3 && room <= 4);
	ASSERT_FAILS(ARRAY_RESERVE(items, room, 3, 2, 4, "items"), "more than 4 items");
}

TEST(leb128_numbers_are_read_and_bounded)
{
	static const struct {
		uint8_t data[12];
		size_t size;
		uint64_t value;
		const char *error;
	} cases[] = {
		{{0x00}, 1, 0, NULL},
		{{0xe5, 0x8e, 0x26}, 3, 624485, NULL},
		{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		 10,
		 UINT64_MAX,
		 NULL},
		{{0x80, 0x80}, 2, 0, "ends inside"},
		{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x03},
		 10,
		 0,
		 "over 64 bits"},
	};

	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct bytes b = bytes_over(cases[i].data, cases[i].size, "case");
		uint64_t value = 0;
		if (cases[i].error) {
			ASSERT_FAILS(bytes_uleb(&b, &value), cases[i].error);
			ASSERT_EQ(bytes_offset(&b), 0);
		} else {
			ASSERT_OK(bytes_uleb(&b, &value));
			ASSERT_EQ(value, cases[i].value);
		}
	}

	struct bytes b = bytes_over("\x9b\xf1\x59", 3, "case");
	int64_t value;
	ASSERT_OK(bytes_sleb(&b, &value));
	ASSERT_EQ(value, -624485);
}

TEST(reading_past_the_end_names_source_and_offset)
{
	struct bytes b = bytes_over("abc", 3, "blob");
	const char *text;
	uint32_t number;
	uint16_t half;

	ASSERT_FAILS(bytes_u32(&b, &number), "blob: offset 0x0");
	ASSERT_OK(bytes_u16(&b, &half));
	ASSERT_EQ(half, 'a' | 'b' << 8);
	ASSERT_FAILS(bytes_string(&b, &text), "offset 0x2: string without an end");
	ASSERT_FAILS(bytes_skip(&b, UINT64_MAX), "1 left");
}

static bool number_equal(const void *context, uint32_t item)
{
	return *(const uint32_t *)context == item;
}

TEST(an_index_finds_what_was_added_and_not_removed)
{
	_cleanup_(hash_index_deinit) struct hash_index index = HASH_INDEX_INIT;
	uint32_t found;

	// Eight distinct hashes only, so that every probe sequence is long and removal has to
	// shift.
	for (uint32_t i = 0; i < 1000; i++)
		ASSERT_OK(hash_add(&index, i % 8, i));
	for (uint32_t i = 0; i < 1000; i += 3)
		hash_remove(&index, i % 8, i);
	for (uint32_t i = 0; i < 1000; i++)
		ASSERT_EQ(hash_find(&index, i % 8, number_equal, &i, &found), i % 3 != 0);
}

TEST(an_arena_keeps_its_limit_and_its_text)
{
	_cleanup_(arena_deinit) struct arena arena = {.max_bytes = 200000};
	const char *text, *more;
	void *large;

	ASSERT_OK(arena_copy(&arena, "text", 4, &text));
	ASSERT_OK(arena_alloc(&arena, 100000, &large));
	ASSERT_OK(arena_copy(&arena, "more", 3, &more));
	ASSERT_STREQ(text, "text");
	ASSERT_STREQ(more, "mor");
	ASSERT_FAILS(arena_alloc(&arena, 100000, &large), "200000");
}

TEST(numbers_are_parsed_whole_or_not_at_all)
{
	static const char *const bad[] = {"",  "-1", "+1", " 1", "1x", "11", "18446744073709551616",
					  "0x"};
	uint64_t value = 99;

	for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
		ASSERT_FALSE(str_parse_u64(bad[i], 0, 10, &value));
	ASSERT_EQ(value, 99);
	ASSERT_TRUE(str_parse_u64("0xa", 0, 10, &value));
	ASSERT_EQ(value, 10);
}

TEST(times_are_written_as_naive_utc)
{
	char text[20];

	clock_format_utc(1767323045999999999u, text);
	ASSERT_STREQ(text, "2026-01-02T03:04:05");
}

TEST(every_counter_has_a_help_text)
{
	int rows = 0;

	for (int i = 0; i < COUNTER_MAX; i++) {
		const struct counter_row *row = counter_find(i);
		if (!row)
			continue;
		rows++;
		ASSERT_TRUE(row->help && *row->help);
	}
	ASSERT_TRUE(rows > 0);
}

TEST(a_final_name_holds_the_old_or_the_new_file)
{
	char dir[] = "/tmp/cairn-test-XXXXXX";
	_cleanup_free_ char *path = NULL;
	_cleanup_free_ char *data = NULL;
	size_t size;

	ASSERT_TRUE(mkdtemp(dir) != NULL);
	ASSERT_OK(str_format(&path, "%s/out", dir));
	for (int round = 0; round < 2; round++) {
		_cleanup_(file_writer_deinit) struct file_writer writer = FILE_WRITER_INIT;
		ASSERT_OK(file_writer_open(path, &writer));
		fprintf(writer.stream, "round %d", round);
		if (round == 0) // not there before the commit
			ASSERT_TRUE(access(path, F_OK) < 0);
		ASSERT_OK(file_writer_commit(&writer));
	}
	{
		_cleanup_(file_writer_deinit) struct file_writer writer = FILE_WRITER_INIT;
		ASSERT_OK(file_writer_open(path, &writer));
		fprintf(writer.stream, "given up");
	}
	ASSERT_OK(file_read(AT_FDCWD, path, 100, &data, &size));
	ASSERT_STREQ(data, "round 1");
	ASSERT_FAILS(file_read(AT_FDCWD, path, 3, &data, &size), "larger than 3 bytes");
	unlink(path);
	ASSERT_EQ(rmdir(dir), 0); // nothing else was left in it
}

TEST(writing_below_a_missing_directory_names_the_path)
{
	struct file_writer writer = FILE_WRITER_INIT;

	ASSERT_FAILS(file_writer_open("/nonexistent/x/out", &writer),
		     "write /nonexistent/x/out: No such file");
	ASSERT_FAILS(file_writer_open("/tmp", &writer), "it is a directory");
}

RUN_TESTS(UNIT_TEST(a_wrapped_error_reads_from_the_outside_in),
	  UNIT_TEST(an_array_states_its_maximum), UNIT_TEST(leb128_numbers_are_read_and_bounded),
	  UNIT_TEST(reading_past_the_end_names_source_and_offset),
	  UNIT_TEST(an_index_finds_what_was_added_and_not_removed),
	  UNIT_TEST(an_arena_keeps_its_limit_and_its_text),
	  UNIT_TEST(numbers_are_parsed_whole_or_not_at_all),
	  UNIT_TEST(times_are_written_as_naive_utc), UNIT_TEST(every_counter_has_a_help_text),
	  UNIT_TEST(a_final_name_holds_the_old_or_the_new_file),
	  UNIT_TEST(writing_below_a_missing_directory_names_the_path))
