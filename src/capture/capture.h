/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking samples of the machine: open, start, wait for as long as a session lasts, end the session
 * with a profile. Sessions follow one another without a gap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/kernel.h"
#include "identity/application.h"
#include "profile/profile.h"

/* The best way to take samples that works here. */
#define CAPTURE_AUTO "auto"

struct capture_options {
	const char *capture; /* CAPTURE_AUTO, or a name of captures.def; borrowed */
	const char *event;   /* a row of proc/perf-events.def; borrowed */
	unsigned hz;         /* 1 to 10,000; 0: use period */
	uint64_t period;
	bool kernel_stacks, user_stacks;
	bool by_thread;  /* a frame at the root says which thread it is */
	bool native;     /* an interpreter's own C frames beside those that it evaluates */
	bool only_gil;   /* only threads that hold CPython's global interpreter lock */
	bool wall;       /* all threads, also those that do not run */
	bool python;     /* frames of Python; else the interpreter's own machine code */
	bool containers; /* the name of the container of each process */
	/* How what each process runs is told; NULL: not at all. Borrowed until the end. */
	const struct application_options *applications;
	bool python_versions; /* the package and its version with each Python frame */
	unsigned depth;
	bool lines; /* source lines and inlined calls */
	bool debuginfod;
	unsigned memory_mib; /* unwind rows may take that much */
	enum kernel_variant variant;
	/* What to sample; count 0: everything. All borrowed during capture_open(). */
	const uint32_t *pids, *tids, *cpus;
	size_t pid_count, tid_count, cpu_count;
	bool children;              /* of pids, too */
	const char *const *cgroups; /* directories of cgroup v2 */
	size_t cgroup_count;
};

struct capture;

/*
 * Load everything; nothing is sampled yet. A failure says what the machine or the privileges lack.
 */
struct error *capture_open(const struct capture_options *options, struct capture **ret);
void capture_close(struct capture *capture);
static inline void cleanup_capture(struct capture **capture)
{
	capture_close(*capture);
}
#define _cleanup_capture_ _cleanup_(cleanup_capture)

/* How samples are taken: a name of captures.def. */
const char *capture_name(const struct capture *capture);
/* What its profiles do not show; NULL: nothing is missing. */
const char *capture_lacks(const struct capture *capture);
/* Why a better one cannot be used; NULL: this is the best, or was asked for. */
const char *capture_instead(const struct capture *capture);

struct error *capture_start(struct capture *capture);

/* Take samples for TIMEOUT_MS, or until WAKE_FD (-1: none) is readable. */
struct error *capture_wait(struct capture *capture, unsigned timeout_ms, int wake_fd);

/* No further samples; those taken stay for capture_end_session(). */
void capture_stop(struct capture *capture);

/* Everything since the start or the last session's end, with names. The caller frees RET. */
struct error *capture_end_session(struct capture *capture, struct profile **ret);

/* Samples in this session so far, and how many of their stacks are not whole. */
void capture_progress(const struct capture *capture, uint64_t *ret_samples, uint64_t *ret_cut);
