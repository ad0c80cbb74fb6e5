/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel types that the BPF programs read, and only the members they read. CO-RE finds the real
 * offsets at load time, so nothing here depends on the machine that builds.
 */
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>

#define CORE __attribute__((preserve_access_index))

/*
 * User registers as the kernel saves them on entry. The order is ABI, so it is read whole. CS is
 * 16 bits wide: with FRED other things are above it (Linux 14619d912b65, 6.9).
 */
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip,
		cs, flags, sp, ss;
};

struct bpf_perf_event_data_kern {
	struct pt_regs *regs;
} CORE;

struct thread_struct {
	unsigned long fsbase;
} CORE;

struct sched_entity {
	__u64 sum_exec_runtime;
} CORE;

struct sched_info {
	unsigned long pcount; /* times put on a CPU */
} CORE;

struct inode {
	unsigned long i_ino;
} CORE;

struct file {
	struct inode *f_inode;
} CORE;

struct mm_struct {
	struct file *exe_file;
} CORE;

struct task_struct {
	int pid, tgid;
	unsigned int flags;
	unsigned int __state;
	int on_cpu;
	__u64 utime, stime;
	unsigned long nvcsw, nivcsw;
	struct sched_entity se;
	struct sched_info sched_info;
	void *stack;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	unsigned long long start_time; /* of CLOCK_MONOTONIC */
	struct thread_struct thread;
	char comm[16];
} CORE;

enum { PF_KTHREAD = 0x00200000 };
