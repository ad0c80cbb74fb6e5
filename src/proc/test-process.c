/* SPDX-License-Identifier: Apache-2.0 */
/* Our own process, children with odd names, and children that are gone. */
#include "proc/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "unit.h"

/* A child that waits until it is ended; after exec it is "sleep" with ARGV0. */
static pid_t start_child(const char *comm, const char *argv0)
{
	int ready[2];
	char byte;

	ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (comm)
			prctl(PR_SET_NAME, comm);
		if (argv0) // the exec closes the pipe, which tells the parent
			execl("/bin/sleep", argv0, "100", NULL);
		(void)!write(ready[1], "", 1);
		pause();
		_exit(1);
	}
	close(ready[1]);
	(void)!read(ready[0], &byte, 1);
	close(ready[0]);
	ASSERT_TRUE(pid > 0);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
}

static bool matches(pid_t pid, const char *pattern)
{
	regex_t regex;

	ASSERT_EQ(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	bool found = process_matches(pid, &regex);
	regfree(&regex);
	return found;
}

static bool contains(const struct pids *pids, pid_t pid)
{
	for (size_t i = 0; i < pids->count; i++)
		if (pids->pid[i] == pid)
			return true;
	return false;
}

TEST(our_own_status_is_what_the_system_calls_say)
{
	struct process_status status;
	enum process_look look = PROCESS_gone;
	char comm[17] = {0};

	ASSERT_OK(process_read_status(getpid(), &look, &status));
	ASSERT_EQ(look, PROCESS_there);
	prctl(PR_GET_NAME, comm);
	ASSERT_STREQ(status.comm, comm);
	ASSERT_EQ(status.pid, getpid());
	ASSERT_EQ(status.parent_pid, getppid());
	ASSERT_EQ(status.uid, geteuid());
	ASSERT_EQ(status.state, 'R');
	ASSERT_FALSE(status.kernel_thread);
	ASSERT_TRUE(status.ns_count >= 1);
	ASSERT_EQ(status.ns_pid[0], getpid());
}

TEST(a_later_process_has_a_later_start)
{
	struct process_status self, child;
	enum process_look look;

	ASSERT_OK(process_read_status(getpid(), &look, &self));
	usleep(20000); // two clock ticks at 100 Hz
	pid_t pid = start_child(NULL, NULL);
	ASSERT_OK(process_read_status(pid, &look, &child));
	end_child(pid);
	ASSERT_TRUE(child.start_ticks > self.start_ticks);
	ASSERT_TRUE(child.start_ticks - self.start_ticks < 100 * 60);
	ASSERT_EQ(child.parent_pid, getpid());
}

TEST(a_name_may_hold_what_separates_the_fields)
{
	static const char *const names[] = {") S 1 (x", "a b", "two\nlines", ")))"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct process_status status;
		enum process_look look;
		pid_t pid = start_child(names[i], NULL);
		ASSERT_OK(process_read_status(pid, &look, &status));
		end_child(pid);
		ASSERT_EQ(look, PROCESS_there);
		ASSERT_STREQ(status.comm, names[i]);
		ASSERT_EQ(status.parent_pid, getpid());
	}
}

TEST(a_process_that_has_ended_is_gone_everywhere)
{
	pid_t pid = start_child(NULL, NULL);
	struct process_status status;
	enum process_look look = PROCESS_there;
	_cleanup_free_ char *exe = NULL;
	_cleanup_free_ char *cgroup = NULL;
	_cleanup_(pids_deinit) struct pids threads = PIDS_INIT;

	end_child(pid);
	ASSERT_OK(process_read_status(pid, &look, &status));
	ASSERT_EQ(look, PROCESS_gone);
	ASSERT_OK(process_read_exe(pid, &exe));
	ASSERT_STREQ(exe, "");
	ASSERT_OK(process_read_cgroup(pid, &cgroup));
	ASSERT_STREQ(cgroup, "");
	ASSERT_OK(process_list_threads(pid, &threads));
	ASSERT_EQ(threads.count, 0);
	ASSERT_EQ(process_read_bits(pid), PROCESS_bits_unknown);
	ASSERT_FALSE(matches(pid, "."));
}

TEST(kernel_threads_are_told_from_processes)
{
	struct process_status status;
	enum process_look look;

	ASSERT_OK(process_read_status(2, &look, &status));
	if (look == PROCESS_gone || strcmp(status.comm, "kthreadd") != 0)
		SKIP("pid 2 is not kthreadd: a pid namespace of its own");
	ASSERT_TRUE(status.kernel_thread);
	ASSERT_EQ(status.parent_pid, 0);
}

TEST(the_program_and_its_word_size_are_read)
{
	_cleanup_free_ char *exe = NULL;
	pid_t pid = start_child(NULL, "sleep");

	ASSERT_OK(process_read_exe(pid, &exe));
	ASSERT_EQ(process_read_bits(pid), sizeof(void *) == 8 ? PROCESS_bits_64 : PROCESS_bits_32);
	end_child(pid);
	ASSERT_TRUE(str_ends(exe, "/sleep") || str_ends(exe, "/coreutils") ||
		    str_ends(exe, "/busybox"));
}

TEST(a_32_bit_program_is_recognised_by_its_header)
{
	// i386: write(1, ..) is not needed; it pauses (system call 29) and would exit afterwards.
	static const unsigned char code[] = {0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7};
	unsigned char file[0x54 + sizeof(code)] = {0x7f, 'E', 'L', 'F', 1, 1, 1};
	static const uint32_t header[] = {0x00030002, 1, 0x08048054, 0x34, 0, 0, 0x00200034, 1, 0};
	const uint32_t segment[] = {1, 0,   0x08048000, 0x08048000, sizeof(file), sizeof(file),
				    5, 4096};
	char path[] = "/tmp/cairn-32-XXXXXX";
	int fd = mkstemp(path);

	ASSERT_TRUE(fd >= 0);
	memcpy(file + 16, header, sizeof(header));
	memcpy(file + 0x34, segment, sizeof(segment));
	memcpy(file + 0x54, code, sizeof(code));
	ASSERT_EQ(write(fd, file, sizeof(file)), sizeof(file));
	fchmod(fd, 0700);
	close(fd);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(path, path, NULL);
		_exit(errno == ENOEXEC ? 77 : 1);
	}
	enum process_bits bits = PROCESS_bits_64;
	for (int i = 0; i < 500 && bits == PROCESS_bits_64; i++) {
		usleep(10000);
		bits = process_read_bits(pid);
	}
	unlink(path);
	int status = 0;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("this kernel runs no 32-bit programs");
	ASSERT_EQ(bits, PROCESS_bits_32);
}

