/* SPDX-License-Identifier: Apache-2.0 */
/* Opening perf events and reading their rings. */
#include "proc/perf-event.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/array.h"
#include "base/file.h"

enum { RECORD_MAX = 1 << 16 }; /* size is 16 bits wide in the header */

static const struct perf_event_row rows[] = {
#define PERF_EVENT(name_, alias_, type_, config_, help_) {name_, alias_, type_, config_, help_},
#include "proc/perf-events.def"
#undef PERF_EVENT
};

const struct perf_event_row *perf_event_at(size_t i)
{
	return i < ARRAY_COUNT(rows) ? &rows[i] : NULL;
}

const struct perf_event_row *perf_event_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
		if (!strcmp(rows[i].name, name) || (rows[i].alias && !strcmp(rows[i].alias, name)))
			return &rows[i];
	return NULL;
}

static int open_event(struct perf_event_attr *attr, int pid, int cpu, unsigned long flags)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, flags | PERF_FLAG_FD_CLOEXEC);
}

unsigned perf_max_rate(void)
{
	_cleanup_free_ char *text = NULL;
	size_t size;

	// Without the file there is no limit to report; opening the event will tell.
	struct error *err = file_read(AT_FDCWD, "/proc/sys/kernel/perf_event_max_sample_rate", 64,
				      &text, &size);
	if (err) {
		error_free(err);
		return 0;
	}
	return (unsigned)strtoul(text, NULL, 10);
}

bool perf_event_missing(const struct perf_event_row *event)
{
	// For ourselves and without the kernel's part: what asks for the fewest rights.
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = event->type,
		.config = event->config,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = open_event(&attr, 0, -1, 0);

	if (fd < 0)
		return errno == ENOENT || errno == EOPNOTSUPP;
	close(fd);
	return false;
}

struct error *perf_open_sampling(const struct perf_sampling *sampling, int *ret_fd)
{
	const struct perf_event_row *event = sampling->event;
	bool by_cgroup = sampling->cgroup_fd >= 0;
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = event->type,
		.config = event->config,
		.disabled = 1,
		.exclude_idle = 1,
	};

	if (sampling->hz) {
		attr.freq = 1;
		attr.sample_freq = sampling->hz;
	} else {
		attr.sample_period = sampling->period;
	}
	int fd = open_event(&attr, by_cgroup ? sampling->cgroup_fd : -1, sampling->cpu,
			    by_cgroup ? PERF_FLAG_PID_CGROUP : 0);
	if (fd < 0 && (errno == ENOENT || errno == EOPNOTSUPP))
		return error_new("this machine has no event \"%s\"; cpu-clock always works",
				 event->name);
	if (fd < 0)
		return error_errno("open event %s on CPU %d", event->name, sampling->cpu);
	*ret_fd = fd;
	return NULL;
}

struct error *perf_ring_open(int cpu, unsigned data_pages, struct perf_ring *ret)
{
	size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
	_cleanup_(perf_ring_deinit) struct perf_ring ring = PERF_RING_INIT;
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
		.disabled = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.sample_id_all = 1,
		.build_id = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = (uint32_t)(data_pages * page_size / 2),
	};

	ring.fd = open_event(&attr, -1, cpu, 0);
	if (ring.fd < 0 && errno == EINVAL) {
		// Build ids in MMAP2 records: Linux 88a16a130933, 5.12.
		attr.build_id = 0;
		ring.fd = open_event(&attr, -1, cpu, 0);
	}
	if (ring.fd < 0)
		return error_errno("open side-band event on CPU %d", cpu);
	ring.size_bytes = data_pages * page_size;
	ring.record = malloc(RECORD_MAX);
	if (!ring.record)
		return error_oom();
	void *page = mmap(NULL, ring.size_bytes + page_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			  ring.fd, 0);
	if (page == MAP_FAILED)
		return error_errno(
			"map the side-band ring of CPU %d (%zu KiB; kernel.perf_event_mlock_kb)",
			cpu, ring.size_bytes / 1024);
	ring.page = page;
	*ret = ring;
	ring = (struct perf_ring)PERF_RING_INIT;
	return NULL;
}

void perf_ring_deinit(struct perf_ring *ring)
{
	if (ring->page)
		munmap(ring->page, ring->size_bytes + (size_t)sysconf(_SC_PAGESIZE));
	if (ring->fd >= 0)
		close(ring->fd);
	free(ring->record);
	*ring = (struct perf_ring)PERF_RING_INIT;
}

struct error *perf_ring_start(struct perf_ring *ring)
{
	if (ioctl(ring->fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return error_errno("start side-band records");
	return NULL;
}

/* Copy SIZE bytes at ring position AT, which may wrap. */
static void copy_out(const struct perf_ring *ring, uint64_t at, void *to, size_t size)
{
	const unsigned char *data = (const unsigned char *)ring->page + sysconf(_SC_PAGESIZE);
	size_t offset = at & (ring->size_bytes - 1);
	size_t first = size < ring->size_bytes - offset ? size : ring->size_bytes - offset;

	memcpy(to, data + offset, first);
	memcpy((char *)to + first, data, size - first);
}

const struct perf_event_header *perf_ring_next(struct perf_ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;
	struct perf_event_header header;

	if (head == tail)
		return NULL;
	copy_out(ring, tail, &header, sizeof(header));
	if (header.size < sizeof(header) || header.size > head - tail) {
		// Never seen from a kernel; skipping everything is the one way to get back in step.
		__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
		return NULL;
	}
	copy_out(ring, tail, ring->record, header.size);
	__atomic_store_n(&ring->page->data_tail, tail + header.size, __ATOMIC_RELEASE);
	return (const struct perf_event_header *)(const void *)ring->record;
}
