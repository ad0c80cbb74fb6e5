/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest Go program for tests: an ELF file with five functions, their pclntab in one of the
 * known forms and a moduledata; no sections. It cannot run.
 *
 *   main.leaf      16 bytes, no frame
 *   main.framed    a frame of 24 bytes, its frame pointer saved in the form's way; line 20, but for
 *                  8 bytes of main.inner (line 7) inlined at line 21
 *   runtime.goexit, runtime.sigreturn, runtime.mcall
 */
#pragma once

#include <elf.h>
#include <string.h>

#include "object/go-table.h"

enum {
	TINY_TEXT = 0x401000,
	TINY_TEXT_OFFSET = 0x100,
	TINY_TEXT_SIZE = 0xa0,
	TINY_DATA = 0x402000,
	TINY_DATA_OFFSET = 0x1a0,
	TINY_SIZE_MAX = 2048,
	TINY_FUNCTIONS = 5,
	TINY_LEAF = TINY_TEXT,
	TINY_FRAMED = TINY_TEXT + 0x20,
	TINY_GOEXIT = TINY_TEXT + 0x60,
	TINY_SIGRETURN = TINY_TEXT + 0x70,
	TINY_MCALL = TINY_TEXT + 0x80,
	TINY_END = TINY_TEXT + TINY_TEXT_SIZE,
};

struct tiny {
	uint8_t data[TINY_SIZE_MAX];
	size_t size;
	size_t table, functions; /* offsets in data */
};

static void tiny_put(struct tiny *t, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		t->data[t->size++] = (uint8_t)(value >> 8 * i);
}

static void tiny_set(struct tiny *t, size_t at, uint64_t value, size_t size)
{
	size_t end = t->size;

	t->size = at;
	tiny_put(t, value, size);
	t->size = end;
}

static void tiny_align(struct tiny *t)
{
	while (t->size % 8)
		t->data[t->size++] = 0;
}

static uint64_t tiny_addr(const struct tiny *t)
{
	return TINY_DATA + t->size - TINY_DATA_OFFSET;
}

/* A string; returns its offset from BASE. */
static uint32_t tiny_text(struct tiny *t, size_t base, const char *text)
{
	uint32_t offset = (uint32_t)(t->size - base);

	memcpy(t->data + t->size, text, strlen(text) + 1);
	t->size += strlen(text) + 1;
	return offset;
}

struct tiny_step {
	int32_t value;
	uint32_t size; /* 0: the end */
};

/* A pc-value table; returns its offset from BASE. */
static uint32_t tiny_steps(struct tiny *t, size_t base, const struct tiny_step *step)
{
	uint32_t offset = (uint32_t)(t->size - base);
	int32_t value = -1;

	for (; step->size; step++) {
		int32_t change = step->value - value;
		tiny_put(t, change < 0 ? (uint32_t)(-change * 2 - 1) : (uint32_t)change * 2, 1);
		tiny_put(t, step->size, 1);
		value = step->value;
	}
	tiny_put(t, 0, 1);
	return offset;
}

static void tiny_elf(struct tiny *t)
{
	Elf64_Ehdr header = {.e_type = ET_EXEC,
			     .e_machine = EM_X86_64,
			     .e_version = EV_CURRENT,
			     .e_phoff = sizeof(header),
			     .e_ehsize = sizeof(header),
			     .e_phentsize = sizeof(Elf64_Phdr),
			     .e_phnum = 2};
	Elf64_Phdr text = {.p_type = PT_LOAD,
			   .p_flags = PF_R | PF_X,
			   .p_offset = TINY_TEXT_OFFSET,
			   .p_vaddr = TINY_TEXT,
			   .p_filesz = TINY_TEXT_SIZE,
			   .p_memsz = TINY_TEXT_SIZE};
	Elf64_Phdr data = {.p_type = PT_LOAD,
			   .p_flags = PF_R | PF_W,
			   .p_offset = TINY_DATA_OFFSET,
			   .p_vaddr = TINY_DATA,
			   .p_filesz = t->size - TINY_DATA_OFFSET,
			   .p_memsz = t->size - TINY_DATA_OFFSET};

	memcpy(header.e_ident, ELFMAG, SELFMAG);
	header.e_ident[EI_CLASS] = ELFCLASS64;
	header.e_ident[EI_DATA] = ELFDATA2LSB;
	header.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(t->data, &header, sizeof(header));
	memcpy(t->data + sizeof(header), &text, sizeof(text));
	memcpy(t->data + sizeof(header) + sizeof(text), &data, sizeof(data));
}

