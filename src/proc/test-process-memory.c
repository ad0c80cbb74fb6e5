/* SPDX-License-Identifier: Apache-2.0 */
/* Children that hold known bytes, exchange their program, end, or must not be looked at. */
#include "proc/process-memory.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "proc/access.h"
#include "unit.h"

enum { PAGE = 4096, PAGES = 4, HOLE = 2, ITEMS = 600, NOBODY = 65534 };

/* Runs in the child; READY is closed when it is at the point that the test waits for. */
typedef void child_fn(int ready);

static pid_t start_child(child_fn *fn)
{
	int ready[2];
	char byte;

	ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		fn(ready[1]);
		_exit(99);
	}
	ASSERT_TRUE(pid > 0);
	close(ready[1]);
	(void)!read(ready[0], &byte, 1);
	close(ready[0]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
}

static void wait_for_ever(int ready)
{
	close(ready);
	pause();
}

/* PAGES pages with known bytes and a hole in them, at the same place in children. */
static uint8_t *pages;

static void make_pages(void)
{
	if (pages)
		return;
	pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	ASSERT_TRUE(pages != MAP_FAILED);
	for (size_t i = 0; i < PAGES * PAGE; i++)
		pages[i] = (uint8_t)(i * 7 + (i >> 8));
	ASSERT_EQ(munmap(pages + HOLE * PAGE, PAGE), 0);
}

static bool in_hole(size_t offset, size_t size)
{
	return size && offset < (HOLE + 1) * PAGE && offset + size > HOLE * PAGE;
}

static uint64_t addr_of(size_t offset)
{
	return (uint64_t)(uintptr_t)pages + offset;
}

/* Are reads of many places and sizes, one by one and together, what is there? */
static bool reads_are_right(struct process_memory *process)
{
	static const size_t sizes[] = {0, 1, 8, 17, 4096, 5000};
	struct memory memory = process_memory_reader(process);
	static uint8_t data[ITEMS][8];
	struct memory_item items[ITEMS];
	uint8_t one[PAGE * 2];
	size_t expected = 0;

	for (size_t i = 0; i < ARRAY_COUNT(sizes); i++)
		for (size_t offset = 0; offset + sizes[i] <= PAGES * PAGE; offset += 1021) {
			bool read = !memory_read(&memory, addr_of(offset), one, sizes[i]);
			if (read == in_hole(offset, sizes[i]) ||
			    (read && memcmp(one, pages + offset, sizes[i])))
				return false;
		}
	for (size_t i = 0; i < ITEMS; i++) {
		items[i] = (struct memory_item){addr_of(i * 27), data[i], 8, false};
		expected += !in_hole(i * 27, 8);
	}
	if (memory_read_many(&memory, items, ITEMS) != expected)
		return false;
	for (size_t i = 0; i < ITEMS; i++)
		if (items[i].read == in_hole(i * 27, 8) ||
		    (items[i].read && memcmp(data[i], pages + i * 27, 8)))
			return false;
	return memory_read(&memory, UINT64_MAX - 2, one, 8) && memory_read(&memory, 0, one, 8) &&
	       memory_read(&memory, 1ull << 63, one, 8) &&
	       memory_read(&memory, addr_of(0), one, SIZE_MAX);
}

static struct process_memory *open_child(pid_t pid)
{
	struct process_memory *process = NULL;
	enum process_memory_look look = PROCESS_MEMORY_gone;

	ASSERT_OK(process_memory_open(pid, &look, &process));
	ASSERT_EQ(look, PROCESS_MEMORY_opened);
	return process;
}

TEST(what_is_read_is_there_and_a_hole_fails_alone)
{
	make_pages();
	pid_t pid = start_child(wait_for_ever);
	_cleanup_process_memory_ struct process_memory *process = open_child(pid);
	ASSERT_TRUE(reads_are_right(process));
	end_child(pid);
}

TEST(many_reads_are_one_call)
{
	make_pages();
	pid_t pid = start_child(wait_for_ever);
	_cleanup_process_memory_ struct process_memory *process = open_child(pid);
	struct memory memory = process_memory_reader(process);
	uint8_t data[200][8];
	struct memory_item items[200];

	for (size_t i = 0; i < 200; i++)
		items[i] = (struct memory_item){addr_of(i * 8), data[i], 8, false};
	ASSERT_EQ(memory_read_many(&memory, items, 200), 200);
	end_child(pid);
	ASSERT_EQ(process_memory_calls(process), 1);
}

