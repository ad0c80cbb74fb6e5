// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every thread with the registers of its user side, without stopping any: an iterator over tasks
 * (Linux eaaacd23910f, "bpf: Add task and task/file iterator targets", 5.8). A thread that is off
 * its CPU has left all its user registers at the top of its kernel stack, on the way in. Worst case
 * of one thread: two reads of kernel memory and one record of 248 bytes.
 */
#include "bpf/kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "abi/threads.h"

char LICENSE[] SEC("license") = "GPL";

enum { KERNEL_STACK_BYTES = 16384 }; /* THREAD_SIZE of x86-64 */

/* Set by the host before load: the kernel has bpf_task_pt_regs (Linux dd6e10fbd9fb, 5.15). */
const volatile __u32 has_task_registers = 1;

/* Set by the host before each look; 0: all processes. */
__u32 only_pid = 0;

/* The context of an iterator is the same in every kernel that has it. */
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

/* Before Linux 2f064a59a11f ("sched: Change task_struct::state", 5.14). */
struct task_struct___long_state {
	long state;
} CORE;

static __always_inline __u32 state_of(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return ((struct task_struct___long_state *)task)->state;
}

/* Whose stacks show_stack is to write. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, THREADS_ASKED_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u32);
} asked SEC(".maps");

/* One stack being written; a reader at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct thread_stack);
} stack_room SEC(".maps");

/* Times the thread was put on a CPU, or as good: a number that grows when it runs. */
static __always_inline void fill_turns(struct thread_record *record, struct task_struct *task)
{
	record->switches = task->nvcsw + task->nivcsw;
	if (!bpf_core_field_exists(task->sched_info.pcount))
		return;
	record->turns = task->sched_info.pcount;
	record->flags |= THREAD_has_turns;
}

static __always_inline void fill_words(struct thread_record *record, struct task_struct *task)
{
	const char *saved;

	if (has_task_registers)
		saved = (const char *)bpf_task_pt_regs(task);
	else
		saved = (const char *)task->stack + KERNEL_STACK_BYTES - sizeof(record->word);
	if (!saved || bpf_probe_read_kernel(record->word, sizeof(record->word), saved))
		return;
	record->flags |= THREAD_words;
	record->fs_base = task->thread.fsbase;
}

/* Has it run since fill_turns(), or does it? Without on_cpu (one CPU) it cannot: we do. */
static __always_inline int has_run(const struct thread_record *record, struct task_struct *task)
{
	if (bpf_core_field_exists(task->on_cpu) && task->on_cpu)
		return 1;
	if (record->flags & THREAD_has_turns && record->turns != task->sched_info.pcount)
		return 1;
	return record->switches != task->nvcsw + task->nivcsw;
}

SEC("iter/task")
int show_thread(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread_record record = {0};

	if (!task)
		return 0;
	record.pid = task->tgid;
	if (only_pid && record.pid != only_pid)
		return 0;
	record.tid = task->pid;
	fill_turns(&record, task);
	record.state = state_of(task);
	record.runtime_ns = task->se.sum_exec_runtime;
	record.user_ns = task->utime;
	record.system_ns = task->stime;
	bpf_probe_read_kernel(record.comm, sizeof(record.comm), task->comm);
	if (task->flags & PF_KTHREAD || !task->mm)
		record.flags |= THREAD_no_user;
	else
		fill_words(&record, task);
	if (has_run(&record, task))
		record.flags |= THREAD_on_cpu;
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}

/*
 * The kernel's side of threads that were asked for, and whether they ran since. Worst case of one:
 * the kernel's own walk over 127 frames.
 */
SEC("iter/task")
int show_stack(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread_record record = {0};
	__u32 zero = 0;

	if (!task)
		return 0;
	__u32 tid = task->pid;
	struct thread_stack *stack = bpf_map_lookup_elem(&stack_room, &zero);
	if (!stack || !bpf_map_lookup_elem(&asked, &tid))
		return 0;
	fill_turns(&record, task);
	long size = bpf_get_task_stack(task, stack->pc, sizeof(stack->pc), 0);
	if (size < 0 || size > (long)sizeof(stack->pc))
		size = 0;
	if (has_run(&record, task))
		record.flags |= THREAD_on_cpu;
	stack->tid = tid;
	stack->flags = record.flags;
	stack->switches = record.switches;
	stack->turns = record.turns;
	stack->count = (__u32)size / 8;
	bpf_seq_write(ctx->meta->seq, stack, THREAD_STACK_HEAD + size);
	return 0;
}
