/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process to look at: its mappings, the unwind rows of its objects, names. Its threads' stacks
 * are walked here, on the host; where registers come from, and whether a thread stands still, is
 * the caller's business.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/kinds.h"
#include "abi/sample.h"
#include "base/error.h"
#include "capture/map-set.h"
#include "proc/maps.h"
#include "proc/memory.h"
#include "proc/registers.h"
#include "runtimes/python/tasks.h"
#include "runtimes/python/version.h"
#include "unwind/env-host.h"

/* Of one stack. */
enum { TARGET_DEPTH = 16384, TARGET_VARIABLES_MAX = 1 << 16 };

struct target_options {
	struct map_owner owner;      /* pid 0: not a live process; its mappings do not change */
	const struct maps *maps;     /* those of now; borrowed during target_open() */
	const struct memory *memory; /* borrowed, for as long as the target walks and names */
	bool lines, debuginfod;      /* source lines and inlined calls */
};

struct target;

struct error *target_open(const struct target_options *options, struct target **ret);
void target_close(struct target *target);
static inline void cleanup_target(struct target **target)
{
	target_close(*target);
}
#define _cleanup_target_ _cleanup_(cleanup_target)

/* A variable of a frame; texts are owned as those of the frame. */
struct target_local {
	const char *name, *value;
	bool argument;
};

struct target_variable {
	size_t word; /* the first one of its frame */
	struct target_local local;
};

/* A stack as it was walked, leaf first, in the words of a sample. */
struct target_stack {
	uint64_t *word;  /* owned, as is the next */
	uint64_t *place; /* of a runtime's frame, at its first word: its address */
	size_t words;
	enum walk_end end;
	struct target_variable *variable; /* owned; in the order of frames */
	size_t variables, variable_room;
};

#define TARGET_STACK_INIT                                                                          \
	{                                                                                          \
		0                                                                                  \
	}

void target_stack_deinit(struct target_stack *stack);

/* Words of the frame that begins with WORD. */
static inline size_t target_frame_words(uint64_t word)
{
	return word & SAMPLE_RUNTIME && !(word & SAMPLE_EXACT_PC) ? 2 : 1;
}

/*
 * Walk a stack, from memory alone: no file is touched, so that a stopped thread is not stopped for
 * long. What the walk lacked is noted for target_prepare(). RET, which is empty or a stack, is
 * replaced.
 */
struct error *target_walk(struct target *target, const struct thread_registers *from,
			  struct target_stack *ret);

/*
 * Get what the last walk lacked: unwind rows of an object, new mappings. *RET: walking again is
 * worth it.
 */
struct error *target_prepare(struct target *target, bool *ret);

/* target_walk() and target_prepare() until nothing is lacking, for a thread that stands still. */
struct error *target_walk_whole(struct target *target, const struct thread_registers *from,
				struct target_stack *ret);

/*
 * Read the variables of the interpreted frames of STACK, whose thread still stands where it was
 * walked. LEVEL 1: arguments and locals in short; 2: more of each; 3: functions, classes and
 * modules too. 0: none. Beyond TARGET_VARIABLES_MAX frames further out have none.
 */
struct error *target_read_variables(struct target *target, unsigned level,
				    struct target_stack *stack);

/* A frame with its names. Strings live as long as the target. */
struct target_frame {
	enum frame_kind kind;
	bool inlined; /* this call was inlined into the next frame */
	const char *function;
	const char *file;    /* NULL: unknown */
	uint32_t line;       /* 0: unknown */
	uint32_t first_line; /* of the function; 0: unknown */
	const char *object;  /* the file it is in; NULL: none */
	uint64_t pc;         /* 0: it is not machine code */
	const struct target_local *local;
	size_t locals;
};

struct target_frames {
	struct target_frame *frame; /* innermost first */
	size_t count, room;
};

#define TARGET_FRAMES_INIT                                                                         \
	{                                                                                          \
		0                                                                                  \
	}

void target_frames_deinit(struct target_frames *frames);

/*
 * The frames of STACK with names, added to RET; beside frames of an interpreted program its
 * interpreter's own only with NATIVE. A stack that was cut ends in a frame that says so.
 */
struct error *target_name(struct target *target, const struct target_stack *stack, bool native,
			  struct target_frames *ret);

/* Add FRAME to FRAMES. */
struct error *target_frames_add(struct target_frames *frames, const struct target_frame *frame);

/* TEXT for as long as TARGET lives, control characters replaced. */
struct error *target_text(struct target *target, const char *text, const char **ret);

/* --- CPython, if the process runs it */

/* "3.11.2". False: it does not, or cannot be read. */
bool target_python_version(const struct target *target, char ret[static PYTHON_VERSION_TEXT_MAX]);

/* Why the interpreter that there is cannot be read; NULL: there is none, or it can. */
const char *target_python_refused(const struct target *target);

/* How a thread is known: by its TLS, or by the number it has in its own namespace. */
struct target_thread {
	uint64_t fs_base; /* 0: unknown */
	pid_t ns_tid;     /* 0: unknown */
};

struct target_python_thread {
	uint64_t id;    /* threading.get_ident(): the thread's pthread_self() and FS base */
	uint64_t state; /* address of its thread state */
	uint64_t interpreter;
	const char *name; /* NULL: threading does not know it; lives as long as the target */
};

/* False: the thread has never run Python code. */
bool target_python_thread(const struct target *target, const struct target_thread *who,
			  struct target_python_thread *ret);

/* Does THREAD, which target_python_thread() gave, hold its interpreter's lock now? */
bool target_python_holds_lock(const struct target *target,
			      const struct target_python_thread *thread);

/* Does a thread in a futex call on ADDR wait for the lock? False: not that is known. */
bool target_python_is_lock(const struct target *target, uint64_t addr);

/* The tasks of asyncio in all interpreters, added to RET, which is empty. */
struct error *target_read_tasks(const struct target *target, enum python_tasks_outcome *ret_outcome,
				struct python_tasks *ret);

/* The frames that TASK is in, added to RET, with variables as target_read_variables() has them. */
struct error *target_name_task(struct target *target, const struct python_task *task,
			       unsigned level, struct target_frames *ret);
