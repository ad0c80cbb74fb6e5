/* SPDX-License-Identifier: Apache-2.0 */
/* Reading below a root directory. Which files, and what they mean, is the callers' business. */
#define LOG_DOMAIN "identity"
#include "identity/host.h"

#include <errno.h>
#include <fcntl.h>

#include "base/file.h"
#include "base/log.h"
#include "proc/root.h"

struct error *host_open_root(int *ret_fd)
{
	int fd = open("/proc/1/root", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_errno("open /");
	*ret_fd = fd;
	return NULL;
}

struct error *host_read_sized(int root_fd, const char *path, size_t max, char **ret,
			      size_t *ret_size)
{
	_cleanup_close_ int fd = -1;
	enum root_outcome outcome;
	char *text = NULL;
	size_t size = 0;

	TRY(root_open_by_steps(root_fd, path, ROOT_FILE, &outcome, &fd));
	if (outcome == ROOT_opened) {
		struct error *err = file_read_fd(fd, path, max, &text, &size);
		if (err)
			log_debug("%s", error_text(err));
		error_free(err); // larger than any that we know, or gone: nothing is known of it
	}
	*ret = text;
	*ret_size = size;
	return NULL;
}

struct error *host_read(int root_fd, const char *path, size_t max, char **ret)
{
	size_t size;

	return host_read_sized(root_fd, path, max, ret, &size);
}

struct error *host_open_directory(int root_fd, const char *path, DIR **ret)
{
	_cleanup_close_ int fd = -1;
	enum root_outcome outcome;
	DIR *directory = NULL;

	TRY(root_open_by_steps(root_fd, path, ROOT_DIRECTORY, &outcome, &fd));
	if (outcome == ROOT_opened) {
		directory = fdopendir(fd);
		if (!directory)
			return error_errno("list %s", path);
		(void)take_fd(&fd);
	}
	*ret = directory;
	return NULL;
}
