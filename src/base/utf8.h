/* SPDX-License-Identifier: Apache-2.0 */
/* Code points of text that may be anything. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum { UTF8_BAD = 0xfffd }; /* what stands for bytes that are no UTF-8: REPLACEMENT CHARACTER */

/*
 * The next code point; at least one byte must be left. Bytes that are no UTF-8 (overlong forms,
 * surrogates, beyond U+10FFFF, sequences cut short) give UTF8_BAD, one for each longest part that
 * could have begun a sequence, as Unicode recommends and browsers do.
 */
uint32_t utf8_next(struct bytes *b);

/* CODE, a valid code point, as bytes; how many there are. */
size_t utf8_encode(uint32_t code, char ret[4]);
