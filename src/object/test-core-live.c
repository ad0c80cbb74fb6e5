/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cores of real processes, written by the kernel and by gcore, against what ptrace and
 * /proc/PID/mem said of the same process just before.
 */
#include "object/core.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/str.h"
#include "proc/process-memory.h"
#include "proc/process.h"
#include "unit.h"

enum { PAGE = 4096, THREADS = 5, BAD_ADDR = 0x1234 };

/* --- a process to look at */

/* A thread in user code, with known numbers in registers that nothing changes. */
static void *spin(void *context)
{
	register uint64_t r12 __asm__("r12") = (uint64_t)(uintptr_t)context;
	register uint64_t r13 __asm__("r13") = 0x1313131313131313;

	__asm__ volatile("1: pause; jmp 1b" : : "r"(r12), "r"(r13));
	return NULL;
}

static void *sleep_for_ever(void *context)
{
	pause();
	return NULL;
}

static void *read_for_ever(void *context)
{
	int ends[2];
	char byte;

	if (!pipe(ends))
		(void)!read(ends[0], &byte, 1);
	return NULL;
}

/* The child: THREADS threads; the first faults when GO is readable. */
static void run_child(int ready, int go)
{
	static void *(*const ways[THREADS - 1])(void *) = {spin, sleep_for_ever, read_for_ever,
							   spin};
	pthread_t thread;
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGSEGV, SIG_DFL); // cmocka would take it for a failure of the test
	for (size_t i = 0; i < ARRAY_COUNT(ways); i++)
		if (pthread_create(&thread, NULL, ways[i], (void *)(uintptr_t)(0xc0de + i)))
			_exit(1);
	usleep(100000); // until they are where they stay
	close(ready);
	(void)!read(go, &byte, 1);
	*(volatile int *)BAD_ADDR = 1;
	_exit(1);
}

struct child {
	pid_t pid;
	int go;
	char directory[64]; /* it is there, and cores appear there */
};

static void start_child(struct child *child)
{
	int ready[2], go[2];
	char byte;

	(void)snprintf(child->directory, sizeof(child->directory), "/tmp/cairn-core-XXXXXX");
	ASSERT_TRUE(mkdtemp(child->directory) != NULL);
	ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
	ASSERT_EQ(pipe2(go, O_CLOEXEC), 0);
	child->pid = fork();
	if (child->pid == 0) {
		struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
		close(ready[0]);
		close(go[1]);
		if (setrlimit(RLIMIT_CORE, &limit) || chdir(child->directory))
			_exit(1);
		run_child(ready[1], go[0]);
	}
	ASSERT_TRUE(child->pid > 0);
	close(ready[1]);
	close(go[0]);
	child->go = go[1];
	(void)!read(ready[0], &byte, 1);
	close(ready[0]);
}

/* The first file in the child's directory whose name begins with NAME. False: there is none. */
static bool find_file(const struct child *child, const char *name, char *ret, size_t room)
{
	_cleanup_closedir_ DIR *directory = opendir(child->directory);
	struct dirent *entry;

	while (directory && (entry = readdir(directory)))
		if (str_starts(entry->d_name, name)) {
			(void)snprintf(ret, room, "%s/%s", child->directory, entry->d_name);
			return true;
		}
	return false;
}

static void end_child(struct child *child)
{
	char path[PATH_MAX];

	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, __WALL);
	close(child->go);
	while (find_file(child, "core", path, sizeof(path)) && !unlink(path))
		;
	rmdir(child->directory);
}

/* --- what is true of it */

struct truth {
	struct pids tids;
	struct user_regs_struct regs[THREADS];
	struct maps maps;
};

static void truth_deinit(struct truth *truth)
{
	pids_deinit(&truth->tids);
	maps_deinit(&truth->maps);
}

/* Stop all threads of the child, but those that have stopped by themselves. */
static void seize_all(struct child *child, struct truth *truth)
{
	ASSERT_OK(process_list_threads(child->pid, &truth->tids));
	ASSERT_EQ(truth->tids.count, THREADS);
	for (size_t i = 0; i < THREADS; i++)
		ASSERT_EQ(ptrace(PTRACE_SEIZE, truth->tids.pid[i], 0, PTRACE_O_EXITKILL), 0);
}

