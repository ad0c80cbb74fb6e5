/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 by table 3-7 of the Unicode Standard, "Well-Formed UTF-8 Byte Sequences". */
#include "base/utf8.h"

/* What a first byte says: how many bytes follow, its own bits, and between what the second byte
 * lies. */
struct lead {
	unsigned more;
	uint32_t bits;
	uint8_t low, high;
};

static struct lead lead_of(uint8_t byte)
{
	if (byte >= 0xc2 && byte <= 0xdf)
		return (struct lead){1, byte & 0x1f, 0x80, 0xbf};
	if (byte >= 0xe0 && byte <= 0xef)
		return (struct lead){2, byte & 0x0f, byte == 0xe0 ? 0xa0 : 0x80,
				     byte == 0xed ? 0x9f : 0xbf};
	if (byte >= 0xf0 && byte <= 0xf4)
		return (struct lead){3, byte & 0x07, byte == 0xf0 ? 0x90 : 0x80,
				     byte == 0xf4 ? 0x8f : 0xbf};
	return (struct lead){0};
}

uint32_t utf8_next(struct bytes *b)
{
	uint8_t first = *b->at++;

	if (first < 0x80)
		return first;
	struct lead lead = lead_of(first);
	if (!lead.more)
		return UTF8_BAD;
	uint32_t code = lead.bits;
	for (unsigned i = 0; i < lead.more; i++) {
		if (b->at == b->end || *b->at < lead.low || *b->at > lead.high)
			return UTF8_BAD;
		code = code << 6 | (*b->at++ & 0x3f);
		lead.low = 0x80;
		lead.high = 0xbf;
	}
	return code;
}

size_t utf8_encode(uint32_t code, char ret[4])
{
	static const uint8_t marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	for (size_t i = length; i-- > 1; code >>= 6)
		ret[i] = (char)(0x80 | (code & 0x3f));
	ret[0] = (char)(marks[length] | code);
	return length;
}
