/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs in the kernel take the samples. Samples and side-band events are put in one order of
 * time: samples are held back until all events up to them have been read, so that each meets its
 * process as it was.
 */
#define LOG_DOMAIN "capture"
#include "capture/captures.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "capture/pythons.h"
#include "capture/side-band.h"
#include "capture/wall.h"
#include "proc/cpus.h"
#include "proc/system.h"

enum {
	DRAIN_MS = 100,
	// While walks find things missing: what is loaded sooner is missed less often.
	DRAIN_SOON_MS = 20,
	// After a wake: what it was for has settled then.
	DRAIN_NEXT_MS = 3,
	// However many wakes come.
	REST_NS = 1000 * 1000,
	// Before the first sample, for the rows of what runs at the moment.
	WARM_NS = 300 * 1000 * 1000,
	WARM_CHOSEN_NS = 700 * 1000 * 1000, /* of one second until the first sample */
	// How long the rings may fill while samples are worked off.
	COLLECT_NS = 20 * 1000 * 1000,
	SWEEP_NS = 1000 * 1000 * 1000,
	// A record is stamped before it is committed; this much later it is surely there to be
	// read.
	SETTLE_NS = 2 * 1000 * 1000,
	HELD_MAX_BYTES = 16 << 20,
	HELD_MAX = 1 << 18,
	RING_BYTES = 8 << 20,
	SIDE_BAND_BYTES = 4 << 20,
	MAPPING_ROOM = 65536,
	COPY_BYTES = SAMPLE_COPY_BYTES,
	CGROUPS_MAX = 256,
};

/* Samples that wait for their events. */
struct held {
	struct sample **sample;
	size_t count, room;
	struct arena data;
};

struct sampler {
	struct capture_options options; /* pointers in it are not used after opening */
	const struct perf_event_row *event;
	struct cpus only_cpus; /* none: all */
	uint32_t *pids;        /* owned; none: those that tids and cgroups say, or all */
	size_t pid_count;
	int *cgroup_fds;
	size_t cgroup_count, cgroup_room;
	struct kernel_side *kernel;
	struct source_parts parts; /* options is not used */
	struct wall *wall;         /* NULL: only threads that run are sampled */
	struct side_band *side_band;
	struct held
		held[2]; /* new samples go into held[holding]; the other one is being worked off */
	int holding;
	uint64_t counted[BPF_COUNTERS]; /* up to the last session's end */
	uint64_t next_sweep_ns;
	uint64_t rest_ns; /* until then wakes are not looked at */
	struct cpus online;
	bool started;
};

/* --- opening */

static struct error *check_namespace(void)
{
	if (!system_has_own_pid_namespace())
		return NULL;
	return error_new("programs in the kernel know the machine's process numbers, and here "
			 "processes have others: start the container with --pid=host (hostPID: "
			 "true)");
}

static struct error *check_rate(const struct capture_options *options)
{
	unsigned max = perf_max_rate();

	if (options->hz && max && options->hz > max)
		return error_new("the kernel allows at most %u samples a second; raise it by "
				 "sysctl kernel.perf_event_max_sample_rate=%u",
				 max, options->hz);
	return NULL;
}

