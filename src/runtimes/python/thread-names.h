/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the module threading calls the threads of an interpreter. It is a name that the program
 * gave; that of the kernel (comm) can be another one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proc/memory.h"
#include "runtimes/python/layout.h"

enum {
	PYTHON_THREAD_NAME_MAX = 128,
	PYTHON_THREAD_NAMES_MAX = 65536,
	/* Enough for that many in a program of ten thousand modules. A process that shows thousands
	 * of interpreters gets no more. */
	PYTHON_THREAD_NAMES_READS = 4 << 20,
};

struct python_thread_name {
	uint64_t id; /* threading.get_ident(): thread_id of the thread state */
	char name[PYTHON_THREAD_NAME_MAX]; /* UTF-8; a longer one ends in U+2026 */
};

enum python_thread_names_outcome {
	PYTHON_THREAD_NAMES_read,
	PYTHON_THREAD_NAMES_none,       /* the program never imported threading */
	PYTHON_THREAD_NAMES_changed,    /* a dict changed meanwhile: what there is, is right */
	PYTHON_THREAD_NAMES_unreadable, /* the same; or it took too many reads */
};

struct python_thread_names {
	struct python_thread_name *names; /* owned */
	size_t count, room;
	uint32_t reads; /* that they took so far; up to PYTHON_THREAD_NAMES_READS */
};

void python_thread_names_deinit(struct python_thread_names *names);

/*
 * Add the names of the threads of one interpreter to RET, an empty or filled list. MODULES: address
 * of its dict sys.modules (interpreter_modules).
 */
struct error *python_thread_names_read(const struct memory *memory, const struct python_offsets *at,
				       uint64_t modules,
				       enum python_thread_names_outcome *ret_outcome,
				       struct python_thread_names *ret);

/* The name of the thread ID, or NULL. */
const char *python_thread_name_find(const struct python_thread_names *names, uint64_t id);
