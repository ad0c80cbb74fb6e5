/* SPDX-License-Identifier: Apache-2.0 */
/* ELF symbol tables, merged. Which files are looked into is decided in objects.c. */
#include "symbolize/symtab.h"

#include <elf.h>
#include <string.h>

#include "base/array.h"

enum {
	NAME_BITS = 29,
	RANK_BITS = 64 - SYMTAB_ADDR_BITS,
	RANK_NOISE = 1,   /* leading underscore */
	RANK_UNSIZED = 2, /* its size was made up */
	RANK_IFUNC = 4,   /* the symbol of the function that picks one */
	RANK_LABEL = 8,   /* STT_NOTYPE */
	RANK_WEAK = 16,
	RANK_LOCAL = 32,
	RANK_MADE = 64,
	// How many symbols before an address are looked at for one that reaches it: what is nested
	// in a function (labels, aliases of parts) is fewer.
	LOOK_BACK = 64,
	TEXT_RANGES = 1 << 16,
};

struct symbol_row {
	uint32_t name;
	uint8_t info;
	uint16_t section;
	uint64_t addr, size;
};

void symtab_deinit(struct symtab *symtab)
{
	free(symtab->entry);
	free(symtab->text);
	*symtab = (struct symtab)SYMTAB_INIT;
}

size_t symtab_bytes(const struct symtab *symtab)
{
	size_t bytes =
		symtab->room * sizeof(*symtab->entry) + symtab->text_room * sizeof(*symtab->text);

	for (size_t i = 0; i < symtab->source_count; i++)
		if (symtab->source[i].loaded)
			bytes += (size_t)(symtab->source[i].strings.end -
					  symtab->source[i].strings.start);
	return bytes;
}

struct error *symtab_word(struct bytes *b, bool is_64, uint64_t *ret)
{
	uint32_t narrow;

	if (is_64)
		return bytes_u64(b, ret);
	TRY(bytes_u32(b, &narrow));
	*ret = narrow;
	return NULL;
}

static struct error *add_range(struct symtab *symtab, uint64_t start, uint64_t size)
{
	if (!size || size > UINT64_MAX - start)
		return NULL;
	TRY(ARRAY_RESERVE(symtab->text, symtab->text_room, symtab->text_count, 1, TEXT_RANGES,
			  "executable sections"));
	symtab->text[symtab->text_count++] = (struct symtab_range){start, start + size};
	return NULL;
}

