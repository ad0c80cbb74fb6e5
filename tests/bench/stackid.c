/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs stackid.bpf.o on one process: stackid OBJECT PID HZ SECONDS. Prints "ns runs samples
 * frames": the kernel's statistics of the program, how many ticks hit the process, and the user
 * frames of its most frequent stack. PID 0: ticks that hit any process are counted, and nothing
 * else is done.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FRAMES = 127, CPUS_MAX = 1024 };

struct key {
	__u32 pid;
	__s32 kernel, user;
};

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static int open_tick(int cpu, unsigned long hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = hz,
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int attach(const struct bpf_program *program, unsigned long hz)
{
	int cpus = libbpf_num_possible_cpus(), attached = 0;

	for (int cpu = 0; cpu < cpus && cpu < CPUS_MAX; cpu++) {
		int fd = open_tick(cpu, hz);
		if (fd >= 0 && bpf_program__attach_perf_event(program, fd))
			attached++;
	}
	return attached;
}

static unsigned count_frames(int stacks, __s32 id)
{
	__u64 frame[FRAMES] = {0};
	unsigned count = 0;

	if (id < 0 || bpf_map_lookup_elem(stacks, &id, frame))
		return 0;
	while (count < FRAMES && frame[count])
		count++;
	return count;
}

static int report(struct bpf_object *object, const struct bpf_program *program)
{
	int stacks = bpf_object__find_map_fd_by_name(object, "stacks");
	int counts = bpf_object__find_map_fd_by_name(object, "counts");
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);
	struct key key, next;
	__u64 value, samples = 0, most = 0;
	unsigned frames = 0;

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		return fail("statistics");
	for (struct key *at = NULL; !bpf_map_get_next_key(counts, at, &next); at = &key) {
		key = next;
		if (bpf_map_lookup_elem(counts, &key, &value))
			continue;
		samples += value;
		if (value > most) {
			most = value;
			frames = count_frames(stacks, key.user);
		}
	}
	printf("%llu %llu %llu %u\n", (unsigned long long)info.run_time_ns,
	       (unsigned long long)info.run_cnt, (unsigned long long)samples, frames);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: stackid OBJECT PID HZ SECONDS\n");
		return 2;
	}
	struct bpf_object *object = bpf_object__open_file(argv[1], NULL);
	if (!object)
		return fail(argv[1]);
	struct bpf_map *constants = bpf_object__find_map_by_name(object, ".rodata");
	__u32 pid = (__u32)strtoul(argv[2], NULL, 10);
	if (!constants || bpf_map__set_initial_value(constants, &pid, sizeof(pid)))
		return fail("set the process");
	if (bpf_object__load(object))
		return fail("load");
	struct bpf_program *program =
		bpf_object__find_program_by_name(object, pid ? "stackid" : "ticks");
	if (!program || !attach(program, strtoul(argv[3], NULL, 10)))
		return fail("attach");
	puts("counting");
	fflush(stdout);
	sleep((unsigned)strtoul(argv[4], NULL, 10));
	return report(object, program);
}
