/* SPDX-License-Identifier: Apache-2.0 */
/* The table of system calls against the kernel's header, and sentences. */
#include "proc/waiting.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/str.h"
#include "unit.h"

/* A thread of ours that waits in system call NUMBER with arguments A and B. */
static struct thread waiting_in(uint64_t number, uint64_t a, uint64_t b)
{
	return (struct thread){
		.pid = getpid(),
		.tid = getpid(),
		.state = 'S',
		.call = {.kind = THREAD_CALL_inside, .number = number, .argument = {a, b}},
	};
}

static void check_says(const struct thread *thread, const char *expected)
{
	_cleanup_free_ char *text = NULL;

	ASSERT_OK(thread_waiting_text(thread, &text));
	ASSERT_STREQ(text, expected);
}

TEST(every_call_of_the_kernel_s_header_is_in_the_table)
{
	_cleanup_fclose_ FILE *header =
		fopen("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "re");
	char line[256], name[128];
	unsigned number, count = 0;

	if (!header)
		SKIP("the kernel's <asm/unistd_64.h> is not where Debian has it");
	while (fgets(line, sizeof(line), header)) {
		if (sscanf(line, "#define __NR_%127s %u", name, &number) != 2)
			continue;
		ASSERT_TRUE(syscall_name(number));
		ASSERT_STREQ(syscall_name(number), name);
		count++;
	}
	ASSERT_TRUE(count > 300);
	ASSERT_EQ(syscall_descriptor(SYS_read), 0);
	ASSERT_EQ(syscall_descriptor(SYS_symlinkat), 1);
	ASSERT_EQ(syscall_descriptor(SYS_nanosleep), -1);
	ASSERT_TRUE(!syscall_name(100000) && !syscall_name(340));
	ASSERT_EQ(syscall_descriptor(100000), -1);
}

TEST(calls_become_sentences)
{
	static const struct {
		uint64_t number, a, b;
		const char *text;
	} cases[] = {
		{SYS_futex, 0x7f2c004008c8, 0x80, "futex 0x7f2c004008c8"},
		{SYS_nanosleep, 1, 2, "nanosleep"},
		{SYS_wait4, (uint64_t)-1, 0, "wait4 for any child"},
		{SYS_wait4, 0xffffffff, 0, "wait4 for any child"},
		{SYS_wait4, 17, 0, "wait4 for 17"},
		{SYS_wait4, (uint64_t)-17, 0, "wait4 for a child of a process group"},
		{SYS_waitid, P_ALL, 0, "waitid for any child"},
		{SYS_waitid, P_PID, 5, "waitid for 5"},
		{SYS_poll, 0x1000, 3, "poll on 3 descriptors"},
		{SYS_restart_syscall, 0, 0, "restart_syscall"},
		{SYS_openat, (uint64_t)AT_FDCWD, 0, "openat"},
		{SYS_read, 1000000, 0, "read from 1000000"},
		{9999, 0, 0, "system call 9999"},
	};

	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct thread thread = waiting_in(cases[i].number, cases[i].a, cases[i].b);
		check_says(&thread, cases[i].text);
	}
	struct thread thread = waiting_in(SYS_restart_syscall, 0, 0);
	(void)snprintf(thread.wchan, sizeof(thread.wchan), "hrtimer_nanosleep");
	check_says(&thread, "restart_syscall (hrtimer_nanosleep)");
	thread.state = 'D';
	check_says(&thread, "restart_syscall (hrtimer_nanosleep), uninterruptible");
	thread.call.kind = THREAD_CALL_outside;
	check_says(&thread, "the kernel, not in a system call (hrtimer_nanosleep), "
			    "uninterruptible");
	thread.call.kind = THREAD_CALL_unknown;
	check_says(&thread, "waiting (hrtimer_nanosleep), uninterruptible");
	thread.state = 'T';
	check_says(&thread, "stopped");
	thread.state = 'R';
	check_says(&thread, "running");
}

TEST(a_descriptor_is_shown_with_what_it_leads_to)
{
	_cleanup_free_ char *expected = NULL;
	char link[64], path[64];
	int fds[2];

	ASSERT_EQ(pipe(fds), 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
	ssize_t length = readlink(path, link, sizeof(link) - 1);
	link[length] = 0;
	ASSERT_OK(str_format(&expected, "read from %d (%s)", fds[0], link));
	// Only the lower half of a register is the descriptor.
	struct thread thread = waiting_in(SYS_read, 0xdead00000000 | (uint64_t)fds[0], 0);
	check_says(&thread, expected);
	close(fds[0]);
	close(fds[1]);

	int epoll = epoll_create1(EPOLL_CLOEXEC);
	free(take(expected));
	ASSERT_OK(str_format(&expected, "epoll_wait on %d", epoll));
	thread = waiting_in(SYS_epoll_wait, (uint64_t)epoll, 0);
	check_says(&thread, expected);
	close(epoll);
}

TEST(a_file_s_name_cannot_command_a_terminal_or_fill_the_screen)
{
	char name[300] = "/tmp/cairn-\033[31m\n\xc2\x9bm-", tail[256];
	_cleanup_free_ char *text = NULL;

	memset(tail, 'x', sizeof(tail));
	memcpy(name + strlen(name), tail, 150);
	int fd = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	ASSERT_TRUE(fd >= 0);
	unlink(name);
	struct thread thread = waiting_in(SYS_write, (uint64_t)fd, 0);
	ASSERT_OK(thread_waiting_text(&thread, &text));
	ASSERT_TRUE(strstr(text, "(/tmp/cairn-?[31m???m-xxx"));
	ASSERT_TRUE(strlen(text) < WAITING_BYTES);
	close(fd);
}

RUN_TESTS(UNIT_TEST(every_call_of_the_kernel_s_header_is_in_the_table),
	  UNIT_TEST(calls_become_sentences), UNIT_TEST(a_descriptor_is_shown_with_what_it_leads_to),
	  UNIT_TEST(a_file_s_name_cannot_command_a_terminal_or_fill_the_screen))
