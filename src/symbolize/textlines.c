/* SPDX-License-Identifier: Apache-2.0 */
/* Reading lines. What they mean is the business of kallsyms.c and perfmap.c. */
#include "symbolize/textlines.h"

#include <errno.h>
#include <string.h>

enum { PIECE_BYTES = 64 << 10 };

struct error *textlines_open(int fd, const char *name, uint64_t offset, struct textlines *ret)
{
	char *data = malloc(PIECE_BYTES);

	if (!data)
		return error_oom();
	*ret = (struct textlines){.fd = fd, .name = name, .offset = offset, .data = data};
	return NULL;
}

void textlines_close(struct textlines *lines)
{
	free(lines->data);
	lines->data = NULL;
}

/* Read on behind what is there. RET_SIZE 0: the end of the file. */
static struct error *fill(struct textlines *lines, size_t *ret_size)
{
	size_t held = lines->end - lines->start;
	ssize_t got;

	memmove(lines->data, lines->data + lines->start, held);
	lines->start = 0;
	lines->end = held;
	do
		got = pread(lines->fd, lines->data + held, PIECE_BYTES - 1 - held,
			    (off_t)(lines->offset + held));
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return error_errno("read %s", lines->name);
	lines->end += (size_t)got;
	*ret_size = (size_t)got;
	return NULL;
}

/* Take LENGTH bytes, and the newline behind them, off the front. */
static struct textline cut(struct textlines *lines, size_t length, bool whole)
{
	char *text = lines->data + lines->start;

	text[length] = 0;
	lines->start += length + whole;
	lines->offset += length + whole;
	return (struct textline){.text = text, .length = length, .whole = whole};
}

struct error *textlines_read(struct textlines *lines, struct textline *ret, bool *ret_more)
{
	for (;;) {
		size_t held = lines->end - lines->start, got;
		char *text = lines->data + lines->start;
		char *newline = memchr(text, '\n', held);
		if (newline) {
			struct textline line = cut(lines, (size_t)(newline - text), true);
			bool skip = lines->skipping || line.length > TEXTLINE_MAX;
			lines->skipping = false;
			if (skip)
				continue;
			*ret = line;
			*ret_more = true;
			return NULL;
		}
		if (held > TEXTLINE_MAX) {
			cut(lines, held, false);
			lines->skipping = true;
		}
		TRY(fill(lines, &got));
		if (got)
			continue;
		held = lines->end - lines->start;
		*ret_more = held && !lines->skipping;
		if (*ret_more)
			*ret = cut(lines, held, false);
		return NULL;
	}
}

bool textline_hex(char **text, uint64_t *ret)
{
	uint64_t value = 0;
	char *at = *text;
	size_t digits = 0;

	if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	for (;; at++, digits++) {
		unsigned digit;
		if (*at >= '0' && *at <= '9')
			digit = (unsigned)(*at - '0');
		else if ((*at | 0x20) >= 'a' && (*at | 0x20) <= 'f')
			digit = (unsigned)((*at | 0x20) - 'a' + 10);
		else
			break;
		if (value >> 60)
			return false;
		value = value << 4 | digit;
	}
	if (!digits || (*at && *at != ' ' && *at != '\t'))
		return false;
	*text = at + (*at != 0);
	*ret = value;
	return true;
}
