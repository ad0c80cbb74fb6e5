/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command is one file with one struct command and one row in commands.def. Dispatch, help, man
 * page and completion are made of what it says here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "cli/option.h"

/* Exit statuses that every command shares; further ones are in the command's `exits`. */
enum exit_status {
	STATUS_ok = 0,
	STATUS_failed = 1, /* could not do it; one line on standard error says why */
	STATUS_usage = 2,  /* was asked wrongly; nothing has been done */
};

/* Rows of text; a table of them ends with {0}. */
struct command_example {
	const char *line; /* "cairn record -d 10" */
	const char *help;
};

struct command_exit {
	int status;
	const char *help;
};

/* What users of another tool type, and what it is called here. */
struct command_hint {
	const char *typed; /* "-c", "--no-block": with its dashes */
	const char *hint;  /* "a core file is given with --core" */
};

struct command {
	const char *name;
	const char *help;     /* one line, lower case, no full stop */
	const char *text;     /* paragraphs, with an empty line between them; may be NULL */
	const char *operands; /* as the usage line shows them, "[PID...]"; NULL: takes none */
	size_t operands_min, operands_max;
	size_t operands_at; /* struct text_list in the arguments */
	bool takes_command; /* what follows "--" is a command line, kept apart from operands */
	size_t command_at;  /* struct text_list, ends with NULL as exec wants it */
	const struct option_row *options;
	const struct command_example *examples; /* may be NULL */
	const struct command_hint *hints;       /* may be NULL */
	const struct command_exit *exits;       /* where they mean more than the shared ones */
	const char *
		variables; /* prefix of the options' environment variables beside CAIRN_, or NULL */
	const char *config; /* the configuration file that is read if it is there, or NULL */
	bool keeps_sources;
	size_t sources_at;  /* struct option_sources in the arguments */
	bool abbreviations; /* accept unambiguous beginnings of long names, as argparse does */
	size_t args_size;

	/* What the options mean together. A failure is one of usage. May be NULL. */
	struct error *(*check)(void *args);
	/* RET_STATUS is STATUS_ok unless the command sets it. */
	struct error *(*run)(const void *args, int *ret_status);
};

#define COMMAND(name) extern const struct command command_##name;
#include "cli/commands.def"
#undef COMMAND

/* The command at INDEX in the order of commands.def; NULL behind the last. */
const struct command *command_at(size_t index);

/* The command called NAME; NULL: none. */
const struct command *command_find(const char *name);

/* The command whose name is close to NAME; NULL: none is. */
const struct command *command_nearest(const char *name);
