/* SPDX-License-Identifier: Apache-2.0 */
#include "object/go-find.h"

#include <elf.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "object/object.h"

enum {
	CHUNK = 1 << 16, /* read at once while scanning */
	/* Where to give up: no program is near it, and a hostile file claims what it likes. */
	SCAN_MAX = 1 << 30,
	RELOCATIONS_MAX = 16 << 20,
	HEADER_WORDS = 9,
	POINTER_SIZE = 8,
};

/* Words of moduledata; the same in 1.16 to 1.26 but for FUNC_DATA (src/runtime/symtab.go). */
enum {
	MODULE_HEADER = 0,
	MODULE_NAMES = 1,
	MODULE_MIN_PC = 20,
	MODULE_MAX_PC = 21,
	MODULE_TEXT = 22,
	MODULE_TEXT_END = 23,
	MODULE_FUNC_DATA_1_18 = 38,
	MODULE_FUNC_DATA_1_20 = 40, /* covctrs, ecovctrs came before it */
	MODULE_WORDS = 41,
};

struct module_words {
	uint64_t word[MODULE_WORDS];
};

static bool form_of(uint32_t magic, enum go_form *ret)
{
	static const uint32_t magics[] = {
		[GO_FORM_1_16] = 0xfffffffa,
		[GO_FORM_1_18] = 0xfffffff0,
		[GO_FORM_1_20] = 0xfffffff1,
	};

	for (size_t i = 0; i < ARRAY_COUNT(magics); i++) {
		if (magics[i] != magic)
			continue;
		*ret = (enum go_form)i;
		return true;
	}
	return false;
}

/* Does a header begin with WORD? The magic, two zero bytes, quantum 1, 2 or 4, pointers of 8. */
static bool is_header(uint64_t word)
{
	enum go_form form;
	unsigned quantum = word >> 48 & 0xff;

	return form_of((uint32_t)word, &form) && (word >> 32 & 0xffff) == 0 &&
	       (quantum == 1 || quantum == 2 || quantum == 4) && word >> 56 == POINTER_SIZE;
}

/* The end of the bytes that the file holds from ADDR on. */
static uint64_t segment_end(const struct object *object, uint64_t addr)
{
	size_t count;
	const struct object_segment *segment = object_segments(object, &count);

	for (size_t i = 0; i < count; i++, segment++)
		if (addr >= segment->addr && addr - segment->addr < segment->file_size)
			return segment->addr + segment->file_size;
	return addr;
}

bool go_parts_read(struct go_view *view, uint64_t addr, struct go_parts *ret)
{
	uint64_t word[HEADER_WORDS];
	struct go_parts parts = {.start = addr, .end = segment_end(view->object, addr)};

	if (!go_view_read(view, addr, word, sizeof(word)))
		return false;
	for (int i = 0; i < HEADER_WORDS; i++)
		word[i] = le64toh(word[i]);
	if (!is_header(word[0]) || !form_of((uint32_t)word[0], &parts.form))
		return false;
	if (!word[1] || word[1] > GO_FUNCTIONS_MAX)
		return false;
	parts.quantum = word[0] >> 48 & 0xff;
	parts.count = (uint32_t)word[1];

	const uint64_t *offset = word + 3;
	if (parts.form != GO_FORM_1_16)
		parts.text_hint = *offset++;
	// The linker writes the parts in this order; anything else is bytes that look like a magic.
	for (int i = 0; i < 5; i++)
		if (offset[i] >= parts.end - addr || (i && offset[i] <= offset[i - 1]))
			return false;
	parts.names = addr + offset[0];
	parts.units = addr + offset[1];
	parts.files = addr + offset[2];
	parts.values = addr + offset[3];
	parts.functions = addr + offset[4];

	uint64_t entry = parts.form == GO_FORM_1_16 ? 16 : 8;
	if (entry * parts.count + entry / 2 > parts.end - parts.functions)
		return false;
	*ret = parts;
	return true;
}

