/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text files that the kernel writes below /proc/PID, proc(5): read whole, and taken apart.
 * Names in them are the target's own, so nothing is taken for granted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
	PROCTEXT_STAT_BYTES = 16 * 1024,
	PROCTEXT_STATUS_BYTES = 1 << 20, /* its line of groups may list 65536 numbers */
};

/* Does this errno say that the process or thread has ended? */
bool proctext_is_gone(int code);

/*
 * All of PATH, at most MAX bytes; NULL when what it belongs to has ended. The caller frees it.
 */
struct error *proctext_read(const char *path, size_t max, char **ret);

const char *proctext_skip_blanks(const char *text);

/* The decimal number at TEXT, with a blank or the end behind it; RET_END is there. */
bool proctext_number(const char *text, uint64_t *ret, const char **ret_end);

/*
 * stat: copy the name into COMM, which holds ROOM bytes and ends with a zero. What stands behind
 * it; NULL if there is no name.
 */
const char *proctext_stat_name(const char *text, char *comm, size_t room);

/* Field NUMBER of stat, counted from 1 as in proc(5); AFTER stands behind the name, field 2. */
bool proctext_stat_number(const char *after, unsigned number, uint64_t *ret);

/* The text behind "NAME:" of a file of such lines, without blanks; NULL when there is none. */
const char *proctext_line(const char *text, const char *name);
