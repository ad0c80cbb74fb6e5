/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process at one moment: its threads, what each is doing, and their stacks with names. Taken of
 * a live process, whose blocked threads are not stopped, or of a core file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/ends.h"
#include "base/arena.h"
#include "base/error.h"
#include "capture/target.h"

enum dump_state {
	DUMP_unknown = 0,
	DUMP_running,    /* on a CPU, or waiting for one */
	DUMP_waiting,    /* in the kernel, for something */
	DUMP_idle,       /* in the kernel, for work: epoll, accept, ... */
	DUMP_gil_holder, /* holds CPython's global interpreter lock */
	DUMP_gil_waiter, /* waits for it */
	DUMP_disk,       /* in the kernel, and cannot be interrupted */
	DUMP_stopped,    /* by a signal, or by a debugger */
	DUMP_ended,      /* a zombie */
	DUMP_signalled,  /* in a core file: got the signal that ended the process */
	DUMP_STATES,
};

/* "waiting", "gil-holder". */
const char *dump_state_name(enum dump_state state);

/* Texts are owned by the dump, or by the target. NULL: unknown. */
struct dump_thread {
	pid_t tid;
	bool main; /* the first thread of the process */
	const char *name;
	const char *python_name;
	uint64_t python_id; /* Thread.ident; 0: unknown */
	enum dump_state state;
	const char *waits_in; /* "epoll_wait on 7 (socket:[123])" */
	uint64_t stopped_ns;  /* how long it was stopped for this; 0: not at all */
	enum walk_end end;
	struct target_frames frames; /* innermost first */
	size_t tasks;                /* of the event loop that it runs */
};

enum dump_task_state {
	DUMP_TASK_waiting, /* for another task, or for a future */
	DUMP_TASK_ready,   /* to run: it has not begun, or what it waited for is there */
	DUMP_TASK_running, /* its thread's stack is in it */
	DUMP_TASK_STATES,
};

/* "waiting". */
const char *dump_task_state_name(enum dump_task_state state);

/* A task of asyncio that is not done. */
struct dump_task {
	uint64_t addr;
	const char *name; /* NULL: it has none */
	pid_t tid;        /* of the thread that runs its loop; 0: none does, or not known */
	enum dump_task_state state;
	long waits_for, awaited_by;  /* numbers of tasks of the dump; -1: none that is known */
	struct target_frames frames; /* innermost first */
};

enum { DUMP_THREADS_MAX = 1 << 16, DUMP_NOTES_MAX = 256 };

struct dump {
	pid_t pid;
	const char *name, *command, *exe; /* NULL: unknown */
	const char *python;               /* "3.11.2"; NULL: does not run CPython */
	struct dump_thread *thread;
	size_t count, room;
	bool chosen;            /* there are other threads, which were not wanted */
	struct dump_task *task; /* by name */
	size_t tasks, task_room;
	const char **note; /* sentences: what is missing, and why */
	size_t notes, note_room;
	struct arena texts;
	struct target *target; /* owned: names of frames are its own; NULL: none */
};

#define DUMP_INIT                                                                                  \
	{                                                                                          \
		0                                                                                  \
	}

void dump_deinit(struct dump *dump);

/* A thread is added, and RET, which holds until the next one is, belongs to the dump. */
struct error *dump_add_thread(struct dump *dump, const struct dump_thread *thread,
			      struct dump_thread **ret);

/* A note, unless the dump has it already. */
struct error *dump_note(struct dump *dump, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A note if STACK, of thread TID, has more variables than are shown. */
struct error *dump_note_variables(struct dump *dump, pid_t tid, const struct target_stack *stack);

/* TEXT for as long as the dump lives. */
struct error *dump_text(struct dump *dump, const char *text, const char **ret);

/* Which interpreter runs in the dump's target, or why it cannot be read. */
struct error *dump_describe_python(struct dump *dump);
