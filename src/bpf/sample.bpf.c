// SPDX-License-Identifier: GPL-2.0-only
/*
 * One record for each tick: who, the kernel stack, the user stack. Worst case: 2,560 user frames
 * and PYTHON_LOOKS thread states (see unwind/native.h and runtimes/python/walk.h for the cost of
 * one), 127 kernel frames by the kernel's own walker, a copy of copy_bytes_max bytes. The loop
 * variant needs bpf_loop (Linux e6f2dd0f8067, 5.17); the tail-call variant takes TAIL_STEPS steps a
 * program, at most 33 programs a sample.
 */
#include "bpf/kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/env.bpf.h"
#include "bpf/maps.bpf.h"
#include "runtimes/walk.h"

char LICENSE[] SEC("license") = "GPL";

enum {
	USER_CS = 0x33,
	TAIL_STEPS = 8,
	TAIL_CALLS = 32,
	LOOP_STEPS = 4 * SAMPLE_USER_FRAMES + 2 * PYTHON_LOOKS,
	KERNEL_STACK_BYTES = 16384, /* THREAD_SIZE of x86-64; only the tail-call variant needs it */
	CHUNK = 4096,
	YOUNG_NS = 500 * 1000 * 1000,
};

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u32);
} programs SEC(".maps");

static __always_inline struct scratch *scratch_of_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&scratches, &cpu);
}

/* Is this task one that was asked for? */
static __always_inline int wanted(__u32 pid, __u32 tid)
{
	if (!pid) // idle
		return 0;
	if (filter_pids && !bpf_map_lookup_elem(&targets, &pid))
		return 0;
	if (filter_tids && !bpf_map_lookup_elem(&target_threads, &tid))
		return 0;
	return 1;
}

/* Who and when. */
static __always_inline void fill_head(struct scratch *scratch, struct task_struct *task)
{
	struct sample *sample = &scratch->sample;
	__u64 id = bpf_get_current_pid_tgid();

	sample->time_ns = bpf_ktime_get_ns();
	sample->pid = id >> 32;
	sample->tid = (__u32)id;
	sample->cpu = bpf_get_smp_processor_id();
	sample->flags = 0;
	sample->kernel_frames = 0;
	sample->user_words = 0;
	sample->copy_bytes = 0;
	sample->copy_hole = 0;
	sample->end = END_none;
	sample->python = 0;
	sample->kept_words = 0;
	BPF_CORE_READ_INTO(&sample->comm, task, group_leader, comm);
	BPF_CORE_READ_INTO(&sample->thread_comm, task, comm);
	scratch->process_start_ns = BPF_CORE_READ(task, group_leader, start_time);
	scratch->frame_base = 0;
	scratch->syscall = -1;
	scratch->walk.frames = scratch->walk.words = 0;
}

static __always_inline void fill_kernel(struct scratch *scratch, void *ctx)
{
	if (!want_kernel)
		return;
	long bytes = bpf_get_stack(ctx, scratch->data, SAMPLE_KERNEL_FRAMES * 8, 0);
	if (bytes <= 0)
		return;
	scratch->sample.kernel_frames = (__u16)(bytes / 8);
	scratch->frame_base = scratch->sample.kernel_frames;
}

/* The user's registers, wherever the tick hit: the cursor at the leaf. */
static __always_inline void start_walk(struct scratch *scratch, const struct pt_regs *regs)
{
	struct walk *w = &scratch->walk;

	w->at.pc = regs->ip;
	w->at.sp = regs->sp;
	w->at.fp = regs->bp;
	w->at.reg[UNWIND_RAX] = regs->ax;
	w->at.reg[UNWIND_RDX] = regs->dx;
	w->at.reg[UNWIND_RCX] = regs->cx;
	w->at.reg[UNWIND_RBX] = regs->bx;
	w->at.reg[UNWIND_RSI] = regs->si;
	w->at.reg[UNWIND_RDI] = regs->di;
	w->at.reg[UNWIND_RBP] = regs->bp;
	w->at.reg[UNWIND_RSP] = regs->sp;
	w->at.reg[UNWIND_R8] = regs->r8;
	w->at.reg[UNWIND_R9] = regs->r9;
	w->at.reg[UNWIND_R10] = regs->r10;
	w->at.reg[UNWIND_R11] = regs->r11;
	w->at.reg[UNWIND_R12] = regs->r12;
	w->at.reg[UNWIND_R13] = regs->r13;
	w->at.reg[UNWIND_R14] = regs->r14;
	w->at.reg[UNWIND_R15] = regs->r15;
	w->flags = WALK_leaf | (only_gil ? WALK_ask_gil : 0);
	w->depth = depth_max;
	w->end = END_none;
	w->phase = WALK_native;
	__builtin_memset(&w->python, 0, sizeof(w->python));
	w->in.start = w->in.end = 0;
	w->mappings = 0;
}