static int compare_range(const void *a, const void *b)
{
	const struct symtab_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

struct error *symtab_set_text(struct symtab *symtab, struct object *object)
{
	size_t count, segment_count;
	const struct object_section *section = object_sections(object, &count);

	for (size_t i = 0; i < count; i++)
		if ((section[i].flags & SHF_ALLOC) && (section[i].flags & SHF_EXECINSTR))
			TRY(add_range(symtab, section[i].addr, section[i].size));
	const struct object_segment *segment = object_segments(object, &segment_count);
	for (size_t i = 0; !symtab->text_count && i < segment_count; i++)
		if (segment[i].executable)
			TRY(add_range(symtab, segment[i].addr, segment[i].mem_size));
	if (symtab->text_count)
		qsort(symtab->text, symtab->text_count, sizeof(*symtab->text), compare_range);
	return NULL;
}

static const struct symtab_range *find_range(const struct symtab *symtab, uint64_t addr)
{
	size_t low = 0, high = symtab->text_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (symtab->text[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low && addr < symtab->text[low - 1].end ? &symtab->text[low - 1] : NULL;
}

struct error *symtab_add_source(struct symtab *symtab, struct object *object, const char *strings,
				const char *suffix, size_t *ret)
{
	if (symtab->source_count == SYMTAB_SOURCES)
		return error_new("%s: more than %d symbol tables", object_name(object),
				 SYMTAB_SOURCES);
	*ret = symtab->source_count++;
	symtab->source[*ret] =
		(struct symtab_source){.object = object, .section = strings, .suffix = suffix};
	return NULL;
}

/* The string table of SOURCE. False: it cannot be read. */
static bool load_strings(struct symtab_source *source)
{
	if (!source->loaded)
		source->loaded =
			object_section(source->object, source->section, &source->strings, NULL);
	return source->loaded;
}

/* NULL: OFFSET lies outside, or the string has no end. */
static const char *string_at(struct symtab_source *source, uint32_t offset)
{
	if (!load_strings(source))
		return NULL;
	size_t size = (size_t)(source->strings.end - source->strings.start);
	if (offset >= size)
		return NULL;
	const uint8_t *text = source->strings.start + offset;
	return memchr(text, 0, size - offset) ? (const char *)text : NULL;
}

static struct error *read_row(struct bytes *b, bool is_64, struct symbol_row *ret)
{
	uint8_t other;

	TRY(bytes_u32(b, &ret->name));
	if (!is_64) {
		TRY(symtab_word(b, false, &ret->addr));
		TRY(symtab_word(b, false, &ret->size));
	}
	TRY(bytes_u8(b, &ret->info));
	TRY(bytes_u8(b, &other));
	TRY(bytes_u16(b, &ret->section));
	if (is_64) {
		TRY(bytes_u64(b, &ret->addr));
		TRY(bytes_u64(b, &ret->size));
	}
	return NULL;
}

/* What speaks against the name of ROW; negative: it names no code. */
static int rank_of(const struct symbol_row *row, const char *name)
{
	// The two bytes of the info field have the same layout in both classes.
	unsigned type = ELF64_ST_TYPE(row->info), bind = ELF64_ST_BIND(row->info);
	int rank = (name[0] == '_' ? RANK_NOISE : 0) | (row->size ? 0 : RANK_UNSIZED);

	if (row->section == SHN_UNDEF || row->section == SHN_ABS || row->section == SHN_COMMON)
		return -1;
	if (type == STT_GNU_IFUNC)
		rank |= RANK_IFUNC;
	else if (type == STT_NOTYPE)
		rank |= RANK_LABEL;
	else if (type != STT_FUNC)
		return -1;
	if (bind == STB_WEAK)
		rank |= RANK_WEAK;
	else if (bind == STB_LOCAL)
		rank |= RANK_LOCAL;
	// "$x" and the like mark what bytes are, ".annobin_…" where a file began.
	bool mark = type == STT_NOTYPE && (name[0] == '$' || name[0] == '.');
	return !name[0] || mark ? -1 : rank;
}

static struct error *add_entry(struct symtab *symtab, uint64_t addr, uint64_t size, int rank,
			       uint32_t name)
{
	const struct symtab_range *range = find_range(symtab, addr);

	if (!range || addr >> SYMTAB_ADDR_BITS)
		return NULL;
	if (size > range->end - addr)
		size = range->end - addr;
	if (size > UINT32_MAX)
		size = UINT32_MAX;
	TRY(ARRAY_RESERVE(symtab->entry, symtab->room, symtab->count, 1, SYMTAB_MAX, "symbols"));
	symtab->entry[symtab->count++] = (struct symtab_entry){
		.key = addr << RANK_BITS | (unsigned)rank, .size = (uint32_t)size, .name = name};
	return NULL;
}

struct error *symtab_add(struct symtab *symtab, struct object *object, const char *table,
			 const char *strings)
{
	bool is_64 = object_is_64(object);
	size_t row_bytes = is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym), source;
	struct symbol_row row;
	struct bytes b;

	if (!object_section(object, table, &b, NULL))
		return NULL;
	TRY(symtab_add_source(symtab, object, strings, "", &source));
	while (bytes_left(&b) >= row_bytes && symtab->count < SYMTAB_MAX) {
		TRY(read_row(&b, is_64, &row));
		if (row.name >> NAME_BITS)
			continue;
		const char *name = string_at(&symtab->source[source], row.name);
		int rank = name ? rank_of(&row, name) : -1;
		if (rank >= 0)
			TRY(add_entry(symtab, row.addr, row.size, rank,
				      (uint32_t)source << NAME_BITS | row.name));
	}
	return NULL;
}

struct error *symtab_add_made(struct symtab *symtab, uint64_t addr, uint32_t size, size_t source,
			      uint32_t name)
{
	if (name >> NAME_BITS)
		return NULL;
	return add_entry(symtab, addr, size, RANK_MADE, (uint32_t)source << NAME_BITS | name);
}

static uint64_t entry_addr(const struct symtab_entry *entry)
{
	return entry->key >> RANK_BITS;
}

static int compare_entry(const void *a, const void *b)
{
	const struct symtab_entry *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* Symbols without a size end where the next one begins, or with their section. */
static void give_sizes(struct symtab *symtab)
{
	for (size_t i = 0; i < symtab->count; i++) {
		struct symtab_entry *entry = &symtab->entry[i];
		if (!(entry->key & RANK_UNSIZED))
			continue;
		uint64_t addr = entry_addr(entry);
		uint64_t end = find_range(symtab, addr)->end;
		if (i + 1 < symtab->count && entry_addr(entry + 1) < end)
			end = entry_addr(entry + 1);
		entry->size = end - addr > UINT32_MAX ? UINT32_MAX : (uint32_t)(end - addr);
	}
}

void symtab_finish(struct symtab *symtab)
{
	struct symtab_entry *entry = symtab->entry;
	size_t kept = 0;

	if (!symtab->count)
		return;
	qsort(entry, symtab->count, sizeof(*entry), compare_entry);
	for (size_t i = 0; i < symtab->count; i++)
		if (!kept || entry_addr(&entry[kept - 1]) != entry_addr(&entry[i]))
			entry[kept++] = entry[i];
	symtab->count = kept;
	give_sizes(symtab);
	struct symtab_entry *fitted = realloc(entry, kept * sizeof(*entry));
	if (!fitted) // it only stays larger than it needs to be
		return;
	symtab->entry = fitted;
	symtab->room = kept;
}

void symtab_release(struct symtab *symtab)
{
	for (size_t i = 0; i < symtab->source_count; i++)
		symtab->source[i].loaded = false;
}

/* The symbol at or before ADDR that reaches it: a sized one if there is one, so that a label inside
 * a function does not hide the function. */
static const struct symtab_entry *find_entry(const struct symtab *symtab, uint64_t addr)
{
	const struct symtab_entry *unsized = NULL;
	size_t low = 0, high = symtab->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (entry_addr(&symtab->entry[middle]) <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i > 0 && low - i < LOOK_BACK; i--) {
		const struct symtab_entry *entry = &symtab->entry[i - 1];
		if (addr - entry_addr(entry) >= entry->size)
			continue;
		if (!(entry->key & RANK_UNSIZED))
			return entry;
		if (!unsized)
			unsized = entry;
	}
	return unsized;
}

bool symtab_find(struct symtab *symtab, uint64_t addr, struct symtab_found *ret)
{
	const struct symtab_entry *entry = find_entry(symtab, addr);

	if (!entry)
		return false;
	struct symtab_source *source = &symtab->source[entry->name >> NAME_BITS];
	// Somebody else may have released the object since; asking it again costs next to nothing.
	source->loaded = false;
	const char *name = string_at(source, entry->name & ((1u << NAME_BITS) - 1));
	if (!name)
		return false;
	*ret = (struct symtab_found){
		.name = name,
		.suffix = source->suffix,
		.start = entry_addr(entry),
		.sized = !(entry->key & RANK_UNSIZED),
	};
	return true;
}
