/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/log-file.h"
#include "base/cleanup.h"
#include "base/file.h"

#include "unit.h"

static const struct log_line hello = {
	.level = LOG_INFO,
	.realtime_ns = 1767323045123999999u,
	.domain = "agent",
	.message = "hello",
};
#define HELLO "[2026-01-02 03:04:05,123] INFO: cairn.agent: hello\n"

static void in_folder(const char *folder, const char *name, char *ret)
{
	snprintf(ret, 256, "%s/%s", folder, name);
}

static struct log_file *open_in(const char *folder, const char *name, uint64_t max,
				unsigned backups)
{
	struct log_file *file = NULL;
	char path[256];
	struct log_file_settings settings = {path, max, backups};

	in_folder(folder, name, path);
	ASSERT_OK(log_file_open(&settings, &file));
	return file;
}

static void expect(const char *folder, const char *name, const char *text)
{
	_cleanup_free_ char *is = NULL;
	char path[256];
	size_t size;

	in_folder(folder, name, path);
	ASSERT_OK(file_read(AT_FDCWD, path, 4096, &is, &size));
	ASSERT_STREQ(is, text);
}

static void clear(const char *folder, const char *const *names)
{
	char path[256];

	for (; *names; names++) {
		in_folder(folder, *names, path);
		ASSERT_TRUE(!remove(path));
	}
	ASSERT_TRUE(!rmdir(folder));
}
#define CLEAR(folder, ...) clear(folder, (const char *const[]){__VA_ARGS__, NULL})

TEST(a_line_is_in_gprofilers_form_in_utc)
{
	_cleanup_free_ char *text = NULL;

	ASSERT_OK(log_line_print(&hello, &text));
	ASSERT_STREQ(text, HELLO);
}

TEST(what_is_missing_above_the_file_is_made_and_a_file_goes_on_at_its_end)
{
	char folder[] = "/tmp/cairn-log-XXXXXX";

	ASSERT_TRUE(mkdtemp(folder) != NULL);
	for (int i = 0; i < 2; i++) {
		struct log_file *file = open_in(folder, "a/b/log", 1000, 1);
		log_file_write(file, &hello);
		log_file_free(file);
	}
	expect(folder, "a/b/log", HELLO HELLO);
	CLEAR(folder, "a/b/log", "a/b", "a");
}

TEST(a_file_that_would_become_too_large_is_begun_anew_and_so_many_older_ones_kept)
{
	char folder[] = "/tmp/cairn-log-XXXXXX";

	ASSERT_TRUE(mkdtemp(folder) != NULL);
	struct log_file *file = open_in(folder, "log", 2 * sizeof(HELLO) - 2, 2);
	struct log_line line = hello;
	for (int i = 0; i < 9; i++) {
		line.message = i < 6 ? "older" : "newer";
		log_file_write(file, &line);
	}
	log_file_free(file);
	char path[256];
	in_folder(folder, "log.3", path);
	ASSERT_TRUE(access(path, F_OK) < 0 && errno == ENOENT);
#define OLDER "[2026-01-02 03:04:05,123] INFO: cairn.agent: older\n"
#define NEWER "[2026-01-02 03:04:05,123] INFO: cairn.agent: newer\n"
	expect(folder, "log.2", OLDER OLDER);
	expect(folder, "log.1", NEWER NEWER);
	expect(folder, "log", NEWER);
	CLEAR(folder, "log", "log.1", "log.2");
}

TEST(without_backups_the_one_file_begins_again)
{
	char folder[] = "/tmp/cairn-log-XXXXXX";

	ASSERT_TRUE(mkdtemp(folder) != NULL);
	struct log_file *file = open_in(folder, "log", 1, 0);
	for (int i = 0; i < 5; i++)
		log_file_write(file, &hello);
	log_file_free(file);
	expect(folder, "log", HELLO);
	CLEAR(folder, "log");
}

TEST(a_file_that_somebody_moves_away_is_made_again)
{
	char folder[] = "/tmp/cairn-log-XXXXXX", path[256], moved[256];

	ASSERT_TRUE(mkdtemp(folder) != NULL);
	struct log_file *file = open_in(folder, "log", 1000, 1);
	log_file_write(file, &hello);
	in_folder(folder, "log", path);
	in_folder(folder, "away", moved);
	ASSERT_TRUE(!rename(path, moved));
	log_file_write(file, &hello);
	log_file_free(file);
	expect(folder, "log", HELLO);
	CLEAR(folder, "log", "away");
}

TEST(a_full_disk_costs_lines_which_are_counted_in_the_log)
{
	struct log_file *file = NULL;
	struct log_file_settings settings = {"/dev/full", 1, 1};
	char folder[] = "/tmp/cairn-log-XXXXXX", path[256];

	ASSERT_OK(log_file_open(&settings, &file));
	log_file_write(file, &hello);
	log_file_free(file);

	// A FIFO without a reader cannot be opened; with one that is full lines get lost.
	ASSERT_TRUE(mkdtemp(folder) != NULL);
	in_folder(folder, "fifo", path);
	ASSERT_TRUE(!mkfifo(path, 0600));
	settings.path = path;
	ASSERT_FAILS(log_file_open(&settings, &file), "No such device");
	_cleanup_close_ int reader = open(path, O_RDONLY | O_NONBLOCK);
	file = open_in(folder, "fifo", 1, 1);
	char bytes[4096];
	for (int i = 0; i < 4000; i++)
		log_file_write(file, &hello);
	while (read(reader, bytes, sizeof(bytes)) > 0)
		;
	log_file_write(file, &hello);
	ssize_t length = read(reader, bytes, sizeof(bytes) - 1);
	ASSERT_TRUE(length > 0);
	bytes[length] = 0;
	ASSERT_TRUE(strstr(bytes, "WARNING: cairn.log: ") != NULL);
	ASSERT_TRUE(strstr(bytes, " lines could not be written\n" HELLO) != NULL);
	log_file_free(file);
	CLEAR(folder, "fifo");
}

RUN_TESTS(UNIT_TEST(a_line_is_in_gprofilers_form_in_utc),
	  UNIT_TEST(what_is_missing_above_the_file_is_made_and_a_file_goes_on_at_its_end),
	  UNIT_TEST(a_file_that_would_become_too_large_is_begun_anew_and_so_many_older_ones_kept),
	  UNIT_TEST(without_backups_the_one_file_begins_again),
	  UNIT_TEST(a_file_that_somebody_moves_away_is_made_again),
	  UNIT_TEST(a_full_disk_costs_lines_which_are_counted_in_the_log))
