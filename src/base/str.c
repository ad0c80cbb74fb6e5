/* SPDX-License-Identifier: Apache-2.0 */
/* String helpers that every layer needs; text formats have emitters of their own in formats/. */
#include "base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/array.h"

struct error *str_format(char **ret, const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	int length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		return error_oom();
	*ret = text;
	return NULL;
}

struct error *str_copy(char **ret, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return error_oom();
	*ret = copy;
	return NULL;
}

void strbuf_deinit(struct strbuf *buf)
{
	free(buf->text);
	*buf = (struct strbuf)STRBUF_INIT;
}

struct error *strbuf_add(struct strbuf *buf, const char *text, size_t length)
{
	TRY(ARRAY_RESERVE(buf->text, buf->room, buf->length, length + 1, STRBUF_MAX,
			  "bytes in one text"));
	memcpy(buf->text + buf->length, text, length);
	buf->length += length;
	buf->text[buf->length] = 0;
	return NULL;
}

struct error *strbuf_addf(struct strbuf *buf, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list args;

	va_start(args, format);
	int length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0) {
		text = NULL;
		return error_oom();
	}
	return strbuf_add(buf, text, (size_t)length);
}

bool str_ends(const char *text, const char *suffix)
{
	size_t length = strlen(text), tail = strlen(suffix);

	return length >= tail && !strcmp(text + length - tail, suffix);
}

bool str_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	unsigned long long value = strtoull(text, &end, str_starts(text, "0x") ? 16 : 10);
	if (errno || *end || value < min || value > max)
		return false;
	*ret = value;
	return true;
}

void str_hex(const uint8_t *data, size_t length, char *ret)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < length; i++) {
		ret[2 * i] = digits[data[i] >> 4];
		ret[2 * i + 1] = digits[data[i] & 15];
	}
	ret[2 * length] = 0;
}
