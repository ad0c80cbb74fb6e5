/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an ELF file: its symbols, PLT, MiniDebugInfo, lines and inlined calls. Every address
 * gets at least one name, and the last one is not inlined. */
#include <string.h>

#include "symbolize/symbolizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(struct symbol_object *symbols, uint64_t addr)
{
	struct symbol found[SYMBOLS_MAX];
	size_t count = 0;

	struct error *err = symbolize_object(symbols, addr, addr & 1, found, &count);
	if (err) { // a limit was met
		error_free(err);
		return;
	}
	if (!count || count > SYMBOLS_MAX || found[count - 1].inlined)
		__builtin_trap();
	for (size_t i = 0; i < count; i++)
		if (strpbrk(found[i].function, "\n\t"))
			__builtin_trap();
}

/* Addresses all over what the file calls code. */
static void look_everywhere(struct object *object, struct symbol_object *symbols)
{
	size_t count;
	const struct object_segment *segment = object_segments(object, &count);

	for (size_t i = 0; i < count && i < 4; i++) {
		uint64_t step = segment[i].mem_size / 40 + 1;
		for (int k = 0; k < 41; k++)
			look_up(symbols, segment[i].addr + k * step);
	}
	const struct object_section *section = object_sections(object, &count);
	for (size_t i = 0; i < count && i < 64; i++)
		if (section[i].flags & 4) // SHF_EXECINSTR
			for (uint64_t at = 0; at < section[i].size && at < 64; at += 3)
				look_up(symbols, section[i].addr + at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbolizer_options options = {.lines = true};
	struct symbol_place place = {.path = "/input"};
	_cleanup_object_ struct object *object = NULL;
	_cleanup_symbolizer_ struct symbolizer *symbolizer = NULL;
	struct symbol_object *symbols;

	struct error *err = object_open_memory(data, size, "input", &object);
	if (!err)
		err = symbolizer_new(&options, &symbolizer);
	if (!err)
		err = symbolizer_object(symbolizer, object, &place, &symbols);
	if (!err)
		look_everywhere(object, symbols);
	error_free(err);
	return 0;
}
