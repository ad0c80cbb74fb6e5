/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON as a stream: nothing is held back, so a document may be of any size. Commas and quotes are
 * the emitter's business. Text may be any bytes; what is no UTF-8 becomes U+FFFD.
 *
 * A KEY is a member's name inside an object and NULL inside an array. What goes wrong with the
 * stream shows in ferror() (format_finish()).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum emit_mode {
	EMIT_utf8,
	EMIT_ascii, /* everything beyond ASCII as \uXXXX, as Python's json.dumps() writes it */
	EMIT_html,  /* UTF-8 that may stand in an HTML script element: no "<", no U+2028, U+2029 */
};

enum { EMIT_DEPTH_MAX = 32 };

struct emit {
	FILE *stream; /* borrowed */
	enum emit_mode mode;
	unsigned depth;
	uint32_t filled; /* bit DEPTH: something stands before what comes next on that level */
};

struct emit emit_to(FILE *stream, enum emit_mode mode);

void emit_object(struct emit *emit, const char *key);
void emit_object_end(struct emit *emit);
void emit_array(struct emit *emit, const char *key);
void emit_array_end(struct emit *emit);

void emit_text(struct emit *emit, const char *key, const char *text, size_t length);
void emit_string(struct emit *emit, const char *key, const char *text);
void emit_number(struct emit *emit, const char *key, uint64_t value);
void emit_signed(struct emit *emit, const char *key, int64_t value);
/* VALUE_MS / 1000 with three decimals. */
void emit_thousandths(struct emit *emit, const char *key, uint64_t value_ms);
void emit_bool(struct emit *emit, const char *key, bool value);
void emit_null(struct emit *emit, const char *key);
/* JSON that another emitter has written: a value, or, with a NULL key in an object, members. */
void emit_raw(struct emit *emit, const char *key, const char *json, size_t length);
