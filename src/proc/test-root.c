/* SPDX-License-Identifier: Apache-2.0 */
/* A directory full of links that want out, opened with and without openat2(). */
#include "proc/root.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "unit.h"

/* TOP/outside is the file nobody may reach from TOP/root. */
static char top[64];
static int root_fd = -1;

static void make_file(const char *name, const char *text)
{
	_cleanup_close_ int fd = openat(root_fd, name, O_WRONLY | O_CREAT | O_EXCL, 0644);

	ASSERT_TRUE(fd >= 0);
	ASSERT_EQ(write(fd, text, strlen(text)), strlen(text));
}

static void make_tree(void)
{
	static const char *const links[][2] = {
		{"../outside", "out-relative"},
		{"../../../../../../outside", "out-far"},
		{"/usr/file", "absolute"},
		{"../usr/./file", "etc/around"},
		{"/etc/around", "chain"},
		{"loop-b", "loop-a"},
		{"loop-a", "loop-b"},
		{"/usr/", "directory-link"},
		{"fifo", "to-fifo"},
		{"/nowhere", "dangling"},
	};
	_cleanup_free_ char *outside = NULL;
	_cleanup_free_ char *root = NULL;

	(void)snprintf(top, sizeof(top), "/tmp/cairn-root-XXXXXX");
	ASSERT_TRUE(mkdtemp(top) != NULL);
	ASSERT_OK(str_format(&root, "%s/root", top));
	ASSERT_EQ(mkdir(root, 0755), 0);
	root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_TRUE(root_fd >= 0);
	make_file("../outside", "outside");
	ASSERT_OK(str_format(&outside, "%s/outside", top));
	ASSERT_EQ(mkdirat(root_fd, "usr", 0755), 0);
	ASSERT_EQ(mkdirat(root_fd, "etc", 0755), 0);
	make_file("usr/file", "inside");
	ASSERT_EQ(symlinkat(outside, root_fd, "out-absolute"), 0);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		ASSERT_EQ(symlinkat(links[i][0], root_fd, links[i][1]), 0);
	ASSERT_EQ(mkfifoat(root_fd, "fifo", 0644), 0);
}

static int setup(void **state)
{
	make_tree();
	return 0;
}

static int remove_tree(void **state)
{
	_cleanup_free_ char *command = NULL;

	close(root_fd);
	ASSERT_OK(str_format(&command, "rm -rf %s", top));
	return system(command);
}

/* A child whose root directory is TOP/root; needs root. 0: not allowed. */
static pid_t start_rooted_child(void)
{
	int ready[2];
	char byte = 0;

	ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		byte = fchdir(root_fd) || chroot(".") ? 'n' : 'y';
		(void)!write(ready[1], &byte, 1);
		pause();
		_exit(1);
	}
	close(ready[1]);
	ASSERT_EQ(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	if (byte == 'y')
		return pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}

static const struct {
	const char *path;
	enum root_outcome outcome;
} cases[] = {
	{"/usr/file", ROOT_opened},
	{"usr/file", ROOT_opened},
	{"//usr/.//./file", ROOT_opened},
	{"/../../usr/file", ROOT_opened},
	{"/etc/../usr/file", ROOT_opened},
	{"/absolute", ROOT_opened},
	{"/etc/around", ROOT_opened},
	{"/chain", ROOT_opened},
	{"/directory-link/file", ROOT_opened},
	{"/directory-link/../usr/file", ROOT_opened},
	{"/out-relative", ROOT_absent},
	{"/out-far", ROOT_absent},
	{"/out-absolute", ROOT_absent},
	{"/loop-a", ROOT_absent},
	{"/dangling", ROOT_absent},
	{"/usr/file/more", ROOT_absent},
	{"/usr/none", ROOT_absent},
	{"/fifo", ROOT_not_a_file},
	{"/to-fifo", ROOT_not_a_file},
	{"/usr", ROOT_not_a_file},
	{"/", ROOT_not_a_file},
};

static void check_text(int fd, const char *expected)
{
	_cleanup_free_ char *text = NULL;
	size_t size;

	ASSERT_OK(file_read_fd(fd, "opened", 100, &text, &size));
	ASSERT_STREQ(text, expected);
}