/* Forbid process_vm_readv() as a container runtime does. */
static bool forbid_call(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = ARRAY_COUNT(filter), .filter = filter};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int status_of(pid_t pid)
{
	int status = 0;

	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static pid_t other;

/* 0: the reads of OTHER are right without the call. */
static int read_without_call(void)
{
	_cleanup_process_memory_ struct process_memory *process = NULL;
	enum process_memory_look look = PROCESS_MEMORY_gone;

	if (!forbid_call())
		return 77;
	struct error *err = process_memory_open(other, &look, &process);
	error_free(err); // shows as a process that was not opened
	if (!process || look != PROCESS_MEMORY_opened)
		return 1;
	return reads_are_right(process) ? 0 : 2;
}

/* 0: the reads are right although the call is forbidden after the first of them. */
static int lose_call(void)
{
	_cleanup_process_memory_ struct process_memory *process = NULL;
	enum process_memory_look look = PROCESS_MEMORY_gone;

	struct error *err = process_memory_open(other, &look, &process);
	error_free(err); // as above
	if (!process || !reads_are_right(process))
		return 1;
	if (!forbid_call())
		return 77;
	return reads_are_right(process) ? 0 : 2;
}

TEST(where_the_call_is_forbidden_the_file_serves)
{
	int (*const ways[])(void) = {read_without_call, lose_call};

	make_pages();
	other = start_child(wait_for_ever);
	for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(ways[i]());
		int status = status_of(pid);
		if (status == 77) {
			end_child(other);
			SKIP("no seccomp filters here");
		}
		ASSERT_EQ(status, 0);
	}
	end_child(other);
}

TEST(a_process_that_has_ended_is_gone)
{
	struct process_memory *process = NULL;
	enum process_memory_look look = PROCESS_MEMORY_opened;
	enum process_memory_state same = PROCESS_MEMORY_exec;
	uint8_t byte;

	make_pages();
	pid_t pid = start_child(wait_for_ever);
	_cleanup_process_memory_ struct process_memory *before = open_child(pid);
	struct memory memory = process_memory_reader(before);
	ASSERT_OK(process_memory_check(before, &same));
	ASSERT_EQ(same, PROCESS_MEMORY_same);

	siginfo_t info;
	kill(pid, SIGKILL);
	ASSERT_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	for (int zombie = 1; zombie >= 0; zombie--) {
		ASSERT_OK(process_memory_open(pid, &look, &process));
		ASSERT_EQ(look, PROCESS_MEMORY_gone);
		ASSERT_TRUE(process == NULL);
		ASSERT_EQ(memory_read(&memory, addr_of(0), &byte, 1), -1);
		ASSERT_OK(process_memory_check(before, &same));
		ASSERT_EQ(same, PROCESS_MEMORY_ended);
		if (zombie)
			ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	}
	process_memory_close(NULL);
}

static int go_on[2];

/* Twice the same program: it waits for the end of its input. */
static void exec_when_told(int ready)
{
	char byte;

	close(go_on[1]);
	dup2(go_on[0], 0);
	close(ready);
	(void)!read(go_on[0], &byte, 1);
	execl("/bin/cat", "cat", NULL);
}

