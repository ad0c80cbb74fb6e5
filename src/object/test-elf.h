/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small ELF files for tests, made in memory: sections where a test wants them, at file offsets
 * equal to their addresses, with headers in front and the section table behind.
 */
#pragma once

#include <assert.h>
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MADE_SECTIONS = 16, MADE_SEGMENTS = 8, MADE_ROOM = 1 << 16 };

/* Bytes being written. */
struct writer {
	uint8_t data[4096];
	size_t size;
};

static inline void put(struct writer *w, uint64_t value, unsigned width)
{
	assert(w->size + width <= sizeof(w->data));
	for (unsigned i = 0; i < width; i++)
		w->data[w->size++] = (uint8_t)(value >> (8 * i));
}

static inline void put_bytes(struct writer *w, const void *data, size_t size)
{
	assert(w->size + size <= sizeof(w->data));
	memcpy(w->data + w->size, data, size);
	w->size += size;
}

static inline void put_text(struct writer *w, const char *text)
{
	put_bytes(w, text, strlen(text) + 1);
}

/* Overwrite a number that was written before. */
static inline void set_at(struct writer *w, size_t at, uint64_t value, unsigned width)
{
	assert(at + width <= w->size);
	for (unsigned i = 0; i < width; i++)
		w->data[at + i] = (uint8_t)(value >> (8 * i));
}

struct made {
	uint8_t *data; /* MADE_ROOM bytes */
	size_t size;
	Elf64_Shdr sections[MADE_SECTIONS];
	Elf64_Phdr segments[MADE_SEGMENTS];
	uint16_t section_count, segment_count;
	struct writer names;
	uint64_t entry;
	bool no_sections; /* as after sstrip */
};

static inline void made_deinit(struct made *m)
{
	free(m->data);
}

static inline void made_init(struct made *m)
{
	*m = (struct made){.section_count = 1};
	m->data = calloc(1, MADE_ROOM);
	assert(m->data);
	put(&m->names, 0, 1);
}

/* Put SIZE bytes at OFFSET, which is the address too if FLAGS have SHF_ALLOC. */
static inline Elf64_Shdr *made_section(struct made *m, const char *name, uint64_t offset,
				       const void *data, size_t size)
{
	Elf64_Shdr *section = &m->sections[m->section_count++];

	assert(m->section_count < MADE_SECTIONS && offset + size <= MADE_ROOM);
	*section = (Elf64_Shdr){.sh_name = (uint32_t)m->names.size,
				.sh_type = SHT_PROGBITS,
				.sh_flags = SHF_ALLOC,
				.sh_addr = offset,
				.sh_offset = offset,
				.sh_size = size,
				.sh_addralign = 1};
	put_text(&m->names, name);
	if (size)
		memcpy(m->data + offset, data, size);
	if (offset + size > m->size)
		m->size = offset + size;
	return section;
}

static inline void made_segment(struct made *m, uint32_t type, uint32_t flags, uint64_t offset,
				uint64_t size)
{
	assert(m->segment_count < MADE_SEGMENTS);
	m->segments[m->segment_count++] = (Elf64_Phdr){.p_type = type,
						       .p_flags = flags,
						       .p_offset = offset,
						       .p_vaddr = offset,
						       .p_paddr = offset,
						       .p_filesz = size,
						       .p_memsz = size,
						       .p_align = 4096};
	if (offset + size > m->size)
		m->size = offset + size;
}

/* Write the headers. Sections and segments are complete. */
static inline void made_finish(struct made *m)
{
	Elf64_Ehdr header = {.e_type = ET_DYN,
			     .e_machine = EM_X86_64,
			     .e_version = EV_CURRENT,
			     .e_entry = m->entry,
			     .e_phoff = sizeof(header),
			     .e_ehsize = sizeof(header),
			     .e_phentsize = sizeof(Elf64_Phdr),
			     .e_phnum = m->segment_count,
			     .e_shentsize = sizeof(Elf64_Shdr)};

	memcpy(header.e_ident, ELFMAG, SELFMAG);
	header.e_ident[EI_CLASS] = ELFCLASS64;
	header.e_ident[EI_DATA] = ELFDATA2LSB;
	header.e_ident[EI_VERSION] = EV_CURRENT;
	if (!m->no_sections) {
		Elf64_Shdr *names = made_section(m, ".shstrtab", m->size, "", 0);
		names->sh_type = SHT_STRTAB;
		names->sh_flags = 0;
		names->sh_addr = 0;
		names->sh_size = m->names.size;
		memcpy(m->data + m->size, m->names.data, m->names.size);
		m->size = (m->size + m->names.size + 7) & ~7ul;
		header.e_shoff = m->size;
		header.e_shnum = m->section_count;
		header.e_shstrndx = m->section_count - 1;
		memcpy(m->data + m->size, m->sections, m->section_count * sizeof(m->sections[0]));
		m->size += m->section_count * sizeof(m->sections[0]);
	}
	memcpy(m->data, &header, sizeof(header));
	memcpy(m->data + sizeof(header), m->segments, m->segment_count * sizeof(m->segments[0]));
}