static void *wait_for_byte(void *context)
{
	char byte;

	(void)!read(*(int *)context, &byte, 1);
	return NULL;
}

TEST(every_thread_is_listed_once_and_in_order)
{
	_cleanup_(pids_deinit) struct pids alone = PIDS_INIT;
	_cleanup_(pids_deinit) struct pids pids = PIDS_INIT;
	pthread_t threads[5];
	int ends[2];

	ASSERT_OK(process_list_threads(getpid(), &alone));
	ASSERT_EQ(pipe(ends), 0);
	for (int i = 0; i < 5; i++)
		ASSERT_EQ(pthread_create(&threads[i], NULL, wait_for_byte, &ends[0]), 0);
	ASSERT_OK(process_list_threads(getpid(), &pids));
	ASSERT_EQ(write(ends[1], "12345", 5), 5);
	for (int i = 0; i < 5; i++)
		pthread_join(threads[i], NULL);
	close(ends[0]);
	close(ends[1]);
	ASSERT_EQ(pids.count, alone.count + 5);
	ASSERT_TRUE(contains(&pids, getpid()));
	for (size_t i = 1; i < pids.count; i++)
		ASSERT_TRUE(pids.pid[i - 1] < pids.pid[i]);
}

TEST(the_list_of_processes_holds_us_and_our_children)
{
	_cleanup_(pids_deinit) struct pids before = PIDS_INIT;
	_cleanup_(pids_deinit) struct pids after = PIDS_INIT;
	pid_t pid = start_child(NULL, NULL);

	ASSERT_OK(processes_list(&before));
	end_child(pid);
	ASSERT_OK(processes_list(&after));
	ASSERT_TRUE(contains(&before, getpid()));
	ASSERT_TRUE(contains(&before, pid));
	ASSERT_FALSE(contains(&after, pid));
}

TEST(a_process_is_found_by_comm_and_by_argv0)
{
	pid_t pid = start_child(NULL, "/opt/where/my-server: worker");

	ASSERT_TRUE(matches(pid, "^sleep$"));
	ASSERT_TRUE(matches(pid, "^my-server: (worker|master)$"));
	ASSERT_FALSE(matches(pid, "where")); // a directory is not its name
	ASSERT_FALSE(matches(pid, "^server"));

	_cleanup_(pids_deinit) struct pids found = PIDS_INIT;
	ASSERT_OK(processes_find("^my-server", &found));
	ASSERT_TRUE(contains(&found, pid));
	ASSERT_FALSE(contains(&found, getpid()));
	end_child(pid);
}

TEST(a_pattern_that_is_none_says_why)
{
	struct pids found = PIDS_INIT;

	ASSERT_FAILS(processes_find("(", &found), "process name \"(\": ");
	ASSERT_TRUE(found.pid == NULL);
}

TEST(our_control_group_is_a_path_from_our_own_file)
{
	_cleanup_free_ char *group = NULL;
	_cleanup_free_ char *text = NULL;
	_cleanup_free_ char *line = NULL;
	size_t size;

	ASSERT_OK(process_read_cgroup(getpid(), &group));
	ASSERT_OK(file_read(AT_FDCWD, "/proc/self/cgroup", 1 << 20, &text, &size));
	if (!size)
		SKIP("no control groups here");
	ASSERT_OK(str_format(&line, ":%s\n", group));
	ASSERT_TRUE(group[0] == '/' && strstr(text, line));
}

RUN_TESTS(UNIT_TEST(our_own_status_is_what_the_system_calls_say),
	  UNIT_TEST(a_later_process_has_a_later_start),
	  UNIT_TEST(a_name_may_hold_what_separates_the_fields),
	  UNIT_TEST(a_process_that_has_ended_is_gone_everywhere),
	  UNIT_TEST(kernel_threads_are_told_from_processes),
	  UNIT_TEST(the_program_and_its_word_size_are_read),
	  UNIT_TEST(a_32_bit_program_is_recognised_by_its_header),
	  UNIT_TEST(every_thread_is_listed_once_and_in_order),
	  UNIT_TEST(the_list_of_processes_holds_us_and_our_children),
	  UNIT_TEST(a_process_is_found_by_comm_and_by_argv0),
	  UNIT_TEST(a_pattern_that_is_none_says_why),
	  UNIT_TEST(our_control_group_is_a_path_from_our_own_file))
