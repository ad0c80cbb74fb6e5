/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom the poll capture looks at: processes and their threads as /proc shows them, new ones and
 * children included, and the CPU time that they have consumed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/poll-credit.h"
#include "capture/processes.h"
#include "capture/stacks.h"
#include "proc/cpu-time.h"
#include "proc/process-memory.h"
#include "proc/process.h"

struct poll_thread {
	uint32_t tid;
	struct thread_meter meter;
	struct meter_reading last;
	struct credit credit;
	uint64_t fs_base;      /* 0: not known yet */
	uint64_t thread_state; /* of CPython; 0: not known */
	/* In wall-clock mode: its stack in this session, where it was after so many turns. */
	bool has_stack;
	unsigned missed; /* looks in a row at which it could not be walked */
	uint64_t turns;
	struct stacks_kept kept;
};

struct poll_process {
	uint32_t pid;
	uint64_t start_ticks;
	char comm[PROCESS_COMM];
	bool denied;                   /* it may not be looked at */
	uint64_t ask_again_ns;         /* whether it is denied still */
	bool renewed;                  /* it runs another program than before */
	bool young;                    /* it may not have left its vfork() yet */
	bool walked;                   /* since the last sweep */
	uint64_t code_kib;             /* size of its executable mappings at the last sweep */
	uint64_t links;                /* of its directory of threads: so many, and two */
	uint64_t cpu_ns;               /* up to the last look, all threads */
	int64_t unseen_ns;             /* of it, what no thread here has consumed */
	size_t busy;                   /* threads that have run between the last two looks */
	uint64_t no_stop_until_ns;     /* it may not be stopped: no attempt until then */
	struct process_memory *memory; /* owned; NULL: denied */
	struct poll_thread *thread;    /* ascending by tid */
	size_t count, room;
};

struct poll_tasks_options {
	uint64_t period_ns;
	const uint32_t *pids, *tids; /* count 0 of both: everything; copied */
	size_t pid_count, tid_count;
	bool children;               /* of pids, too */
	struct processes *processes; /* borrowed */
};

struct poll_tasks;

/* A process that was asked for and may not be looked at is a failure that says why. */
struct error *poll_tasks_new(const struct poll_tasks_options *options, struct poll_tasks **ret);
void poll_tasks_free(struct poll_tasks *tasks);

/* Enter what began and drop what ended since the last call. */
struct error *poll_tasks_update(struct poll_tasks *tasks, uint64_t now_ns);

/* How many there are, and number I; valid until the next update. */
size_t poll_tasks_count(const struct poll_tasks *tasks);
struct poll_process *poll_tasks_at(const struct poll_tasks *tasks, size_t i);

enum poll_measure {
	POLL_idle,   /* nothing has run in it since the last look */
	POLL_active, /* something has: its threads' credit is up to date */
	POLL_gone,   /* it has ended, or is not to be looked at */
};

/* False: there is no such thread any more. */
bool poll_tasks_find(const struct poll_tasks *tasks, uint32_t pid, uint32_t tid,
		     struct poll_process **ret_process, struct poll_thread **ret_thread);

/* What PROCESS and its threads have consumed since the last look. */
struct error *poll_tasks_measure(struct poll_tasks *tasks, struct poll_process *process,
				 enum poll_measure *ret);

/* PROCESS is gone. What comes behind it moves up. */
void poll_tasks_remove(struct poll_tasks *tasks, const struct poll_process *process);

/*
 * The session is over, and its stacks are not referred to any more. Returns how many samples' worth
 * of CPU time no look could meet; with LAST also of threads that a next session might still meet.
 */
uint64_t poll_tasks_end_session(struct poll_tasks *tasks, bool last);

/* Why a process may not be looked at, one of those of which that is true; NULL: all may. */
const char *poll_tasks_denied(const struct poll_tasks *tasks);
