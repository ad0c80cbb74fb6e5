/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_vm_readv() takes many places in one call; container runtimes of 2016 and before, and
 * sandboxes, forbid it by seccomp. /proc/PID/mem serves then. It is opened in any case, because it
 * stays with the memory that the process had at that moment: after an exec or at the end it reads
 * as an empty file (mem_rw() in the kernel's fs/proc/base.c finds no users of the memory), which
 * tells an exec even of the same program.
 */
#include "proc/process-memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/uio.h>

#include "base/str.h"
#include "proc/process.h"

enum {
	BATCH = 256, /* of IOV_MAX, 1024; each takes 32 bytes on the stack */
	READ_MAX = 1 << 30,
};

struct process_memory {
	pid_t pid;
	pid_t tid;    /* the thread by which memory is reached: the first may have ended */
	int file;     /* /proc/PID/task/TID/mem; -1: not allowed */
	bool by_file; /* process_vm_readv() is of no use */
	uint64_t start_ticks;
	char *exe; /* owned */
	uint64_t calls;
};

/* --- reading */

/*
 * process_vm_readv() failed with CODE for another reason than the memory's. True: the file is
 * there to go on with.
 */
static bool turn_to_file(struct process_memory *process, int code)
{
	// EPERM, ENOSYS: forbidden or not built in. ESRCH: the thread has ended; the others hold
	// on to the memory, and so does the file.
	if (code != EPERM && code != ENOSYS && code != ESRCH)
		return false;
	process->by_file = process->file >= 0;
	return process->by_file;
}

static int read_by_file(struct process_memory *process, uint64_t addr, void *to, size_t size)
{
	uint8_t *at = to;

	if (process->file < 0 || addr > INT64_MAX || size > INT64_MAX - addr)
		return -1;
	while (size) {
		process->calls++;
		ssize_t got = pread(process->file, at, size, (off_t)addr);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -1;
		at += got;
		addr += (uint64_t)got;
		size -= (size_t)got;
	}
	return 0;
}

static int read_one(void *context, uint64_t addr, void *to, size_t size)
{
	struct process_memory *process = context;
	struct iovec local = {.iov_base = to, .iov_len = size};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = size};

	if (!size)
		return 0;
	if (size > READ_MAX || size > UINT64_MAX - addr)
		return -1;
	if (process->by_file)
		return read_by_file(process, addr, to, size);
	process->calls++;
	ssize_t got = process_vm_readv(process->tid, &local, 1, &remote, 1, 0);
	if (got < 0 && turn_to_file(process, errno))
		return read_by_file(process, addr, to, size);
	return got == (ssize_t)size ? 0 : -1;
}

/*
 * Read the first of ITEMS in one call, and return how many of them are settled, at least one: the
 * call ends at the first place that cannot be read.
 */
static size_t read_batch(struct process_memory *process, struct memory_item *items, size_t count)
{
	struct iovec local[BATCH], remote[BATCH];
	size_t done = 0;

	for (size_t i = 0; i < count; i++) {
		local[i] = (struct iovec){.iov_base = items[i].to, .iov_len = items[i].size};
		remote[i] = (struct iovec){.iov_base = (void *)(uintptr_t)items[i].addr,
					   .iov_len = items[i].size};
	}
	process->calls++;
	ssize_t got = process_vm_readv(process->tid, local, count, remote, count, 0);
	if (got < 0 && turn_to_file(process, errno))
		return 0;
	size_t bytes = got < 0 ? 0 : (size_t)got;
	while (done < count && items[done].size <= bytes) {
		items[done].read = true;
		bytes -= items[done++].size;
	}
	if (done < count)
		items[done++].read = false;
	return done;
}

static void read_many(void *context, struct memory_item *items, size_t count)
{
	struct process_memory *process = context;
	size_t done = 0;

	while (done < count && !process->by_file) {
		size_t left = count - done;
		done += read_batch(process, items + done, left < BATCH ? left : BATCH);
	}
	for (; done < count; done++)
		items[done].read =
			!read_by_file(process, items[done].addr, items[done].to, items[done].size);
}

struct memory process_memory_reader(struct process_memory *process)
{
	return (struct memory){.read = read_one, .context = process, .read_many = read_many};
}

uint64_t process_memory_calls(const struct process_memory *process)
{
	return process->calls;
}

/* --- opening */

static int open_mem_file(pid_t pid, pid_t tid)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", pid, tid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/*
 * Is the file that of memory in use? At address 0 nothing is mapped, as a rule: that fails where
 * there is memory (EIO), and ends where there is none any more.
 */
static bool mem_file_lives(int file)
{
	uint8_t byte;

	return pread(file, &byte, 1, 0) != 0;
}

