/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of /proc/PID/maps as kernels write them, as nobody should write them, and our own. */
#include "proc/maps.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/str.h"
#include "unit.h"

static struct error *parse(const char *text, enum maps_which which, struct maps *ret)
{
	return maps_parse(bytes_over(text, strlen(text), "maps"), which, ret);
}

TEST(every_column_of_a_line_is_read)
{
	_cleanup_(maps_deinit) struct maps maps = MAPS_INIT;

	ASSERT_OK(parse("55d0a000-55d0b000 rw-s 00001f00 fd:1a 4660    /usr/bin/cat\n", MAPS_all,
			&maps));
	ASSERT_EQ(maps.count, 1);
	const struct map *map = &maps.map[0];
	ASSERT_EQ(map->start, 0x55d0a000);
	ASSERT_EQ(map->end, 0x55d0b000);
	ASSERT_EQ(map->offset, 0x1f00);
	ASSERT_EQ(map->dev_major, 0xfd);
	ASSERT_EQ(map->dev_minor, 0x1a);
	ASSERT_EQ(map->inode, 4660);
	ASSERT_EQ(map->prot, MAPS_READ | MAPS_WRITE | MAPS_SHARED);
	ASSERT_FALSE(map->deleted);
	ASSERT_STREQ(map->path, "/usr/bin/cat");
}

TEST(the_text_behind_the_inode_is_the_path_whatever_it_holds)
{
	static const struct {
		const char *text, *path;
		bool deleted, file;
	} rows[] = {
		{"12  /srv/my app.so", "/srv/my app.so", false, true},
		{"12  /srv/app.so (deleted)", "/srv/app.so", true, true},
		{"12  /srv/a (deleted) (deleted)", "/srv/a (deleted)", true, true},
		{"12  /srv/two\\012lines", "/srv/two\nlines", false, true},
		{"12  /srv/not\\011a\\01", "/srv/not\\011a\\01", false, true},
		{"12  /srv/\\\\012", "/srv/\\\n", false, true},
		{"12  /memfd:jit (deleted)", "/memfd:jit", true, true},
		{"9  anon_inode:[perf_event]", "anon_inode:[perf_event]", false, false},
		{"0  [vdso]", "[vdso]", false, false},
		{"0  [uprobes]", "[uprobes]", false, false},
		{"0  [anon:cc [1] 2]", "[anon:cc [1] 2]", false, false},
		{"0 ", "", false, false},
		{"0", "", false, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		_cleanup_(maps_deinit) struct maps maps = MAPS_INIT;
		_cleanup_free_ char *line = NULL;
		ASSERT_OK(str_format(&line, "1000-2000 r-xp 0 08:01 %s", rows[i].text));
		ASSERT_OK(parse(line, MAPS_executable, &maps));
		ASSERT_EQ(maps.count, 1);
		ASSERT_STREQ(maps.map[0].path, rows[i].path);
		ASSERT_EQ(maps.map[0].deleted, rows[i].deleted);
		ASSERT_EQ(map_is_file(&maps.map[0]), rows[i].file);
	}
}

TEST(only_executable_mappings_are_kept_when_asked)
{
	static const char text[] = "1000-2000 r--p 0 08:01 5 /a\n"
				   "2000-3000 r-xp 1000 08:01 5 /a\n"
				   "3000-4000 rw-p 0 00:00 0 \n"
				   "ffffffffff600000-ffffffffff601000 --xp 0 00:00 0 [vsyscall]\n";
	_cleanup_(maps_deinit) struct maps all = MAPS_INIT;
	_cleanup_(maps_deinit) struct maps code = MAPS_INIT;

	ASSERT_OK(parse(text, MAPS_all, &all));
	ASSERT_OK(parse(text, MAPS_executable, &code));
	ASSERT_EQ(all.count, 4);
	ASSERT_EQ(code.count, 2);
	ASSERT_EQ(code.map[0].offset, 0x1000);
	ASSERT_STREQ(code.map[1].path, "[vsyscall]");
	// The two of /a share one copy of the path.
	ASSERT_TRUE(all.map[0].path == all.map[1].path);
}

TEST(a_damaged_line_is_refused_where_it_is_damaged)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"x", "maps: offset 0x0: expected a number"},
		{"1000", "expected '-'"},
		{"1000-1000 r-xp 0 08:01 5", "ends before it starts"},
		{"2000-1000 r-xp 0 08:01 5", "ends before it starts"},
		{"1000-2000 r?xp 0 08:01 5", "expected 'w' or '-'"},
		{"1000-2000 r-x", "expected 's' or 'p'"},
		{"1000-2000 r-xp 0 08-01 5", "expected ':'"},
		{"1000-2000 r-xp 0 08:01 ff", "expected a number"},
		{"1000-2000 r-xp 0 08:01 5/a", "expected ' '"},
		{"1ffffffffffffffff-2 r-xp 0 08:01 5", "number too large"},
		{"1000-2000 r-xp 0 1ffffffff:01 5", "number too large"},
		{"1000-2000 r-xp 0 08:01 18446744073709551616", "number too large"},
		{"1000-2000 r-xp 0 08:01 5 /a\n\n", "offset 0x1c:"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct maps maps = MAPS_INIT;
		ASSERT_FAILS(parse(rows[i].text, MAPS_all, &maps), rows[i].says);
		ASSERT_TRUE(maps.map == NULL);
	}
}