/* The code; bytes that matter to nobody are int3. */
static void tiny_code(struct tiny *t, enum go_form form)
{
	static const uint8_t pushed[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10};
	static const uint8_t popped[] = {0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3};
	static const uint8_t stored[] = {0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c,
					 0x24, 0x10, 0x48, 0x8d, 0x6c, 0x24, 0x10};
	static const uint8_t loaded[] = {0x48, 0x8b, 0x6c, 0x24, 0x10,
					 0x48, 0x83, 0xc4, 0x18, 0xc3};
	static const uint8_t switched[] = {0x49, 0x8b, 0x66, 0x38}; // mov 0x38(%r14),%rsp
	uint8_t *text = t->data + TINY_TEXT_OFFSET, *framed = text + TINY_FRAMED - TINY_TEXT;

	memset(text, 0xcc, TINY_TEXT_SIZE);
	if (form == GO_FORM_1_20) {
		memcpy(framed, pushed, sizeof(pushed));
		memcpy(framed + 0x40 - sizeof(popped), popped, sizeof(popped));
	} else {
		memcpy(framed, stored, sizeof(stored));
		memcpy(framed + 0x40 - sizeof(loaded), loaded, sizeof(loaded));
	}
	memcpy(text + TINY_MCALL - TINY_TEXT + 4, switched, sizeof(switched));
}

struct tiny_record {
	uint32_t name, sp, file, line, inline_values;
	uint8_t flags;
	uint32_t start_line;
	uint64_t inline_tree; /* address; 0: none */
};

/* A record and its funcdata; returns its offset from the functions. FUNC_DATA is the base. */
static uint32_t tiny_record(struct tiny *t, enum go_form form, uint64_t entry,
			    const struct tiny_record *r, uint64_t func_data)
{
	tiny_align(t);
	uint32_t offset = (uint32_t)(t->size - t->functions);
	bool wide = form == GO_FORM_1_16;

	tiny_put(t, wide ? entry : entry - TINY_TEXT, wide ? 8 : 4);
	tiny_put(t, r->name, 4);
	tiny_put(t, 0, 8); // args, deferreturn
	tiny_put(t, r->sp, 4);
	tiny_put(t, r->file, 4);
	tiny_put(t, r->line, 4);
	tiny_put(t, 3, 4); // pcdata
	tiny_put(t, 0, 4); // unit
	if (form == GO_FORM_1_20)
		tiny_put(t, r->start_line, 4);
	tiny_put(t, 0, 1); // funcID
	tiny_put(t, r->flags, 1);
	tiny_put(t, 0, 1);
	tiny_put(t, 4, 1); // funcdata
	tiny_put(t, 0, 8);
	tiny_put(t, r->inline_values, 4);
	if (wide)
		tiny_align(t);
	for (int i = 0; i < 4; i++) {
		bool tree = i == 3 && r->inline_tree;
		if (wide)
			tiny_put(t, tree ? r->inline_tree : 0, 8);
		else
			tiny_put(t, tree ? r->inline_tree - func_data : 0xffffffff, 4);
	}
	return offset;
}

/* The tree of one call of main.inner, whose name is at NAME. */
static uint64_t tiny_tree(struct tiny *t, enum go_form form, uint32_t name)
{
	tiny_align(t);
	uint64_t addr = tiny_addr(t);

	if (form == GO_FORM_1_20) {
		tiny_put(t, 0, 4);
		tiny_put(t, name, 4);
		tiny_put(t, 0x1e, 4); // an instruction of line 21
		tiny_put(t, 5, 4);
	} else {
		tiny_put(t, 0xffff, 4); // no parent
		tiny_put(t, 0, 4);
		tiny_put(t, 21, 4);
		tiny_put(t, name, 4);
		tiny_put(t, 0x1e, 4);
	}
	return addr;
}

static void tiny_module(struct tiny *t, enum go_form form, uint64_t names, uint64_t func_data)
{
	uint64_t word[41] = {[0] = TINY_DATA + t->table - TINY_DATA_OFFSET, [1] = names};

	tiny_align(t);
	word[20] = word[22] = TINY_TEXT;
	word[21] = word[23] = TINY_END;
	word[form == GO_FORM_1_18 ? 38 : 40] = func_data;
	for (int i = 0; i < 41; i++)
		tiny_put(t, word[i], 8);
}