TEST(step_by_step_no_link_leads_out_of_the_root)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_close_ int fd = -1;
		enum root_outcome outcome = ROOT_denied;
		ASSERT_OK(root_open_by_steps(root_fd, cases[i].path, ROOT_FILE, &outcome, &fd));
		if (outcome != cases[i].outcome)
			print_error("%s\n", cases[i].path);
		ASSERT_EQ(outcome, cases[i].outcome);
		ASSERT_EQ(fd >= 0, outcome == ROOT_opened);
		if (fd >= 0)
			check_text(fd, "inside");
	}
}

TEST(in_a_process_with_a_root_of_its_own_no_link_leads_out_of_it)
{
	pid_t pid = start_rooted_child();

	if (!pid)
		SKIP("chroot needs privileges");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_close_ int fd = -1;
		enum root_outcome outcome = ROOT_denied;
		ASSERT_OK(root_open(pid, cases[i].path, &outcome, &fd));
		if (outcome != cases[i].outcome)
			print_error("%s\n", cases[i].path);
		ASSERT_EQ(outcome, cases[i].outcome);
		if (fd >= 0)
			check_text(fd, "inside");
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static const struct {
	const char *path;
	enum root_outcome outcome;
} directories[] = {
	{"/usr", ROOT_opened},          {"/", ROOT_opened},
	{"/..", ROOT_opened},           {"/directory-link", ROOT_opened},
	{"/etc/../usr/.", ROOT_opened}, {"/usr/file", ROOT_not_a_file},
	{"/fifo", ROOT_not_a_file},     {"/out-absolute", ROOT_absent},
	{"/usr/none", ROOT_absent},     {"/loop-a", ROOT_absent},
};

/* FD is a directory that is, or is below, TOP/root. */
static void check_directory(int fd)
{
	_cleanup_free_ char *self = NULL;
	char place[4096] = "";

	ASSERT_OK(str_format(&self, "/proc/self/fd/%d", fd));
	ASSERT_TRUE(readlink(self, place, sizeof(place) - 1) > 0);
	ASSERT_TRUE(str_starts(place, top) && str_starts(place + strlen(top), "/root"));
}

TEST(directories_are_opened_where_they_are_asked_for_and_inside_the_root_alone)
{
	pid_t pid = start_rooted_child();

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		_cleanup_close_ int fd = -1;
		_cleanup_close_ int other = -1;
		enum root_outcome outcome = ROOT_denied;
		ASSERT_OK(root_open_by_steps(root_fd, directories[i].path, ROOT_DIRECTORY, &outcome,
					     &fd));
		ASSERT_EQ(outcome, directories[i].outcome);
		if (fd >= 0)
			check_directory(fd);
		if (!pid)
			continue; // chroot needs privileges
		ASSERT_OK(root_open_directory(pid, directories[i].path, &outcome, &other));
		ASSERT_EQ(outcome, directories[i].outcome);
		if (other >= 0)
			check_directory(other);
	}
	if (pid) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

TEST(no_descriptor_stays_open_behind_any_of_them)
{
	int before = dup(root_fd);

	close(before);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_close_ int fd = -1;
		_cleanup_close_ int other = -1;
		enum root_outcome outcome;
		ASSERT_OK(root_open_by_steps(root_fd, cases[i].path, ROOT_FILE, &outcome, &fd));
		ASSERT_OK(root_open(getpid(), cases[i].path, &outcome, &other));
	}
	int after = dup(root_fd);
	close(after);
	ASSERT_EQ(before, after);
}

TEST(paths_too_long_and_too_deep_are_absent)
{
	static char path[6000];
	enum root_outcome outcome = ROOT_opened;
	int fd = -1;

	memset(path, 'a', 300);
	ASSERT_OK(root_open_by_steps(root_fd, path, ROOT_FILE, &outcome, &fd));
	ASSERT_EQ(outcome, ROOT_absent);
	memset(path, '/', sizeof(path) - 1);
	outcome = ROOT_opened;
	ASSERT_OK(root_open_by_steps(root_fd, path, ROOT_FILE, &outcome, &fd));
	ASSERT_EQ(outcome, ROOT_absent);
	ASSERT_EQ(fd, -1);
}