/* Call frame information being written. */
struct cfi_make {
	struct writer out;
	uint64_t addr; /* of the section */
	bool eh;
	bool wide;  /* DWARF64 */
	size_t cie; /* offset of the CIE that FDEs belong to: the last one made */
	size_t length_at, body_at;
};

/* Begin a record; its length is set by cfi_make_end(). */
static inline void cfi_make_begin(struct cfi_make *c)
{
	c->length_at = c->out.size;
	put(&c->out, c->wide ? UINT32_MAX : 0, 4);
	if (c->wide)
		put(&c->out, 0, 8);
	c->body_at = c->out.size;
}

static inline void cfi_make_end(struct cfi_make *c)
{
	size_t size = c->out.size - c->body_at;

	if (c->wide)
		set_at(&c->out, c->length_at + 4, size, 8);
	else
		set_at(&c->out, c->length_at, size, 4);
}

/* What stands before a CIE's augmentation data; the caller ends the record. */
static inline void cfi_make_cie(struct cfi_make *c, uint8_t version, const char *letters)
{
	c->cie = c->out.size;
	cfi_make_begin(c);
	if (c->eh)
		put(&c->out, 0, 4);
	else
		put(&c->out, UINT64_MAX, c->wide ? 8 : 4);
	put(&c->out, version, 1);
	put_text(&c->out, letters);
	if (version == 4) {
		put(&c->out, 8, 1);
		put(&c->out, 0, 1);
	}
	put(&c->out, 1, 1);    /* code alignment */
	put(&c->out, 0x78, 1); /* data alignment: -8 */
	put(&c->out, 16, 1);   /* return address column */
}

/* CFA = rsp + 8, return address at CFA - 8: as on entry to every function. */
static inline void cfi_make_entry_state(struct cfi_make *c)
{
	static const uint8_t code[] = {0x0c, 7, 8, 0x80 | 16, 1};

	put_bytes(&c->out, code, sizeof(code));
}

/* A CIE as gcc writes it ("zR", addresses relative, 4 bytes); "" in .debug_frame. */
static inline void cfi_make_usual_cie(struct cfi_make *c)
{
	cfi_make_cie(c, c->eh ? 1 : 4, c->eh ? "zR" : "");
	if (c->eh) {
		put(&c->out, 1, 1);
		put(&c->out, 0x1b, 1);
	}
	cfi_make_entry_state(c);
	cfi_make_end(c);
}

/* An FDE for [START, START + SIZE) with a program. */
static inline void cfi_make_fde(struct cfi_make *c, uint64_t start, uint32_t size,
				const char *program, size_t program_size)
{
	cfi_make_begin(c);
	size_t id_at = c->out.size;
	put(&c->out, c->eh ? id_at - c->cie : c->cie, c->wide && !c->eh ? 8 : 4);
	if (c->eh) {
		put(&c->out, start - (c->addr + c->out.size), 4);
		put(&c->out, size, 4);
		put(&c->out, 0, 1);
	} else {
		put(&c->out, start, 8);
		put(&c->out, size, 8);
	}
	put_bytes(&c->out, program, program_size);
	cfi_make_end(c);
}

enum { MAKE_TEXT = 0x1000, MAKE_TEXT_SIZE = 0x1000, MAKE_FRAMES = 0x2000 };

/*
 * A shared object: text from MAKE_TEXT on, FRAMES in .eh_frame at MAKE_FRAMES (made for that
 * address), a build id.
 */
static inline void made_usual(struct made *m, const struct writer *frames)
{
	static const uint8_t note[] = {4,   0,   0,   0, 8, 0, 0, 0, 3, 0, 0, 0,
				       'G', 'N', 'U', 0, 1, 2, 3, 4, 5, 6, 7, 8};
	uint8_t text[MAKE_TEXT_SIZE];

	memset(text, 0x90, sizeof(text));
	made_init(m);
	made_section(m, ".note.gnu.build-id", 0x400, note, sizeof(note))->sh_type = SHT_NOTE;
	made_section(m, ".text", MAKE_TEXT, text, sizeof(text))->sh_flags |= SHF_EXECINSTR;
	made_section(m, ".eh_frame", MAKE_FRAMES, frames->data, frames->size);
	made_segment(m, PT_LOAD, PF_R | PF_X, 0, MAKE_TEXT + MAKE_TEXT_SIZE);
	made_segment(m, PT_LOAD, PF_R, MAKE_FRAMES, frames->size);
	made_segment(m, PT_NOTE, PF_R, 0x400, sizeof(note));
}
