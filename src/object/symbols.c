// SPDX-License-Identifier: Apache-2.0
/* Looking for symbols by name (gABI, "Hash Table"; the GNU one: binutils' elf-bfd.h and glibc's
 * elf/dl-lookup.c). */
#include "object/symbols.h"

#include <elf.h>
#include <string.h>

#include "object/image.h"

enum {
	DYNAMIC_MAX = 512, /* entries; shared libraries have some 30 */
	CHAIN_MAX = 4096,
	SYMBOLS_MAX = 8 << 20,
	NAME_MAX_LENGTH = 100,
	TYPE_MASK = 15,
};

static void take_entry(struct object_exports *exports, const Elf64_Dyn *entry)
{
	switch (entry->d_tag) {
	case DT_SYMTAB:
		exports->symbols = entry->d_un.d_ptr;
		break;
	case DT_STRTAB:
		exports->strings = entry->d_un.d_ptr;
		break;
	case DT_STRSZ:
		exports->strings_size = entry->d_un.d_val;
		break;
	case DT_GNU_HASH:
		exports->gnu_hash = entry->d_un.d_ptr;
		break;
	case DT_HASH:
		exports->hash = entry->d_un.d_ptr;
		break;
	}
}

bool object_exports_open(struct object *object, struct object_exports *ret)
{
	struct object_exports exports = {.object = object};
	Elf64_Dyn entries[DYNAMIC_MAX];
	size_t count = object->dynamic.size / sizeof(entries[0]);

	// Tables of 32 bits have other shapes; no runtime that is asked for here has them.
	if (!object->is_64 || object->big_endian || !count)
		return false;
	if (count > DYNAMIC_MAX)
		count = DYNAMIC_MAX;
	if (!object_read(object, object->dynamic.addr, entries, count * sizeof(entries[0])))
		return false;
	for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++)
		take_entry(&exports, &entries[i]);
	if (!exports.symbols || !exports.strings)
		return false;
	if (exports.gnu_hash) {
		uint32_t head[4];
		if (!object_read(object, exports.gnu_hash, head, sizeof(head)) || !head[0] ||
		    !head[2])
			return false;
		exports.buckets = head[0];
		exports.first = head[1];
		exports.words = head[2];
		exports.shift = head[3] & 31;
	}
	if (!exports.gnu_hash && !exports.hash)
		return false;
	*ret = exports;
	return true;
}

/* Is symbol number INDEX the definition of NAME? */
static bool is_symbol(const struct object_exports *exports, uint32_t index, const char *name,
		      struct object_symbol *ret)
{
	char found[NAME_MAX_LENGTH + 1];
	size_t size = strlen(name) + 1;
	Elf64_Sym symbol;

	if (!object_read(exports->object, exports->symbols + (uint64_t)index * sizeof(symbol),
			 &symbol, sizeof(symbol)) ||
	    symbol.st_shndx == SHN_UNDEF || symbol.st_name >= exports->strings_size ||
	    size > exports->strings_size - symbol.st_name ||
	    !object_read(exports->object, exports->strings + symbol.st_name, found, size) ||
	    memcmp(found, name, size) != 0)
		return false;
	*ret = (struct object_symbol){
		.addr = symbol.st_value,
		.size = symbol.st_size,
		.type = symbol.st_info & TYPE_MASK,
	};
	return true;
}

static bool find_gnu(const struct object_exports *exports, const char *name,
		     struct object_symbol *ret)
{
	struct object *object = exports->object;
	uint64_t filter, at;
	uint32_t hash = 5381, index, chained;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (uint8_t)*c;
	// Most objects that do not have the name end here: the filter says so.
	at = exports->gnu_hash + 16;
	if (!object_read(object, at + 8ull * (hash / 64 % exports->words), &filter,
			 sizeof(filter)) ||
	    !(filter >> hash % 64 & 1) || !(filter >> (hash >> exports->shift) % 64 & 1))
		return false;
	at += 8ull * exports->words;
	if (!object_read(object, at + 4ull * (hash % exports->buckets), &index, sizeof(index)) ||
	    index < exports->first)
		return false;
	at += 4ull * exports->buckets;
	for (int i = 0; i < CHAIN_MAX; i++, index++) {
		if (!object_read(object, at + 4ull * (index - exports->first), &chained,
				 sizeof(chained)))
			return false;
		if ((chained | 1) == (hash | 1) && is_symbol(exports, index, name, ret))
			return true;
		if (chained & 1)
			return false;
	}
	return false;
}

static bool find_plain(const struct object_exports *exports, const char *name,
		       struct object_symbol *ret)
{
	struct object *object = exports->object;
	uint32_t head[2], hash = 0, index;

	for (const char *c = name; *c; c++) {
		hash = (hash << 4) + (uint8_t)*c;
		hash ^= hash >> 24 & 0xf0;
		hash &= 0x0fffffff;
	}
	if (!object_read(object, exports->hash, head, sizeof(head)) || !head[0])
		return false;
	uint64_t buckets = exports->hash + 8, chains = buckets + 4ull * head[0];
	if (!object_read(object, buckets + 4ull * (hash % head[0]), &index, sizeof(index)))
		return false;
	for (int i = 0; i < CHAIN_MAX && index != STN_UNDEF; i++) {
		if (is_symbol(exports, index, name, ret))
			return true;
		if (!object_read(object, chains + 4ull * index, &index, sizeof(index)))
			return false;
	}
	return false;
}

bool object_export_find(const struct object_exports *exports, const char *name,
			struct object_symbol *ret)
{
	if (strlen(name) > NAME_MAX_LENGTH)
		return false;
	return exports->gnu_hash ? find_gnu(exports, name, ret) : find_plain(exports, name, ret);
}

static bool tables(struct object *object, const char *table, const char *names, struct bytes *ret,
		   struct bytes *ret_names)
{
	// A last string without an end would run out of the section.
	return object_section(object, table, ret, NULL) &&
	       object_section(object, names, ret_names, NULL) && bytes_left(ret_names) &&
	       !ret_names->end[-1];
}

void object_symbols(struct object *object, object_symbol_fn *each, void *context)
{
	struct bytes table, names;

	if (!object->is_64 || object->big_endian)
		return;
	if (!tables(object, ".symtab", ".strtab", &table, &names) &&
	    !tables(object, ".dynsym", ".dynstr", &table, &names))
		return;
	size_t count = bytes_left(&table) / sizeof(Elf64_Sym);
	for (size_t i = 0; i < count && i < SYMBOLS_MAX; i++) {
		Elf64_Sym symbol;
		memcpy(&symbol, table.start + i * sizeof(symbol), sizeof(symbol));
		if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= bytes_left(&names))
			continue;
		each(context, (const char *)names.start + symbol.st_name,
		     &(struct object_symbol){
			     .addr = symbol.st_value,
			     .size = symbol.st_size,
			     .type = symbol.st_info & TYPE_MASK,
		     });
	}
}
