/* SPDX-License-Identifier: Apache-2.0 */
/* System calls as sentences. */
#include "proc/waiting.h"

#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/array.h"
#include "base/str.h"

enum { LINK_BYTES = 256, DETAIL_BYTES = 340 };

struct syscall_row {
	const char *name, *word;
	int descriptor;
};

static const struct syscall_row rows[] = {
#define SYSCALL(name, id, descriptor, word) [id] = {#name, word, descriptor},
#include "proc/syscalls.def"
#undef SYSCALL
};

static const struct syscall_row *find_row(uint64_t number)
{
	return number < ARRAY_COUNT(rows) && rows[number].name ? &rows[number] : NULL;
}

const char *syscall_name(uint64_t number)
{
	const struct syscall_row *row = find_row(number);

	return row ? row->name : NULL;
}

int syscall_descriptor(uint64_t number)
{
	const struct syscall_row *row = find_row(number);

	return row ? row->descriptor : -1;
}

/* File names may hold anything; a terminal shall see none of it as a command. */
static void drop_controls(char *text)
{
	unsigned char *at = (unsigned char *)text;

	for (; *at; at++) {
		// U+0080 to U+009F, which some terminals obey, are c2 80 to c2 9f in UTF-8.
		bool high = at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0;
		if (*at < ' ' || *at == 0x7f)
			*at = '?';
		if (high)
			at[0] = at[1] = '?';
	}
}

/* What descriptor FD of the thread leads to: "/path", "pipe:[17]"; "" if that cannot be known. */
static void read_link(const struct thread *thread, int fd, char ret[LINK_BYTES])
{
	char path[64], target[PATH_MAX];

	ret[0] = 0;
	// A thread may have descriptors of its own (unshare(CLONE_FILES)).
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", thread->pid, thread->tid, fd);
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	if (length <= 0)
		return;
	target[length] = 0;
	drop_controls(target);
	bool whole = length < LINK_BYTES;
	(void)snprintf(ret, LINK_BYTES, "%.*s%s", whole ? LINK_BYTES - 1 : LINK_BYTES - 4, target,
		       whole ? "" : "...");
}

static void describe_file(const struct thread *thread, const struct syscall_row *row,
			  char ret[DETAIL_BYTES])
{
	// The kernel takes the lower half: registers may hold anything above it.
	int fd = (int)(uint32_t)thread->call.argument[row->descriptor % THREAD_ARGUMENTS];
	char target[LINK_BYTES];

	if (fd < 0) // AT_FDCWD, or an error of the program
		return;
	read_link(thread, fd, target);
	// That an epoll descriptor is one goes without saying.
	if (!target[0] || !strcmp(target, "anon_inode:[eventpoll]"))
		(void)snprintf(ret, DETAIL_BYTES, " %s %d", row->word, fd);
	else
		(void)snprintf(ret, DETAIL_BYTES, " %s %d (%s)", row->word, fd, target);
}

/* Whom wait4(pid) and waitid(idtype, id) wait for. */
static void describe_children(const struct thread_call *call, char ret[DETAIL_BYTES])
{
	bool by_type = call->number == SYS_waitid;
	int type = (int)call->argument[0];
	int pid = (int)call->argument[by_type ? 1 : 0];

	if (by_type ? type == P_ALL : pid == -1)
		(void)snprintf(ret, DETAIL_BYTES, " for any child");
	else if (by_type ? type == P_PID : pid > 0)
		(void)snprintf(ret, DETAIL_BYTES, " for %d", pid);
	else if (by_type && type == P_PIDFD)
		(void)snprintf(ret, DETAIL_BYTES, " for the process of descriptor %d", pid);
	else
		(void)snprintf(ret, DETAIL_BYTES, " for a child of a process group");
}

static void describe_arguments(const struct thread *thread, const struct syscall_row *row,
			       char ret[DETAIL_BYTES])
{
	const struct thread_call *call = &thread->call;

	switch (call->number) {
	case SYS_futex:
		(void)snprintf(ret, DETAIL_BYTES, " 0x%jx", (uintmax_t)call->argument[0]);
		return;
	case SYS_wait4:
	case SYS_waitid:
		describe_children(call, ret);
		return;
	case SYS_poll:
	case SYS_ppoll:
		(void)snprintf(ret, DETAIL_BYTES, " on %u descriptors",
			       (unsigned)call->argument[1]);
		return;
	case SYS_restart_syscall:
		// Which call a stop interrupted is only in the kernel's own memory.
		if (thread->wchan[0])
			(void)snprintf(ret, DETAIL_BYTES, " (%s)", thread->wchan);
		return;
	}
	if (row->descriptor >= 0)
		describe_file(thread, row, ret);
}

/* NULL: its system call has to tell. */
static const char *state_text(const struct thread *thread)
{
	switch (thread->state) {
	case 'R':
		return "running";
	case 'T':
		return "stopped";
	case 't':
		return "stopped by a debugger";
	case 'Z':
	case 'X':
		return "ended";
	case 'I':
		return "idle";
	}
	return thread->call.kind == THREAD_CALL_running ? "running" : NULL;
}

struct error *thread_waiting_text(const struct thread *thread, char **ret)
{
	const struct syscall_row *row = find_row(thread->call.number);
	const char *state = state_text(thread);
	const char *firmly = thread->state == 'D' ? ", uninterruptible" : "";
	char detail[DETAIL_BYTES] = "", wchan[THREAD_WCHAN + 8] = "";

	if (state)
		return str_copy(ret, state);
	if (thread->wchan[0])
		(void)snprintf(wchan, sizeof(wchan), " (%s)", thread->wchan);
	switch (thread->call.kind) {
	case THREAD_CALL_inside:
		if (!row)
			return str_format(ret, "system call %ju%s%s",
					  (uintmax_t)thread->call.number, wchan, firmly);
		describe_arguments(thread, row, detail);
		return str_format(ret, "%s%s%s", row->name, detail, firmly);
	case THREAD_CALL_outside:
		return str_format(ret, "the kernel, not in a system call%s%s", wchan, firmly);
	case THREAD_CALL_unknown:
	case THREAD_CALL_running:
		break;
	}
	return str_format(ret, "waiting%s%s", wchan, firmly);
}
