/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of the machine and what each has mapped, at the time up to which side-band events
 * have been applied; and the tables that the BPF side reads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/counters.h"
#include "base/error.h"
#include "capture/kernel.h"
#include "capture/map-set.h"
#include "capture/objects.h"
#include "capture/pythons.h"
#include "capture/side-band.h"
#include "identity/application.h"

struct process_state;
struct processes;

/* All borrowed. */
struct processes_options {
	struct kernel_side *kernel; /* NULL: only the host walks */
	struct objects *objects;
	struct pythons *pythons;                        /* NULL: nobody wants to know */
	const struct application_options *applications; /* NULL: the same */
	struct counters *counters;
	uint32_t mapping_room; /* entries of the kernel side's table of mappings */
};

struct error *processes_new(const struct processes_options *options, struct processes **ret);
void processes_free(struct processes *processes);

/* Enter every process that runs now, as /proc shows it. NOW_NS is from before the call. */
struct error *processes_scan(struct processes *processes, uint64_t now_ns);

/*
 * Load the rows of what the processes that run at this moment have mapped, until UNTIL_NS: most of
 * the first samples will be theirs.
 */
struct error *processes_warm(struct processes *processes, uint64_t until_ns);

/* The same of process PID, whether it runs or not: it is what will be looked at. */
struct error *processes_warm_one(struct processes *processes, uint32_t pid, uint64_t until_ns);

/* Apply EVENT: events come in the order of time. */
struct error *processes_apply(struct processes *processes, const struct side_event *event);

/*
 * PID as known now; a pid that no event announced is looked up in /proc, if its back-off allows.
 * NULL: nothing is known of it. Valid until the next call that applies or sweeps.
 */
struct error *processes_get(struct processes *processes, uint32_t pid, uint64_t now_ns,
			    struct process_state **ret);

/* Read PID's mappings again, unless that happened a moment ago. False: not now, or it is gone. */
struct error *processes_refresh(struct processes *processes, struct process_state *process,
				uint64_t now_ns, bool *ret);

/*
 * A sample of TIME_NS found no entry for PROCESS in the BPF side's table: see that it gets one. (A
 * process number that is used again may lose its entry to the end of the process before.)
 */
struct error *processes_missed(struct processes *processes, struct process_state *process,
			       uint64_t time_ns);

/* Who forked PID, if that was seen and PID is known still; 0: not known. */
uint32_t processes_parent(const struct processes *processes, uint32_t pid);

/* What is at PC. */
struct code process_code(const struct process_state *process, uint64_t pc);

/* The interpreter that PROCESS runs; NULL: none, as far as known. Borrowed. */
struct python_image *process_python(const struct process_state *process);

/*
 * What process PID runs, "appid: ...", as far as its name has been asked for before or can be read
 * now; "" when it is not known. It is asked once in the life of a program that has an answer.
 * Borrowed until the next call that applies or sweeps.
 */
struct error *processes_application(struct processes *processes, uint32_t pid, const char **ret);

/* The mappings as walkers want them. Borrowed from the process until it changes. */
struct error *process_table(struct processes *processes, struct process_state *process,
			    const struct unwind_mapping **ret, size_t *ret_count);

/*
 * Hand everything that changed to the BPF side; it reflects all events up to AS_OF_NS. To be
 * called after the events of a drain were applied.
 */
struct error *processes_publish(struct processes *processes, uint64_t as_of_ns);

/* PID is not the process that it was: drop what is known of it. */
void processes_forget(struct processes *processes, uint32_t pid);

/* Now and then: drop processes that are gone. */
struct error *processes_sweep(struct processes *processes);

size_t processes_count(const struct processes *processes);
