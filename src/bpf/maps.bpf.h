/* SPDX-License-Identifier: GPL-2.0-only */
/* The maps and settings of all BPF programs. Sizes marked "host" are set before load. */
#pragma once

#include "bpf/kernel.h"

#include <bpf/bpf_helpers.h>

#include "abi/sample.h"
#include "abi/tables.h"
#include "unwind/walk.h"

/* Settings; constants to the verifier, which prunes what is off. */
const volatile __u32 want_kernel = 1;
const volatile __u32 want_user = 1;
const volatile __u32 filter_pids = 0; /* only pids in the table of targets */
const volatile __u32 filter_tids = 0; /* only tids in the table of target threads */
const volatile __u32 only_gil = 0;    /* only threads that hold CPython's lock */
const volatile __u32 copy_bytes_max = 16384;
const volatile __u32 depth_max = SAMPLE_USER_FRAMES;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22); /* host */
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TABLE_PROCESSES);
	__type(key, __u32);
	__type(value, struct process_entry);
} processes SEC(".maps");

/* When a pid last passed exec. An entry of processes that is older does not hold. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, TABLE_PROCESSES);
	__type(key, __u32);
	__type(value, __u64);
} exec_times SEC(".maps");

/* By inode number: programs whose processes have turned out to hold an interpreter. Another file of
 * that number is looked at in vain. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, TABLE_PROGRAMS);
	__type(key, __u64);
	__type(value, __u32);
} programs_to_tell SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} target_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 65536); /* host */
	__type(key, __u32);
	__type(value, struct unwind_mapping);
} mappings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TABLE_MODULES);
	__type(key, __u32);
	__type(value, struct unwind_module);
} modules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, UNWIND_RULES_MAX);
	__type(key, __u32);
	__type(value, struct unwind_rule);
} rules SEC(".maps");

struct segment_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	// clang leaves types out of BTF that only an inner map names.
	__uint(value_size, sizeof(struct unwind_segment));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, TABLE_SEGMENTS);
	__type(key, __u32);
	__array(values, struct segment_map);
} segments SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TABLE_PYTHONS);
	__type(key, __u32);
	__type(value, struct python_process);
} pythons SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TABLE_PYTHON_LAYOUTS);
	__type(key, __u32);
	__type(value, struct python_layout);
} python_layouts SEC(".maps");

struct thread_key {
	__u64 fs_base;
	__u32 pid, unused;
};

/* Where a thread's state in CPython was found. What is in here is checked before it is used. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, TABLE_THREADS);
	__type(key, struct thread_key);
	__type(value, __u64);
} thread_states SEC(".maps");

enum {
	/* Room for SAMPLE_KERNEL_FRAMES and SAMPLE_USER_FRAMES of two words; a power of two. */
	SCRATCH_FRAME_WORDS = 8192,
	SCRATCH_WORDS = SCRATCH_FRAME_WORDS + SAMPLE_COPY_BYTES / 8 + 512,
};

/* One sample being built. One for each CPU: a perf_event program is not interrupted by another. */
struct scratch {
	struct walk walk;
	__u32 frame_base; /* word at which user frames begin */
	__u32 tail_calls;
	__u64 process_start_ns;
	__u64 syscall; /* number, if the tick hit one; else -1 */
	struct sample sample;
	__u64 data[SCRATCH_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* host: CPUs */
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, BPF_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} bpf_counters SEC(".maps");

static __always_inline void count(__u32 counter)
{
	__u64 *value = bpf_map_lookup_elem(&bpf_counters, &counter);

	if (value)
		*value += 1;
}
