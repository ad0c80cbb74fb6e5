/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of /proc/PID/task/TID/stack are "[<0>] function+0x1b/0xf0 [module]", innermost first
 * (proc_pid_stack() in the kernel's fs/proc/base.c).
 */
#include "capture/dump-kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

enum { STACK_BYTES_MAX = 64 * 1024, KERNEL_FRAMES_MAX = 256 };

/* The function's name in a line; 0: it is no such line. */
static size_t name_in(const char *line, const char **ret)
{
	const char *close = strstr(line, "] ");

	if (line[0] != '[' || !close)
		return 0;
	*ret = close + 2;
	return strcspn(*ret, "+ \n");
}

struct error *dump_kernel_parse(struct dump *dump, struct bytes text, struct dump_thread *thread)
{
	struct target_frame frame = {.kind = KIND_kernel};
	char line[512];

	for (unsigned i = 0; bytes_left(&text) && i < KERNEL_FRAMES_MAX; i++) {
		const uint8_t *end = memchr(text.at, '\n', bytes_left(&text));
		size_t length = end ? (size_t)(end - text.at) : bytes_left(&text);
		const char *name;
		snprintf(line, sizeof(line), "%.*s", (int)length, (const char *)text.at);
		text.at += length + (end ? 1 : 0);
		size_t name_length = name_in(line, &name);
		if (!name_length)
			continue;
		TRY(arena_copy(&dump->texts, name, name_length, &frame.function));
		TRY(target_frames_add(&thread->frames, &frame));
	}
	return NULL;
}

struct error *dump_kernel_stack(struct dump *dump, pid_t pid, struct dump_thread *thread)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	size_t size;

	TRY(str_format(&path, "/proc/%d/task/%d/stack", pid, thread->tid));
	struct error *err = file_read(AT_FDCWD, path, STACK_BYTES_MAX, &text, &size);
	bool failed = err != NULL;
	int code = err ? error_code(err) : 0;
	error_free(err); // what it means is told below
	if (code == EACCES || code == EPERM)
		return dump_note(dump, "no kernel stacks: the kernel shows them to CAP_SYS_ADMIN "
				       "only");
	if (code == ENOENT && access("/proc/self/stack", F_OK))
		return dump_note(dump, "no kernel stacks: this kernel has no /proc/PID/stack");
	if (failed)
		return NULL; // the thread has ended
	return dump_kernel_parse(dump, bytes_over(text, size, path), thread);
}
