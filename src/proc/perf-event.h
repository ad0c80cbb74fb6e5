/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf_event_open: the event that ticks, and the ring of side-band records (exec, mmap, fork,
 * exit). What a record means is capture/'s business.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* An event that can drive sampling. */
struct perf_event_row {
	const char *name;
	const char *alias; /* or NULL */
	uint32_t type;
	uint64_t config;
	const char *help;
};

/* By name or alias; NULL: there is no such event. */
const struct perf_event_row *perf_event_find(const char *name);
/* Row number I; NULL behind the last. */
const struct perf_event_row *perf_event_at(size_t i);

struct perf_sampling {
	const struct perf_event_row *event; /* borrowed */
	unsigned hz;                        /* samples a second; 0: use period */
	uint64_t period;                    /* one sample every so many events */
	int cpu;
	int cgroup_fd; /* only tasks of this cgroup; -1: all */
};

/* Does this machine lack the event, whatever one's rights? */
bool perf_event_missing(const struct perf_event_row *event);

/* A disabled sampling event on one CPU, to which a BPF program is attached next. */
struct error *perf_open_sampling(const struct perf_sampling *sampling, int *ret_fd);

/* The rate that the kernel allows (kernel.perf_event_max_sample_rate); 0: it does not say. */
unsigned perf_max_rate(void);

/* Records of one CPU as the kernel writes them. */
struct perf_ring {
	int fd;
	struct perf_event_mmap_page *page;
	size_t size_bytes;     /* of the data */
	unsigned char *record; /* the present record, unwrapped */
};

#define PERF_RING_INIT                                                                             \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/*
 * The ring for the side-band records of CPU, with DATA_PAGES pages (a power of two). Timestamps are
 * CLOCK_MONOTONIC. MMAP2 records carry build ids where the kernel can.
 */
struct error *perf_ring_open(int cpu, unsigned data_pages, struct perf_ring *ret);
void perf_ring_deinit(struct perf_ring *ring);
struct error *perf_ring_start(struct perf_ring *ring);

/* The next record, valid until the next call; NULL: the ring is empty. */
const struct perf_event_header *perf_ring_next(struct perf_ring *ring);
