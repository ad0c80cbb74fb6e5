/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/sampling.h"

void child_deinit(struct child *child)
{
	if (child->release_fd >= 0)
		close(child->release_fd);
	if (child->report_fd >= 0)
		close(child->report_fd);
	*child = (struct child)CHILD_INIT;
}

/* The child waits until it is released, then becomes the command. */
static void become_command(int wait_fd, int report_fd, char *const *command)
{
	char byte;

	stop_signals_unblock();
	if (read(wait_fd, &byte, 1) != 1)
		_exit(STATUS_failed); // cairn gave up
	execvp(command[0], command);
	int code = errno;
	if (write(report_fd, &code, sizeof(code)) != sizeof(code))
		_exit(STATUS_failed);
	_exit(CHILD_NOT_STARTED);
}

struct error *child_start(const struct text_list *command, struct child *ret)
{
	_cleanup_(child_deinit) struct child child = CHILD_INIT;
	int release[2], report[2];

	if (pipe2(release, O_CLOEXEC) < 0)
		return error_errno("start %s", command->items[0]);
	_cleanup_close_ int wait_fd = release[0];
	child.release_fd = release[1];
	if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_errno("start %s", command->items[0]);
	_cleanup_close_ int say_fd = report[1];
	child.report_fd = report[0];
	child.pid = fork();
	if (child.pid < 0)
		return error_errno("start %s", command->items[0]);
	if (child.pid == 0) {
		close(child.release_fd);
		become_command(wait_fd, say_fd, command->items);
	}
	*ret = child;
	child = (struct child)CHILD_INIT;
	return NULL;
}

struct error *child_release(struct child *child)
{
	if (child->release_fd < 0)
		return NULL;
	if (write(child->release_fd, "", 1) != 1)
		return error_errno("start the command");
	close(child->release_fd);
	child->release_fd = -1;
	return NULL;
}

struct error *child_check(const struct child *child, const struct text_list *command)
{
	int code;

	if (child->report_fd < 0 || read(child->report_fd, &code, sizeof(code)) != sizeof(code))
		return NULL;
	errno = code;
	return error_errno("start %s", command->items[0]);
}
