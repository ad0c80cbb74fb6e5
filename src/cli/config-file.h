/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration file: "key = value", "key: value" or "key value" in a line, a key alone for a
 * flag, values in quotes or not, comments behind # and ;, and [sections] that mean nothing. The
 * syntax is that of ConfigArgParse 1.7 (DefaultConfigFileParser), which gProfiler uses. What keys
 * there are is options.c's business.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

struct config_file {
	const char *name; /* borrowed; for failures */
	char *text;       /* owned; the lines that have been read are cut into pieces */
	char *next;
	unsigned line; /* the number of the one that was read last */
};

#define CONFIG_FILE_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

enum { CONFIG_FILE_MAX = 1 << 20 };

/* A line that says something; valid as long as the file is. */
struct config_line {
	const char *key;   /* NULL: behind the last */
	const char *value; /* NULL: the key stands alone */
};

/* NAME, which stays borrowed, is read whole. */
struct error *config_file_open(const char *name, struct config_file *ret);
void config_file_deinit(struct config_file *file);

/* A line that is neither is a failure, and names the file and the line. */
struct error *config_file_next(struct config_file *file, struct config_line *ret);
