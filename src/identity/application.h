/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process runs, in the words of who runs it: "gunicorn: my.wsgi:app (/srv/my/wsgi.py)".
 * Found from its command line, environment and files by the rules of rules.def.
 */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "identity/program.h"

enum { APPLICATION_TEXT_MAX = 1024 }; /* more is cut off */

struct application_options {
	regex_t *filter; /* of the arguments of a JVM; owned */
	size_t filters;
	bool spark; /* the name of the Spark application with that of its executors */
};

#define APPLICATION_OPTIONS_INIT                                                                   \
	{                                                                                          \
		0                                                                                  \
	}

void application_options_deinit(struct application_options *options);

/* An expression as Python's re has them, as far as POSIX has them, too; else a failure says so. */
struct error *application_add_filter(struct application_options *options, const char *expression);

/* The text for PROGRAM; RET is NULL when no rule knows it. The caller frees RET. */
struct error *application_name(const struct application_options *options,
			       const struct program *program, char **ret);

/*
 * "appid: " and the text for process PID as it is now; RET is NULL when no rule knows it, or when
 * it is gone. The caller frees RET.
 */
struct error *application_find(const struct application_options *options, pid_t pid, char **ret);