static void stop_thread(pid_t tid, bool interrupt)
{
	int status = 0;

	if (interrupt)
		ASSERT_EQ(ptrace(PTRACE_INTERRUPT, tid, 0, 0), 0);
	ASSERT_EQ(waitpid(tid, &status, __WALL), tid);
	ASSERT_TRUE(WIFSTOPPED(status));
}

static void take_registers(struct truth *truth)
{
	for (size_t i = 0; i < THREADS; i++)
		ASSERT_EQ(ptrace(PTRACE_GETREGS, truth->tids.pid[i], 0, &truth->regs[i]), 0);
}

/* --- comparing */

static struct error *open_here(void *context, const char *path, enum root_outcome *ret, int *ret_fd)
{
	return root_open(0, path, ret, ret_fd);
}

static struct core *open_core(const char *path)
{
	const struct core_options options = {.open = open_here};
	struct core *core = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	ASSERT_TRUE(fd >= 0);
	ASSERT_OK(core_open(fd, path, &options, &core));
	return core;
}

static const struct core_thread *find_thread(const struct core *core, pid_t tid)
{
	size_t count;
	const struct core_thread *threads = core_threads(core, &count);

	ASSERT_EQ(count, THREADS);
	for (size_t i = 0; i < count; i++)
		if (threads[i].tid == tid)
			return &threads[i];
	fail_msg("thread %d is not in the core", tid);
	return NULL;
}

static void compare_registers(const struct core *core, const struct truth *truth)
{
	size_t spinning = 0;

	for (size_t i = 0; i < THREADS; i++) {
		const struct user_regs_struct *regs = &truth->regs[i];
		const struct core_thread *thread = find_thread(core, truth->tids.pid[i]);
		const uint64_t expected[UNWIND_REGISTERS] = {
			regs->rax, regs->rdx, regs->rcx, regs->rbx, regs->rsi, regs->rdi,
			regs->rbp, regs->rsp, regs->r8,  regs->r9,  regs->r10, regs->r11,
			regs->r12, regs->r13, regs->r14, regs->r15};
		ASSERT_EQ(thread->state.pc, regs->rip);
		ASSERT_EQ(thread->state.sp, regs->rsp);
		ASSERT_EQ(thread->state.fp, regs->rbp);
		ASSERT_EQ(thread->fs_base, regs->fs_base);
		for (size_t k = 0; k < UNWIND_REGISTERS; k++)
			ASSERT_EQ(thread->state.reg[k], expected[k]);
		int64_t call = (int64_t)regs->orig_rax;
		ASSERT_EQ(thread->syscall, call < 0 ? -1 : call);
		spinning += thread->state.reg[UNWIND_R13] == 0x1313131313131313;
	}
	ASSERT_EQ(spinning, 2);
}

static void compare_maps(const struct core *core, const struct truth *truth)
{
	const struct maps *maps = core_maps(core);
	size_t compared = 0;

	for (size_t i = 0; i < truth->maps.count; i++) {
		const struct map *is = &truth->maps.map[i];
		const struct map *has = maps_find(maps, is->start);
		// The kernel's own pages are no memory that a debugger dumps.
		if (str_starts(is->path, "[v") && !has)
			continue;
		ASSERT_TRUE(has != NULL);
		ASSERT_EQ(has->start, is->start);
		ASSERT_EQ(has->end, is->end);
		// What gcore leaves out only the list of files tells of, without protection.
		ASSERT_TRUE((has->prot & MAPS_EXECUTE) || !(is->prot & MAPS_EXECUTE));
		ASSERT_EQ(has->prot & MAPS_WRITE, is->prot & MAPS_WRITE);
		if (!map_is_file(is))
			continue;
		ASSERT_TRUE(map_is_file(has));
		ASSERT_STREQ(has->path, is->path);
		ASSERT_EQ(has->offset, is->offset);
		compared++;
	}
	ASSERT_TRUE(compared > 10);
}

/* Every page of every mapping: equal, or not to be had. Returns how many are missing of those that
 * may be written. */
