/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One look at a thread: where it is, without stopping it if it waits, and stopped for the walk
 * alone if it runs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/counters.h"
#include "base/error.h"
#include "capture/poll-tasks.h"
#include "capture/processes.h"
#include "capture/stacks.h"
#include "proc/memory.h"
#include "runtimes/python/attach.h"

struct poll_look_options {
	bool only_gil, by_thread;
	struct processes *processes; /* borrowed, as the next two */
	struct stacks *stacks;
	struct counters *counters;
};

/* What looks have in common; filled from one to the next. Empty when all zero but its options. */
struct poll_look {
	struct poll_look_options options;
	const struct poll_process *process; /* at which the last look was; borrowed */
	struct memory_pages pages;          /* of its memory, for one walk */
	struct python_threads pythons;      /* of the process; read when they are asked for */
	bool pythons_read;
	bool patient;  /* wait for a thread that waits for a CPU */
	char *why_not; /* why a thread could not be stopped, the first of them; owned */
};

void poll_look_deinit(struct poll_look *look);

/* The next looks are at PROCESS, as it is now. */
struct error *poll_look_begin(struct poll_look *look, struct poll_process *process);

enum poll_outcome {
	POLL_walked,  /* its stack is in the stacks */
	POLL_unasked, /* it does not hold CPython's lock, and only those that do are wanted */
	POLL_waits,   /* it does not run: it is not to be stopped */
	POLL_runs,    /* it does not wait */
	POLL_queues,  /* it would run, but waits for a CPU behind others; counted if PATIENT */
	POLL_missed,  /* it ended, or could not be stopped, which is counted */
};

/* A thread that runs: stop it, walk it. */
struct error *poll_look_running(struct poll_look *look, struct poll_process *process,
				struct poll_thread *thread, struct stacks_kept *ret,
				enum poll_outcome *ret_outcome);

/* A thread that waits: walk it where it is. */
struct error *poll_look_waiting(struct poll_look *look, struct poll_process *process,
				struct poll_thread *thread, struct stacks_kept *ret,
				enum poll_outcome *ret_outcome);
