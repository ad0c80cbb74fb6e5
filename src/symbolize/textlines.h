/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of a text file that may be long, hostile and still growing: read by position in pieces, so
 * that the caller's descriptor is shared safely and no more than one line is held.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { TEXTLINE_MAX = 16 << 10 };

struct textlines {
	int fd;           /* borrowed */
	const char *name; /* borrowed; for messages */
	uint64_t offset;  /* of the first byte that no line has been made of */
	char *data;
	size_t start, end; /* what is in data */
	bool skipping;     /* inside a line over the maximum */
};

/* One line without its newline, NUL-terminated, borrowed until the next call. */
struct textline {
	char *text;
	size_t length;
	bool whole; /* ended by a newline: false only for what stands at the end of the file */
};

struct error *textlines_open(int fd, const char *name, uint64_t offset, struct textlines *ret);
void textlines_close(struct textlines *lines);

/* The next line of at most TEXTLINE_MAX bytes; longer ones are passed over. At the end of the file
 * RET_MORE is false. Afterwards lines->offset is behind the line, so that reading may go on there
 * later. */
struct error *textlines_read(struct textlines *lines, struct textline *ret, bool *ret_more);

/* A hexadecimal number, with or without 0x, at *TEXT, which moves behind it and one blank after it.
 * False: there is none, or it is over 64 bits. */
bool textline_hex(char **text, uint64_t *ret);
