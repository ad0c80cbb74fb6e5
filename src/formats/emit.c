/* SPDX-License-Identifier: Apache-2.0 */
/* JSON by RFC 8259, without white space. */
#include "formats/emit.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/utf8.h"

struct emit emit_to(FILE *stream, enum emit_mode mode)
{
	return (struct emit){.stream = stream, .mode = mode};
}

static void put_escape(struct emit *emit, uint32_t code)
{
	static const char letters[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
	const char *letter = code && code < 0x80 ? strchr(letters, (int)code) : NULL;

	if (letter)
		fprintf(emit->stream, "\\%c", names[letter - letters]);
	else if (code < 0x10000)
		fprintf(emit->stream, "\\u%04" PRIx32, code);
	else
		fprintf(emit->stream, "\\u%04" PRIx32 "\\u%04" PRIx32,
			0xd800 + ((code - 0x10000) >> 10), 0xdc00 + ((code - 0x10000) & 0x3ff));
}

/* Must CODE be written as an escape? */
static bool is_special(const struct emit *emit, uint32_t code)
{
	if (code < 0x20 || code == '"' || code == '\\')
		return true;
	switch (emit->mode) {
	case EMIT_utf8:
		return false;
	case EMIT_ascii:
		return code > 0x7e;
	case EMIT_html:
		return code == '<' || code == 0x2028 || code == 0x2029;
	}
	return false;
}

static void put_quoted(struct emit *emit, const char *text, size_t length)
{
	struct bytes b = bytes_over(text, length, "text");
	char encoded[4];

	putc_unlocked('"', emit->stream);
	while (bytes_left(&b)) {
		const uint8_t *plain = b.at;
		while (b.at < b.end && *b.at < 0x80 && !is_special(emit, *b.at))
			b.at++;
		fwrite_unlocked(plain, 1, (size_t)(b.at - plain), emit->stream);
		if (b.at == b.end)
			break;
		uint32_t code = utf8_next(&b);
		if (is_special(emit, code))
			put_escape(emit, code);
		else
			fwrite_unlocked(encoded, 1, utf8_encode(code, encoded), emit->stream);
	}
	putc_unlocked('"', emit->stream);
}

/* What stands before a value: a comma behind the one before, and its name. */
static void begin_value(struct emit *emit, const char *key)
{
	if (emit->filled >> emit->depth & 1)
		putc_unlocked(',', emit->stream);
	emit->filled |= 1u << emit->depth;
	if (key) {
		put_quoted(emit, key, strlen(key));
		putc_unlocked(':', emit->stream);
	}
}

static void begin_level(struct emit *emit, const char *key, char bracket)
{
	begin_value(emit, key);
	putc_unlocked(bracket, emit->stream);
	assert(emit->depth + 1 < EMIT_DEPTH_MAX);
	emit->depth++;
	emit->filled &= ~(1u << emit->depth);
}

static void end_level(struct emit *emit, char bracket)
{
	assert(emit->depth > 0);
	emit->depth--;
	putc_unlocked(bracket, emit->stream);
}

void emit_object(struct emit *emit, const char *key)
{
	begin_level(emit, key, '{');
}

void emit_object_end(struct emit *emit)
{
	end_level(emit, '}');
}

void emit_array(struct emit *emit, const char *key)
{
	begin_level(emit, key, '[');
}

void emit_array_end(struct emit *emit)
{
	end_level(emit, ']');
}

void emit_text(struct emit *emit, const char *key, const char *text, size_t length)
{
	begin_value(emit, key);
	put_quoted(emit, text, length);
}

void emit_string(struct emit *emit, const char *key, const char *text)
{
	emit_text(emit, key, text, strlen(text));
}

static void put_digits(struct emit *emit, uint64_t value)
{
	char digits[20]; // 2^64 - 1 has as many
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	fwrite_unlocked(digits + at, 1, sizeof(digits) - at, emit->stream);
}

void emit_number(struct emit *emit, const char *key, uint64_t value)
{
	begin_value(emit, key);
	put_digits(emit, value);
}

void emit_signed(struct emit *emit, const char *key, int64_t value)
{
	begin_value(emit, key);
	if (value < 0)
		putc_unlocked('-', emit->stream);
	put_digits(emit, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void emit_thousandths(struct emit *emit, const char *key, uint64_t value_ms)
{
	begin_value(emit, key);
	fprintf(emit->stream, "%" PRIu64 ".%03" PRIu64, value_ms / 1000, value_ms % 1000);
}

void emit_bool(struct emit *emit, const char *key, bool value)
{
	begin_value(emit, key);
	fputs_unlocked(value ? "true" : "false", emit->stream);
}

void emit_null(struct emit *emit, const char *key)
{
	begin_value(emit, key);
	fputs_unlocked("null", emit->stream);
}

void emit_raw(struct emit *emit, const char *key, const char *json, size_t length)
{
	begin_value(emit, key);
	fwrite_unlocked(json, 1, length, emit->stream);
}
