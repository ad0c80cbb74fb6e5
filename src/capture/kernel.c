/* SPDX-License-Identifier: Apache-2.0 */
/* Loading, feeding and reading the BPF programs through libbpf. */
#include "capture/kernel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/array.h"
#include "capture/loading.h"
#include "sample.skel.h"

enum {
	CPUS_MAX_SAMPLED = 4096,
};

struct attachment {
	unsigned cpu;
	struct bpf_link *link;
};

/* Arrays of the BPF side that are mapped into this process. */
enum table {
	TABLE_mappings,
	TABLE_modules,
	TABLE_rules,
	TABLE_pythons,
	TABLE_layouts,
	TABLES,
};

struct kernel_side {
	struct sample_bpf *skeleton;
	struct bpf_program *program; /* the variant in use; borrowed from the skeleton */
	struct bpf_link *fork_link, *exec_link, *free_link;
	struct attachment *attachments;
	size_t attachment_count, attachment_room;
	void *table[TABLES]; /* mapped */
	size_t table_bytes[TABLES];
	struct unwind_segment *segment[TABLE_SEGMENTS]; /* mapped */
	struct ring_buffer *ring;
	struct drain {
		kernel_sample_fn *fn;
		void *context;
		struct error *err;
	} drain;
	uint64_t malformed;
};

static void set_constants(struct sample_bpf *skeleton, const struct kernel_options *options)
{
	struct sample_bpf__rodata *constants = skeleton->rodata;

	constants->want_kernel = options->kernel_stacks;
	constants->want_user = options->user_stacks;
	constants->filter_pids = options->pid_count > 0;
	constants->filter_tids = options->tid_count > 0;
	constants->copy_bytes_max = options->copy_bytes;
	constants->depth_max = options->depth;
	constants->only_gil = options->only_gil;
}

/* Choose the variant: what the kernel knows decides, never its version. */
static bool use_loop(enum kernel_variant variant)
{
	if (variant != KERNEL_auto)
		return variant == KERNEL_loop;
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) == 1 &&
	       libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_task_pt_regs, NULL) == 1;
}

static struct error *load(struct kernel_side *kernel, const struct kernel_options *options)
{
	struct sample_bpf *skeleton = kernel->skeleton;
	bool loop = use_loop(options->variant);
	int cpus = libbpf_num_possible_cpus();

	if (cpus < 0)
		return error_new("the number of possible CPUs is not known");
	set_constants(skeleton, options);
	bpf_map__set_max_entries(skeleton->maps.scratches, (unsigned)cpus);
	bpf_map__set_max_entries(skeleton->maps.ring, options->ring_bytes);
	bpf_map__set_max_entries(skeleton->maps.mappings, options->mappings);
	bpf_program__set_autoload(skeleton->progs.sample_loop, loop);
	bpf_program__set_autoload(skeleton->progs.sample_tail, !loop);
	bpf_program__set_autoload(skeleton->progs.walk_tail, !loop);
	kernel->program = loop ? skeleton->progs.sample_loop : skeleton->progs.sample_tail;

	int code = sample_bpf__load(skeleton);
	if (code)
		return loading_error(code);
	if (!loop) {
		uint32_t zero = 0;
		int walk = bpf_program__fd(skeleton->progs.walk_tail);
		if (bpf_map_update_elem(bpf_map__fd(skeleton->maps.programs), &zero, &walk, 0))
			return error_errno("set up tail calls");
	}
	return NULL;
}

/* Map an array of the BPF side into this process. */
static struct error *map_table(struct kernel_side *kernel, enum table which,
			       const struct bpf_map *map)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = (size_t)bpf_map__max_entries(map) * bpf_map__value_size(map);

	bytes = (bytes + page - 1) & ~(page - 1);
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (at == MAP_FAILED)
		return error_errno("map BPF table %s", bpf_map__name(map));
	kernel->table[which] = at;
	kernel->table_bytes[which] = bytes;
	return NULL;
}

static struct error *map_tables(struct kernel_side *kernel)
{
	TRY(map_table(kernel, TABLE_mappings, kernel->skeleton->maps.mappings));
	TRY(map_table(kernel, TABLE_modules, kernel->skeleton->maps.modules));
	TRY(map_table(kernel, TABLE_rules, kernel->skeleton->maps.rules));
	TRY(map_table(kernel, TABLE_pythons, kernel->skeleton->maps.pythons));
	return map_table(kernel, TABLE_layouts, kernel->skeleton->maps.python_layouts);
}

