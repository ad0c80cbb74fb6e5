/* SPDX-License-Identifier: Apache-2.0 */
/* PLT stubs of x86-64, known by what they do rather than by their layout, of which there are many.
 */
#include "symbolize/plt.h"

#include <elf.h>
#include <string.h>

#include "base/array.h"

/* A slot that the dynamic linker fills with the address of a function. */
struct slot {
	uint64_t addr;
	uint64_t resolver; /* the function that picks the function; 0: it is known by name */
	uint32_t name;     /* offset in .dynstr; 0: unknown */
};

struct slots {
	struct slot *slot;
	size_t count, room;
	size_t lazy; /* the first so many are those of .rela.plt in its order, until sorted */
	uint32_t *lazy_name;
};

static void slots_deinit(struct slots *slots)
{
	free(slots->slot);
	free(slots->lazy_name);
}

/* st_name of dynamic symbol INDEX; 0: it has no name. */
static uint32_t symbol_name(const struct bytes *symbols, uint64_t index)
{
	struct bytes b = *symbols;
	uint32_t name = 0;

	if (index > SYMTAB_MAX)
		return 0;
	struct error *err = bytes_seek(&b, index * sizeof(Elf64_Sym));
	if (!err)
		err = bytes_u32(&b, &name);
	error_free(err); // damaged: a stub without a name
	return name;
}

static struct error *read_slots(struct object *object, const char *section,
				const struct bytes *symbols, struct slots *slots)
{
	struct bytes b;

	if (!object_section(object, section, &b, NULL))
		return NULL;
	while (bytes_left(&b) >= sizeof(Elf64_Rela) && slots->count < PLT_SLOTS_MAX) {
		struct slot slot = {0};
		uint64_t info, addend;
		TRY(bytes_u64(&b, &slot.addr));
		TRY(bytes_u64(&b, &info));
		TRY(bytes_u64(&b, &addend));
		uint32_t type = ELF64_R_TYPE(info);
		bool lazy = !strcmp(section, ".rela.plt");
		if (type == R_X86_64_IRELATIVE)
			slot.resolver = addend;
		else if (!lazy && type != R_X86_64_GLOB_DAT && type != R_X86_64_JUMP_SLOT)
			continue;
		else
			slot.name = symbol_name(symbols, ELF64_R_SYM(info));
		TRY(ARRAY_RESERVE(slots->slot, slots->room, slots->count, 1, PLT_SLOTS_MAX,
				  "PLT slots"));
		slots->slot[slots->count++] = slot;
	}
	return NULL;
}

static int compare_resolver(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->resolver < y->resolver ? -1 : x->resolver > y->resolver;
}

/* Slots are sorted by resolver: give those of the resolver at ADDR a name. */
static void name_resolver(struct slots *slots, uint64_t addr, uint32_t name)
{
	size_t low = 0, high = slots->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (slots->slot[middle].resolver < addr)
			low = middle + 1;
		else
			high = middle;
	}
	// The first name stays, so that no entry is written to twice for nothing.
	for (; low < slots->count && slots->slot[low].resolver == addr && !slots->slot[low].name;
	     low++)
		slots->slot[low].name = name;
}

/*
 * A library's calls of its own indirect functions (libc's of memcpy) have no symbol in their
 * relocation, only the address of the resolver; the symbol with that address has the name.
 */
static struct error *name_resolvers(struct slots *slots, const struct bytes *symbols)
{
	struct bytes b = *symbols;

	qsort(slots->slot, slots->count, sizeof(*slots->slot), compare_resolver);
	if (!slots->slot[slots->count - 1].resolver)
		return NULL;
	for (size_t i = 0; i < SYMTAB_MAX && bytes_left(&b) >= sizeof(Elf64_Sym); i++) {
		uint32_t name;
		uint8_t info;
		uint64_t addr;
		TRY(bytes_u32(&b, &name));
		TRY(bytes_u8(&b, &info));
		TRY(bytes_skip(&b, 3)); // visibility, section
		TRY(bytes_u64(&b, &addr));
		TRY(bytes_skip(&b, 8)); // size
		if (ELF64_ST_TYPE(info) == STT_GNU_IFUNC && addr)
			name_resolver(slots, addr, name);
	}
	return NULL;
}

