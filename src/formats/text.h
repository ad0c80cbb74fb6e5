/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks as lines of text, "process;frame;frame COUNT", root first: what col and folded have in
 * common. Names come from strangers and must not break the lines:
 *
 *   ";"                                              "|", as async-profiler writes it
 *   tab, newline, other ends of a line               space
 *   other control characters, direction controls     "?"
 *   bytes that are no UTF-8                          U+FFFD
 *   a name without characters                        "[unknown]"
 *   "#" where a line begins, which is a comment      "?"
 *
 * Names may hold spaces: the last space of a line separates the count.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/str.h"
#include "profile/profile.h"

struct text_form {
	bool containers;    /* the container's name, "" for none, stands before the process */
	bool applications;  /* what the process runs stands behind its name, where known */
	bool mark_inlined;  /* "_[i]" behind frames that were inlined */
	bool mark_jit;      /* "_[j]" behind code made at run time */
	bool current_lines; /* of Python frames, where known; else where the function begins */
	bool packages;      /* "[PyYAML==6.0]" behind the file and line of Python frames */
	bool objects;       /* " (/usr/lib/libc.so.6)" behind the names of native functions */
	const char *before; /* put in front of each line */
	const char *after;  /* put behind each line */
};

/* NAME by the rules above, but left empty if it is. */
struct error *text_add_name(struct strbuf *buf, const char *name, size_t length);

/*
 * Write all samples of PROFILE. Those whose lines are equal are one line; lines are in the order of
 * their text (formats/order.h). Kernel frames end in "_[k]"; Python frames are
 * "module.function (file:line)_[p]".
 */
struct error *text_write(const struct profile *profile, const struct text_form *form, FILE *stream);
