/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line, the environment and configuration files, read with a command's rows; and rows
 * that are shared.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cli/command.h"
#include "cli/config-file.h"

/* Where the values of a command with `keeps_sources` come from, and files that they point into. */
struct option_sources {
	/* By index of the row: "--mode", "GPROFILER_MODE" or "/etc/x.ini:12"; NULL: was not asked
	 * for, and the default holds. */
	char *of[OPTIONS_MAX];
	struct config_file files[2];
};

/*
 * Fill ARGS, args_size zeroed bytes, from the ARGC words at ARGV (without the names of program and
 * command), else from the environment, else from configuration files, else from the defaults. A
 * failure is one of usage and names the option, the value and what is allowed. *RET_HELP: --help
 * was met, and ARGS is not to be used. Free with options_deinit() in every case.
 */
struct error *options_parse(const struct command *command, int argc, char **argv, void *args,
			    bool *ret_help);

void options_deinit(const struct command *command, void *args);

/* How much is said on standard error: the rows that every command has. */
struct logging_args {
	bool verbose, quiet;
	const char *debug; /* domains, separated by commas */
};
extern const struct option_row options_logging[];
void logging_apply(const struct logging_args *args);
