/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/python/out.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/utf8.h"

/* Behind the text: U+2026 and a NUL. */
enum { OUT_END = 4 };

/*
 * Characters beyond ASCII that repr() escapes: categories Cc, Cf, Cs, Co, Zl, Zp and Zs of Unicode.
 * Those that are not assigned are printed: which they are depends on the version.
 */
static const struct {
	uint32_t first, last;
} hidden[] = {
	{0x7f, 0xa0},       {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},
	{0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},
	{0x1680, 0x1680},   {0x180e, 0x180e},   {0x2000, 0x200f},   {0x2028, 0x202f},
	{0x205f, 0x206f},   {0x3000, 0x3000},   {0xd800, 0xf8ff},   {0xfeff, 0xfeff},
	{0xfff0, 0xfffb},   {0xfffe, 0xffff},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
	{0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, UINT32_MAX},
};

static bool is_hidden(uint32_t character)
{
	if (character < 0x20)
		return true;
	for (size_t i = 0; i < ARRAY_COUNT(hidden); i++)
		if (character >= hidden[i].first && character <= hidden[i].last)
			return true;
	return false;
}

struct python_out python_out_init(char *to, size_t size)
{
	return (struct python_out){.to = to, .size = size};
}

/* Whole, or not at all. */
static void add_whole(struct python_out *out, const char *text, size_t length)
{
	if (out->full || length > out->size - OUT_END - out->length) {
		out->full = true;
		return;
	}
	memcpy(out->to + out->length, text, length);
	out->length += length;
}

static void add_escape(struct python_out *out, uint32_t character)
{
	char text[16];
	int length;

	if (character < 0x100)
		length = snprintf(text, sizeof(text), "\\x%02x", character);
	else if (character < 0x10000)
		length = snprintf(text, sizeof(text), "\\u%04x", character);
	else
		length = snprintf(text, sizeof(text), "\\U%08x", character);
	add_whole(out, text, (size_t)length);
}

void python_out_add(struct python_out *out, const char *text)
{
	struct bytes bytes = bytes_over(text, strlen(text), "text");

	while (bytes_left(&bytes) && !out->full) {
		uint32_t character = utf8_next(&bytes);
		char encoded[4];

		if (is_hidden(character))
			add_escape(out, character);
		else
			add_whole(out, encoded, utf8_encode(character, encoded));
	}
}

void python_out_addf(struct python_out *out, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	python_out_add(out, text);
}

void python_out_character(struct python_out *out, uint32_t character, char quote)
{
	static const char named[] = "\tt\nn\rr\\\\";
	char encoded[4] = {'\\', 0};

	for (size_t i = 0; i + 1 < sizeof(named); i += 2) {
		if (character == (uint8_t)named[i]) {
			encoded[1] = named[i + 1];
			add_whole(out, encoded, 2);
			return;
		}
	}
	if (character == (uint8_t)quote) {
		encoded[1] = quote;
		add_whole(out, encoded, 2);
		return;
	}
	if (is_hidden(character))
		add_escape(out, character);
	else
		add_whole(out, encoded, utf8_encode(character, encoded));
}

void python_out_byte(struct python_out *out, uint8_t byte, char quote)
{
	if (byte < 0x80)
		python_out_character(out, byte, quote);
	else
		add_escape(out, byte);
}

size_t python_out_end(struct python_out *out)
{
	if (out->full) {
		memcpy(out->to + out->length, "\xe2\x80\xa6", 3);
		out->length += 3;
	}
	out->to[out->length] = 0;
	return out->length;
}
