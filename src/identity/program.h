/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process says about how it was started: its words, directory, environment and files, as the
 * rules want them that name its application. All of it is the target's to write and is believed
 * only as text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

enum {
	PROGRAM_BYTES_MAX = 2 << 20, /* of words: class paths have hundreds of thousands */
	PROGRAM_WORDS_MAX = 16384,
	PROGRAM_FILE_MAX = 1 << 20, /* of a file that is read */
};

struct program {
	pid_t pid;         /* below whose root files are looked for; 0: ours */
	const char *exe;   /* the program's path; "" when not known */
	const char *cwd;   /* "/" when not known */
	const char **word; /* argv */
	size_t words;
	char *owned[3]; /* what the texts are in */
};

#define PROGRAM_INIT                                                                               \
	{                                                                                          \
		0                                                                                  \
	}

/* Look at PID. *RET_THERE: it has words; RET is set only then. */
struct error *program_read(pid_t pid, bool *ret_there, struct program *ret);

/*
 * The words in the title of PROGRAM: many programs write a line over their argv. RET's texts are
 * its own, but for exe and cwd, which are borrowed. It has no words if PROGRAM has no such title.
 */
struct error *program_split_title(const struct program *program, struct program *ret);

void program_deinit(struct program *program);

/* What stands behind the last slash. */
const char *program_base(const char *path);

/* Is BASE the name NAME, or that with a version behind it ("python3.11", "ruby-3")? */
bool program_is(const char *base, const char *name);

/*
 * The value of the first of NAMES that stands at or behind word FROM: "--name VALUE",
 * "--name=VALUE", "-n VALUE", "-nVALUE". NAMES end with a NULL. NULL: there is none.
 */
const char *program_option(const struct program *program, size_t from, const char *const *names);

/* PATH below the working directory, with links resolved as the process would. */
struct error *program_path(const struct program *program, const char *path, char **ret);

/*
 * The file of a Python module: what is in front of a ":", dots as slashes, ".py" behind it. A path
 * that is absolute or ends in ".py" keeps its dots.
 */
struct error *program_module(const struct program *program, const char *module, char **ret);

/* The text of a file; RET is NULL when there is none that can be read. It may hold zeros. */
struct error *program_file(const struct program *program, const char *path, char **ret);

/* The value of a variable of its environment as it was at exec; RET is NULL without. */
struct error *program_variable(const struct program *program, const char *name, char **ret);

/*
 * The value of KEY in a text of "key = value" lines with [SECTION]s (NULL: it has none). RET is
 * NULL when it is not there.
 */
struct error *program_setting(const char *text, const char *section, const char *key, char **ret);