/*
 * Which mappings hold for the process. Zero: walk with them. An entry that is older than the
 * process's last exec describes another program.
 */
static __always_inline int find_process(struct scratch *scratch)
{
	__u32 pid = scratch->sample.pid;
	const struct process_entry *entry = bpf_map_lookup_elem(&processes, &pid);
	const __u64 *exec_ns = bpf_map_lookup_elem(&exec_times, &pid);

	if (!entry || (exec_ns && *exec_ns > entry->as_of_ns)) {
		scratch->walk.end = END_unknown_process;
		return -1;
	}
	scratch->walk.first_mapping = entry->first_mapping;
	scratch->walk.mappings = entry->mappings;
	scratch->walk.python.process = entry->python;
	return 0;
}

/* The registers of the interrupted code, user or kernel. */
static __always_inline int read_tick(void *ctx, struct pt_regs *ret)
{
	const struct bpf_perf_event_data_kern *data = ctx;

	return bpf_probe_read_kernel(ret, sizeof(*ret), BPF_CORE_READ(data, regs));
}

static __always_inline int in_kernel_code(const struct pt_regs *regs)
{
	return (regs->cs & 3) == 0;
}

/*
 * Everything up to the walk. REGS are those of the tick, and become the user's; SAVED is where the
 * kernel keeps them if the tick hit kernel code. Zero: there is a user stack to walk.
 */
static __always_inline int begin(struct scratch *scratch, struct task_struct *task,
				 struct pt_regs *regs, const void *saved)
{
	int in_kernel = in_kernel_code(regs);

	scratch->walk.end = END_kernel_thread;
	if (in_kernel)
		scratch->sample.flags |= SAMPLE_in_kernel;
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return -1;
	scratch->walk.end = END_no_user;
	if (!want_user)
		return -1;
	// exit has given the address space back already.
	scratch->walk.end = END_no_stack;
	if (!BPF_CORE_READ(task, mm))
		return -1;
	scratch->walk.end = END_unreadable;
	if (in_kernel && bpf_probe_read_kernel(regs, sizeof(*regs), saved))
		return -1;
	// Threads that the kernel adds to a process (io_uring, vhost) never ran user code.
	scratch->walk.end = END_kernel_thread;
	if (in_kernel && !regs->ip && !regs->sp)
		return -1;
	start_walk(scratch, regs);
	if (in_kernel && (long)regs->orig_ax >= 0) {
		scratch->sample.flags |= SAMPLE_in_syscall;
		scratch->syscall = regs->orig_ax;
	}
	scratch->walk.end = END_compat;
	if ((regs->cs & 0xffff) != USER_CS)
		return -1;
	scratch->walk.end = END_none;
	scratch->walk.fs_base = BPF_CORE_READ(task, thread.fsbase);
	return find_process(scratch);
}

/* Copy the stack from the red zone of the present stack pointer upwards, behind the frames. */
static __always_inline void copy_stack(struct scratch *scratch, __u32 words)
{
	__u64 from = scratch->walk.at.sp - SAMPLE_RED_ZONE;
	__u32 copied = 0;

	for (int i = 0; i < SAMPLE_COPY_BYTES / CHUNK + 1; i++) {
		if (copied >= copy_bytes_max || copied > SAMPLE_COPY_BYTES)
			break;
		// Up to the end of the page: what lies behind may not be there.
		__u32 size = CHUNK - ((__u32)(from + copied) & (CHUNK - 1));
		__u32 at = (words & (SCRATCH_FRAME_WORDS - 1)) * 8 + copied;
		if (at > SCRATCH_FRAME_WORDS * 8 + SAMPLE_COPY_BYTES)
			break;
		if (size > CHUNK)
			break;
		if (bpf_probe_read_user((char *)scratch->data + at, size,
					(const void *)(from + copied))) {
			if (i > 1 || scratch->sample.copy_hole < copied) {
				scratch->sample.flags |= SAMPLE_copy_whole;
				break;
			}
			// The page of the stack pointer itself may be about to be faulted in, and
			// the red zone's before it.
			scratch->sample.copy_hole = copied + size;
		}
		copied += size;
	}
	scratch->sample.copy_bytes = copied;
}

