/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples become stacks of numbers: each frame an object and an address in it. The walks that the
 * BPF side could not finish are finished here.
 *
 * The numbers are kept in a struct profile whose frames have no names yet: function is 0, offset
 * the address (for KIND_cut the enum walk_end), line twice the number of the object (KIND_native)
 * or of the profile's process (KIND_jit), plus 1 for a return address; inlined marks a pc where
 * nothing is mapped. Frames of KIND_python and KIND_thread are complete: what they are named by
 * does not last.
 */
#pragma once

#include <stdint.h>

#include "abi/sample.h"
#include "abi/threads.h"
#include "base/error.h"
#include "capture/host-walks.h"
#include "identity/containers.h"
#include "proc/registers.h"
#include "profile/profile.h"

/* The object or process of a frame without a name, and whether its address is behind a call. */
static inline uint32_t stacks_frame_number(const struct frame *frame)
{
	return frame->line >> 1;
}

static inline bool stacks_frame_call(const struct frame *frame)
{
	return frame->line & 1;
}

struct stacks;

struct stack_totals {
	uint64_t samples;
	uint64_t by_end[END_MAX];
};

struct stacks_options {
	struct host_walks walks;
	bool by_thread;          /* a frame at the root says which thread it is */
	bool only_gil;           /* only threads that hold CPython's lock */
	bool kernel;             /* the kernel's frames of threads that do not run */
	bool native;             /* an interpreter's own C frames beside those that it evaluates */
	struct pythons *pythons; /* borrowed; NULL: no Python frames */
	struct containers *containers; /* borrowed; NULL: nobody wants their names */
};

struct error *stacks_new(const struct stacks_options *options, struct stacks **ret);
void stacks_free(struct stacks *stacks);

/* Add SAMPLE, which is from the time up to which side-band events have been applied. */
struct error *stacks_add(struct stacks *stacks, const struct sample *sample);

/* Where a thread of PID is. */
struct stacks_from {
	uint32_t pid;
	const struct thread_registers *registers; /* REGISTERS_all, or only pc and sp */
	const struct memory *memory;
	uint64_t thread_state; /* of CPython, as an earlier walk found it; 0: not known */
};

/*
 * Walk a thread that is off its CPU. Nothing is added to the session yet: whoever calls looks
 * whether it moved meanwhile. RET's words hold until the next call.
 */
struct error *stacks_walk(struct stacks *stacks, const struct stacks_from *from,
			  struct host_stack *ret);

/*
 * The same for a thread that is stopped for it: no file is touched but, for a process that is not
 * known yet, its mappings. What RET lacks is loaded by stacks_prepare(); *RET_AGAIN: then it is
 * worth walking again.
 */
struct error *stacks_walk_stopped(struct stacks *stacks, const struct stacks_from *from,
				  struct host_stack *ret);
struct error *stacks_prepare(struct stacks *stacks, uint32_t pid, const struct host_stack *stack,
			     bool *ret_again);

/* A thread and its stack. */
struct stacks_thread {
	struct sample head;                /* who, when; no frames */
	const struct thread_stack *kernel; /* borrowed */
	struct host_stack stack;
};

/* A stack in this session. */
struct stacks_kept {
	struct profile_sample sample; /* value 0: the profile had no room for it */
	enum walk_end end;
};

/* Keep a stack for this session. */
struct error *stacks_keep(struct stacks *stacks, const struct stacks_thread *thread,
			  struct stacks_kept *ret);
/* Add a sample of it. */
void stacks_repeat(struct stacks *stacks, const struct stacks_kept *kept);

const struct stack_totals *stacks_totals(const struct stacks *stacks);

/* End a session: its profile of numbers, the caller's now; the next session begins empty. */
struct error *stacks_take(struct stacks *stacks, struct profile **ret,
			  struct stack_totals *ret_totals);
