/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session-files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "unit.h"

static struct profile *make_profile(uint64_t end_seconds)
{
	struct profile *profile;
	struct process process = {.pid = 7};
	struct profile_sample sample = {.value = 3};

	ASSERT_OK(profile_new(NULL, &profile));
	ASSERT_OK(profile_string(profile, "app", 3, &process.name));
	ASSERT_OK(profile_process(profile, &process, &sample.process));
	ASSERT_OK(profile_add(profile, &sample));
	profile_facts(profile)->end_realtime_ns = end_seconds * 1000000000u;
	return profile;
}

static void write_at(const struct session_files *files, uint64_t seconds)
{
	_cleanup_profile_ struct profile *profile = make_profile(seconds);
	_cleanup_free_ char *path = NULL;

	ASSERT_OK(session_files_check(files));
	ASSERT_OK(session_files_write(files, profile, &path));
	ASSERT_EQ(access(path, R_OK), 0);
}

/* Names in DIRECTORY, and with REMOVE all of them and itself are removed. */
static int count_names(const char *directory, bool remove)
{
	DIR *dir = opendir(directory);
	int count = 0;

	ASSERT_TRUE(dir != NULL);
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (entry->d_name[0] == '.')
			continue;
		count++;
		if (remove)
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	closedir(dir);
	if (remove)
		rmdir(directory);
	return count;
}

static void link_target(const char *directory, const char *link, char ret[256])
{
	_cleanup_free_ char *path = NULL;

	ASSERT_OK(str_format(&path, "%s/%s", directory, link));
	ssize_t length = readlink(path, ret, 255);
	ASSERT_TRUE(length > 0);
	ret[length] = 0;
}

TEST(sessions_are_named_after_their_end_and_linked_to)
{
	char root[] = "/tmp/cairn-test-XXXXXX", target[256];
	_cleanup_free_ char *directory = NULL;

	ASSERT_TRUE(mkdtemp(root) != NULL);
	ASSERT_OK(str_format(&directory, "%s/a/b", root)); // made by the check
	struct session_files files = {.directory = directory, .flamegraph = true};
	write_at(&files, 1767323045);
	write_at(&files, 1767323105);
	ASSERT_EQ(count_names(directory, false), 6);
	link_target(directory, "last_profile.col", target);
	ASSERT_STREQ(target, "profile_2026-01-02T03:05:05.col");
	link_target(directory, "last_flamegraph.html", target);
	ASSERT_STREQ(target, "profile_2026-01-02T03:05:05.html");
	count_names(directory, true);
	directory[strlen(root) + 2] = 0;
	rmdir(directory);
	ASSERT_EQ(rmdir(root), 0);
}

TEST(two_sessions_of_one_second_are_both_kept)
{
	char directory[] = "/tmp/cairn-test-XXXXXX", target[256];

	ASSERT_TRUE(mkdtemp(directory) != NULL);
	struct session_files files = {.directory = directory};
	write_at(&files, 1767323045);
	write_at(&files, 1767323045);
	ASSERT_EQ(count_names(directory, false), 3);
	link_target(directory, "last_profile.col", target);
	ASSERT_STREQ(target, "profile_2026-01-02T03:04:05-2.col");
	count_names(directory, true);
}

TEST(rotation_keeps_the_newest_and_touches_nothing_else)
{
	char directory[] = "/tmp/cairn-test-XXXXXX", target[256];
	_cleanup_free_ char *stale = NULL, *other = NULL;

	ASSERT_TRUE(mkdtemp(directory) != NULL);
	ASSERT_OK(str_format(&stale, "%s/last_profile.col.tmp", directory));
	ASSERT_OK(str_format(&other, "%s/notes.txt", directory));
	ASSERT_EQ(symlink("nowhere", stale), 0); // of a run that was killed
	close(open(other, O_CREAT | O_WRONLY, 0600));
	struct session_files files = {.directory = directory, .rotate = true};
	for (int i = 0; i < 3; i++)
		write_at(&files, 1767323045 + i);
	ASSERT_EQ(count_names(directory, false), 3); // the .col, its link, the notes
	link_target(directory, "last_profile.col", target);
	ASSERT_STREQ(target, "profile_2026-01-02T03:04:07.col");
	count_names(directory, true);
}

TEST(an_output_directory_that_is_a_file_is_named)
{
	char path[] = "/tmp/cairn-test-XXXXXX";

	close(mkstemp(path));
	struct session_files files = {.directory = path};
	ASSERT_FAILS(session_files_check(&files), path);
	unlink(path);
}

RUN_TESTS(UNIT_TEST(sessions_are_named_after_their_end_and_linked_to),
	  UNIT_TEST(two_sessions_of_one_second_are_both_kept),
	  UNIT_TEST(rotation_keeps_the_newest_and_touches_nothing_else),
	  UNIT_TEST(an_output_directory_that_is_a_file_is_named))