static struct error *add_targets(int map, const uint32_t *ids, size_t count, uint32_t flags)
{
	for (size_t i = 0; i < count; i++)
		if (bpf_map_update_elem(map, &ids[i], &flags, 0))
			return error_errno("more than 4096 processes or threads to sample");
	return NULL;
}

static int take_record(void *context, void *data, size_t size)
{
	struct kernel_side *kernel = context;
	const struct sample *sample = data;

	if (size < sizeof(*sample) || sample->size != size ||
	    size < sizeof(*sample) +
			    8ull * (sample->kernel_frames + sample->user_words +
				    sample->kept_words) +
			    sample->copy_bytes) {
		kernel->malformed++;
		return 0;
	}
	kernel->drain.err = kernel->drain.fn(kernel->drain.context, sample);
	return kernel->drain.err ? -1 : 0;
}

static struct error *set_up(struct kernel_side *kernel, const struct kernel_options *options)
{
	struct sample_bpf *skeleton = kernel->skeleton;

	TRY(load(kernel, options));
	TRY(map_tables(kernel));
	TRY(add_targets(bpf_map__fd(skeleton->maps.targets), options->pids, options->pid_count,
			TARGET_only | (options->children ? TARGET_children : 0)));
	TRY(add_targets(bpf_map__fd(skeleton->maps.target_threads), options->tids,
			options->tid_count, TARGET_only));
	kernel->ring =
		ring_buffer__new(bpf_map__fd(skeleton->maps.ring), take_record, kernel, NULL);
	if (!kernel->ring)
		return error_errno("map the sample ring");
	return NULL;
}

struct error *kernel_open(const struct kernel_options *options, struct kernel_side **ret)
{
	struct kernel_side *kernel = calloc(1, sizeof(*kernel));

	if (!kernel)
		return error_oom();
	loading_log_libbpf();
	kernel->skeleton = sample_bpf__open();
	struct error *err =
		kernel->skeleton ? set_up(kernel, options) : error_errno("read the BPF programs");
	if (err) {
		kernel_close(kernel);
		return err;
	}
	*ret = kernel;
	return NULL;
}

void kernel_close(struct kernel_side *kernel)
{
	if (!kernel)
		return;
	kernel_detach(kernel, -1);
	free(kernel->attachments);
	bpf_link__destroy(kernel->fork_link);
	bpf_link__destroy(kernel->exec_link);
	bpf_link__destroy(kernel->free_link);
	ring_buffer__free(kernel->ring);
	for (int i = 0; i < TABLES; i++)
		if (kernel->table[i])
			munmap(kernel->table[i], kernel->table_bytes[i]);
	for (size_t i = 0; i < TABLE_SEGMENTS && kernel->segment[i]; i++)
		munmap(kernel->segment[i], sizeof(struct unwind_segment));
	sample_bpf__destroy(kernel->skeleton);
	free(kernel);
}

struct error *kernel_follow(struct kernel_side *kernel)
{
	kernel->fork_link = bpf_program__attach(kernel->skeleton->progs.follow_fork);
	if (!kernel->fork_link)
		return error_errno("follow forks");
	kernel->exec_link = bpf_program__attach(kernel->skeleton->progs.follow_exec);
	if (!kernel->exec_link)
		return error_errno("follow execs");
	kernel->free_link = bpf_program__attach(kernel->skeleton->progs.follow_free);
	if (!kernel->free_link)
		return error_errno("follow ends of processes");
	return NULL;
}

struct error *kernel_attach(struct kernel_side *kernel, unsigned cpu, int event_fd)
{
	TRY(ARRAY_RESERVE(kernel->attachments, kernel->attachment_room, kernel->attachment_count, 1,
			  CPUS_MAX_SAMPLED * 16, "events"));
	struct bpf_link *link = bpf_program__attach_perf_event(kernel->program, event_fd);
	if (!link)
		return error_errno("attach to CPU %u", cpu);
	kernel->attachments[kernel->attachment_count++] = (struct attachment){cpu, link};
	return NULL;
}

void kernel_detach(struct kernel_side *kernel, int cpu)
{
	size_t kept = 0;

	for (size_t i = 0; i < kernel->attachment_count; i++) {
		struct attachment attachment = kernel->attachments[i];
		if (cpu < 0 || attachment.cpu == (unsigned)cpu)
			bpf_link__destroy(attachment.link);
		else
			kernel->attachments[kept++] = attachment;
	}
	kernel->attachment_count = kept;
}

