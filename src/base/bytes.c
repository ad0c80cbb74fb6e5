/* SPDX-License-Identifier: Apache-2.0 */
/* The reader under every parser. What the bytes mean is the parsers' business. */
#include "base/bytes.h"

#include <endian.h>
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

/* The next WIDTH bytes as they stand. */
static struct error *take_number(struct bytes *b, size_t width, void *to)
{
	if (bytes_left(b) < width)
		return bytes_error(b, "ends inside a %zu-byte number", width);
	memcpy(to, b->at, width);
	b->at += width;
	return NULL;
}

struct error *bytes_u8(struct bytes *b, uint8_t *ret)
{
	return take_number(b, sizeof(*ret), ret);
}

struct error *bytes_u16(struct bytes *b, uint16_t *ret)
{
	uint16_t value;

	TRY(take_number(b, sizeof(value), &value));
	*ret = b->big_endian ? be16toh(value) : le16toh(value);
	return NULL;
}

struct error *bytes_u32(struct bytes *b, uint32_t *ret)
{
	uint32_t value;

	TRY(take_number(b, sizeof(value), &value));
	*ret = b->big_endian ? be32toh(value) : le32toh(value);
	return NULL;
}

struct error *bytes_u64(struct bytes *b, uint64_t *ret)
{
	uint64_t value;

	TRY(take_number(b, sizeof(value), &value));
	*ret = b->big_endian ? be64toh(value) : le64toh(value);
	return NULL;
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
