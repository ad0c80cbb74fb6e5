/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads as the kernel itself shows them to a BPF iterator: all user registers of every thread
 * that is off its CPU, without stopping any. Needs the privileges of the BPF capture; without them
 * proc/threads.h knows where a thread waits, and proc/stop.h the registers of one that runs.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "abi/threads.h"
#include "base/error.h"
#include "proc/registers.h"

struct thread_iterator;

/* Load. A failure says what the kernel or the privileges lack. */
struct error *thread_iterator_open(struct thread_iterator **ret);
void thread_iterator_close(struct thread_iterator *iterator);

static inline void cleanup_thread_iterator(struct thread_iterator **iterator)
{
	thread_iterator_close(*iterator);
}
#define _cleanup_thread_iterator_ _cleanup_(cleanup_thread_iterator)

/* Ascending by tid. */
struct thread_records {
	struct thread_record *record;
	size_t count, room;
};

#define THREAD_RECORDS_INIT                                                                        \
	{                                                                                          \
		0                                                                                  \
	}

void thread_records_deinit(struct thread_records *records);

/* All threads of PID, 0: of all processes. None if it has ended. */
struct error *thread_iterator_read(struct thread_iterator *iterator, pid_t pid,
				   struct thread_records *ret);

/* The thread TID of PID. False: it has ended, and RET is untouched. */
struct error *thread_iterator_read_one(struct thread_iterator *iterator, pid_t pid, pid_t tid,
				       bool *ret_there, struct thread_record *ret);

/* Of one thread; valid during the call. */
typedef struct error *thread_stack_fn(void *context, const struct thread_stack *stack);

/*
 * The kernel stacks of COUNT threads, of those that are still there, in any order. Not of more than
 * THREADS_ASKED_MAX.
 */
struct error *thread_iterator_stacks(struct thread_iterator *iterator, const uint32_t *tids,
				     size_t count, thread_stack_fn *fn, void *context);

/* The record of TID; NULL when there is none. */
const struct thread_record *thread_records_find(const struct thread_records *records, pid_t tid);

/* Was the thread off its CPU, so that its registers are exact? Then RET is set. */
bool thread_record_registers(const struct thread_record *record, struct thread_registers *ret);
