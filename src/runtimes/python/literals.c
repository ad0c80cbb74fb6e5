/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/python/literals.h"

#include <inttypes.h>
#include <string.h>

#include "runtimes/python/text.h"

enum { UNITS_MAX = 2048 };

/* A string whose begin has been read. */
struct literal {
	struct python_string string;
	const char *prefix, *units;
	bool bytes;
	uint64_t shown; /* units */
	uint8_t data[UNITS_MAX * 4];
};

static uint32_t unit(const struct literal *literal, uint64_t index)
{
	uint32_t value = 0;

	memcpy(&value, literal->data + index * literal->string.width, literal->string.width);
	return value;
}

/* A narrow build of 2.7 keeps what is beyond U+FFFF as two surrogates. */
static uint32_t next_character(const struct literal *literal, uint64_t *index)
{
	uint32_t first = unit(literal, (*index)++);

	if (!literal->string.pairs || first < 0xd800 || first > 0xdbff || *index >= literal->shown)
		return first;
	uint32_t second = unit(literal, *index);
	if (second < 0xdc00 || second > 0xdfff)
		return first;
	(*index)++;
	return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
}

/* As repr() chooses it: the apostrophe, unless that would have to be escaped and '"' would not. */
static char quote_of(const struct literal *literal)
{
	bool single = false, twice = false;

	for (uint64_t i = 0; i < literal->shown; i++) {
		single |= unit(literal, i) == '\'';
		twice |= unit(literal, i) == '"';
	}
	return single && !twice ? '"' : '\'';
}

/* RET->string is known; read as much of it as is shown. */
static bool read_units(const struct python_print *print, struct literal *literal)
{
	uint64_t shown = literal->string.length;

	if (shown > print->limits.characters)
		shown = print->limits.characters;
	if (shown > UNITS_MAX)
		shown = UNITS_MAX;
	literal->shown = shown;
	return !shown || python_heap_bytes(&print->heap, literal->string.data, 0, literal->data,
					   shown * literal->string.width);
}

static bool read_text(const struct python_print *print, uint64_t addr, struct literal *literal)
{
	literal->prefix = print->heap.offsets->version < 0x0300 ? "u" : "";
	literal->units = "characters";
	return python_string_find(&print->heap.memory, print->heap.offsets, addr,
				  &literal->string) == PYTHON_TEXT_read &&
	       read_units(print, literal);
}

static bool read_bytes(const struct python_print *print, uint64_t addr, enum python_kind kind,
		       struct literal *literal)
{
	const struct python_offsets *at = print->heap.offsets;
	bool array = kind == PYTHON_KIND_bytearray;

	literal->prefix = array || at->version >= 0x0300 ? "b" : "";
	literal->units = "bytes";
	literal->bytes = true;
	literal->string = (struct python_string){.width = 1, .data = addr + at->bytes_data};
	if (!python_heap_u64(&print->heap, addr, array ? at->bytearray_size : at->bytes_size,
			     &literal->string.length))
		return false;
	// An empty bytearray may have no memory at all.
	if (array && literal->string.length &&
	    !python_heap_u64(&print->heap, addr, at->bytearray_data, &literal->string.data))
		return false;
	return at->bytes_data != PYTHON_ABSENT && read_units(print, literal);
}

static void print_literal(struct python_out *out, const struct literal *literal)
{
	const char quote = quote_of(literal);
	const char quotes[] = {quote, 0};

	python_out_add(out, literal->prefix);
	python_out_add(out, quotes);
	for (uint64_t i = 0; i < literal->shown && !out->full;) {
		uint32_t character = next_character(literal, &i);

		if (literal->bytes)
			python_out_byte(out, (uint8_t)character, quote);
		else
			python_out_character(out, character, quote);
	}
	if (literal->shown == literal->string.length) {
		python_out_add(out, quotes);
		return;
	}
	python_out_addf(out, ELLIPSIS "%s <%" PRIu64 " %s>", quotes, literal->string.length,
			literal->units);
}

void python_literal_print(struct python_print *print, uint64_t addr, enum python_kind kind)
{
	struct literal literal = {.bytes = false};
	bool array = kind == PYTHON_KIND_bytearray;
	bool read = kind == PYTHON_KIND_text ? read_text(print, addr, &literal)
					     : read_bytes(print, addr, kind, &literal);

	if (!read) {
		python_print_unreadable(print, addr);
		return;
	}
	python_out_add(&print->out, array ? "bytearray(" : "");
	print_literal(&print->out, &literal);
	python_out_add(&print->out, array ? ")" : "");
}
