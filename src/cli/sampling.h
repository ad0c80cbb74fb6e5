/* SPDX-License-Identifier: Apache-2.0 */
/* What record and agent share: which rows choose how to sample, and stopping when told to. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/capture.h"
#include "cli/options.h"

/* How to sample, whatever it is for. */
struct sampling_args {
	uint64_t depth, memory_mib;
	const char *walker, *capture;
};
extern const struct option_row options_sampling[];

/* What to look up beyond symbols. */
struct naming_args {
	bool lines, debuginfod;
};
extern const struct option_row options_naming[];

/* The parts of OPTIONS that ARGS decide. */
void sampling_apply(const struct sampling_args *args, struct capture_options *options);

/* Say once if CAPTURE is not the best one: why, and what its profiles do not show. */
void sampling_tell(const struct capture *capture);

/* Numbers of a list as the capture wants them; the caller frees RET. */
struct error *sampling_ids(const struct uint_list *list, uint32_t **ret);

/*
 * Ask the scheduler to let us run soon (on a machine whose CPUs are all busy the ring would fill
 * while cairn waits its turn; without the privilege nothing changes, and lost samples are counted
 * as ever), and the allocator to give memory back.
 */
void sampling_prepare_process(void);

/*
 * A descriptor that becomes readable when the process is told to stop (SIGINT, SIGTERM, SIGHUP) or
 * when a child ends. Those signals are blocked from now on; a child must call
 * stop_signals_unblock() before it execs.
 */
struct error *stop_signals_open(int *ret_fd);
void stop_signals_unblock(void);

/* Which signal came: its number, or 0 if none is waiting. */
int stop_signals_read(int fd);

/*
 * After the first of them: one that comes within half a second of now is still ignored (whoever
 * stops a program by its group or through a wrapper sends several), a later one ends the process.
 */
void stop_signals_let_go(void);
