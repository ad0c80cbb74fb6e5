/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the small parts of the agent's operation: lock, checks, marks, systemd, usage. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/controller.h"
#include "agent/lock.h"
#include "agent/marks.h"
#include "agent/notify.h"
#include "agent/preconditions.h"
#include "agent/usage.h"
#include "base/cleanup.h"
#include "base/file.h"

#include "unit.h"

TEST(only_one_has_the_lock_and_its_name_is_gprofilers)
{
	_cleanup_close_ int fd = -1, second = -1, other = -1;

	// Another agent may really be running.
	struct error *err = lock_take(&fd);
	if (err) {
		error_free(err);
		SKIP("the lock is held by somebody else");
	}
	ASSERT_FAILS(lock_take(&second), "Could not acquire gProfiler's lock. Is it already "
					 "running? Try 'sudo netstat -xp | grep gprofiler'");
	struct sockaddr_un address;
	socklen_t length = sizeof(address);
	ASSERT_TRUE(!getsockname(fd, (struct sockaddr *)&address, &length));
	ASSERT_EQ(length, sizeof(sa_family_t) + 16);
	ASSERT_TRUE(!memcmp(address.sun_path, "\0\0gprofiler_lock", 16));
	close(take_fd(&fd));
	ASSERT_OK(lock_take(&fd));
}

TEST(checks_come_in_gprofilers_order_with_its_words)
{
	struct preconditions wanted = {.any_pidns = true, .several = true, .log_usage = true};
	int lock = -1;

	wanted.rootless = !geteuid();
	ASSERT_FAILS(preconditions_check(&wanted, &lock),
		     geteuid() ? "Not running as root, rerun with --rootless or as root."
			       : "Running as root, rerun without --rootless");
	wanted.rootless = !wanted.rootless;
	ASSERT_FAILS(preconditions_check(&wanted, &lock),
		     "--log-usage is available only when run as a container!");
	wanted.in_container = true;
	ASSERT_OK(preconditions_check(&wanted, &lock));
	ASSERT_EQ(lock, -1);
}

TEST(a_controller_that_ends_is_noticed_and_one_that_is_not_there_refused)
{
	struct controller controller;
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	ASSERT_OK(controller_find(pid, &controller));
	ASSERT_FALSE(controller_ended(&controller));
	struct controller other = {pid, controller.start_ticks - 1};
	ASSERT_TRUE(controller_ended(&other));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ASSERT_TRUE(controller_ended(&controller));
	ASSERT_FAILS(controller_find(pid, &controller), "is not running");
	ASSERT_OK(controller_find(0, &controller));
	ASSERT_FALSE(controller_ended(&controller));
}

TEST(the_pid_is_written_without_a_line_end_and_only_our_own_file_removed)
{
	char path[] = "/tmp/cairn-pid-XXXXXX", pid[16];
	_cleanup_close_ int fd = mkstemp(path);
	_cleanup_free_ char *text = NULL;
	size_t size;

	snprintf(pid, sizeof(pid), "%d", getpid());
	ASSERT_OK(marks_write_pid(path));
	ASSERT_OK(file_read(AT_FDCWD, path, 64, &text, &size));
	ASSERT_STREQ(text, pid);
	marks_remove_pid(path);
	ASSERT_TRUE(access(path, F_OK) < 0);

	FILE *file = fopen(path, "we");
	fputs("1", file);
	fclose(file);
	marks_remove_pid(path);
	ASSERT_TRUE(!unlink(path));
	ASSERT_FAILS(marks_write_pid("/proc/no/such"), "No such file");
}

TEST(a_heartbeat_gives_a_file_the_time_and_never_waits)
{
	char path[] = "/tmp/cairn-beat-XXXXXX";
	_cleanup_close_ int fd = mkstemp(path);
	const struct timespec past[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct stat st;

	ASSERT_TRUE(!futimens(fd, past));
	ASSERT_OK(marks_touch(path));
	ASSERT_TRUE(!stat(path, &st) && st.st_mtime > 1000000);
	unlink(path);
	ASSERT_OK(marks_touch(path));
	ASSERT_TRUE(!stat(path, &st) && (st.st_mode & 0777) == 0644);
	unlink(path);
	ASSERT_TRUE(!mkfifo(path, 0600));
	ASSERT_FAILS(marks_touch(path), "touch /tmp/cairn-beat-");
	unlink(path);
}

TEST(systemd_hears_what_it_is_told_by_path_and_by_abstract_name)
{
	static const char *const names[] = {"/tmp/cairn-notify-test", "@cairn-notify-test"};

	for (size_t i = 0; i < 2; i++) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};
		_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
		char text[64] = "";
		memcpy(address.sun_path, names[i], strlen(names[i]));
		if (*names[i] == '@')
			address.sun_path[0] = 0;
		unlink(address.sun_path);
		ASSERT_TRUE(!bind(fd, (struct sockaddr *)&address,
				  sizeof(sa_family_t) + (socklen_t)strlen(names[i])));
		setenv("NOTIFY_SOCKET", names[i], 1);
		notify_send("READY=1");
		ASSERT_EQ(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT), 7);
		ASSERT_STREQ(text, "READY=1");
		unlink(address.sun_path);
	}
	notify_send("nobody listens any more");
	unsetenv("NOTIFY_SOCKET");
	notify_send("nobody asked");
}