/* Is WORD at ADDR what is looked for? */
typedef bool scan_fn(struct go_view *view, uint64_t addr, uint64_t word, void *context);

/* Every aligned word of SEGMENT until FN holds. LEFT bytes may still be read. */
static bool scan_segment(struct go_view *view, const struct object_segment *segment, uint64_t *left,
			 scan_fn *fn, void *context)
{
	uint64_t at = (segment->addr + 7) & ~(uint64_t)7, end = segment->addr + segment->file_size;
	_cleanup_free_ uint64_t *chunk = malloc(CHUNK);

	while (chunk && at < end && end - at >= 8 && *left > 0) {
		uint64_t size = end - at < CHUNK ? (end - at) & ~(uint64_t)7 : CHUNK;
		if (!object_read(view->object, at, chunk, size))
			return false;
		for (uint64_t i = 0; i < size / 8; i++)
			if (fn(view, at + 8 * i, le64toh(chunk[i]), context))
				return true;
		*left -= *left < size ? *left : size;
		at += size;
	}
	return false;
}

/* Every aligned word of the segments that are not code, the last first: data lies there. */
static bool scan_data(struct go_view *view, scan_fn *fn, void *context)
{
	size_t count;
	const struct object_segment *segment = object_segments(view->object, &count);
	uint64_t left = SCAN_MAX;

	while (count-- > 0)
		if (!segment[count].executable &&
		    scan_segment(view, &segment[count], &left, fn, context))
			return true;
	return false;
}

static bool scan_for_header(struct go_view *view, uint64_t addr, uint64_t word, void *context)
{
	struct go_parts parts;
	uint64_t *ret = context;

	if (!is_header(word) || !go_parts_read(view, addr, &parts))
		return false;
	*ret = addr;
	return true;
}

/* The address of a section by one of NAMES, which ends with NULL. False: there is none. */
static bool section_addr(const struct object *object, const char *const *names, uint64_t *ret)
{
	size_t count;
	const struct object_section *section = object_sections(object, &count);

	for (size_t i = 0; i < count; i++)
		for (const char *const *name = names; *name; name++) {
			if (strcmp(section[i].name, *name) != 0)
				continue;
			*ret = section[i].addr;
			return true;
		}
	return false;
}

bool go_table_find(struct object *object, uint64_t *ret)
{
	static const char *const tables[] = {".gopclntab", ".data.rel.ro.gopclntab", NULL};
	static const char *const traces[] = {".go.buildinfo", ".note.go.buildid", NULL};
	_cleanup_(go_view_deinit) struct go_view view = {.object = object};
	struct go_parts parts;
	uint64_t addr;
	size_t sections;

	if (!object_is_64(object))
		return false;
	if (section_addr(object, tables, &addr) && go_parts_read(&view, addr, &parts)) {
		*ret = addr;
		return true;
	}
	// GNU ld puts the table of a PIE into .data.rel.ro. What has sections, and none of Go's, is
	// not worth reading from end to end.
	object_sections(object, &sections);
	if (sections && !section_addr(object, traces, &addr))
		return false;
	return scan_data(&view, scan_for_header, ret);
}

static bool module_fits(struct go_view *view, const struct go_parts *parts,
			const struct module_words *module, struct go_module *ret)
{
	const uint64_t *word = module->word;
	int func_data = parts->form == GO_FORM_1_18 ? MODULE_FUNC_DATA_1_18 : MODULE_FUNC_DATA_1_20;
	uint8_t byte;

	if (word[MODULE_HEADER] != parts->start || word[MODULE_NAMES] != parts->names ||
	    word[MODULE_TEXT] > word[MODULE_MIN_PC] || word[MODULE_MIN_PC] >= word[MODULE_MAX_PC] ||
	    word[MODULE_TEXT] >= word[MODULE_TEXT_END] ||
	    !go_view_read(view, word[MODULE_TEXT], &byte, 1))
		return false;
	ret->text = word[MODULE_TEXT];
	ret->func_data = 0;
	if (parts->form != GO_FORM_1_16 && go_view_read(view, word[func_data], &byte, 1))
		ret->func_data = word[func_data];
	return true;
}

