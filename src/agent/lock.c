/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_DOMAIN "agent"
#include "agent/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/log.h"

// gProfiler gives Python an abstract address, which begins with a NUL, a further NUL that is part
// of the name (grab_gprofiler_mutex() in gprofiler/utils, and try_acquire_mutex() it calls).
static const char name[] = "\0\0gprofiler_lock";

static struct error *bind_name(int *ret_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	// The type is part of what the kernel compares, so it is that of gProfiler's socket.
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, name, sizeof(name) - 1);
	socklen_t length = offsetof(struct sockaddr_un, sun_path) + sizeof(name) - 1;
	if (fd >= 0 && !bind(fd, (const struct sockaddr *)&address, length)) {
		*ret_fd = take_fd(&fd);
		return NULL;
	}
	if (errno == EADDRINUSE)
		return error_new("Could not acquire gProfiler's lock. Is it already running? Try "
				 "'sudo netstat -xp | grep gprofiler' to see which process holds "
				 "the lock.");
	return error_errno("Could not acquire gProfiler's lock due to an error. Are you running "
			   "gProfiler in privileged mode?");
}

/* Go to the network namespace of the first process. RET_BACK leads back; -1: we did not move. */
static void enter_first(int *ret_back)
{
	_cleanup_close_ int first = open("/proc/1/ns/net", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	struct stat there, here;

	*ret_back = -1;
	if (first >= 0 && own >= 0 && !fstat(first, &there) && !fstat(own, &here) &&
	    there.st_ino == here.st_ino)
		return;
	if (first >= 0 && own >= 0 && !setns(first, CLONE_NEWNET))
		*ret_back = take_fd(&own);
	else
		log_debug("the lock is that of our own network namespace: %s", strerror(errno));
}

struct error *lock_take(int *ret_fd)
{
	_cleanup_close_ int back = -1, fd = -1;

	enter_first(&back);
	struct error *err = bind_name(&fd);
	if (back >= 0 && setns(back, CLONE_NEWNET) < 0) {
		error_free(err); // being in the wrong place is worse
		return error_errno("return to the own network namespace");
	}
	if (!err)
		*ret_fd = take_fd(&fd);
	return err;
}