static struct error *open_cgroups(struct sampler *sampler, const struct capture_options *options)
{
	for (size_t i = 0; i < options->cgroup_count; i++) {
		TRY(ARRAY_RESERVE(sampler->cgroup_fds, sampler->cgroup_room, sampler->cgroup_count,
				  1, CGROUPS_MAX, "cgroups"));
		int fd = open(options->cgroups[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return error_errno("cgroup %s", options->cgroups[i]);
		sampler->cgroup_fds[sampler->cgroup_count++] = fd;
	}
	return NULL;
}

static struct error *copy_cpus(struct sampler *sampler, const struct capture_options *options)
{
	struct cpus *cpus = &sampler->only_cpus;

	TRY(ARRAY_RESERVE(cpus->cpu, cpus->room, 0, options->cpu_count, CPUS_MAX, "CPUs"));
	if (options->cpu_count)
		memcpy(cpus->cpu, options->cpus, options->cpu_count * sizeof(*cpus->cpu));
	cpus->count = options->cpu_count;
	return NULL;
}

static struct error *copy_pids(struct sampler *sampler, const struct capture_options *options)
{
	TRY(ARRAY_NEW(sampler->pids, options->pid_count + 1));
	for (size_t i = 0; i < options->pid_count; i++)
		sampler->pids[i] = options->pids[i];
	sampler->pid_count = options->pid_count;
	return NULL;
}

static struct error *open_kernel(struct sampler *sampler, const struct capture_options *options)
{
	struct kernel_options with = {
		.kernel_stacks = options->kernel_stacks,
		.user_stacks = options->user_stacks,
		.depth = options->depth,
		.copy_bytes = COPY_BYTES,
		.ring_bytes = RING_BYTES,
		.mappings = MAPPING_ROOM,
		.variant = options->variant,
		.only_gil = options->only_gil,
		.pids = options->pids,
		.pid_count = options->pid_count,
		.children = options->children,
		.tids = options->tids,
		.tid_count = options->tid_count,
	};

	return kernel_open(&with, &sampler->kernel);
}

static struct error *open_wall(struct sampler *sampler, const struct capture_options *options)
{
	const struct wall_options wall = {
		.hz = options->hz,
		.stacks = sampler->parts.stacks,
		.kernel = sampler->kernel,
		.counters = sampler->parts.counters,
		.tids = options->tids,
		.tid_count = options->tid_count,
	};

	return wall_open(&wall, &sampler->wall);
}

static void sampler_close(void *source)
{
	struct sampler *sampler = source;

	if (!sampler)
		return;
	wall_close(sampler->wall);
	side_band_free(sampler->side_band);
	kernel_close(sampler->kernel);
	for (size_t i = 0; i < sampler->cgroup_count; i++)
		close(sampler->cgroup_fds[i]);
	free(sampler->cgroup_fds);
	free(sampler->pids);
	cpus_deinit(&sampler->only_cpus);
	cpus_deinit(&sampler->online);
	for (int i = 0; i < 2; i++) {
		free(sampler->held[i].sample);
		arena_deinit(&sampler->held[i].data);
	}
	free(sampler);
}

static struct error *open_sampler(struct sampler *sampler, const struct capture_options *options)
{
	TRY(check_namespace());
	TRY(check_rate(options));
	sampler->event = perf_event_find(options->event);
	if (!sampler->event)
		return error_new("no event is called \"%s\"; cairn help record lists them",
				 options->event);
	TRY(open_cgroups(sampler, options));
	TRY(copy_cpus(sampler, options));
	TRY(copy_pids(sampler, options));
	return open_kernel(sampler, options);
}

static struct error *sampler_open(const struct capture_options *options, struct counters *counters,
				  void **ret, struct source_tables *ret_tables)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));

	if (!sampler)
		return error_oom();
	sampler->options = *options;
	sampler->held[0].data.max_bytes = sampler->held[1].data.max_bytes = HELD_MAX_BYTES;
	struct error *err = open_sampler(sampler, options);
	if (err) {
		sampler_close(sampler);
		return err;
	}
	*ret_tables = (struct source_tables){
		.kernel = sampler->kernel,
		.store = kernel_store_options(sampler->kernel, options->memory_mib, counters),
		.pythons = kernel_pythons(sampler->kernel),
		.layouts = kernel_layouts(sampler->kernel),
		.mappings = MAPPING_ROOM,
	};
	*ret = sampler;
	return NULL;
}

static struct error *sampler_join(void *source, const struct source_parts *parts)
{
	struct sampler *sampler = source;

	sampler->parts = *parts;
	if (parts->options->wall)
		TRY(open_wall(sampler, parts->options));
	return side_band_new(SIDE_BAND_BYTES, parts->counters, &sampler->side_band);
}

/* --- CPUs */

static bool cpu_listed(const struct cpus *cpus, unsigned cpu)
{
	for (size_t i = 0; i < cpus->count; i++)
		if (cpus->cpu[i] == cpu)
			return true;
	return false;
}

static struct error *attach(struct sampler *sampler, unsigned cpu, int cgroup_fd)
{
	struct perf_sampling sampling = {
		.event = sampler->event,
		.hz = sampler->options.hz,
		.period = sampler->options.period,
		.cpu = (int)cpu,
		.cgroup_fd = cgroup_fd,
	};
	_cleanup_close_ int fd = -1;