static int compare_slot(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static struct error *collect_slots(struct object *object, struct slots *slots)
{
	struct bytes symbols;

	if (!object_section(object, ".dynsym", &symbols, NULL))
		return NULL;
	TRY(read_slots(object, ".rela.plt", &symbols, slots));
	slots->lazy = slots->count;
	slots->lazy_name = calloc(slots->lazy + 1, sizeof(*slots->lazy_name));
	if (!slots->lazy_name)
		return error_oom();
	for (size_t i = 0; i < slots->lazy; i++)
		slots->lazy_name[i] = slots->slot[i].name;
	TRY(read_slots(object, ".rela.dyn", &symbols, slots));
	if (!slots->count)
		return NULL;
	TRY(name_resolvers(slots, &symbols));
	qsort(slots->slot, slots->count, sizeof(*slots->slot), compare_slot);
	return NULL;
}

/* The name of the function whose address is in the slot at ADDR; 0: unknown. */
static uint32_t name_of_slot(const struct slots *slots, uint64_t addr)
{
	struct slot key = {.addr = addr};
	const struct slot *found =
		slots->count ? bsearch(&key, slots->slot, slots->count, sizeof(key), compare_slot)
			     : NULL;

	return found ? found->name : 0;
}

static uint32_t little_u32(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/*
 * The name that the stub of SIZE bytes at CODE (address ADDR) stands for; 0: unknown. Stubs are
 *   [endbr64] [bnd] jmp *slot(%rip) ...
 *   [endbr64] push $index; [bnd] jmp first stub      (the lazy half of an IBT stub)
 */
static uint32_t name_of_stub(const struct slots *slots, const uint8_t *code, size_t size,
			     uint64_t addr)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	size_t at = size >= 4 && !memcmp(code, endbr64, 4) ? 4 : 0;

	if (at + 5 <= size && code[at] == 0x68) {
		uint32_t index = little_u32(code + at + 1);
		return index < slots->lazy ? slots->lazy_name[index] : 0;
	}
	if (at < size && code[at] == 0xf2) // bnd
		at++;
	if (at + 6 > size || code[at] != 0xff || code[at + 1] != 0x25)
		return 0;
	int32_t distance = (int32_t)little_u32(code + at + 2);
	return name_of_slot(slots, addr + at + 6 + (uint64_t)(int64_t)distance);
}

static struct error *add_section(struct symtab *symtab, struct object *object, const char *section,
				 const struct slots *slots, size_t source)
{
	uint64_t addr;
	struct bytes b;

	if (!object_section(object, section, &b, &addr))
		return NULL;
	// Stubs of .plt.got are 8 bytes, but 16 where they begin with endbr64.
	size_t step = !strcmp(section, ".plt.got") && bytes_left(&b) && b.at[0] == 0xff ? 8 : 16;
	for (size_t offset = 0; bytes_left(&b) >= offset + step; offset += step) {
		uint32_t name = name_of_stub(slots, b.at + offset, step, addr + offset);
		if (name)
			TRY(symtab_add_made(symtab, addr + offset, (uint32_t)step, source, name));
	}
	return NULL;
}

struct error *plt_add(struct symtab *symtab, struct object *object)
{
	static const char *const sections[] = {".plt", ".plt.sec", ".plt.got", ".plt.bnd"};
	_cleanup_(slots_deinit) struct slots slots = {0};
	size_t source;

	if (object_machine(object) != EM_X86_64 || !object_is_64(object))
		return NULL;
	TRY(collect_slots(object, &slots));
	if (!slots.count)
		return NULL;
	TRY(symtab_add_source(symtab, object, ".dynstr", "@plt", &source));
	for (size_t i = 0; i < ARRAY_COUNT(sections); i++)
		TRY(add_section(symtab, object, sections[i], &slots, source));
	return NULL;
}
