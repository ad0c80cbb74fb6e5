/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the agent runs as a service: what must hold at the start, the files that say that it is
 * there, its log, what systemd hears, what it takes itself.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/controller.h"
#include "agent/usage.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/option.h"

/* Options that gProfiler does not have. */
struct operations_args {
	bool several;
	const char *status_socket;
};
extern const struct option_row options_operations[];

struct agent_args;
struct delivery;
struct log_file;
struct profile;

struct operations {
	const struct agent_args *args; /* borrowed */
	struct controller controller;
	int lock_fd;
	bool has_pid_file, stopping;
	struct log_file *log; /* NULL: there is none */
	struct log_sink console, file;
	uint64_t watchdog_ns, watchdog_next_ns; /* 0: nobody wants to hear */
	struct usage usage;                     /* at the start of the session */
	uint64_t session_ns;                    /* that start */

	/* For whoever asks for the status. */
	int status_fd; /* -1: nobody can */
	char *status_path;
	const char *capture;                         /* borrowed; NULL: nothing is sampled yet */
	struct delivery *delivery;                   /* borrowed; NULL: nothing is sent */
	uint64_t start_realtime_ns, end_realtime_ns; /* of the agent; of the last session */
	uint64_t sessions, failed, samples, lost;
};

/* Empty: nothing has been begun. */
#define OPERATIONS_INIT                                                                            \
	{                                                                                          \
		.lock_fd = -1, .status_fd = -1                                                     \
	}

/* Look at what must hold and begin. RET is not to be moved while it is in use: the log is in it. */
struct error *operations_start(const struct agent_args *args, struct operations *ret);
void operations_end(struct operations *operations);

/* Samples are being taken, by the capture of this name, which is borrowed. */
void operations_ready(struct operations *operations, const char *capture);

/* A session begins. */
void operations_begin_session(struct operations *operations);

/* To be called every second. */
void operations_beat(struct operations *operations);

/* A session has given PROFILE, which was written or not. */
void operations_count(struct operations *operations, const struct profile *profile, bool written);

/* A session has ended. */
void operations_end_session(struct operations *operations);

/* Must the agent end, although nobody told it to? Asked between two sessions. */
bool operations_over(struct operations *operations);

/* It has been told to. */
void operations_stop(struct operations *operations);