	struct error *err = perf_open_sampling(&sampling, &fd);
	if (err && error_code(err) == ENODEV) {
		error_free(err); // it went offline since it was listed
		return NULL;
	}
	TRY(err);
	TRY(kernel_attach(sampler->kernel, cpu, fd));
	fd = -1;
	return NULL;
}

static struct error *attach_cpu(struct sampler *sampler, unsigned cpu)
{
	if (sampler->only_cpus.count && !cpu_listed(&sampler->only_cpus, cpu))
		return NULL;
	if (!sampler->cgroup_count)
		return attach(sampler, cpu, -1);
	for (size_t i = 0; i < sampler->cgroup_count; i++)
		TRY(attach(sampler, cpu, sampler->cgroup_fds[i]));
	return NULL;
}

/*
 * Side-band records of CPU, which is one of CPUS; one that went offline since it was listed has
 * none.
 */
static struct error *listen_to_cpu(struct sampler *sampler, unsigned cpu, unsigned cpus)
{
	struct error *err = side_band_add_cpu(sampler->side_band, cpu, cpus);

	if (!err || error_code(err) != ENODEV)
		return err;
	error_free(err);
	return NULL;
}

/*
 * Follow CPUs that come and go. Events of one that went offline are dead and are opened anew when
 * it comes back.
 */
static struct error *follow_cpus(struct sampler *sampler)
{
	struct cpus *before = &sampler->online;
	_cleanup_(cpus_deinit) struct cpus online = CPUS_INIT;

	TRY(cpus_read_online(&online));
	for (size_t i = 0; i < before->count; i++) {
		if (cpu_listed(&online, before->cpu[i]))
			continue;
		log_debug("cpu=%u offline", before->cpu[i]);
		kernel_detach(sampler->kernel, (int)before->cpu[i]);
		side_band_remove_cpu(sampler->side_band, before->cpu[i]);
	}
	for (size_t i = 0; i < online.count; i++) {
		if (cpu_listed(before, online.cpu[i]))
			continue;
		TRY(listen_to_cpu(sampler, online.cpu[i], (unsigned)online.count));
		TRY(attach_cpu(sampler, online.cpu[i]));
	}
	cpus_deinit(before);
	*before = take_struct(online);
	return NULL;
}

/* Side-band records of every CPU, before anything is looked at that they tell changes of. */
static struct error *listen_to_cpus(struct sampler *sampler)
{
	_cleanup_(cpus_deinit) struct cpus online = CPUS_INIT;

	TRY(cpus_read_online(&online));
	for (size_t i = 0; i < online.count; i++)
		TRY(listen_to_cpu(sampler, online.cpu[i], (unsigned)online.count));
	return NULL;
}

/*
 * Load the rows that the first samples need. Those without are finished by the host, from a copy of
 * the stack, which has no frames of an interpreter.
 */
static struct error *warm(struct sampler *sampler, uint64_t now_ns)
{
	struct processes *processes = sampler->parts.processes;

	for (size_t i = 0; i < sampler->pid_count; i++)
		TRY(processes_warm_one(processes, sampler->pids[i], now_ns + WARM_CHOSEN_NS));
	// Nobody looks at the others.
	if (sampler->pid_count && !sampler->options.children)
		return NULL;
	return processes_warm(processes, now_ns + WARM_NS);
}

static struct error *sampler_start(void *source)
{
	struct sampler *sampler = source;
	uint64_t now_ns;

	TRY(kernel_follow(sampler->kernel));
	TRY(listen_to_cpus(sampler));
	now_ns = clock_monotonic_ns();
	TRY(processes_scan(sampler->parts.processes, now_ns));
	TRY(warm(sampler, now_ns));
	log_debug("scan walker=\"%s\" processes=%zu ms=%llu", kernel_variant_name(sampler->kernel),
		  processes_count(sampler->parts.processes),
		  (unsigned long long)(clock_monotonic_ns() - now_ns) / 1000000);
	sampler->next_sweep_ns = clock_monotonic_ns() + SWEEP_NS;
	TRY(follow_cpus(sampler));
	sampler->started = true;
	return NULL;
}

static void sampler_stop(void *source)
{
	struct sampler *sampler = source;

	if (sampler->started)
		kernel_detach(sampler->kernel, -1);
	sampler->started = false;
}

/* --- draining */

static struct error *hold(void *context, const struct sample *sample)
{
	struct sampler *sampler = context;
	struct held *held = &sampler->held[sampler->holding];
	struct sample *copy;

