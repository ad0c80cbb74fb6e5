/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

void notify_send(const char *text)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	size_t length = path ? strlen(path) : 0;

	// "@" stands for the NUL of an abstract address.
	if (length < 2 || length >= sizeof(address.sun_path) || (*path != '/' && *path != '@'))
		return;
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	memcpy(address.sun_path, path, length);
	if (*path == '@')
		address.sun_path[0] = 0;
	(void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&address,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
}

uint64_t notify_watchdog_ns(void)
{
	const char *every = getenv("WATCHDOG_USEC"), *whom = getenv("WATCHDOG_PID");
	uint64_t us, pid;

	if (!every || !str_parse_u64(every, 1, UINT64_MAX / 1000, &us))
		return 0;
	if (whom && (!str_parse_u64(whom, 1, INT32_MAX, &pid) || (pid_t)pid != getpid()))
		return 0;
	return us * 1000 / 2;
}