static const uint64_t tiny_entries[TINY_FUNCTIONS + 1] = {TINY_LEAF,      TINY_FRAMED, TINY_GOEXIT,
							  TINY_SIGRETURN, TINY_MCALL,  TINY_END};

static void tiny_functions(struct tiny *t, enum go_form form, struct tiny_record *r,
			   uint64_t func_data)
{
	size_t word = form == GO_FORM_1_16 ? 8 : 4, entries = t->size;

	t->functions = t->size;
	t->size += word * (2 * TINY_FUNCTIONS + 1);
	for (int i = 0; i <= TINY_FUNCTIONS; i++) {
		uint64_t entry = tiny_entries[i];
		tiny_set(t, entries + 2 * i * word, word == 8 ? entry : entry - TINY_TEXT, word);
		if (i < TINY_FUNCTIONS)
			tiny_set(t, entries + (2 * i + 1) * word,
				 tiny_record(t, form, entry, &r[i], func_data), word);
	}
}

static void tiny_build(enum go_form form, struct tiny *t)
{
	static const uint32_t magics[] = {0xfffffffa, 0xfffffff0, 0xfffffff1};
	static const struct tiny_step flat[] = {{0, 0x10}, {0}}, two[] = {{0, 0x20}, {0}};
	static const struct tiny_step pushed[] = {{0, 1}, {8, 7}, {24, 0x36}, {8, 1}, {0, 1}, {0}};
	static const struct tiny_step stored[] = {{0, 4}, {24, 0x3b}, {0, 1}, {0}};
	static const struct tiny_step lines[] = {{20, 0x10}, {7, 8}, {21, 0x10}, {22, 0x18}, {0}};
	static const struct tiny_step file[] = {{0, 0x40}, {0}};
	static const struct tiny_step inlined[] = {{-1, 0x10}, {0, 8}, {-1, 0x28}, {0}};
	struct tiny_record r[TINY_FUNCTIONS] = {{.start_line = 3}, {.start_line = 19}};

	*t = (struct tiny){.size = TINY_DATA_OFFSET, .table = TINY_DATA_OFFSET};
	tiny_put(t, magics[form], 4);
	tiny_put(t, 0x08010000, 4);
	tiny_put(t, TINY_FUNCTIONS, 8);
	tiny_put(t, 1, 8);
	if (form != GO_FORM_1_16)
		tiny_put(t, 0, 8); // text start: the moduledata has it
	size_t offsets = t->size, at = t->size += 40;

	tiny_set(t, offsets, at - t->table, 8);
	tiny_text(t, at, "");
	r[0].name = tiny_text(t, at, "main.leaf");
	r[1].name = tiny_text(t, at, "main.framed");
	r[2].name = tiny_text(t, at, "runtime.goexit");
	r[3].name = tiny_text(t, at, "runtime.sigreturn");
	r[4].name = tiny_text(t, at, "runtime.mcall");
	uint32_t inner = tiny_text(t, at, "main.inner");
	uint64_t names = TINY_DATA + at - TINY_DATA_OFFSET;
	tiny_align(t);

	tiny_set(t, offsets + 8, t->size - t->table, 8);
	tiny_put(t, 0, 4);
	tiny_align(t);
	tiny_set(t, offsets + 16, t->size - t->table, 8);
	tiny_text(t, t->size, "/src/main.go");
	tiny_align(t);
	tiny_set(t, offsets + 24, at = t->size - t->table, 8);
	at += t->table;
	tiny_put(t, 0, 1);
	r[0].sp = r[2].sp = r[3].sp = tiny_steps(t, at, flat);
	r[4].sp = tiny_steps(t, at, two);
	r[1].sp = tiny_steps(t, at, form == GO_FORM_1_20 ? pushed : stored);
	r[1].line = tiny_steps(t, at, lines);
	r[1].file = tiny_steps(t, at, file);
	r[1].inline_values = tiny_steps(t, at, inlined);
	// Before 1.17 there are no flags; names decide.
	r[2].flags = form == GO_FORM_1_16 ? 0 : GO_FLAG_TOP_FRAME;
	uint64_t func_data = tiny_addr(t);
	r[1].inline_tree = tiny_tree(t, form, inner);
	tiny_align(t);
	tiny_set(t, offsets + 32, t->size - t->table, 8);
	tiny_functions(t, form, r, func_data);
	tiny_module(t, form, names, func_data);
	tiny_code(t, form);
	tiny_elf(t);
}