static size_t compare_memory(struct core *core, struct process_memory *process,
			     const struct truth *truth, size_t *ret_code_pages)
{
	struct memory live = process_memory_reader(process), dead = core_memory(core);
	uint8_t is[PAGE], has[PAGE];
	size_t missing = 0;

	*ret_code_pages = 0;
	for (size_t i = 0; i < truth->maps.count; i++) {
		const struct map *map = &truth->maps.map[i];
		for (uint64_t at = map->start; at < map->end; at += PAGE) {
			bool read = !memory_read(&dead, at, has, PAGE);
			if (memory_read(&live, at, is, PAGE))
				continue;
			if (read)
				ASSERT_TRUE(!memcmp(is, has, PAGE));
			missing += !read && (map->prot & MAPS_WRITE);
			*ret_code_pages += read && (map->prot & MAPS_EXECUTE);
		}
	}
	return missing;
}

/* What must be true of every core of the child. */
static void compare_core(struct core *core, const struct truth *truth)
{
	const struct core_facts *facts = core_facts(core);
	_cleanup_free_ char *exe = NULL;
	uint8_t is[64], has[64];
	struct memory memory = core_memory(core);
	size_t count;

	ASSERT_EQ(facts->pid, truth->tids.pid[0]);
	ASSERT_EQ(facts->entry, getauxval(AT_ENTRY));
	ASSERT_EQ(facts->headers, getauxval(AT_PHDR));
	ASSERT_EQ(facts->vdso, getauxval(AT_SYSINFO_EHDR));
	ASSERT_OK(process_read_exe(getpid(), &exe));
	ASSERT_STREQ(core_exe(core), exe);
	compare_registers(core, truth);
	compare_maps(core, truth);

	// Code is in the program's file, not in the core.
	memcpy(is, (const void *)(uintptr_t)compare_core, sizeof(is));
	ASSERT_EQ(memory_read(&memory, (uint64_t)(uintptr_t)compare_core, has, sizeof(has)), 0);
	ASSERT_TRUE(!memcmp(is, has, sizeof(is)));
	const char *const *remarks = core_remarks(core, &count);
	for (size_t i = 0; i < count; i++)
		print_message("%s\n", remarks[i]);
	ASSERT_EQ(count, 0);
}

/*
 * The same core, cut at every sixteenth. The kernel writes the notes, with threads and mapped
 * files, in front of the memory: TRUTH holds of them then. gdb writes them behind it (NULL).
 */
static void cut_core(const char *path, const struct truth *truth)
{
	struct stat st;
	size_t before = SIZE_MAX, count;

	ASSERT_EQ(stat(path, &st), 0);
	for (int part = 15; part >= 1; part--) {
		ASSERT_EQ(truncate(path, st.st_size * part / 16), 0);
		_cleanup_core_ struct core *core = open_core(path);
		core_remarks(core, &count);
		ASSERT_TRUE(count > 0);
		ASSERT_TRUE(core_facts(core)->missing_bytes > 0);
		ASSERT_TRUE(core_facts(core)->missing_bytes != before);
		before = core_facts(core)->missing_bytes;
		if (truth && part > 4) {
			compare_registers(core, truth);
			compare_maps(core, truth);
		}
		core_threads(core, &count);
		ASSERT_TRUE(truth || !count);
	}
}

/* --- the tests */

/* Do we map terabytes, as under a sanitizer? A core of that takes minutes to write. */
static bool maps_too_much(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long pages = 0;

	return file && fscanf(file, "%llu", &pages) == 1 && pages > (1ull << 40) / PAGE;
}

/* How the kernel names cores here, or NULL: not in the directory of the process. */
static const char *why_no_core(void)
{
	_cleanup_free_ char *pattern = NULL;
	size_t size;

	struct error *err =
		file_read(AT_FDCWD, "/proc/sys/kernel/core_pattern", 4096, &pattern, &size);
	if (err) {
		error_free(err); // said by the reason
		return "kernel.core_pattern cannot be read";
	}
	return str_starts(pattern, "core") && !strchr(pattern, '/')
		       ? NULL
		       : "kernel.core_pattern leads elsewhere";
}

