/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options are rows. A command's rows say where in its argument structure a value goes, what values
 * are allowed and how the help reads; a row of kind OPTION_GROUP stands for rows that several
 * commands share. A table ends with {0}.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The comment is the type of the field at `at`. Texts are borrowed from the command line or the
 * environment. */
enum option_kind {
	OPTION_END = 0,
	OPTION_FLAG,     /* bool; given: true; `fallback` otherwise */
	OPTION_FLAG_OFF, /* bool; given: false; true otherwise */
	OPTION_COUNT, /* uint64_t: how often it was given, up to max; a number in the environment */
	OPTION_UINT,  /* uint64_t, from min to max */
	OPTION_SECONDS, /* uint64_t, nanoseconds; typed as 10, 1.5, 500ms, 2m; min and max in ns */
	OPTION_TEXT,    /* const char *; NULL when not given and without fallback_text */
	OPTION_FILE,    /* like OPTION_TEXT, completed as a file */
	OPTION_CONFIG,  /* like OPTION_FILE: a configuration file with more options */
	OPTION_CHOICE,  /* const char *: a name that choice() or choices list, in its spelling */
	OPTION_SAYS, /* const char *; given: `says`, a value of the choice it shares a field with */
	OPTION_SIZE, /* uint64_t, bytes; typed as 100, 100kb, 2mb or 1g, in powers of 1024 */
	OPTION_LIST, /* struct text_list: separated by commas, and repeatable */
	OPTION_TEXTS, /* struct text_list: one item each time it is given, commas and all */
	OPTION_UINTS, /* struct uint_list: the same of numbers from min to max */
	OPTION_GROUP, /* the structure that the rows of `group` fill */
};

enum {
	OPTIONS_MAX = 192,       /* rows of one command, groups unfolded */
	OPTION_ITEMS_MAX = 4096, /* items of one list */
};

/* A list is owned by the arguments and freed by options_deinit(). */
struct text_list {
	char **items; /* NULL behind the last; NULL itself while empty */
	size_t count, room;
};

struct uint_list {
	uint64_t *items;
	size_t count, room;
};

struct option_row {
	const char *name;  /* long name, without dashes */
	const char *alias; /* another long name that is accepted but not shown; may be NULL */
	char letter;       /* 0: none */
	enum option_kind kind;
	size_t at; /* offset in the arguments */
	uint64_t fallback;
	const char *fallback_text; /* the default of texts; of OPTION_SECONDS as it is typed */
	uint64_t min, max;         /* max 0: no limit above */
	const char *unit;          /* "Hz" */
	const char *value;         /* what help calls the value; NULL: named after the kind */
	const char *(*choice)(size_t index); /* NULL behind the last */
	const char *const *choices;          /* the same as an array; NULL: choice() */
	const char *says;
	const char *bare; /* the value if it is given without one; it may then be empty, too */
	bool whole;       /* its beginnings are not accepted, where the command accepts any */
	bool line_only;   /* neither in the environment nor in a configuration file */
	bool alone;       /* like --help: what stands behind it is not read, and nothing checked */
	const struct option_row *group;
	const char *help;
};

/* Steps through the rows of a table with groups unfolded: row, and the offset of its field. */
struct option_iterator {
	const struct option_row *next, *outer;
	const struct option_row *row;
	size_t base, at;
	size_t index; /* of row, counted from 0 */
};

struct option_iterator options_begin(const struct option_row *rows /* may be NULL */);
bool options_next(struct option_iterator *it);

/* Does the option take a value? */
bool option_has_value(const struct option_row *row);

/* Name number INDEX of an OPTION_CHOICE; NULL behind the last. */
const char *option_choice(const struct option_row *row, size_t index);

/* Does TEXT ask for what ROW does? A flag's "no" does not. */
bool option_asks(const struct option_row *row, const char *text);

/* What help calls the value of ROW, "HZ". */
const char *option_value_name(const struct option_row *row);

/* The default in words, as it would be typed; NULL: there is none. RET is the caller's. */
struct error *option_print_fallback(const struct option_row *row, char **ret);

/* "1 to 10000 Hz", "pprof, html or col"; NULL: everything is allowed. RET is the caller's. */
struct error *option_print_range(const struct option_row *row, char **ret);

/* The help of ROW with its range and default: "samples per second (1 to 10000 Hz; default 99)". RET
 * is the caller's. */
struct error *option_print_help(const struct option_row *row, char **ret);

/* Put the default of ROW into FIELD, which holds zeros. */
struct error *option_set_fallback(const struct option_row *row, void *field);

/*
 * Read TEXT into FIELD; flags take yes/true/1 and no/false/0, or NULL for "given". Lists grow. The
 * failure says what is allowed, not which option it is.
 */
struct error *option_set(const struct option_row *row, const char *text, void *field);

/* Empty the list in FIELD; other kinds own nothing. */
void option_clear(const struct option_row *row, void *field);

struct error *text_list_add(struct text_list *list, const char *text, size_t length);
void text_list_deinit(struct text_list *list);
