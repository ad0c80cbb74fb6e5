/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text about an object in a place of fixed size: it is cut where the place is full, never within a
 * character. All of it is UTF-8 that a terminal may be sent as it is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct python_out {
	char *to;
	size_t size, length;
	bool full; /* something was left out; nothing more is taken */
};

/* SIZE is at least 8. */
struct python_out python_out_init(char *to, size_t size);

/* TEXT is ours, or of python_text_read(), which can hold controls: those are replaced. */
void python_out_add(struct python_out *out, const char *text);
void python_out_addf(struct python_out *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * A character of a literal in QUOTE, as repr() of Python 3 writes it: controls, separators, format
 * characters, surrogates and characters of private use are escaped.
 */
void python_out_character(struct python_out *out, uint32_t character, char quote);

/* A byte of a literal: outside of ASCII it is escaped. */
void python_out_byte(struct python_out *out, uint8_t byte, char quote);

/* End the text: a cut one ends in U+2026. Its length. */
size_t python_out_end(struct python_out *out);