/*
 * exec takes the old program's memory away before it is done. The registers are still those of the
 * caller, whose stack does not exist any more.
 */
static __always_inline void check_exec(struct scratch *scratch)
{
	struct walk *w = &scratch->walk;

	if (scratch->syscall != ARCH_EXECVE && scratch->syscall != ARCH_EXECVEAT)
		return;
	if (w->frames > 1 || w->end == END_root)
		return;
	__u64 word;
	if (!bpf_probe_read_user(&word, sizeof(word), (const void *)w->at.sp))
		return;
	w->frames = w->words = 0;
	w->end = END_no_stack;
}

/*
 * The host polls. It is woken when the ring fills faster than it thought, and when names have to be
 * read from a process that may end soon; and by follow_exec().
 */
static __always_inline __u64 wakes(const struct scratch *scratch)
{
	if (scratch->sample.python &&
	    scratch->sample.time_ns - scratch->process_start_ns < YOUNG_NS)
		return BPF_RB_FORCE_WAKEUP;
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >
			       bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 2
		       ? BPF_RB_FORCE_WAKEUP
		       : BPF_RB_NO_WAKEUP;
}

/* Before the frames that were kept: whose they are. */
static __always_inline __u32 put_kept_state(struct scratch *scratch, __u32 at)
{
	const struct python_walk *python = &scratch->walk.python;

	if (!python->keep || (python->lost && python->lost != PYTHON_LOST_end))
		return 0;
	scratch->data[at++ & (SCRATCH_FRAME_WORDS - 1)] = python->first.state;
	scratch->data[at++ & (SCRATCH_FRAME_WORDS - 1)] = python->first.interpreter;
	scratch->data[at & (SCRATCH_FRAME_WORDS - 1)] = python->first.cframe;
	return PYTHON_KEPT_WORDS * (1 + python->kept);
}

/* Send what the scratch space holds. */
static __always_inline void finish(struct scratch *scratch)
{
	struct sample *sample = &scratch->sample;
	struct walk *w = &scratch->walk;

	check_exec(scratch);
	if (w->flags & WALK_gil)
		sample->flags |= SAMPLE_gil;
	// What the host has to load is missing until it is told.
	if (only_gil && !(w->flags & WALK_gil) && !walk_end_unknown(w->end)) {
		count(BPF_no_gil);
		return;
	}
	__u32 words = scratch->frame_base + w->words;
	sample->user_words = w->words;
	sample->python = w->python.found ? w->python.process : 0;
	sample->end = w->end;
	if (walk_end_unknown(w->end)) {
		sample->state = w->at;
		if (w->flags & WALK_leaf)
			sample->flags |= SAMPLE_leaf;
		if (w->flags & WALK_call)
			sample->flags |= SAMPLE_call;
		sample->kept_words = put_kept_state(scratch, words);
		words += sample->kept_words;
		copy_stack(scratch, words);
	}
	__u64 size = sizeof(*sample) + words * 8 + sample->copy_bytes;
	if (size > sizeof(*sample) + sizeof(scratch->data))
		return;
	sample->size = size;
	if (bpf_ringbuf_output(&ring, sample, size, wakes(scratch)))
		count(BPF_ring_full);
}

struct loop_context {
	struct scratch *scratch;
};

static long walk_on(__u32 number, void *context)
{
	struct loop_context *loop = context;

	return walk_one(&loop->scratch->walk);
}

/* Is the tick for us? Then REGS are those it hit, and the scratch space is begun; else NULL. */
static __always_inline struct scratch *enter(void *ctx, struct pt_regs *regs)
{
	__u64 id = bpf_get_current_pid_tgid();

	if (!wanted(id >> 32, (__u32)id))
		return 0;
	struct scratch *scratch = scratch_of_cpu();
	if (!scratch || read_tick(ctx, regs))
		return 0;
	count(BPF_samples);
	return scratch;
}

