/* SPDX-License-Identifier: Apache-2.0 */
/* The table of formats and how rows are found in it. */
#include "formats/format.h"

#include <string.h>

#include "base/array.h"
#include "base/str.h"

static const struct format formats[] = {
#define FORMAT(name, suffix, help) {#name, suffix, help, name##_write},
#include "formats/formats.def"
#undef FORMAT
};

const struct format *format_at(size_t index)
{
	return index < ARRAY_COUNT(formats) ? &formats[index] : NULL;
}

const struct format *format_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

const struct format *format_of_path(const char *path)
{
	for (size_t i = 0; i < ARRAY_COUNT(formats); i++)
		if (str_ends(path, formats[i].suffix))
			return &formats[i];
	return NULL;
}

struct error *format_finish(FILE *stream)
{
	if (fflush(stream))
		return error_errno("write");
	if (!ferror(stream))
		return NULL;
	// An earlier write failed, and its errno is long gone. The output is not used any more:
	// one more write tells why, if the reason still stands.
	clearerr(stream);
	if (fputc('\n', stream) == EOF || fflush(stream))
		return error_errno("write");
	return error_new("write: a part of the output was lost");
}

void format_emit_known(struct emit *emit, const char *key, const struct profile *profile,
		       string_id id)
{
	size_t length;
	const char *text = profile_text(profile, id, &length);

	if (id)
		emit_text(emit, key, text, length);
}
