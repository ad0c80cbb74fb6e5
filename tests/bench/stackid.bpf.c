// SPDX-License-Identifier: GPL-2.0-only
/*
 * The least that a profiler in BPF does: the kernel's own walkers (frame pointers on the user
 * side), one hash of each stack, one counter. What cairn's cost for a sample is compared with.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

enum { FRAMES = 127, STACKS = 16384 };

struct key {
	__u32 pid;
	__s32 kernel, user;
};

const volatile __u32 only_pid = 0;

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, STACKS);
	__type(key, __u32);
	__uint(value_size, FRAMES * sizeof(__u64));
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STACKS);
	__type(key, struct key);
	__type(value, __u64);
} counts SEC(".maps");

SEC("perf_event")
int stackid(void *ctx)
{
	struct key key = {.pid = bpf_get_current_pid_tgid() >> 32};
	__u64 one = 1;

	if (key.pid != only_pid)
		return 0;
	key.kernel = bpf_get_stackid(ctx, &stacks, 0);
	key.user = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
	__u64 *count = bpf_map_lookup_elem(&counts, &key);
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		bpf_map_update_elem(&counts, &key, &one, BPF_NOEXIST);
	return 0;
}

/* Ticks that hit any process, which is what a profile of the machine consists of. */
SEC("perf_event")
int ticks(void *ctx)
{
	struct key key = {0};
	__u64 one = 1;

	if (!(bpf_get_current_pid_tgid() >> 32))
		return 0;
	__u64 *count = bpf_map_lookup_elem(&counts, &key);
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		bpf_map_update_elem(&counts, &key, &one, BPF_NOEXIST);
	return 0;
}
