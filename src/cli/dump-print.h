/* SPDX-License-Identifier: Apache-2.0 */
/* How what was seen of processes is written: for people, and as JSON for programs. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "capture/dump.h"

struct dump_style {
	bool color; /* of terminals, ECMA-48 */
};

/*
 * One process for people. Threads whose stacks and states are equal are told together. Names come
 * from strangers: what could act on a terminal is written as \u{CODE}.
 */
struct error *dump_print_text(const struct dump *dump, const struct dump_style *style, FILE *out);

/* One process as one line of JSON, schema 1; docs/dump.md describes it. */
void dump_print_json(const struct dump *dump, const char *version, FILE *out);
