/* SPDX-License-Identifier: Apache-2.0 */
/* The reader under every parser. What the bytes mean is the parsers' business. */
#include "base/bytes.h"

#include <stdarg.h>
#include <string.h>

struct bytes bytes_over(const void *data, size_t size, const char *name)
{
	const uint8_t *start = data;

	return (struct bytes){.start = start, .at = start, .end = start + size, .name = name};
}

struct error *bytes_error(const struct bytes *b, const char *format, ...)
{
	_cleanup_free_ char *what = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&what, format, args) < 0)
		what = NULL;
	va_end(args);
	if (!what)
		return error_oom();
	return error_new("%s: offset 0x%zx: %s", b->name, bytes_offset(b), what);
}

/* Read WIDTH bytes as one number in the reader's byte order. */
static struct error *bytes_number(struct bytes *b, unsigned width, uint64_t *ret)
{
	uint64_t value = 0;

	if (bytes_left(b) < width)
		return bytes_error(b, "ends inside a %u-byte number", width);
	for (unsigned i = 0; i < width; i++) {
		unsigned shift = 8 * (b->big_endian ? width - 1 - i : i);
		value |= (uint64_t)b->at[i] << shift;
	}
	b->at += width;
	*ret = value;
	return NULL;
}

struct error *bytes_u8(struct bytes *b, uint8_t *ret)
{
	uint64_t value;

	TRY(bytes_number(b, 1, &value));
	*ret = (uint8_t)value;
	return NULL;
}

struct error *bytes_u16(struct bytes *b, uint16_t *ret)
{
	uint64_t value;

	TRY(bytes_number(b, 2, &value));
	*ret = (uint16_t)value;
	return NULL;
}

struct error *bytes_u32(struct bytes *b, uint32_t *ret)
{
	uint64_t value;

	TRY(bytes_number(b, 4, &value));
	*ret = (uint32_t)value;
	return NULL;
}

struct error *bytes_u64(struct bytes *b, uint64_t *ret)
{
	return bytes_number(b, 8, ret);
}

struct error *bytes_uleb(struct bytes *b, uint64_t *ret)
{
	uint64_t value = 0;
	const uint8_t *at = b->at;

	for (unsigned shift = 0;; shift += 7) {
		if (at == b->end)
			return bytes_error(b, "ends inside a LEB128 number");
		uint8_t byte = *at++;
		if (shift >= 64 ? (byte & 0x7f) != 0 : shift == 63 && (byte & 0x7e))
			return bytes_error(b, "LEB128 number over 64 bits");
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	b->at = at;
	*ret = value;
	return NULL;
}

struct error *bytes_sleb(struct bytes *b, int64_t *ret)
{
	uint64_t value = 0;
	unsigned shift = 0;
	const uint8_t *at = b->at;
	uint8_t byte;

	do {
		if (at == b->end)
			return bytes_error(b, "ends inside a LEB128 number");
		byte = *at++;
		if (shift >= 70)
			return bytes_error(b, "LEB128 number over 64 bits");
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (shift < 64 && (byte & 0x40))
		value |= ~(uint64_t)0 << shift;
	b->at = at;
	*ret = (int64_t)value;
	return NULL;
}

struct error *bytes_string(struct bytes *b, const char **ret)
{
	const uint8_t *nul = bytes_left(b) ? memchr(b->at, 0, bytes_left(b)) : NULL;

	if (!nul)
		return bytes_error(b, "string without an end");
	*ret = (const char *)b->at;
	b->at = nul + 1;
	return NULL;
}

struct error *bytes_skip(struct bytes *b, uint64_t count)
{
	if (count > bytes_left(b))
		return bytes_error(b, "%llu bytes wanted, %zu left", (unsigned long long)count,
				   bytes_left(b));
	b->at += count;
	return NULL;
}

struct error *bytes_seek(struct bytes *b, uint64_t offset)
{
	if (offset > (uint64_t)(b->end - b->start))
		return bytes_error(b, "offset 0x%llx lies outside", (unsigned long long)offset);
	b->at = b->start + offset;
	return NULL;
}

struct error *bytes_cut(struct bytes *b, uint64_t size, struct bytes *ret)
{
	struct bytes part = *b;

	TRY(bytes_skip(b, size));
	part.end = b->at;
	*ret = part;
	return NULL;
}
