/* SPDX-License-Identifier: Apache-2.0 */
/* The options that choose threads: by name (-t) and by number (-L). */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "cli/option.h"

struct thread_pattern {
	regex_t regex;
	bool excludes; /* !REGEX */
	bool main;     /* "main", or "!main": no expression, but the first thread */
};

struct thread_filter {
	struct thread_pattern *pattern;
	size_t count, room;
	bool includes;                /* some pattern is not an exclusion */
	const struct uint_list *tids; /* borrowed */
};

#define THREAD_FILTER_INIT                                                                         \
	{                                                                                          \
		0                                                                                  \
	}

void thread_filter_deinit(struct thread_filter *filter);

/*
 * NAMES are extended regular expressions for names of threads; "main" is the first thread of a
 * process, whatever its name; "!" in front excludes. TIDS are numbers, empty: all. TIDS is kept. A
 * failure is one of usage.
 */
struct error *thread_filter_init(struct thread_filter *filter, const struct text_list *names,
				 const struct uint_list *tids);

struct thread_who {
	pid_t tid;
	bool main;
	const char *name, *python_name; /* either may match; NULL: none */
};

/* Is the thread chosen? By number and by name, if both were given; an exclusion wins. */
bool thread_filter_accepts(const struct thread_filter *filter, const struct thread_who *who);
