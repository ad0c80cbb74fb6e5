/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts of doctor: what follows from the facts. Pure functions, so that every verdict is
 * tested without the machine that would cause it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/facts.h"

enum verdict {
	VERDICT_ok,
	VERDICT_less, /* capture works and shows less, or costs more */
	VERDICT_no,   /* the BPF capture cannot work */
};

struct finding {
	enum verdict verdict;
	char text[200];   /* what is so, and why it matters */
	const char *more; /* the command or setting that allows more; NULL: none does */
};

struct check {
	const char *name;
	const char *help; /* what the check is about */
	void (*judge)(const struct facts *facts, struct finding *ret);
};

/* The check at INDEX; NULL behind the last. */
const struct check *check_at(size_t index);

/* The best capture that the facts allow; NULL: none. */
const struct capture_row *checks_capture(const struct facts *facts);

/* Is it the best of all? */
bool checks_best(const struct capture_row *row);