TEST(devices_and_sockets_are_never_opened)
{
	_cleanup_free_ char *path = NULL;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	enum root_outcome outcome = ROOT_opened;
	int fd = -1;

	ASSERT_OK(root_open(0, "/dev/null", &outcome, &fd));
	ASSERT_EQ(outcome, ROOT_not_a_file);
	ASSERT_OK(str_format(&path, "%s/root/socket", top));
	memcpy(address.sun_path, path, strlen(path) + 1);
	ASSERT_EQ(bind(sock, (struct sockaddr *)&address, sizeof(address)), 0);
	outcome = ROOT_opened;
	ASSERT_OK(root_open(0, path, &outcome, &fd));
	ASSERT_EQ(outcome, ROOT_not_a_file);
	ASSERT_EQ(fd, -1);
}

TEST(the_root_of_a_process_that_has_ended_is_absent)
{
	enum root_outcome outcome = ROOT_opened;
	int fd = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	ASSERT_OK(root_open(pid, "/usr/file", &outcome, &fd));
	ASSERT_EQ(outcome, ROOT_absent);
	outcome = ROOT_opened;
	ASSERT_OK(root_open_map(pid, 0x1000, 0x2000, &outcome, &fd));
	ASSERT_EQ(outcome, ROOT_absent);
	ASSERT_EQ(fd, -1);
}

TEST(a_mapped_file_is_opened_after_its_name_is_gone)
{
	_cleanup_close_ int file = openat(root_fd, "mapped", O_RDWR | O_CREAT | O_EXCL, 0644);
	_cleanup_close_ int fd = -1;
	enum root_outcome outcome = ROOT_absent;
	struct stat there, opened;

	ASSERT_EQ(write(file, "still here", 10), 10);
	void *memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
	ASSERT_TRUE(memory != MAP_FAILED);
	ASSERT_EQ(unlinkat(root_fd, "mapped", 0), 0);
	uint64_t start = (uint64_t)(uintptr_t)memory;
	ASSERT_OK(root_open_map(getpid(), start, start + 4096, &outcome, &fd));
	if (outcome == ROOT_denied)
		SKIP("map_files needs CAP_CHECKPOINT_RESTORE");
	ASSERT_EQ(outcome, ROOT_opened);
	check_text(fd, "still here");
	ASSERT_EQ(fstat(file, &there), 0);
	ASSERT_EQ(fstat(fd, &opened), 0);
	ASSERT_EQ(there.st_ino, opened.st_ino);
	munmap(memory, 4096);
}

TEST(our_running_out_of_descriptors_is_a_failure_and_not_an_absent_file)
{
	_cleanup_close_ int fd = -1;
	enum root_outcome outcome = ROOT_denied;
	static int held[65536];
	size_t count = 0;

	while (count < 65536 && (held[count] = dup(root_fd)) >= 0)
		count++;
	struct error *err =
		count < 65536 ? root_open_by_steps(root_fd, "/usr/file", ROOT_FILE, &outcome, &fd)
			      : NULL;
	while (count)
		close(held[--count]);
	if (!err)
		SKIP("no limit on descriptors within reach");
	ASSERT_FAILS(err, "Too many open files");
	ASSERT_EQ(outcome, ROOT_denied);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(step_by_step_no_link_leads_out_of_the_root),
		UNIT_TEST(in_a_process_with_a_root_of_its_own_no_link_leads_out_of_it),
		UNIT_TEST(
			directories_are_opened_where_they_are_asked_for_and_inside_the_root_alone),
		UNIT_TEST(no_descriptor_stays_open_behind_any_of_them),
		UNIT_TEST(paths_too_long_and_too_deep_are_absent),
		UNIT_TEST(devices_and_sockets_are_never_opened),
		UNIT_TEST(the_root_of_a_process_that_has_ended_is_absent),
		UNIT_TEST(a_mapped_file_is_opened_after_its_name_is_gone),
		UNIT_TEST(our_running_out_of_descriptors_is_a_failure_and_not_an_absent_file),
	};
	return cmocka_run_group_tests(tests, setup, remove_tree);
}
