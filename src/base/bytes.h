/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounds-checked reader over bytes that came from somewhere else. Every parser reads through it;
 * an error names the source and the offset. Multi-byte numbers are read in the byte order that the
 * reader was given.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct bytes {
	const uint8_t *start; /* borrowed */
	const uint8_t *at;
	const uint8_t *end;
	const char *name; /* borrowed; what the bytes are, for messages */
	bool big_endian;
};

/* A reader over SIZE bytes at DATA. */
struct bytes bytes_over(const void *data, size_t size, const char *name);

static inline size_t bytes_left(const struct bytes *b)
{
	return (size_t)(b->end - b->at);
}

static inline size_t bytes_offset(const struct bytes *b)
{
	return (size_t)(b->at - b->start);
}

/* A failure that names the source and the current offset. */
struct error *bytes_error(const struct bytes *b, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Fixed-width numbers; the position is unchanged on failure. */
struct error *bytes_u8(struct bytes *b, uint8_t *ret);
struct error *bytes_u16(struct bytes *b, uint16_t *ret);
struct error *bytes_u32(struct bytes *b, uint32_t *ret);
struct error *bytes_u64(struct bytes *b, uint64_t *ret);

/* LEB128 as in DWARF; more than 64 bits of value is an error. */
struct error *bytes_uleb(struct bytes *b, uint64_t *ret);
struct error *bytes_sleb(struct bytes *b, int64_t *ret);

/* A NUL-terminated string inside the bytes; borrowed from them. */
struct error *bytes_string(struct bytes *b, const char **ret);

struct error *bytes_skip(struct bytes *b, uint64_t count);

/* Move to OFFSET counted from the start. */
struct error *bytes_seek(struct bytes *b, uint64_t offset);

/* Cut the next SIZE bytes off as a reader of their own; B moves behind them. */
struct error *bytes_cut(struct bytes *b, uint64_t size, struct bytes *ret);
