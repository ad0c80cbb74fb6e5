/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/marks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

enum { PID_BYTES = 32 };

struct error *marks_write_pid(const char *path)
{
	_cleanup_(file_writer_deinit) struct file_writer writer = FILE_WRITER_INIT;

	TRY(file_writer_open(path, &writer));
	fprintf(writer.stream, "%d", getpid()); // the commit sees whether it worked
	return file_writer_commit(&writer);
}

void marks_remove_pid(const char *path)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	uint64_t pid;
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	struct error *err = file_read(AT_FDCWD, path, PID_BYTES, &text, &size);
	if (!err && str_parse_u64(text, 1, INT32_MAX, &pid) && (pid_t)pid == getpid())
		(void)unlink(path);
	error_free(err); // no file of ours
}

struct error *marks_touch(const char *path)
{
	// A FIFO without a reader must not hold the agent up.
	_cleanup_close_ int fd =
		open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);

	if (fd < 0 || futimens(fd, NULL) < 0)
		return error_errno("touch %s", path);
	return NULL;
}
