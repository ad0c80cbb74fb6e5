/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/perfmap.h"

#include "base/array.h"
#include "symbolize/test-helpers.h"

static void update(struct perfmap *map, int fd)
{
	ASSERT_OK(perfmap_update(map, fd, "perf-1.map"));
}

static const char *find(const struct perfmap *map, uint64_t pc)
{
	const char *name = perfmap_find(map, pc);

	return name ? name : "none";
}

TEST(later_entries_win_where_entries_overlap)
{
	static const char text[] = "1000 100 first one\n"
				   "0x1080 0x10 second\n"
				   "1085 2 third\n"
				   "2000 10 a (b) /c d.js:1:2\n"
				   "1ff8 10 before a\n"
				   "# a comment\n"
				   "3000 0 empty\n"
				   "ffffffffffffffff 10 wraps\n"
				   "123456789abcdef01 1 too wide\n"
				   "4000 10 \n"
				   "5000 10\n"
				   "3000 20 whole\n"
				   "3000 20 whole again\n";
	static const struct {
		uint64_t pc;
		const char *name;
	} cases[] = {
		{0xfff, "none"},
		{0x1000, "first one"},
		{0x107f, "first one"},
		{0x1080, "second"},
		{0x1085, "third"},
		{0x1086, "third"},
		{0x1087, "second"},
		{0x1090, "first one"},
		{0x10ff, "first one"},
		{0x1100, "none"},
		{0x1ff8, "before a"},
		{0x2007, "before a"},
		{0x2008, "a (b) /c d.js:1:2"},
		{0x2010, "none"},
		{0x3000, "whole again"},
		{0x301f, "whole again"},
		{0x4000, "none"},
		{0x5000, "none"},
		{UINT64_MAX, "none"},
	};
	_cleanup_close_ int fd = memory_file(text, sizeof(text) - 1);
	_cleanup_(perfmap_deinit) struct perfmap map = PERFMAP_INIT;

	update(&map, fd);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
		ASSERT_STREQ(find(&map, cases[i].pc), cases[i].name);
}

TEST(what_was_appended_is_read_and_nothing_twice)
{
	_cleanup_close_ int fd = memory_file("1000 100 one\n2000 100 tw", 24);
	_cleanup_(perfmap_deinit) struct perfmap map = PERFMAP_INIT;

	update(&map, fd);
	ASSERT_STREQ(find(&map, 0x1000), "one");
	ASSERT_STREQ(find(&map, 0x2000), "none"); // the line has no end yet
	ASSERT_EQ(map.offset, 13);
	ASSERT_EQ(write(fd, "o\n1010 10 three\n", 16), 16);
	// What stands before is not looked at again: this would otherwise be seen.
	ASSERT_EQ(pwrite(fd, "1000 100 XXX", 12, 0), 12);
	update(&map, fd);
	ASSERT_STREQ(find(&map, 0x2000), "two");
	ASSERT_STREQ(find(&map, 0x1000), "one");
	ASSERT_STREQ(find(&map, 0x1010), "three");
	ASSERT_STREQ(find(&map, 0x1020), "one");
	ASSERT_EQ(ftruncate(fd, 0), 0);
	ASSERT_EQ(pwrite(fd, "1000 1 new\n", 11, 0), 11);
	update(&map, fd);
	ASSERT_STREQ(find(&map, 0x1000), "new");
	ASSERT_STREQ(find(&map, 0x2000), "none");
}

TEST(what_is_no_regular_file_is_refused)
{
	_cleanup_(perfmap_deinit) struct perfmap map = PERFMAP_INIT;
	_cleanup_close_ int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	ASSERT_FAILS(perfmap_update(&map, fd, "perf-1.map"), "not a regular file");
}

TEST(long_names_are_cut_and_endless_lines_passed_over)
{
	struct strbuf text = STRBUF_INIT;
	_cleanup_(perfmap_deinit) struct perfmap map = PERFMAP_INIT;

	ASSERT_OK(strbuf_addf(&text, "1000 10 "));
	for (int i = 0; i < 5000; i++)
		ASSERT_OK(strbuf_add(&text, "x", 1));
	ASSERT_OK(strbuf_addf(&text, "\n2000 10 "));
	for (int i = 0; i < 200000; i++)
		ASSERT_OK(strbuf_add(&text, "y", 1));
	ASSERT_OK(strbuf_addf(&text, "\n3000 10 z\n"));
	_cleanup_close_ int fd = memory_file(text.text, text.length);
	strbuf_deinit(&text);
	update(&map, fd);
	ASSERT_EQ(strlen(find(&map, 0x1000)), PERFMAP_NAME_BYTES);
	ASSERT_STREQ(find(&map, 0x2000), "none");
	ASSERT_STREQ(find(&map, 0x3000), "z");
}

enum { SPACE = 4000 };

/* Random overlaps against the plain way of painting each entry over what is there. */
TEST(overlaps_are_resolved_as_painting_one_over_the_other_does)
{
	uint64_t seed = 7;

	for (int round = 0; round < 60; round++) {
		_cleanup_(perfmap_deinit) struct perfmap map = PERFMAP_INIT;
		_cleanup_close_ int fd = memory_file("", 0);
		int painted[SPACE] = {0};
		for (int entry = 1; entry <= 120; entry++) {
			unsigned start = next_random(&seed) % (SPACE - 1);
			unsigned size = 1 + next_random(&seed) % (entry % 3 ? 50 : 1500);
			if (size > SPACE - start)
				size = SPACE - start;
			dprintf(fd, "%x %x n%d\n", start, size, entry);
			for (unsigned i = 0; i < size; i++)
				painted[start + i] = entry;
			if (entry % 40 == 0)
				update(&map, fd);
		}
		for (int pc = 0; pc < SPACE; pc++) {
			char name[16];
			snprintf(name, sizeof(name), "n%d", painted[pc]);
			ASSERT_STREQ(find(&map, (uint64_t)pc), painted[pc] ? name : "none");
		}
	}
}

RUN_TESTS(UNIT_TEST(later_entries_win_where_entries_overlap),
	  UNIT_TEST(what_was_appended_is_read_and_nothing_twice),
	  UNIT_TEST(what_is_no_regular_file_is_refused),
	  UNIT_TEST(long_names_are_cut_and_endless_lines_passed_over),
	  UNIT_TEST(overlaps_are_resolved_as_painting_one_over_the_other_does))
