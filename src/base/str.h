/* SPDX-License-Identifier: Apache-2.0 */
/* Strings: formatted ones, and one that grows with a stated maximum. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A new string; the caller frees it. RET is untouched on failure. */
struct error *str_format(char **ret, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct error *str_copy(char **ret, const char *text);

/* A string that grows. text is NULL while empty, NUL-terminated otherwise. */
struct strbuf {
	char *text;
	size_t length, room;
};

#define STRBUF_INIT                                                                                \
	{                                                                                          \
		0                                                                                  \
	}
/* No text of ours is longer; a name from a target that would be is an error of that target. */
enum { STRBUF_MAX = 1 << 30 };

void strbuf_deinit(struct strbuf *buf);
struct error *strbuf_add(struct strbuf *buf, const char *text, size_t length);
struct error *strbuf_addf(struct strbuf *buf, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static inline bool str_starts(const char *text, const char *prefix)
{
	while (*prefix)
		if (*text++ != *prefix++)
			return false;
	return true;
}

bool str_ends(const char *text, const char *suffix);

/*
 * A whole decimal number (or 0x…) between MIN and MAX and nothing else. False: it is not, and RET
 * is untouched.
 */
bool str_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

/* LENGTH bytes as lower-case hex; RET holds 2 * LENGTH + 1 characters. */
void str_hex(const uint8_t *data, size_t length, char *ret);