bool kernel_is_target(struct kernel_side *kernel, uint32_t pid)
{
	uint32_t flags;

	return !kernel->skeleton->rodata->filter_pids ||
	       !bpf_map_lookup_elem(bpf_map__fd(kernel->skeleton->maps.targets), &pid, &flags);
}

struct unwind_mapping *kernel_mappings(struct kernel_side *kernel)
{
	return kernel->table[TABLE_mappings];
}

struct python_process *kernel_pythons(struct kernel_side *kernel)
{
	return kernel->table[TABLE_pythons];
}

struct python_layout *kernel_layouts(struct kernel_side *kernel)
{
	return kernel->table[TABLE_layouts];
}

/* A segment is a map of its own, made when it is needed: memory follows use. */
static struct error *make_segment(void *context, unsigned number, struct unwind_segment **ret)
{
	struct kernel_side *kernel = context;
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	_cleanup_close_ int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "segment", sizeof(uint32_t),
						sizeof(struct unwind_segment), 1, &options);

	if (fd < 0)
		return error_errno("make a segment for unwind rows");
	void *at = mmap(NULL, sizeof(struct unwind_segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			0);
	if (at == MAP_FAILED)
		return error_errno("map a segment for unwind rows");
	if (bpf_map_update_elem(bpf_map__fd(kernel->skeleton->maps.segments), &number, &fd, 0)) {
		struct error *err = error_errno("add a segment for unwind rows");
		munmap(at, sizeof(struct unwind_segment));
		return err;
	}
	kernel->segment[number] = at;
	*ret = at;
	return NULL;
}

struct store_options kernel_store_options(struct kernel_side *kernel, unsigned segments_max,
					  struct counters *counters)
{
	return (struct store_options){
		.segments_max = segments_max,
		.segment = make_segment,
		.context = kernel,
		.modules = kernel->table[TABLE_modules],
		.rules = kernel->table[TABLE_rules],
		.counters = counters,
	};
}

struct error *kernel_set_process(struct kernel_side *kernel, uint32_t pid,
				 const struct process_entry *entry)
{
	if (bpf_map_update_elem(bpf_map__fd(kernel->skeleton->maps.processes), &pid, entry, 0))
		return error_errno("process %u", pid);
	return NULL;
}

void kernel_remove_process(struct kernel_side *kernel, uint32_t pid)
{
	int processes = bpf_map__fd(kernel->skeleton->maps.processes);

	// A process that was never published is not there, which is as well.
	(void)bpf_map_delete_elem(processes, &pid);
	(void)bpf_map_delete_elem(bpf_map__fd(kernel->skeleton->maps.exec_times), &pid);
}

void kernel_await_program(struct kernel_side *kernel, uint32_t pid)
{
	char path[sizeof("/proc/4294967295/exe")];
	uint32_t one = 1;
	struct stat status;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	if (stat(path, &status))
		return; // it is gone
	uint64_t inode = status.st_ino;
	// Without an entry the next process of the program is seen with its first sample.
	(void)bpf_map_update_elem(bpf_map__fd(kernel->skeleton->maps.programs_to_tell), &inode,
				  &one, BPF_ANY);
}

struct error *kernel_drain(struct kernel_side *kernel, kernel_sample_fn *fn, void *context)
{
	kernel->drain = (struct drain){.fn = fn, .context = context};
	int count = ring_buffer__consume(kernel->ring);
	if (kernel->drain.err)
		return kernel->drain.err;
	if (count < 0) {
		errno = -count;
		return error_errno("read the sample ring");
	}
	return NULL;
}

int kernel_poll_fd(struct kernel_side *kernel)
{
	return ring_buffer__epoll_fd(kernel->ring);
}

struct error *kernel_count(struct kernel_side *kernel, uint64_t ret[BPF_COUNTERS])
{
	int cpus = libbpf_num_possible_cpus();
	_cleanup_free_ uint64_t *values = calloc((size_t)cpus, sizeof(*values));

	if (!values)
		return error_oom();
	for (uint32_t i = 0; i < BPF_COUNTERS; i++) {
		if (bpf_map_lookup_elem(bpf_map__fd(kernel->skeleton->maps.bpf_counters), &i,
					values))
			return error_errno("read BPF counters");
		ret[i] = 0;
		for (int cpu = 0; cpu < cpus; cpu++)
			ret[i] += values[cpu];
	}
	ret[BPF_ring_full] += kernel->malformed;
	return NULL;
}

const char *kernel_variant_name(const struct kernel_side *kernel)
{
	return kernel->program == kernel->skeleton->progs.sample_loop ? "bpf_loop" : "tail calls";
}