static void wait_for_exe(pid_t pid, const char *end)
{
	for (int i = 0; i < 500; i++) {
		char path[32], target[PATH_MAX];
		(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
		ssize_t length = readlink(path, target, sizeof(target) - 1);
		target[length < 0 ? 0 : length] = 0;
		if (strstr(target, end))
			return;
		usleep(10000);
	}
}

TEST(an_exec_is_told_and_another_program_s_memory_is_not_taken_for_the_first_one_s)
{
	enum process_memory_state same = PROCESS_MEMORY_same;

	ASSERT_EQ(pipe2(go_on, 0), 0);
	pid_t pid = start_child(exec_when_told);
	_cleanup_process_memory_ struct process_memory *process = open_child(pid);
	ASSERT_OK(process_memory_check(process, &same));
	ASSERT_EQ(same, PROCESS_MEMORY_same);
	ASSERT_EQ(write(go_on[1], "x", 1), 1);
	wait_for_exe(pid, "/cat");
	ASSERT_OK(process_memory_check(process, &same));
	ASSERT_EQ(same, PROCESS_MEMORY_exec);

	_cleanup_process_memory_ struct process_memory *second = open_child(pid);
	ASSERT_OK(process_memory_check(second, &same));
	ASSERT_EQ(same, PROCESS_MEMORY_same);
	end_child(pid);
	close(go_on[0]);
	close(go_on[1]);
}

/* The same program once more, as servers do that execute themselves. */
static void exec_itself(int ready)
{
	close(go_on[1]);
	dup2(go_on[0], 0);
	execl("/bin/sh", "sh", "-c", "read x; exec /bin/sh -c 'read y'", NULL);
}

TEST(an_exec_of_the_same_program_is_told_too)
{
	enum process_memory_state same = PROCESS_MEMORY_same;

	ASSERT_EQ(pipe2(go_on, 0), 0);
	pid_t pid = start_child(exec_itself);
	_cleanup_process_memory_ struct process_memory *process = open_child(pid);
	ASSERT_EQ(write(go_on[1], "x\n", 2), 2);
	for (int i = 0; i < 500 && same == PROCESS_MEMORY_same; i++) {
		usleep(10000);
		ASSERT_OK(process_memory_check(process, &same));
	}
	ASSERT_EQ(same, PROCESS_MEMORY_exec);
	end_child(pid);
	close(go_on[0]);
	close(go_on[1]);
}

static void *second_thread(void *context)
{
	int ready = *(int *)context;

	usleep(20000); // the first one has ended by then
	close(ready);
	pause();
	return NULL;
}

static void leave_to_second_thread(int ready)
{
	static int kept;
	pthread_t thread;

	kept = ready;
	if (!pthread_create(&thread, NULL, second_thread, &kept))
		syscall(SYS_exit, 0);
}

TEST(a_process_whose_first_thread_ended_is_read_by_another)
{
	make_pages();
	pid_t pid = start_child(leave_to_second_thread);
	_cleanup_process_memory_ struct process_memory *process = open_child(pid);
	enum process_memory_state same = PROCESS_MEMORY_ended;

	ASSERT_TRUE(reads_are_right(process));
	ASSERT_OK(process_memory_check(process, &same));
	ASSERT_EQ(same, PROCESS_MEMORY_same);
	end_child(pid);
}

TEST(kernel_threads_have_no_memory)
{
	struct process_memory *process = NULL;
	enum process_memory_look look = PROCESS_MEMORY_opened;
	struct stat st;

	if (stat("/proc/2/exe", &st) == 0)
		SKIP("pid 2 is no kernel thread: a pid namespace of its own");
	ASSERT_OK(process_memory_open(2, &look, &process));
	ASSERT_TRUE(look == PROCESS_MEMORY_none || look == PROCESS_MEMORY_gone);
	ASSERT_TRUE(process == NULL);
}

/* In a child: become nobody. */
static bool become_nobody(void)
{
	return !setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
	       !setresuid(NOBODY, NOBODY, NOBODY);
}

static void wait_as_nobody(int ready)
{
	if (become_nobody())
		wait_for_ever(ready);
}

static bool look_from_user_namespace(void)
{
	return !unshare(CLONE_NEWUSER);
}

/* 0: OTHER may not be read after BECOME, and the explanation holds TEXT. */
static int denied_after(bool (*become)(void), const char *text)
{
	_cleanup_process_memory_ struct process_memory *process = NULL;
	_cleanup_free_ char *why = NULL;
	enum process_memory_look look = PROCESS_MEMORY_gone;

	if (!become())
		return 77;
	struct error *err = process_memory_open(other, &look, &process);
	error_free(err); // shows as another outcome
	if (look != PROCESS_MEMORY_denied)
		return 1;
	err = access_explain(other, &why);
	error_free(err); // shows as no text
	if (!why || !strstr(why, text)) {
		print_error("explained as \"%s\"\n", why ? why : "");
		return 2;
	}
	return 0;
}

TEST(who_may_not_look_is_told_what_is_missing)
{
	static const struct {
		const char *text;
		bool (*become)(void);
		child_fn *target;
	} cases[] = {
		{"it runs as uid 0 and cairn as uid 65534", become_nobody, wait_for_ever},
		{"it is not dumpable", become_nobody, wait_as_nobody},
		{"another user namespace", look_from_user_namespace, wait_for_ever},
	};

	if (geteuid() != 0)
		SKIP("only root can become somebody else");
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		other = start_child(cases[i].target);
		pid_t pid = fork();
		if (pid == 0)
			_exit(denied_after(cases[i].become, cases[i].text));
		int status = status_of(pid);
		end_child(other);
		if (status == 77)
			print_message("not possible here: %s\n", cases[i].text);
		else
			ASSERT_EQ(status, 0);
	}
}

TEST(a_process_that_is_not_there_is_explained_so)
{
	_cleanup_free_ char *why = NULL;
	pid_t pid = start_child(wait_for_ever);

	end_child(pid);
	ASSERT_OK(access_explain(pid, &why));
	ASSERT_STREQ(why, "there is no such process");
}

RUN_TESTS(UNIT_TEST(what_is_read_is_there_and_a_hole_fails_alone),
	  UNIT_TEST(many_reads_are_one_call),
	  UNIT_TEST(where_the_call_is_forbidden_the_file_serves),
	  UNIT_TEST(a_process_that_has_ended_is_gone),
	  UNIT_TEST(an_exec_is_told_and_another_program_s_memory_is_not_taken_for_the_first_one_s),
	  UNIT_TEST(an_exec_of_the_same_program_is_told_too),
	  UNIT_TEST(a_process_whose_first_thread_ended_is_read_by_another),
	  UNIT_TEST(kernel_threads_have_no_memory),
	  UNIT_TEST(who_may_not_look_is_told_what_is_missing),
	  UNIT_TEST(a_process_that_is_not_there_is_explained_so))
