/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter of one process: that the object's facts are true of it, what a walk needs, its
 * thread states, and which of them hold the lock. Everything read may be torn (the process runs
 * on), and all of it is hostile: what does not fit together is refused with a sentence, rather than
 * guessed.
 */
#pragma once

#include "proc/memory.h"
#include "runtimes/python/find.h"
#include "runtimes/python/layout.h"

enum {
	PYTHON_REASON_MAX = 160,
	PYTHON_INTERPRETERS_MAX = 4096,
	PYTHON_THREADS_MAX = 1 << 16, /* of a process */
};

enum python_attach {
	PYTHON_ATTACH_ok,
	PYTHON_ATTACH_later,      /* the interpreter is starting or ending: try again */
	PYTHON_ATTACH_unreadable, /* the process is gone, or its memory is not ours to read */
	PYTHON_ATTACH_refused,    /* its memory is not what its version says */
};

struct python_instance {
	uint64_t bias;        /* of the object */
	uint32_t version_hex; /* PY_VERSION_HEX; 0: the object does not tell */
	struct python_offsets at;
	struct python_layout layout;
	struct python_process process; /* its layout is the caller's to number */
	uint64_t runtime;              /* address of _PyRuntime; 0: up to 3.6 there is none */
	uint64_t code_type;            /* address of PyCode_Type; 0: not known */
};

/*
 * Look at the process whose MEMORY holds OBJECT at BIAS. RET is set only with PYTHON_ATTACH_ok;
 * otherwise REASON, of PYTHON_REASON_MAX characters, says why not.
 */
enum python_attach python_attach(const struct python_object *object, uint64_t bias,
				 const struct memory *memory, struct python_instance *ret,
				 char *ret_reason);

/* INSTANCE as it is in another process, which has the same object at BIAS. */
void python_move(struct python_instance *instance, uint64_t bias);

/* A thread that has run Python code and has not ended. */
struct python_thread {
	uint64_t state, interpreter;  /* addresses */
	int64_t interpreter_id;       /* 0: the main one; up to 3.6 the place in the list */
	uint64_t thread_id;           /* pthread_self() */
	uint64_t native_id;           /* kernel's, in the process's PID namespace; 0: not known */
	uint32_t glibc_tid, musl_tid; /* else what stands where libc would keep it */
	uint64_t frame;               /* address of the innermost frame; 0: runs no Python code */
	bool holds_gil;
};

struct python_threads {
	struct python_thread *thread;
	size_t count, room;
	bool whole; /* false: the lists were changed meanwhile, or are damaged */
};

#define PYTHON_THREADS_INIT                                                                        \
	{                                                                                          \
		0                                                                                  \
	}

void python_threads_deinit(struct python_threads *threads);

/*
 * Is THREAD the one that its own PID namespace numbers NS_TID? Up to 3.10 that is looked up where
 * libc keeps it.
 */
bool python_thread_is(const struct python_thread *thread, pid_t ns_tid);

/* All thread states, as far as they can be read. A failure is one of ours: no memory left. */
struct error *python_threads(const struct python_instance *instance, const struct memory *memory,
			     struct python_threads *ret);

/*
 * The thread state that holds the lock of INTERPRETER (all share one up to 3.11); 0: nobody, it
 * cannot be read, or there is none.
 */
uint64_t python_holder(const struct python_instance *instance, const struct memory *memory,
		       uint64_t interpreter);
