/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and rotating session files. When a session ends is the command's business. */
#include "agent/session-files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "formats/format.h"

enum { SAME_SECOND_MAX = 100 };

struct error *session_files_check(const struct session_files *files)
{
	struct stat st;

	TRY(file_make_directories(files->directory, 0755));
	if (stat(files->directory, &st) < 0)
		return error_errno("output directory %s", files->directory);
	if (!S_ISDIR(st.st_mode))
		return error_new("output directory %s: not a directory", files->directory);
	if (access(files->directory, W_OK | X_OK) < 0)
		return error_errno("output directory %s", files->directory);
	return NULL;
}

/*
 * Is NAME one of an unfinished file of ours, and its writer gone? They are profile_<TIME>.<PID>.tmp
 * (base/file.c) and the links of replace_link().
 */
static bool is_left_over(const char *name)
{
	char stem[NAME_MAX + 1];
	uint64_t pid;

	if (!strcmp(name, "last_profile.col.tmp") || !strcmp(name, "last_flamegraph.html.tmp"))
		return true;
	if (!str_starts(name, "profile_") || !str_ends(name, ".tmp") || strlen(name) > NAME_MAX)
		return false;
	memcpy(stem, name, strlen(name) + 1);
	*strrchr(stem, '.') = 0;
	const char *dot = strrchr(stem, '.');
	if (!dot || !str_parse_u64(dot + 1, 1, INT32_MAX, &pid))
		return false;
	return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

struct error *session_files_clean(const struct session_files *files, size_t *ret_count)
{
	_cleanup_closedir_ DIR *dir = opendir(files->directory);
	size_t count = 0;

	if (!dir)
		return error_errno("output directory %s", files->directory);
	for (struct dirent *entry; (entry = readdir(dir));)
		if (is_left_over(entry->d_name) && !unlinkat(dirfd(dir), entry->d_name, 0))
			count++;
	*ret_count = count;
	return NULL;
}

/*
 * What LINK in the directory points at, if that is a plain name of ours: "profile_...". ""
 * otherwise.
 */
static void read_link(const char *link, char ret[NAME_MAX + 1])
{
	ssize_t length = readlink(link, ret, NAME_MAX);

	ret[length > 0 ? length : 0] = 0;
	if (!str_starts(ret, "profile_") || strchr(ret, '/'))
		ret[0] = 0;
}

/* Make LINK point at NAME; it never points at nothing in between. */
static struct error *replace_link(const char *link, const char *name)
{
	_cleanup_free_ char *temporary = NULL;

	TRY(str_format(&temporary, "%s.tmp", link));
	// One left by a run that was killed.
	if (unlink(temporary) < 0 && errno != ENOENT)
		return error_errno("remove %s", temporary);
	if (symlink(name, temporary) < 0)
		return error_errno("link %s", temporary);
	if (rename(temporary, link) < 0)
		return error_errno("link %s", link);
	return NULL;
}

/*
 * Where a session that ended at TIME goes. One that is told to stop may end in the same second as
 * the one before, whose file is not to be written over: it is profile_<TIME>-2, and so on.
 */
static struct error *choose_path(const struct session_files *files, const char *time,
				 const char *suffix, char **ret)
{
	_cleanup_free_ char *path = NULL;

	TRY(str_format(&path, "%s/profile_%s%s", files->directory, time, suffix));
	for (int number = 2; number <= SAME_SECOND_MAX && !access(path, F_OK); number++) {
		free(take(path));
		TRY(str_format(&path, "%s/profile_%s-%d%s", files->directory, time, number,
			       suffix));
	}
	*ret = take(path);
	return NULL;
}

/*
 * Write PROFILE as FORMAT_NAME to profile_<TIME>, point LINK_NAME at it, and drop the one before
 * if asked to.
 */
static struct error *write_one(const struct session_files *files, const struct profile *profile,
			       const char *format_name, const char *link_name, char **ret_path)
{
	const struct format *format = format_find(format_name);
	_cleanup_(file_writer_deinit) struct file_writer writer = FILE_WRITER_INIT;
	_cleanup_free_ char *path = NULL, *link = NULL, *old = NULL;
	char time[20], before[NAME_MAX + 1];

	clock_format_utc(profile_facts_const(profile)->end_realtime_ns, time);
	TRY(choose_path(files, time, format->suffix, &path));
	TRY(str_format(&link, "%s/%s", files->directory, link_name));
	TRY(file_writer_open(path, &writer));
	struct error *err = format->write(profile, writer.stream);
	if (err)
		return error_wrap(err, "%s", path);
	TRY(file_writer_commit(&writer));

	const char *name = strrchr(path, '/') + 1;
	read_link(link, before);
	TRY(replace_link(link, name));
	if (files->rotate && before[0] && strcmp(before, name)) {
		TRY(str_format(&old, "%s/%s", files->directory, before));
		if (unlink(old) < 0 && errno != ENOENT)
			return error_errno("remove %s", old);
	}
	*ret_path = take(path);
	return NULL;
}

struct error *session_files_write(const struct session_files *files, const struct profile *profile,
				  char **ret_col)
{
	_cleanup_free_ char *col = NULL, *html = NULL;

	TRY(write_one(files, profile, "col", "last_profile.col", &col));
	if (files->flamegraph)
		TRY(write_one(files, profile, "html", "last_flamegraph.html", &html));
	*ret_col = take(col);
	return NULL;
}