TEST(the_watchdog_is_fed_twice_as_often_as_needed_if_it_is_ours)
{
	unsetenv("WATCHDOG_PID");
	ASSERT_EQ(notify_watchdog_ns(), 0);
	setenv("WATCHDOG_USEC", "3000000", 1);
	ASSERT_EQ(notify_watchdog_ns(), 1500000000);
	setenv("WATCHDOG_PID", "1", 1);
	ASSERT_EQ(notify_watchdog_ns(), 0);
	unsetenv("WATCHDOG_PID");
	setenv("WATCHDOG_USEC", "soon", 1);
	ASSERT_EQ(notify_watchdog_ns(), 0);
}

/* ROOT/NAME with TEXT in it, and what is missing above. */
static void put(const char *root, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	*strrchr(path, '/') = 0;
	ASSERT_OK(file_make_directories(path, 0755));
	path[strlen(path)] = '/';
	FILE *file = fopen(path, "we");
	ASSERT_TRUE(file != NULL);
	fputs(text, file);
	fclose(file);
}

static void remove_tree(const char *root)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", root);
	ASSERT_EQ(system(command), 0);
}

TEST(usage_is_read_of_both_versions_and_where_a_container_has_it)
{
	char root[] = "/tmp/cairn-usage-XXXXXX";
	struct usage usage;

	ASSERT_TRUE(mkdtemp(root) != NULL);
	ASSERT_OK(usage_read_from("0::/a.slice\n", root, &usage));
	ASSERT_TRUE(!usage.has_cpu && !usage.has_memory);
	put(root, "a.slice/cpu.stat", "usage_usec 1500000\nuser_usec 1\n");
	put(root, "a.slice/memory.current", "4096\n");
	ASSERT_OK(usage_read_from("0::/a.slice\n", root, &usage));
	ASSERT_TRUE(usage.has_cpu && usage.has_memory);
	ASSERT_EQ(usage.cpu_ns, 1500000000);
	ASSERT_EQ(usage.memory_bytes, 4096);

	put(root, "cpu,cpuacct/docker/x/cpuacct.usage", "77\n");
	put(root, "memory/memory.usage_in_bytes", "88\n");
	ASSERT_OK(usage_read_from("9:name=systemd:/\n4:cpu,cpuacct:/docker/x\n"
				  "3:memory:/docker/x\n0::/\n",
				  root, &usage));
	ASSERT_EQ(usage.cpu_ns, 77);
	ASSERT_EQ(usage.memory_bytes, 88);
	put(root, "memory/memory.usage_in_bytes", "a lot\n");
	ASSERT_OK(usage_read_from("3:memory:/\n::\n:\nx\n", root, &usage));
	ASSERT_FALSE(usage.has_memory);
	remove_tree(root);
}

RUN_TESTS(UNIT_TEST(only_one_has_the_lock_and_its_name_is_gprofilers),
	  UNIT_TEST(checks_come_in_gprofilers_order_with_its_words),
	  UNIT_TEST(a_controller_that_ends_is_noticed_and_one_that_is_not_there_refused),
	  UNIT_TEST(the_pid_is_written_without_a_line_end_and_only_our_own_file_removed),
	  UNIT_TEST(a_heartbeat_gives_a_file_the_time_and_never_waits),
	  UNIT_TEST(systemd_hears_what_it_is_told_by_path_and_by_abstract_name),
	  UNIT_TEST(the_watchdog_is_fed_twice_as_often_as_needed_if_it_is_ours),
	  UNIT_TEST(usage_is_read_of_both_versions_and_where_a_container_has_it))
