/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path is first resolved to a descriptor that only stands for the file (O_PATH), which is looked
 * at; then the file behind that very descriptor is opened for reading. Between the two nothing can
 * be exchanged.
 */
#include "proc/root.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/str.h"

enum {
	LINKS_MAX = 40,  /* as the kernel's MAXSYMLINKS */
	DEPTH_MAX = 128, /* directories below one another; each holds a descriptor for a moment */
	RETRIES_MAX = 16,
};

/* What an errno from resolving or opening a path means. False: a failure of our own. */
static bool outcome_of(int code, enum root_outcome *ret)
{
	switch (code) {
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case EBADF:
	case EFAULT:
		return false;
	case EACCES:
	case EPERM:
		*ret = ROOT_denied;
		return true;
	case ENXIO: // a socket
	case EISDIR:
		*ret = ROOT_not_a_file;
		return true;
	default: // ENOENT, ESRCH, ENOTDIR, ELOOP, ENAMETOOLONG, ESTALE, EIO, ...
		*ret = ROOT_absent;
		return true;
	}
}

static struct error *failed(const char *path, enum root_outcome *ret)
{
	enum root_outcome outcome;

	if (!outcome_of(errno, &outcome))
		return error_errno("open %s", path);
	*ret = outcome;
	return NULL;
}

struct wanted {
	const char *path;
	enum root_type type;
};

/* Open for reading what the O_PATH descriptor HANDLE stands for. */
static struct error *open_handle(int handle, const struct wanted *wanted, enum root_outcome *ret,
				 int *ret_fd)
{
	_cleanup_free_ char *self = NULL;
	struct stat st;

	if (fstat(handle, &st) < 0)
		return failed(wanted->path, ret);
	if ((st.st_mode & S_IFMT) != (wanted->type == ROOT_FILE ? S_IFREG : S_IFDIR)) {
		*ret = ROOT_not_a_file;
		return NULL;
	}
	TRY(str_format(&self, "/proc/self/fd/%d", handle));
	// O_NONBLOCK: do not wait for somebody's lease on the file.
	int fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return failed(wanted->path, ret);
	*ret = ROOT_opened;
	*ret_fd = fd;
	return NULL;
}

/* A walk through directories: what has been entered, so that ".." goes back the same way even if
 * the target moves a directory meanwhile, and the text still to go. */
struct steps {
	int fd[DEPTH_MAX]; /* [0] is the root, borrowed */
	size_t depth;
	int links;
	int file;                /* what the last name stands for, if it is no directory; or -1 */
	char rest[2 * PATH_MAX]; /* a link's text is put in front of what remains */
};

static void steps_leave(struct steps *steps)
{
	if (steps->file >= 0)
		close(steps->file);
	steps->file = -1;
	while (steps->depth > 1)
		close(steps->fd[--steps->depth]);
}

/* Put the text of the link HANDLE in front of what remains. Returns 0 or an errno. */
static int follow_link(struct steps *steps, int handle, const char *remaining)
{
	char text[PATH_MAX + 1];
	char joined[sizeof(steps->rest)];

	if (++steps->links > LINKS_MAX)
		return ELOOP;
	ssize_t length = readlinkat(handle, "", text, sizeof(text) - 1);
	if (length < 0)
		return errno;
	text[length] = 0;
	int need = snprintf(joined, sizeof(joined), "%s/%s", text, remaining);
	if (need < 0 || (size_t)need >= sizeof(joined))
		return ENAMETOOLONG;
	if (text[0] == '/')
		steps_leave(steps);
	memcpy(steps->rest, joined, (size_t)need + 1);
	return 0;
}

