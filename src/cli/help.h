/* SPDX-License-Identifier: Apache-2.0 */
/* Help texts from the tables of commands and options: for a terminal, as man pages, for shells. */
#pragma once

#include <stdio.h>

#include "base/error.h"
#include "cli/command.h"

enum {
	HELP_WIDTH = 100, /* no line is wider, whatever the terminal; pipes get the same */
	HELP_EXITS = 126, /* statuses from here on are the shell's */
};

/* The list of commands, or, with a COMMAND, all about it. */
struct error *help_print(FILE *out, const struct command *command /* may be NULL */);

/* What cairn is, in one line without a full stop. */
const char *help_headline(void);

/* How options and environment belong together. */
const char *help_environment(const struct command *command, char ret[static 512]);

/* What exit status STATUS of COMMAND (NULL: of every command) means; NULL: it does not occur. */
const char *help_exit(const struct command *command, int status);

/* "  LEFT   text text" with the text in a column of its own, wrapped at the width. */
void help_print_row(FILE *out, size_t column, const char *left, const char *text);

/* cairn.1, or cairn-COMMAND.1. */
struct error *manual_print(FILE *out, const struct command *command /* may be NULL */);

/* Completion script for a shell; completion_shell() lists their names, NULL behind the last. */
const char *completion_shell(size_t index);
struct error *completion_print(FILE *out, const char *shell);
