/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status.h"

#include <errno.h>
#include <libgen.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

enum { ANSWER_SECONDS = 60 }; // an agent that puts a session together answers after that

struct error *status_path(bool root, char **ret)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (root)
		return str_copy(ret, "/run/cairn/agent.sock");
	if (runtime && *runtime == '/')
		return str_format(ret, "%s/cairn/agent.sock", runtime);
	*ret = NULL;
	return NULL;
}

static struct error *fill_address(const char *path, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(ret->sun_path))
		return error_new("socket %s: its name is too long", path);
	memcpy(ret->sun_path, path, strlen(path) + 1);
	return NULL;
}

/* RET_FD is connected to the agent at PATH. */
static struct error *connect_to(const char *path, int *ret_fd)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;

	TRY(fill_address(path, &address));
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return error_errno("no agent answers at %s", path);
	*ret_fd = take_fd(&fd);
	return NULL;
}

/* Nobody may be listening at PATH any more; what is there is then removed. */
static struct error *clear_path(const char *path)
{
	_cleanup_close_ int other = -1;
	struct error *err = connect_to(path, &other);
	int code = err ? error_code(err) : 0;

	error_free(err); // that nobody answers is what is hoped for
	if (!code)
		return error_new("socket %s: another agent has it", path);
	// Nothing but a socket that nobody listens at says this.
	if (code == ECONNREFUSED)
		(void)unlink(path);
	return NULL;
}

struct error *status_listen(const char *path, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *copy = NULL;
	struct sockaddr_un address;

	TRY(fill_address(path, &address));
	TRY(str_copy(&copy, path));
	TRY(file_make_directories(dirname(copy), 0755));
	TRY(clear_path(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    chmod(path, 0666) < 0 || listen(fd, 8) < 0)
		return error_errno("socket %s", path);
	*ret_fd = take_fd(&fd);
	return NULL;
}

int status_accept(int listen_fd)
{
	return accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

void status_answer(int client_fd, const char *text)
{
	// It fits into the socket's buffer, or the client does without the rest.
	(void)send(client_fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(client_fd);
}

struct error *status_ask(const char *path, char **ret)
{
	const struct timeval patience = {.tv_sec = ANSWER_SECONDS};
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *text = NULL;
	size_t size;

	TRY(connect_to(path, &fd));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	TRY(file_read_fd(fd, path, STATUS_BYTES_MAX, &text, &size));
	*ret = take(text);
	return NULL;
}