	struct error *err = ARRAY_RESERVE(held->sample, held->room, held->count, 1, HELD_MAX,
					  "samples at a time");
	if (!err)
		err = arena_alloc(&held->data, sample->size, &copy);
	if (err) {
		error_free(err); // a limit
		counter_add(sampler->parts.counters, COUNTER_samples_lost, 1);
		return NULL;
	}
	memcpy(copy, sample, sample->size);
	held->sample[held->count++] = copy;
	return sample->python && sampler->parts.pythons
		       ? pythons_prefetch(sampler->parts.pythons, copy)
		       : NULL;
}

static int by_time(const void *a, const void *b)
{
	const struct sample *x = *(struct sample *const *)a, *y = *(struct sample *const *)b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static struct error *apply_events(struct sampler *sampler, uint64_t until_ns)
{
	const struct side_event *event;

	while ((event = side_band_next(sampler->side_band, until_ns)))
		TRY(processes_apply(sampler->parts.processes, event));
	return NULL;
}

/* Make room in the rings; what comes is worked off later. */
static struct error *collect(void *context)
{
	struct sampler *sampler = context;

	TRY(kernel_drain(sampler->kernel, hold, sampler));
	return side_band_read(sampler->side_band);
}

/* Work off what was held and is not younger than UNTIL_NS; the rest is held on. */
static struct error *work_off(struct sampler *sampler, uint64_t until_ns)
{
	struct held *held = &sampler->held[sampler->holding];
	uint64_t collect_ns = clock_monotonic_ns() + COLLECT_NS;

	sampler->holding = !sampler->holding;
	if (held->count)
		qsort(held->sample, held->count, sizeof(*held->sample), by_time);
	for (size_t i = 0; i < held->count; i++) {
		if (held->sample[i]->time_ns > until_ns) {
			TRY(hold(sampler, held->sample[i]));
			continue;
		}
		TRY(apply_events(sampler, held->sample[i]->time_ns));
		TRY(stacks_add(sampler->parts.stacks, held->sample[i]));
		// Rows may have been compiled for it, which takes its time.
		if (clock_monotonic_ns() < collect_ns)
			continue;
		TRY(collect(sampler));
		collect_ns = clock_monotonic_ns() + COLLECT_NS;
	}
	held->count = 0;
	arena_deinit(&held->data);
	return NULL;
}

/* One round: samples first, then the events, so that every event before a sample is there. */
static struct error *drain(struct sampler *sampler, uint64_t until_ns)
{
	uint64_t read_ns = clock_monotonic_ns();

	TRY(collect(sampler));
	TRY(work_off(sampler, until_ns));
	TRY(apply_events(sampler, until_ns));
	TRY(processes_publish(sampler->parts.processes, until_ns < read_ns ? until_ns : read_ns));
	return side_band_forget(sampler->side_band);
}

static struct error *sweep(struct sampler *sampler, uint64_t now_ns)
{
	if (now_ns < sampler->next_sweep_ns)
		return NULL;
	sampler->next_sweep_ns = now_ns + SWEEP_NS;
	if (sampler->started)
		TRY(follow_cpus(sampler));
	return processes_sweep(sampler->parts.processes);
}

/* What ended a wait. */
struct woken {
	bool ring, caller;
};

/* Wait until UNTIL_NS, or until something is to be done at once. */
static struct error *wait_for_samples(struct sampler *sampler, uint64_t until_ns, int wake_fd,
				      struct woken *ret)
{
	uint64_t now_ns = clock_monotonic_ns();
	bool rest = now_ns < sampler->rest_ns;

	if (rest && until_ns > sampler->rest_ns)
		until_ns = sampler->rest_ns;
	uint64_t left_ms = until_ns > now_ns ? (until_ns - now_ns + 999999) / 1000000 : 0;
	struct pollfd fds[] = {
		{.fd = rest ? -1 : kernel_poll_fd(sampler->kernel), .events = POLLIN},
		{.fd = wake_fd, .events = POLLIN},
	};

	int ready = poll(fds, 2, (int)left_ms);
	if (ready < 0 && errno != EINTR)
		return error_errno("wait for samples");
	ret->ring = ready > 0 && fds[0].revents;
	ret->caller = ready > 0 && fds[1].revents;
	return NULL;
}

/* Work off what came, and say when to do so again. */
static struct error *take_samples(struct sampler *sampler, bool woken, uint64_t *next_ns)
{
	uint64_t walked = sampler->parts.counters->value[COUNTER_host_walks];
	uint64_t now_ns = clock_monotonic_ns();

	TRY(drain(sampler, now_ns - SETTLE_NS));
	TRY(sweep(sampler, now_ns));
	uint64_t pause_ms = DRAIN_MS;
	if (sampler->parts.counters->value[COUNTER_host_walks] > walked)
		pause_ms = DRAIN_SOON_MS;
	if (woken)
		pause_ms = DRAIN_NEXT_MS;
	sampler->rest_ns = clock_monotonic_ns() + REST_NS;
	*next_ns = now_ns + pause_ms * 1000000;
	return NULL;
}

static struct error *sampler_wait(void *source, unsigned timeout_ms, int wake_fd)
{
	struct sampler *sampler = source;
	uint64_t end_ns = clock_monotonic_ns() + timeout_ms * 1000000ull;
	uint64_t drain_ns = clock_monotonic_ns() + DRAIN_SOON_MS * 1000000ull;
	struct woken woken = {false, false};

	while (!woken.caller && clock_monotonic_ns() < end_ns) {
		uint64_t until_ns = drain_ns < end_ns ? drain_ns : end_ns;
		if (sampler->wall && wall_due_ns(sampler->wall) < until_ns)
			until_ns = wall_due_ns(sampler->wall);
		TRY(wait_for_samples(sampler, until_ns, wake_fd, &woken));
		if (sampler->wall && sampler->started)
			TRY(wall_look(sampler->wall, clock_monotonic_ns()));
		if (woken.ring || woken.caller || clock_monotonic_ns() >= drain_ns)
			TRY(take_samples(sampler, woken.ring, &drain_ns));
	}
	return take_samples(sampler, false, &drain_ns);
}

/* --- ending a session */

static struct error *sampler_settle(void *source)
{
	struct sampler *sampler = source;

	// Once nothing is sampled any more everything can be worked off; else what is young stays.
	return drain(sampler, sampler->started ? clock_monotonic_ns() - SETTLE_NS : UINT64_MAX);
}

static struct error *sampler_end_session(void *source, struct profile *profile)
{
	struct sampler *sampler = source;
	struct counters *counters = sampler->parts.counters;
	uint64_t counted[BPF_COUNTERS];

	if (sampler->wall)
		wall_end_session(sampler->wall);
	TRY(kernel_count(sampler->kernel, counted));
	counter_add(counters, COUNTER_samples_lost,
		    counted[BPF_ring_full] - sampler->counted[BPF_ring_full]);
	counter_add(counters, COUNTER_processes_skipped,
		    counted[BPF_fork_full] - sampler->counted[BPF_fork_full]);
	counter_add(counters, COUNTER_targets_full,
		    counted[BPF_target_full] - sampler->counted[BPF_target_full]);
	memcpy(sampler->counted, counted, sizeof(counted));
	return NULL;
}

/* --- may it be used? */

static struct error *sampler_probe(void)
{
	_cleanup_(cpus_deinit) struct cpus cpus = CPUS_INIT;
	struct perf_sampling sampling = {
		.event = perf_event_find("cpu-clock"), .hz = 1, .cgroup_fd = -1};
	const struct kernel_options least = {
		.user_stacks = true,
		.depth = SAMPLE_USER_FRAMES,
		.copy_bytes = COPY_BYTES,
		.ring_bytes = RING_BYTES,
		.mappings = MAPPING_ROOM,
	};
	struct kernel_side *kernel;
	_cleanup_close_ int fd = -1;

	TRY(check_namespace());
	TRY(kernel_open(&least, &kernel));
	kernel_close(kernel);
	TRY(cpus_read_online(&cpus));
	sampling.cpu = cpus.count ? (int)cpus.cpu[0] : 0;
	return perf_open_sampling(&sampling, &fd);
}

const struct source source_bpf = {
	.probe = sampler_probe,
	.open = sampler_open,
	.join = sampler_join,
	.close = sampler_close,
	.start = sampler_start,
	.wait = sampler_wait,
	.stop = sampler_stop,
	.settle = sampler_settle,
	.pulse = collect,
	.end_session = sampler_end_session,
};
