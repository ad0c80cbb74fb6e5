/* SPDX-License-Identifier: Apache-2.0 */
/* A command that cairn starts in order to look at it. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "cli/option.h"

/* The exit status of a child that could not become the command, as shells have it. */
enum { CHILD_NOT_STARTED = 127 };

struct child {
	pid_t pid;      /* 0: none */
	int release_fd; /* it waits for a byte on it; -1: it does not wait any more */
	int report_fd;  /* it says here why it could not become the command */
};

#define CHILD_INIT                                                                                 \
	{                                                                                          \
		.release_fd = -1, .report_fd = -1                                                  \
	}

/* A child that was not released gives up; one that was goes on by itself. */
void child_deinit(struct child *child);

/*
 * A child that becomes COMMAND once it is released. The signals of stop_signals_open() are
 * unblocked in it.
 */
struct error *child_start(const struct text_list *command, struct child *ret);

struct error *child_release(struct child *child);

/* Why the child could not become COMMAND, once it has had the time to try. */
struct error *child_check(const struct child *child, const struct text_list *command);