SEC("perf_event")
int sample_loop(void *ctx)
{
	struct pt_regs regs;
	struct scratch *scratch = enter(ctx, &regs);

	if (!scratch)
		return 0;
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	fill_head(scratch, task);
	fill_kernel(scratch, ctx);
	if (!begin(scratch, task, &regs, (const void *)bpf_task_pt_regs(task))) {
		struct loop_context loop = {scratch};
		bpf_loop(LOOP_STEPS, walk_on, &loop, 0);
		if (scratch->walk.end == END_none)
			scratch->walk.end = END_depth;
	}
	finish(scratch);
	return 0;
}

/* The same without helpers that are younger than 5.10. */
SEC("perf_event")
int sample_tail(void *ctx)
{
	struct pt_regs regs;
	struct scratch *scratch = enter(ctx, &regs);

	if (!scratch)
		return 0;
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	fill_head(scratch, task);
	fill_kernel(scratch, ctx);
	const char *stack = BPF_CORE_READ(task, stack);
	if (!begin(scratch, task, &regs, stack + KERNEL_STACK_BYTES - sizeof(regs))) {
		scratch->tail_calls = 0;
		bpf_tail_call(ctx, &programs, 0);
		scratch->walk.end = END_depth;
	}
	finish(scratch);
	return 0;
}

SEC("perf_event")
int walk_tail(void *ctx)
{
	struct scratch *scratch = scratch_of_cpu();

	if (!scratch)
		return 0;
	for (int i = 0; i < TAIL_STEPS; i++)
		if (walk_one(&scratch->walk))
			break;
	if (scratch->walk.end == END_none && scratch->tail_calls++ < TAIL_CALLS) {
		bpf_tail_call(ctx, &programs, 0);
	}
	if (scratch->walk.end == END_none)
		scratch->walk.end = END_depth;
	finish(scratch);
	return 0;
}

/* A child runs its parent's program: it is known before its first instruction. */
SEC("raw_tp/sched_process_fork")
int follow_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx->args[0];
	struct task_struct *child = (struct task_struct *)ctx->args[1];
	__u32 parent_pid = BPF_CORE_READ(parent, tgid), pid = BPF_CORE_READ(child, tgid);

	if (pid == parent_pid) // a thread
		return 0;
	const __u32 *target = bpf_map_lookup_elem(&targets, &parent_pid);
	if (target && *target & TARGET_children &&
	    bpf_map_update_elem(&targets, &pid, target, BPF_ANY))
		count(BPF_target_full);

	// Of an earlier process of this number.
	bpf_map_delete_elem(&exec_times, &pid);
	const struct process_entry *entry = bpf_map_lookup_elem(&processes, &parent_pid);
	const __u64 *exec_ns = bpf_map_lookup_elem(&exec_times, &parent_pid);
	if (!entry || (exec_ns && *exec_ns > entry->as_of_ns)) {
		bpf_map_delete_elem(&processes, &pid);
		return 0;
	}
	struct process_entry copy = *entry;
	if (bpf_map_update_elem(&processes, &pid, &copy, BPF_ANY))
		count(BPF_fork_full);
	return 0;
}

/*
 * The last of a process goes. Side-band records of its end may have been lost, and a child of a
 * target was never announced to the host: only here is it sure that the tables do not fill up.
 */
SEC("raw_tp/sched_process_free")
int follow_free(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	__u32 pid = BPF_CORE_READ(task, pid);

	if (pid != BPF_CORE_READ(task, tgid)) // a thread
		return 0;
	bpf_map_delete_elem(&targets, &pid);
	bpf_map_delete_elem(&processes, &pid);
	bpf_map_delete_elem(&exec_times, &pid);
	return 0;
}

/* From here on the process runs another program; what is known of it does not hold. */
SEC("raw_tp/sched_process_exec")
int follow_exec(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32;
	__u64 now_ns = bpf_ktime_get_ns();

	bpf_map_update_elem(&exec_times, &pid, &now_ns, BPF_ANY);
	// What the host knows of its interpreter it tells before the process is sampled, if it can.
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	__u64 inode = BPF_CORE_READ(task, mm, exe_file, f_inode, i_ino);
	if (!bpf_map_lookup_elem(&programs_to_tell, &inode) ||
	    (filter_pids && !bpf_map_lookup_elem(&targets, &pid)))
		return 0;
	void *nothing = bpf_ringbuf_reserve(&ring, 8, 0);
	if (nothing)
		bpf_ringbuf_discard(nothing, BPF_RB_FORCE_WAKEUP);
	return 0;
}
