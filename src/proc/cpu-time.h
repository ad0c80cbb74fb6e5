/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time that processes and threads have consumed, read often: one system call each, no right
 * needed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * Of all threads of PID, those that have ended included, up to this moment. False: there is no such
 * process (a zombie is one), or the kernel does not say.
 */
bool cpu_time_of_process(pid_t pid, uint64_t *ret_ns);

/* What one thread has consumed, from a file that stays open. */
struct thread_meter {
	int fd; /* -1: not open */
	pid_t pid, tid;
};

#define THREAD_METER_INIT                                                                          \
	{                                                                                          \
		.fd = -1                                                                           \
	}

struct meter_reading {
	uint64_t cpu_ns; /* of a thread that is on a CPU it may be a timer tick old */
	uint64_t turns;  /* arrivals on a CPU; 0: this kernel does not count them */
};

enum meter_look {
	METER_read,
	METER_gone, /* the thread has ended */
};

/* Read the CPU time of thread TID of PID. METER is opened, unless the limit of descriptors forbids:
 * then each reading opens the file anew. */
struct thread_meter thread_meter_open(pid_t pid, pid_t tid);
void thread_meter_close(struct thread_meter *meter);

/* RET is set only with METER_read. */
struct error *thread_meter_read(const struct thread_meter *meter, enum meter_look *ret_look,
				struct meter_reading *ret);

/*
 * The text of /proc/PID/task/TID/schedstat. False: it is no such text, or the kernel counts nothing
 * (all is zero).
 */
bool meter_parse_schedstat(const char *text, struct meter_reading *ret);
