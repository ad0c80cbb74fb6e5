/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Keys and values of the maps that the host fills and the BPF programs read. */
#pragma once

#include <linux/types.h>

enum {
	TABLE_PROCESSES = 16384,
	TABLE_MODULES = 8192,
	TABLE_SEGMENTS = 256,
	TABLE_PYTHONS = 2048,
	TABLE_PYTHON_LAYOUTS = 64,
	TABLE_THREADS = 8192,
	TABLE_PROGRAMS = 1024,
};

/*
 * A process whose mappings are known. Key: pid. The fork program copies a parent's entry to its
 * child before the child runs, so a child is known from its first instruction on.
 */
struct process_entry {
	__u64 as_of_ns;      /* the entry reflects every exec up to this time (CLOCK_MONOTONIC) */
	__u32 first_mapping; /* in the table of mappings */
	__u32 mappings;
	__u32 python; /* 1 + number of its struct python_process; 0: it does not run CPython */
	__u32 unused;
};

/* What a pid or tid in the table of targets means. */
enum target_flag {
	TARGET_only = 1,     /* this one */
	TARGET_children = 2, /* and what it forks */
};

/* Counters of the BPF side, per CPU. */
enum bpf_counter {
	BPF_samples,     /* ticks that hit a task asked for */
	BPF_ring_full,   /* records that found the ring full */
	BPF_fork_full,   /* children that found the table of processes full */
	BPF_target_full, /* children of targets that found the table of targets full */
	BPF_no_gil,      /* ticks left out because the thread does not hold CPython's lock */
	BPF_COUNTERS = 8,
};