/* Enter NAME, one component, with REMAINING to go behind it. Returns 0 or an errno. */
static int step(struct steps *steps, const char *name, const char *remaining)
{
	struct stat st;

	if (!strcmp(name, "..")) {
		if (steps->depth > 1)
			close(steps->fd[--steps->depth]);
		return 0;
	}
	_cleanup_close_ int handle =
		openat(steps->fd[steps->depth - 1], name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (handle < 0 || fstat(handle, &st) < 0)
		return errno;
	if (S_ISLNK(st.st_mode))
		return follow_link(steps, handle, remaining);
	if (!S_ISDIR(st.st_mode)) {
		steps->file = take_fd(&handle);
		return 0;
	}
	if (steps->depth == DEPTH_MAX)
		return ENAMETOOLONG;
	steps->fd[steps->depth++] = take_fd(&handle);
	return 0;
}

/* Take the first component off rest into NAME. False: there is none left. */
static bool next_name(struct steps *steps, char name[static NAME_MAX + 2])
{
	char *at = steps->rest + strspn(steps->rest, "/");
	size_t length = strcspn(at, "/");
	size_t copied = length <= NAME_MAX ? length : NAME_MAX + 1; // openat() then refuses it

	memcpy(name, at, copied);
	name[copied] = 0;
	at += length;
	memmove(steps->rest, at, strlen(at) + 1);
	return length > 0;
}

/* Walk to the end of rest, which is a file or the innermost directory. Returns 0 or an errno; it
 * ends because every link is counted. */
static int walk(struct steps *steps)
{
	char name[NAME_MAX + 2];

	while (next_name(steps, name)) {
		if (steps->file >= 0)
			return ENOTDIR;
		int code = strcmp(name, ".") ? step(steps, name, steps->rest) : 0;
		if (code)
			return code;
	}
	return 0;
}

static struct error *open_by_steps(int root_fd, const struct wanted *wanted, enum root_outcome *ret,
				   int *ret_fd)
{
	_cleanup_(steps_leave) struct steps steps = {.fd = {root_fd}, .depth = 1, .file = -1};
	size_t length = strlen(wanted->path);

	errno = length < PATH_MAX ? 0 : ENAMETOOLONG;
	if (!errno) {
		memcpy(steps.rest, wanted->path, length + 1);
		errno = walk(&steps);
	}
	if (errno)
		return failed(wanted->path, ret);
	return open_handle(steps.file < 0 ? steps.fd[steps.depth - 1] : steps.file, wanted, ret,
			   ret_fd);
}

struct error *root_open_by_steps(int root_fd, const char *path, enum root_type type,
				 enum root_outcome *ret, int *ret_fd)
{
	return open_by_steps(root_fd, &(struct wanted){path, type}, ret, ret_fd);
}

static struct error *open_below(int root_fd, const struct wanted *wanted, enum root_outcome *ret,
				int *ret_fd)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_close_ int handle = -1;

	// EAGAIN: a directory was moved while ".." was resolved. The target may do that for ever.
	for (int i = 0; i < RETRIES_MAX; i++) {
		handle = (int)syscall(SYS_openat2, root_fd, wanted->path, &how, sizeof(how));
		if (handle >= 0 || errno != EAGAIN)
			break;
	}
	// EPERM: container runtimes of 2020 and before filter system calls they do not know.
	if (handle < 0 && (errno == ENOSYS || errno == EPERM))
		return open_by_steps(root_fd, wanted, ret, ret_fd);
	if (handle < 0)
		return failed(wanted->path, ret);
	return open_handle(handle, wanted, ret, ret_fd);
}

static struct error *open_of(pid_t pid, const struct wanted *wanted, enum root_outcome *ret,
			     int *ret_fd)
{
	_cleanup_free_ char *root = NULL;

	if (pid)
		TRY(str_format(&root, "/proc/%d/root", pid));
	else
		TRY(str_copy(&root, "/"));
	_cleanup_close_ int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return failed(root, ret);
	return open_below(root_fd, wanted, ret, ret_fd);
}

struct error *root_open(pid_t pid, const char *path, enum root_outcome *ret, int *ret_fd)
{
	return open_of(pid, &(struct wanted){path, ROOT_FILE}, ret, ret_fd);
}

struct error *root_open_directory(pid_t pid, const char *path, enum root_outcome *ret, int *ret_fd)
{
	return open_of(pid, &(struct wanted){path, ROOT_DIRECTORY}, ret, ret_fd);
}

struct error *root_open_map(pid_t pid, uint64_t start, uint64_t end, enum root_outcome *ret,
			    int *ret_fd)
{
	_cleanup_free_ char *path = NULL;

	TRY(str_format(&path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, start, end));
	_cleanup_close_ int handle = open(path, O_PATH | O_CLOEXEC);
	if (handle < 0)
		return failed(path, ret);
	return open_handle(handle, &(struct wanted){path, ROOT_FILE}, ret, ret_fd);
}
