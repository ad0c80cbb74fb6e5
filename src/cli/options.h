/* SPDX-License-Identifier: Apache-2.0 */
/* The command line and the environment, read with a command's rows; and rows that are shared. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cli/command.h"

/*
 * Fill ARGS, args_size zeroed bytes, from the defaults, then the environment, then the ARGC words
 * at ARGV (without the names of program and command). A failure is one of usage and names the
 * option, the value and what is allowed. *RET_HELP: --help was met, and ARGS is not to be used.
 * Free with options_deinit() in every case.
 */
struct error *options_parse(const struct command *command, int argc, char **argv, void *args,
			    bool *ret_help);

void options_deinit(const struct command *command, void *args);

/* The environment variable that stands for ROW in COMMAND. RET is the caller's. */
struct error *options_variable(const struct command *command, const struct option_row *row,
			       char **ret);

/* How much is said on standard error: the rows that every command has. */
struct logging_args {
	bool verbose, quiet;
	const char *debug; /* domains, separated by commas */
};
extern const struct option_row options_logging[];
void logging_apply(const struct logging_args *args);