TEST(a_path_has_a_maximum_and_no_zero_byte)
{
	static char text[20000] = "1000-2000 r-xp 0 08:01 5 /";
	struct maps maps = MAPS_INIT;

	size_t length = strlen(text);
	ASSERT_FAILS(maps_parse(bytes_over(text, length + 1, "maps"), MAPS_all, &maps),
		     "zero byte");
	memset(text + length, 'a', sizeof(text) - length - 1);
	ASSERT_FAILS(parse(text, MAPS_all, &maps), "more than 16384 bytes");
}

TEST(the_later_of_two_lines_that_contradict_each_other_holds)
{
	static const char text[] = "1000-2000 r-xp 0 08:01 5 /a\n"
				   "2000-6000 r-xp 0 08:01 6 /b\n"
				   "4000-8000 r-xp 0 08:01 7 /c\n"
				   "a000-b000 r-xp 0 08:01 8 /d\n"
				   "9000-c000 r-xp 0 08:01 9 /e\n";
	_cleanup_(maps_deinit) struct maps maps = MAPS_INIT;

	ASSERT_OK(parse(text, MAPS_all, &maps));
	ASSERT_EQ(maps.count, 4);
	ASSERT_EQ(maps.map[1].end, 0x4000);
	ASSERT_STREQ(maps_find(&maps, 0x5000)->path, "/c");
	ASSERT_STREQ(maps_find(&maps, 0xa500)->path, "/e");
	for (size_t i = 1; i < maps.count; i++)
		ASSERT_TRUE(maps.map[i - 1].end <= maps.map[i].start);
}

TEST(an_address_is_found_only_inside_a_mapping)
{
	_cleanup_(maps_deinit) struct maps maps = MAPS_INIT;

	ASSERT_OK(parse("1000-2000 r-xp 0 08:01 5 /a\n3000-4000 r-xp 0 08:01 5 /b\n", MAPS_all,
			&maps));
	ASSERT_TRUE(maps_find(&maps, 0xfff) == NULL);
	ASSERT_STREQ(maps_find(&maps, 0x1000)->path, "/a");
	ASSERT_STREQ(maps_find(&maps, 0x1fff)->path, "/a");
	ASSERT_TRUE(maps_find(&maps, 0x2000) == NULL);
	ASSERT_STREQ(maps_find(&maps, 0x3fff)->path, "/b");
	ASSERT_TRUE(maps_find(&maps, 0x4000) == NULL);
	ASSERT_TRUE(maps_find(&maps, UINT64_MAX) == NULL);
}

TEST(our_own_code_is_mapped_from_our_own_program)
{
	_cleanup_(maps_deinit) struct maps maps = MAPS_INIT;
	char exe[4096] = {0};

	ASSERT_OK(maps_read(getpid(), MAPS_executable, &maps));
	const struct map *map = maps_find(&maps, (uint64_t)(uintptr_t)&maps_read);
	ASSERT_TRUE(map != NULL && map_is_file(map));
	ASSERT_TRUE(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	ASSERT_STREQ(map->path, exe);
}

TEST(a_large_list_is_read_whole)
{
	// 4000 neighbours of different protection cannot be merged: some 200 KB of text.
	size_t page = 4096, pages = 4000;
	char *memory = mmap(NULL, pages * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	_cleanup_(maps_deinit) struct maps maps = MAPS_INIT;

	ASSERT_TRUE(memory != MAP_FAILED);
	for (size_t i = 0; i < pages; i += 2)
		ASSERT_EQ(mprotect(memory + i * page, page, PROT_NONE), 0);
	ASSERT_OK(maps_read(getpid(), MAPS_all, &maps));
	for (size_t i = 0; i < pages; i++) {
		const struct map *map = maps_find(&maps, (uint64_t)(uintptr_t)memory + i * page);
		ASSERT_TRUE(map != NULL);
		ASSERT_EQ(map->prot, i % 2 ? MAPS_READ : 0);
	}
	munmap(memory, pages * page);
}

TEST(a_process_that_has_ended_has_no_mappings)
{
	_cleanup_(maps_deinit) struct maps zombie = MAPS_INIT;
	_cleanup_(maps_deinit) struct maps gone = MAPS_INIT;
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	ASSERT_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	ASSERT_OK(maps_read(pid, MAPS_all, &zombie));
	ASSERT_EQ(zombie.count, 0);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	ASSERT_OK(maps_read(pid, MAPS_all, &gone));
	ASSERT_EQ(gone.count, 0);
}

RUN_TESTS(UNIT_TEST(every_column_of_a_line_is_read),
	  UNIT_TEST(the_text_behind_the_inode_is_the_path_whatever_it_holds),
	  UNIT_TEST(only_executable_mappings_are_kept_when_asked),
	  UNIT_TEST(a_damaged_line_is_refused_where_it_is_damaged),
	  UNIT_TEST(a_path_has_a_maximum_and_no_zero_byte),
	  UNIT_TEST(the_later_of_two_lines_that_contradict_each_other_holds),
	  UNIT_TEST(an_address_is_found_only_inside_a_mapping),
	  UNIT_TEST(our_own_code_is_mapped_from_our_own_program),
	  UNIT_TEST(a_large_list_is_read_whole),
	  UNIT_TEST(a_process_that_has_ended_has_no_mappings))
