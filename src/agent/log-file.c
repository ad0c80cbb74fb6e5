/* SPDX-License-Identifier: Apache-2.0 */
/* The log file and its rotation, which is that of Python's RotatingFileHandler: gProfiler's. */
#include "agent/log-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"

struct log_file {
	char *path;
	uint64_t bytes_max;
	unsigned backups;

	pthread_mutex_t lock; /* over what follows */
	int fd;               /* -1: could not be opened again */
	bool regular;
	dev_t device;
	ino_t inode;
	uint64_t size_bytes;
	uint64_t lost; /* lines */
};

struct error *log_line_print(const struct log_line *line, char **ret)
{
	static const char *const names[] = {
		[LOG_ERROR] = "ERROR",
		[LOG_WARNING] = "WARNING",
		[LOG_INFO] = "INFO",
		[LOG_DEBUG] = "DEBUG",
	};
	char time[20];

	clock_format_utc(line->realtime_ns, time);
	return str_format(ret, "[%.10s %s,%03u] %s: cairn.%s: %s\n", time, time + 11,
			  (unsigned)(line->realtime_ns / 1000000 % 1000), names[line->level],
			  line->domain, line->message);
}

/* Open the path, as a new file if there is none. The one before stays open if that fails. */
static struct error *open_path(struct log_file *file)
{
	// O_NONBLOCK: whoever made a FIFO of it and does not read must not hold the agent up.
	int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	_cleanup_close_ int fd = open(file->path, flags, 0644);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return error_errno("log file %s", file->path);
	if (file->fd >= 0)
		close(file->fd);
	file->fd = take_fd(&fd);
	file->regular = S_ISREG(st.st_mode);
	file->device = st.st_dev;
	file->inode = st.st_ino;
	file->size_bytes = (uint64_t)st.st_size;
	return NULL;
}

struct error *log_file_open(const struct log_file_settings *settings, struct log_file **ret)
{
	_cleanup_free_ struct log_file *file = calloc(1, sizeof(*file));
	_cleanup_free_ char *path = NULL, *copy = NULL;

	if (!file)
		return error_oom();
	TRY(str_copy(&path, settings->path));
	TRY(str_copy(&copy, settings->path));
	TRY(file_make_directories(dirname(copy), 0755));
	file->path = path;
	file->bytes_max = settings->bytes_max;
	file->backups = settings->backups;
	file->fd = -1;
	pthread_mutex_init(&file->lock, NULL);
	struct error *err = open_path(file);
	if (err) {
		pthread_mutex_destroy(&file->lock);
		return err;
	}
	path = NULL; // the file's now
	*ret = take(file);
	return NULL;
}

void log_file_free(struct log_file *file)
{
	if (!file)
		return;
	if (file->fd >= 0)
		close(file->fd);
	pthread_mutex_destroy(&file->lock);
	free(file->path);
	free(file);
}

/* PATH.1 becomes PATH.2 and so on, and PATH itself PATH.1. The last one is written over. */
static struct error *shift(const struct log_file *file)
{
	for (unsigned to = file->backups; to; to--) {
		_cleanup_free_ char *older = NULL, *newer = NULL;
		TRY(str_format(&older, "%s.%u", file->path, to));
		if (to > 1)
			TRY(str_format(&newer, "%s.%u", file->path, to - 1));
		if (rename(newer ? newer : file->path, older) < 0 && errno != ENOENT)
			return error_errno("rename to %s", older);
	}
	return NULL;
}

/* Begin a new file. If that cannot be, the one there is grows on. */
static void rotate(struct log_file *file)
{
	struct error *err = NULL;

	if (!file->backups) {
		if (!ftruncate(file->fd, 0))
			file->size_bytes = 0;
		return;
	}
	err = shift(file);
	if (!err)
		err = open_path(file);
	error_free(err); // a log that says that it cannot be rotated grows by saying so
}

/* Somebody else may have moved the file away: logrotate, or another agent. */
static bool was_replaced(const struct log_file *file)
{
	struct stat st;

	return file->regular &&
	       (stat(file->path, &st) < 0 || st.st_dev != file->device || st.st_ino != file->inode);
}

/* False: not all of it could be written. */
static bool write_text(struct log_file *file, const char *text)
{
	size_t length = strlen(text);

	if (file->regular && file->size_bytes && file->size_bytes + length > file->bytes_max)
		rotate(file);
	ssize_t written = write(file->fd, text, length);
	if (written > 0)
		file->size_bytes += (uint64_t)written;
	return written == (ssize_t)length;
}

/* Say how many lines there should be here. */
static void tell_lost(struct log_file *file, const struct log_line *line)
{
	_cleanup_free_ char *message = NULL, *text = NULL;
	struct log_line lost = {LOG_WARNING, line->realtime_ns, "log", NULL};
	struct error *err =
		str_format(&message, "%" PRIu64 " lines could not be written", file->lost);

	lost.message = message;
	if (!err)
		err = log_line_print(&lost, &text);
	if (!err && write_text(file, text))
		file->lost = 0;
	error_free(err); // the next line tries again
}

void log_file_write(void *data, const struct log_line *line)
{
	struct log_file *file = data;
	_cleanup_free_ char *text = NULL;
	struct error *err = log_line_print(line, &text);

	pthread_mutex_lock(&file->lock);
	if (!err && was_replaced(file)) {
		struct error *reopen = open_path(file);
		error_free(reopen); // then the old file goes on
	}
	if (file->lost)
		tell_lost(file, line);
	if (err || file->lost || !write_text(file, text))
		file->lost++;
	pthread_mutex_unlock(&file->lock);
	error_free(err); // counted
}

void log_console_write(void *data, const struct log_line *line)
{
	_cleanup_free_ char *text = NULL;
	struct error *err = log_line_print(line, &text);
	ssize_t written = err ? 0 : write(STDOUT_FILENO, text, strlen(text));

	(void)written;   // nobody is left to be told
	error_free(err); // the same
}
