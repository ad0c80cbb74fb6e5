/* SPDX-License-Identifier: Apache-2.0 */
/* A live process, looked at once. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "capture/dump.h"

/* Is THREAD, of which tid and name are known, to be looked at? */
typedef bool dump_wanted_fn(void *context, const struct dump_thread *thread);

struct dump_options {
	bool lines, debuginfod; /* source lines and inlined calls of machine code */
	bool native;            /* the interpreter's own frames, too */
	bool kernel;            /* each thread's stack in the kernel */
	bool nonblocking;       /* stop no thread; running ones have no stack then */
	unsigned stop_limit_ms; /* a thread is resumed after that long, whatever has been read */
	unsigned locals;        /* 0: no variables; more: more of each */
	dump_wanted_fn *wanted; /* NULL: all threads */
	void *context;
};

/*
 * Look at PID. What cannot be seen of it is in the dump's notes; a failure says why nothing can.
 * RET is empty before, and owns a target afterwards.
 */
struct error *dump_process(pid_t pid, const struct dump_options *options, struct dump *ret);