TEST(a_core_by_the_kernel_is_the_process_as_it_was)
{
	_cleanup_(truth_deinit) struct truth truth = {0};
	struct child child;
	enum process_memory_look look;
	char path[PATH_MAX];
	struct rlimit limit;
	int status = 0;

	if (why_no_core())
		SKIP(why_no_core());
	if (maps_too_much())
		SKIP("the test maps too much to dump it: a sanitizer");
	if (!getrlimit(RLIMIT_CORE, &limit) && limit.rlim_max != RLIM_INFINITY && geteuid())
		SKIP("cores are limited here");
	start_child(&child);
	seize_all(&child, &truth);
	for (size_t i = 1; i < THREADS; i++)
		stop_thread(truth.tids.pid[i], true);
	ASSERT_EQ(write(child.go, "x", 1), 1);
	stop_thread(child.pid, false); // by SIGSEGV, before it is delivered
	take_registers(&truth);
	ASSERT_OK(maps_read(child.pid, MAPS_all, &truth.maps));

	// The memory ends with the process; the pages that the stacks begin in are kept.
	_cleanup_process_memory_ struct process_memory *process = NULL;
	ASSERT_OK(process_memory_open(child.pid, &look, &process));
	struct memory live = process_memory_reader(process);
	uint8_t stack[THREADS][PAGE];
	for (size_t i = 0; i < THREADS; i++)
		ASSERT_EQ(memory_read(&live, truth.regs[i].rsp & ~(PAGE - 1ull), stack[i], PAGE),
			  0);

	ASSERT_EQ(ptrace(PTRACE_CONT, child.pid, 0, SIGSEGV), 0);
	// The first thread's end is told when those of the others have been taken note of.
	for (size_t i = THREADS; i-- > 0;)
		do
			ASSERT_EQ(waitpid(truth.tids.pid[i], &status, __WALL), truth.tids.pid[i]);
		while (WIFSTOPPED(status));
	ASSERT_TRUE(WIFSIGNALED(status) && WCOREDUMP(status));
	ASSERT_TRUE(find_file(&child, "core", path, sizeof(path)));
	{
		_cleanup_core_ struct core *core = open_core(path);
		const struct core_facts *facts = core_facts(core);
		compare_core(core, &truth);
		ASSERT_EQ(facts->signal, SIGSEGV);
		ASSERT_EQ(facts->signal_code, SEGV_MAPERR);
		ASSERT_EQ(facts->signal_addr, BAD_ADDR);
		ASSERT_EQ(facts->signal_tid, child.pid);
		struct memory dead = core_memory(core);
		for (size_t i = 0; i < THREADS; i++) {
			uint8_t has[PAGE];
			ASSERT_EQ(memory_read(&dead, truth.regs[i].rsp & ~(PAGE - 1ull), has, PAGE),
				  0);
			ASSERT_TRUE(!memcmp(stack[i], has, PAGE));
		}
	}
	cut_core(path, &truth);
	end_child(&child);
}

TEST(a_core_by_gcore_is_the_process_as_it_is)
{
	_cleanup_(truth_deinit) struct truth truth = {0};
	struct child child;
	enum process_memory_look look;
	char path[PATH_MAX], command[PATH_MAX];
	size_t code_pages;

	if (maps_too_much())
		SKIP("the test maps too much to dump it: a sanitizer");
	if (system("command -v gcore >/dev/null 2>&1"))
		SKIP("there is no gcore (gdb) here");
	start_child(&child);
	// Stopped by a signal the threads stay as they are between two debuggers.
	kill(child.pid, SIGSTOP);
	usleep(50000);
	seize_all(&child, &truth);
	for (size_t i = 0; i < THREADS; i++)
		stop_thread(truth.tids.pid[i], true);
	take_registers(&truth);
	ASSERT_OK(maps_read(child.pid, MAPS_all, &truth.maps));
	for (size_t i = 0; i < THREADS; i++)
		ASSERT_EQ(ptrace(PTRACE_DETACH, truth.tids.pid[i], 0, 0), 0);

	(void)snprintf(command, sizeof(command), "gcore -o %s/core %d >%s/core-log 2>&1",
		       child.directory, child.pid, child.directory);
	ASSERT_EQ(system(command), 0);
	ASSERT_TRUE(find_file(&child, "core.", path, sizeof(path)));
	{
		_cleanup_process_memory_ struct process_memory *process = NULL;
		_cleanup_core_ struct core *core = open_core(path);
		ASSERT_OK(process_memory_open(child.pid, &look, &process));
		compare_core(core, &truth);
		ASSERT_EQ(compare_memory(core, process, &truth, &code_pages), 0);
		ASSERT_TRUE(code_pages > 100);
	}
	cut_core(path, NULL);
	end_child(&child);
}

RUN_TESTS(UNIT_TEST(a_core_by_the_kernel_is_the_process_as_it_was),
	  UNIT_TEST(a_core_by_gcore_is_the_process_as_it_is))