struct module_search {
	const struct go_parts *parts;
	struct go_module *ret;
};

static bool module_read(struct go_view *view, uint64_t addr, struct module_words *ret)
{
	if (!go_view_read(view, addr, ret->word, sizeof(ret->word)))
		return false;
	for (int i = 0; i < MODULE_WORDS; i++)
		ret->word[i] = le64toh(ret->word[i]);
	return true;
}

static bool scan_for_module(struct go_view *view, uint64_t addr, uint64_t word, void *context)
{
	struct module_search *search = context;
	struct module_words module;

	return word == search->parts->start && module_read(view, addr, &module) &&
	       module_fits(view, search->parts, &module, search->ret);
}

/* Is RELA, which has the loader store an address plus the load bias, the last one to look at? */
typedef bool relocation_fn(struct go_view *view, const Elf64_Rela *rela, void *context);

static bool scan_relocations(struct go_view *view, relocation_fn *fn, void *context)
{
	size_t count;
	const struct object_section *section = object_sections(view->object, &count);

	for (size_t i = 0; i < count; i++) {
		if (section[i].type != SHT_RELA || !(section[i].flags & SHF_ALLOC))
			continue;
		uint64_t relas = section[i].size / sizeof(Elf64_Rela);
		for (uint64_t k = 0; k < relas && k < RELOCATIONS_MAX; k++) {
			Elf64_Rela rela;
			uint64_t addr = section[i].addr + k * sizeof(rela);
			if (!go_view_read(view, addr, &rela, sizeof(rela)))
				break;
			if (ELF64_R_TYPE(le64toh(rela.r_info)) == R_X86_64_RELATIVE &&
			    fn(view, &rela, context))
				return true;
		}
	}
	return false;
}

struct module_relocations {
	uint64_t addr;
	struct module_words *module;
};

/* Put what the loader would put there into the words. Never ends the scan. */
static bool relocate_module(struct go_view *view, const Elf64_Rela *rela, void *context)
{
	struct module_relocations *to = context;
	uint64_t at = le64toh(rela->r_offset) - to->addr;

	if (at % 8 == 0 && at / 8 < MODULE_WORDS)
		to->module->word[at / 8] = le64toh((uint64_t)rela->r_addend);
	return false;
}

struct relocated_search {
	const struct go_parts *parts;
	struct go_module *ret;
	unsigned tries;
};

static bool is_module_relocation(struct go_view *view, const Elf64_Rela *rela, void *context)
{
	struct relocated_search *search = context;
	struct module_words module;
	struct module_relocations to = {.addr = le64toh(rela->r_offset), .module = &module};

	// Other words may point at the table too, but not many.
	if (le64toh((uint64_t)rela->r_addend) != search->parts->start || !search->tries ||
	    !module_read(view, to.addr, &module))
		return false;
	search->tries--;
	scan_relocations(view, relocate_module, &to);
	return module_fits(view, search->parts, &module, search->ret);
}

bool go_module_find(struct go_view *view, const struct go_parts *parts, struct go_module *ret)
{
	static const char *const names[] = {".go.module", NULL}; // since Go 1.26
	struct module_search search = {.parts = parts, .ret = ret};
	struct module_words module;
	uint64_t addr;

	if (section_addr(view->object, names, &addr) && module_read(view, addr, &module) &&
	    module_fits(view, parts, &module, ret))
		return true;
	if (scan_data(view, scan_for_module, &search))
		return true;

	// lld leaves the words zero that the loader will fill; their values are in the relocations.
	struct relocated_search relocated = {.parts = parts, .ret = ret, .tries = 8};
	return scan_relocations(view, is_module_relocation, &relocated);
}
