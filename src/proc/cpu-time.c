/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedstat has nanoseconds on a CPU, nanoseconds in its queue, arrivals on it. It is all zero
 * where the kernel does not count (Linux e4042ad49235, 5.14, "delayacct: Default disabled", unless
 * it was built with CONFIG_SCHEDSTATS); then stat has the CPU time in clock ticks.
 */
#include "proc/cpu-time.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "proc/proctext.h"
#include "proc/threads.h"

enum { TEXT_BYTES = 128, PATH_BYTES = 64, NUMBERS = 3, NS_PER_S = 1000000000 };

bool cpu_time_of_process(pid_t pid, uint64_t *ret_ns)
{
	struct timespec time;
	clockid_t clock;

	// Anybody may read the clock of a process (pid_for_clock() in the kernel's
	// kernel/time/posix-cpu-timers.c); it is up to date for threads that are on a CPU.
	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &time))
		return false;
	*ret_ns = (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
	return true;
}

static int open_schedstat(pid_t pid, pid_t tid)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

struct thread_meter thread_meter_open(pid_t pid, pid_t tid)
{
	return (struct thread_meter){.fd = open_schedstat(pid, tid), .pid = pid, .tid = tid};
}

void thread_meter_close(struct thread_meter *meter)
{
	if (meter->fd >= 0)
		close(meter->fd);
	meter->fd = -1;
}

bool meter_parse_schedstat(const char *text, struct meter_reading *ret)
{
	uint64_t number[NUMBERS];

	for (int i = 0; i < NUMBERS; i++)
		if (!proctext_number(proctext_skip_blanks(text), &number[i], &text))
			return false;
	if (!number[2])
		return false;
	*ret = (struct meter_reading){.cpu_ns = number[0], .turns = number[2]};
	return true;
}

static struct error *read_stat(const struct thread_meter *meter, enum meter_look *ret_look,
			       struct meter_reading *ret)
{
	static const uint64_t unknown_ticks = 100;
	long ticks = sysconf(_SC_CLK_TCK);
	enum process_look look;
	struct thread thread;

	TRY(thread_read(meter->pid, meter->tid, 0, &look, &thread));
	*ret_look = look == PROCESS_there ? METER_read : METER_gone;
	if (look != PROCESS_there)
		return NULL;
	uint64_t tick_ns = NS_PER_S / (ticks > 0 ? (uint64_t)ticks : unknown_ticks);
	*ret = (struct meter_reading){.cpu_ns =
					      (thread.user_ticks + thread.system_ticks) * tick_ns};
	return NULL;
}

struct error *thread_meter_read(const struct thread_meter *meter, enum meter_look *ret_look,
				struct meter_reading *ret)
{
	_cleanup_close_ int own = meter->fd < 0 ? open_schedstat(meter->pid, meter->tid) : -1;
	int fd = meter->fd < 0 ? own : meter->fd;
	char text[TEXT_BYTES];
	ssize_t length = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	if (length < 0 && proctext_is_gone(errno)) {
		*ret_look = METER_gone;
		return NULL;
	}
	text[length > 0 ? length : 0] = 0;
	if (!meter_parse_schedstat(text, ret))
		return read_stat(meter, ret_look, ret);
	*ret_look = METER_read;
	return NULL;
}