/* What process_vm_readv() says to a read at an address that is hardly ever mapped: 0 or an errno.
 */
static int probe_call(pid_t tid)
{
	uint8_t byte;
	struct iovec local = {.iov_base = &byte, .iov_len = 1};
	struct iovec remote = {.iov_base = NULL, .iov_len = 1};

	if (process_vm_readv(tid, &local, 1, &remote, 1, 0) >= 0 || errno == EFAULT)
		return 0;
	return errno;
}

/* Look at memory by the thread process->tid. */
static enum process_memory_look look_by_thread(struct process_memory *process)
{
	process->file = open_mem_file(process->pid, process->tid);
	int file_code = process->file < 0 ? errno : 0;
	if (process->file >= 0 && !mem_file_lives(process->file)) {
		close(process->file);
		process->file = -1;
		return PROCESS_MEMORY_gone;
	}

	int code = probe_call(process->tid);
	process->by_file = code != 0;
	if (!code || process->file >= 0)
		return PROCESS_MEMORY_opened;
	if (code == ESRCH || file_code == ENOENT || file_code == ESRCH)
		return PROCESS_MEMORY_gone;
	return PROCESS_MEMORY_denied;
}

/*
 * The thread that began a process may have ended, and has no memory then, while others run on. One
 * of them serves as well.
 */
static struct error *look_by_threads(struct process_memory *process,
				     enum process_memory_look *ret_look)
{
	_cleanup_(pids_deinit) struct pids threads = PIDS_INIT;

	process->tid = process->pid;
	enum process_memory_look look = look_by_thread(process);
	if (look == PROCESS_MEMORY_gone) {
		struct error *err = process_list_threads(process->pid, &threads);
		error_free(err); // a directory that cannot be read has no threads to try
	}
	for (size_t i = 0; i < threads.count && look == PROCESS_MEMORY_gone; i++) {
		process->tid = threads.pid[i];
		look = look_by_thread(process);
	}
	*ret_look = look;
	return NULL;
}

/* What tells PID from a later process of the same number. False: it is gone. */
static struct error *read_start(pid_t pid, bool *ret_there, struct process_status *ret)
{
	enum process_look look;

	TRY(process_read_status(pid, &look, ret));
	*ret_there = look == PROCESS_there;
	return NULL;
}

/* The program's path, or "" where it may not be read. */
static struct error *read_exe(pid_t pid, char **ret)
{
	struct error *err = process_read_exe(pid, ret);

	if (!err)
		return NULL;
	error_free(err); // EACCES: then the path does not help to tell programs apart
	return str_copy(ret, "");
}

struct error *process_memory_open(pid_t pid, enum process_memory_look *ret_look,
				  struct process_memory **ret)
{
	_cleanup_process_memory_ struct process_memory *process = calloc(1, sizeof(*process));
	struct process_status status;
	enum process_memory_look look;
	bool there;

	if (!process)
		return error_oom();
	process->file = -1;
	process->pid = pid;
	TRY(read_start(pid, &there, &status));
	if (!there || status.kernel_thread) {
		*ret_look = there ? PROCESS_MEMORY_none : PROCESS_MEMORY_gone;
		return NULL;
	}
	process->start_ticks = status.start_ticks;
	TRY(look_by_threads(process, &look));
	if (look == PROCESS_MEMORY_opened) {
		TRY(read_exe(pid, &process->exe));
		*ret = take(process);
	}
	*ret_look = look;
	return NULL;
}

void process_memory_close(struct process_memory *process)
{
	if (!process)
		return;
	if (process->file >= 0)
		close(process->file);
	free(process->exe);
	free(process);
}

/* --- still the same? */

bool process_memory_lives(const struct process_memory *process)
{
	return process->file < 0 || mem_file_lives(process->file);
}

struct error *process_memory_check(struct process_memory *process, enum process_memory_state *ret)
{
	_cleanup_free_ char *exe = NULL;
	struct process_status status;
	bool there;

	TRY(read_start(process->pid, &there, &status));
	if (!there || status.start_ticks != process->start_ticks) {
		*ret = PROCESS_MEMORY_ended;
		return NULL;
	}
	if (process->file >= 0 && !mem_file_lives(process->file)) {
		// No memory at all: it has ended and waits for its parent (a zombie).
		bool zombie = status.state == 'Z' || status.state == 'X';
		*ret = zombie ? PROCESS_MEMORY_ended : PROCESS_MEMORY_exec;
		return NULL;
	}
	TRY(read_exe(process->pid, &exe));
	*ret = strcmp(exe, process->exe) ? PROCESS_MEMORY_exec : PROCESS_MEMORY_same;
	return NULL;
}
