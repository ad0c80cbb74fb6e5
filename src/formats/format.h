/* SPDX-License-Identifier: Apache-2.0 */
/* The output formats: rows of formats.def, each a file that writes a profile to a stream. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "formats/emit.h"
#include "profile/profile.h"

struct format {
	const char *name;   /* as in --format NAME */
	const char *suffix; /* of file names, with the dot */
	const char *help;
	/* Write all of PROFILE and flush. The same samples give the same bytes. On failure a part
	 * may have been written. */
	struct error *(*write)(const struct profile *profile, FILE *stream);
};

/* Row INDEX; NULL behind the last. */
const struct format *format_at(size_t index);

/* The format of this name; NULL when there is none. */
const struct format *format_find(const char *name);

/* The format whose suffix PATH ends in; NULL when there is none. */
const struct format *format_of_path(const char *path);

/* Flush STREAM. A failure if anything written to it has been lost. For the formats' own use. */
struct error *format_finish(FILE *stream);

/* The text ID as a value, unless ID is 0: what is not known is left out. */
void format_emit_known(struct emit *emit, const char *key, const struct profile *profile,
		       string_id id);

#define FORMAT(name, suffix, help)                                                                 \
	struct error *name##_write(const struct profile *profile, FILE *stream);
#include "formats/formats.def"
#undef FORMAT
