/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's log: lines in gProfiler's form, in a file that is begun anew at a size, and on
 * standard output. PATH.1 is the file before, PATH.2 the one before that, and so on.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/log.h"

struct log_file;

struct log_file_settings {
	const char *path;   /* borrowed during the call; what is missing above it is made */
	uint64_t bytes_max; /* a line that would make the file larger begins a new one */
	unsigned backups;   /* how many older files are kept */
};

/* Open the file and go on at its end. What is no regular file, /dev/stdout, is never rotated. */
struct error *log_file_open(const struct log_file_settings *settings, struct log_file **ret);
void log_file_free(struct log_file *file);

/*
 * Write a line; DATA is the struct log_file, as log_sink has it. A line that cannot be written is
 * counted, and the next that can is preceded by one that says how many were lost.
 */
void log_file_write(void *data, const struct log_line *line);

/* The same on standard output, without buffering; DATA is unused, and failures are ignored. */
void log_console_write(void *data, const struct log_line *line);

/* "[2026-01-02 03:04:05,123] INFO: cairn.agent: message\n"; the caller frees RET. */
struct error *log_line_print(const struct log_line *line, char **ret);
