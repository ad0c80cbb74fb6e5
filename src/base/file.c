/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and replacing whole files. Which files, and what a failure means, is the caller's
 * business. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/str.h"

struct error *file_read_fd(int fd, const char *name, size_t max, char **ret, size_t *ret_size)
{
	_cleanup_free_ char *data = NULL;
	size_t room = 0, size = 0;

	for (;;) {
		TRY(ARRAY_RESERVE(data, room, size, 4097, max + 4097, "bytes in one file"));
		ssize_t got = read(fd, data + size, room - size - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_errno("read %s", name);
		if (got == 0)
			break;
		size += (size_t)got;
		if (size > max)
			return error_new("%s: larger than %zu bytes", name, max);
	}
	data[size] = 0;
	*ret = take(data);
	*ret_size = size;
	return NULL;
}

struct error *file_read(int dir_fd, const char *path, size_t max, char **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return error_errno("open %s", path);
	return file_read_fd(fd, path, max, ret, ret_size);
}

struct error *file_make_directories(const char *path, mode_t mode)
{
	_cleanup_free_ char *copy = NULL;

	TRY(str_copy(&copy, path));
	for (char *at = copy + 1; *copy; at++) {
		if (*at && *at != '/')
			continue;
		char was = *at;
		*at = 0;
		if (mkdir(copy, mode) < 0 && errno != EEXIST)
			return error_errno("make directory %s", copy);
		*at = was;
		if (!was)
			break;
	}
	return NULL;
}

struct error *file_open_unnamed(int *ret_fd)
{
	_cleanup_free_ char *name = NULL;
	const char *directory = getenv("TMPDIR");

	if (!directory || directory[0] != '/')
		directory = "/var/tmp";
	int fd = open(directory, O_RDWR | O_TMPFILE | O_CLOEXEC | O_EXCL, 0600);
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
		TRY(str_format(&name, "%s/cairn.XXXXXX", directory));
		fd = mkostemp(name, O_CLOEXEC);
		if (fd >= 0)
			(void)unlink(name); // if that fails, a file is left behind
	}
	if (fd < 0)
		return error_errno("make a temporary file in %s", directory);
	*ret_fd = fd;
	return NULL;
}

/* Open a file without a name next to PATH, or one with a temporary name where that is not
 * supported. */
static struct error *open_beside(const char *path, int *ret_fd, char **ret_temporary)
{
	_cleanup_free_ char *copy = NULL;
	_cleanup_free_ char *temporary = NULL;

	TRY(str_copy(&copy, path));
	const char *directory = dirname(copy);
	int fd = open(directory, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0644);
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
		TRY(str_format(&temporary, "%s.%d.tmp", path, getpid()));
		fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	}
	if (fd < 0)
		return error_errno("write %s", path);
	*ret_fd = fd;
	*ret_temporary = take(temporary);
	return NULL;
}

struct error *file_writer_open(const char *path, struct file_writer *ret)
{
	_cleanup_(file_writer_deinit) struct file_writer writer = FILE_WRITER_INIT;
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return error_new("write %s: it is a directory", path);
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd < 0)
			return error_errno("write %s", path);
	} else {
		TRY(str_copy(&writer.path, path));
		TRY(open_beside(path, &fd, &writer.temporary));
	}
	writer.stream = fdopen(fd, "w");
	if (!writer.stream)
		return error_errno("write %s", path);
	fd = -1;
	*ret = take_struct(writer);
	return NULL;
}

/* Give the unnamed file behind FD the name NAME, which is then the writer's temporary one. */
static struct error *link_unnamed(struct file_writer *writer, int fd)
{
	_cleanup_free_ char *by_fd = NULL;
	_cleanup_free_ char *temporary = NULL;

	TRY(str_format(&by_fd, "/proc/self/fd/%d", fd));
	TRY(str_format(&temporary, "%s.%d.tmp", writer->path, getpid()));
	(void)unlink(
		temporary); // from an earlier process of this number; nobody else uses the name
	if (linkat(AT_FDCWD, by_fd, AT_FDCWD, temporary, AT_SYMLINK_FOLLOW) < 0)
		return error_errno("write %s", writer->path);
	writer->temporary = take(temporary);
	return NULL;
}

struct error *file_writer_commit(struct file_writer *writer)
{
	const char *name = writer->path ? writer->path : "output";

	if (fflush(writer->stream) || ferror(writer->stream))
		return error_errno("write %s", name);
	if (!writer->path) // a pipe or a device: there is nothing to rename
		return NULL;

	int fd = fileno(writer->stream);
	if (fsync(fd) < 0)
		return error_errno("write %s", name);
	if (!writer->temporary)
		TRY(link_unnamed(writer, fd));
	if (rename(writer->temporary, writer->path) < 0)
		return error_errno("rename to %s", name);
	free(take(writer->temporary));
	return NULL;
}

void file_writer_deinit(struct file_writer *writer)
{
	if (writer->stream)
		fclose(writer->stream);
	if (writer->temporary)
		unlink(writer->temporary);
	free(writer->temporary);
	free(writer->path);
	*writer = (struct file_writer)FILE_WRITER_INIT;
}
