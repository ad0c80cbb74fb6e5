/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF side of a capture: load it, give it tables, attach it to CPUs, read its ring. What a
 * process or an object is, is not known here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/python.h"
#include "abi/sample.h"
#include "abi/tables.h"
#include "base/counters.h"
#include "base/error.h"
#include "proc/perf-event.h"
#include "unwind/store.h"

enum kernel_variant {
	KERNEL_auto, /* by probing */
	KERNEL_loop, /* bpf_loop */
	KERNEL_tail, /* tail calls */
};

struct kernel_options {
	bool kernel_stacks, user_stacks;
	unsigned depth;      /* user frames, up to SAMPLE_USER_FRAMES */
	unsigned copy_bytes; /* of stack, at most, when the host has to finish a walk */
	unsigned ring_bytes; /* a power of two */
	unsigned mappings;   /* entries in the table of mappings */
	enum kernel_variant variant;
	bool only_gil; /* only threads that hold CPython's lock */
	/* Only these; count 0: all. */
	const uint32_t *pids;
	size_t pid_count;
	bool children; /* of pids, too */
	const uint32_t *tids;
	size_t tid_count;
};

struct kernel_side;

/* Load and verify. A failure says what the kernel or the privileges lack. */
struct error *kernel_open(const struct kernel_options *options, struct kernel_side **ret);
void kernel_close(struct kernel_side *kernel);

/* Run follow_fork, follow_exec and follow_free from now on. */
struct error *kernel_follow(struct kernel_side *kernel);

/*
 * Sample on a CPU. Several events (for cgroups) may be attached to one. The descriptor is
 * consumed.
 */
struct error *kernel_attach(struct kernel_side *kernel, unsigned cpu, int event_fd);
/* Stop sampling on a CPU that went away, or on all (cpu == -1). */
void kernel_detach(struct kernel_side *kernel, int cpu);
/* Is PID to be sampled, because it was asked for or forked from one that was? True if all are. */
bool kernel_is_target(struct kernel_side *kernel, uint32_t pid);

/* The tables, written by the host, read by the programs. */
struct unwind_mapping *kernel_mappings(struct kernel_side *kernel);
struct python_process *kernel_pythons(struct kernel_side *kernel); /* TABLE_PYTHONS */
struct python_layout *kernel_layouts(struct kernel_side *kernel);  /* TABLE_PYTHON_LAYOUTS */
struct store_options kernel_store_options(struct kernel_side *kernel, unsigned segments_max,
					  struct counters *counters);
struct error *kernel_set_process(struct kernel_side *kernel, uint32_t pid,
				 const struct process_entry *entry);
void kernel_remove_process(struct kernel_side *kernel, uint32_t pid);

/* Be woken (kernel_poll_fd()) when another process begins to run the program that PID runs. */
void kernel_await_program(struct kernel_side *kernel, uint32_t pid);

/*
 * All samples that are in the ring now: FN gets each, valid during the call. A record that
 * contradicts its own size is skipped and counted as lost.
 */
typedef struct error *kernel_sample_fn(void *context, const struct sample *sample);
struct error *kernel_drain(struct kernel_side *kernel, kernel_sample_fn *fn, void *context);
/* Readable when the ring is more than half full. */
int kernel_poll_fd(struct kernel_side *kernel);

/* What the programs counted so far, all CPUs. */
struct error *kernel_count(struct kernel_side *kernel, uint64_t ret[BPF_COUNTERS]);

/* "bpf_loop" or "tail calls". */
const char *kernel_variant_name(const struct kernel_side *kernel);
