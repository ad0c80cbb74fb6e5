/* SPDX-License-Identifier: Apache-2.0 */
/* Core files for tests, written field by field: as the kernel does it, or damaged on purpose. */
#pragma once

#include <assert.h>
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MADE_NOTES = 64 << 20, MADE_LOADS = 1 << 20, MADE_STATUS = 336, MADE_PAGE = 4096 };

struct made_core {
	uint8_t *notes; /* room for MADE_NOTES, touched as far as it is used */
	size_t notes_size;
	Elf64_Phdr *load; /* room for MADE_LOADS */
	size_t loads;
	uint16_t machine, type;
	uint8_t class, order;
	bool long_count;  /* as if the program headers were too many for the ELF header */
	bool sparse;      /* write no memory: it is all holes */
	uint64_t data_at; /* set at the end: where memory begins in the file */
};

static inline void *made_room(size_t size)
{
	void *room = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert(room != MAP_FAILED);
	return room;
}

static inline void made_core_init(struct made_core *m)
{
	*m = (struct made_core){
		.machine = EM_X86_64, .type = ET_CORE, .class = ELFCLASS64, .order = ELFDATA2LSB};
	m->notes = made_room(MADE_NOTES);
	m->load = made_room(MADE_LOADS * sizeof(Elf64_Phdr));
}

static inline void made_core_deinit(struct made_core *m)
{
	munmap(m->notes, MADE_NOTES);
	munmap(m->load, MADE_LOADS * sizeof(Elf64_Phdr));
}

static inline void made_core_note(struct made_core *m, uint32_t type, const void *data, size_t size)
{
	const uint32_t head[3] = {5, (uint32_t)size, type};

	assert(m->notes_size + size + 32 <= MADE_NOTES);
	memcpy(m->notes + m->notes_size, head, sizeof(head));
	memcpy(m->notes + m->notes_size + sizeof(head), "CORE", 5);
	m->notes_size += sizeof(head) + 8;
	memcpy(m->notes + m->notes_size, data, size);
	m->notes_size += (size + 3) & ~3ull;
}

/* A thread whose register number i, in the kernel's order, is TID * 256 + i. */
static inline void made_core_thread(struct made_core *m, uint32_t tid, uint16_t signal)
{
	uint8_t status[MADE_STATUS] = {0};

	memcpy(status + 12, &signal, sizeof(signal));
	memcpy(status + 32, &tid, sizeof(tid));
	for (uint64_t i = 0; i < 27; i++) {
		uint64_t value = tid * 256ull + i;
		memcpy(status + 112 + 8 * i, &value, sizeof(value));
	}
	made_core_note(m, NT_PRSTATUS, status, sizeof(status));
}

static inline void made_core_load(struct made_core *m, uint64_t addr, uint64_t mem_size,
				  uint64_t file_size, uint32_t flags)
{
	assert(m->loads < MADE_LOADS);
	m->load[m->loads++] = (Elf64_Phdr){.p_type = PT_LOAD,
					   .p_flags = flags,
					   .p_vaddr = addr,
					   .p_memsz = mem_size,
					   .p_filesz = file_size,
					   .p_align = MADE_PAGE};
}

struct made_row {
	uint64_t start, end, offset;
	const char *path;
};

static inline void made_core_files(struct made_core *m, const struct made_row *rows, size_t count)
{
	uint8_t *data = made_room(MADE_NOTES), *at = data;
	uint64_t head[2] = {count, MADE_PAGE};

	memcpy(at, head, sizeof(head));
	at += sizeof(head);
	for (size_t i = 0; i < count; i++, at += 24) {
		uint64_t row[3] = {rows[i].start, rows[i].end, rows[i].offset / MADE_PAGE};
		memcpy(at, row, sizeof(row));
	}
	for (size_t i = 0; i < count; i++) {
		size_t size = strlen(rows[i].path) + 1;
		assert((size_t)(at - data) + size < MADE_NOTES / 2);
		memcpy(at, rows[i].path, size);
		at += size;
	}
	made_core_note(m, NT_FILE, data, (size_t)(at - data));
	munmap(data, MADE_NOTES);
}

static inline void made_core_auxv(struct made_core *m, uint64_t headers, uint64_t entry,
				  uint64_t vdso)
{
	const uint64_t pairs[] = {AT_PHDR,         headers, AT_ENTRY, entry,
				  AT_SYSINFO_EHDR, vdso,    AT_NULL,  0};

	made_core_note(m, NT_AUXV, pairs, sizeof(pairs));
}

/* The byte that made memory holds at ADDR. */
static inline uint8_t made_byte(uint64_t addr)
{
	return (uint8_t)(addr * 13 + (addr >> 12));
}

static inline void made_write(int fd, const void *data, size_t size, uint64_t offset)
{
	ssize_t put = pwrite(fd, data, size, (off_t)offset);

	assert(put == (ssize_t)size);
	(void)put;
}

static inline void made_write_memory(const struct made_core *m, int fd)
{
	uint8_t page[MADE_PAGE];

	for (size_t i = 0; i < m->loads; i++)
		for (uint64_t at = 0; at < m->load[i].p_filesz; at += MADE_PAGE) {
			for (size_t k = 0; k < MADE_PAGE; k++)
				page[k] = made_byte(m->load[i].p_vaddr + at + k);
			made_write(fd, page, MADE_PAGE, m->load[i].p_offset + at);
		}
}

/* Write it into a file that lives in memory; the caller closes it. */
static inline int made_core_finish(struct made_core *m)
{
	int fd = memfd_create("core", MFD_CLOEXEC);
	size_t count = m->loads + 1;
	uint64_t notes_at = sizeof(Elf64_Ehdr) + count * sizeof(Elf64_Phdr);
	Elf64_Ehdr header = {.e_type = m->type,
			     .e_machine = m->machine,
			     .e_version = EV_CURRENT,
			     .e_phoff = sizeof(header),
			     .e_ehsize = sizeof(header),
			     .e_phentsize = sizeof(Elf64_Phdr),
			     .e_phnum = (uint16_t)(m->long_count ? PN_XNUM : count)};
	Elf64_Phdr notes = {.p_type = PT_NOTE, .p_offset = notes_at, .p_filesz = m->notes_size};

	assert(fd >= 0);
	memcpy(header.e_ident, ELFMAG, SELFMAG);
	header.e_ident[EI_CLASS] = m->class;
	header.e_ident[EI_DATA] = m->order;
	header.e_ident[EI_VERSION] = EV_CURRENT;
	uint64_t at = (notes_at + m->notes_size + MADE_PAGE - 1) & ~(uint64_t)(MADE_PAGE - 1);
	m->data_at = at;
	for (size_t i = 0; i < m->loads; i++) {
		m->load[i].p_offset = at;
		at += m->load[i].p_filesz;
	}
	if (m->long_count) {
		Elf64_Shdr section = {.sh_info = (uint32_t)count};
		header.e_shoff = at;
		header.e_shnum = 1;
		made_write(fd, &section, sizeof(section), at);
		at += sizeof(section);
	}
	int cut = ftruncate(fd, (off_t)at);
	assert(!cut);
	(void)cut;
	made_write(fd, &header, sizeof(header), 0);
	made_write(fd, &notes, sizeof(notes), sizeof(header));
	if (m->loads)
		made_write(fd, m->load, m->loads * sizeof(Elf64_Phdr),
			   sizeof(header) + sizeof(notes));
	made_write(fd, m->notes, m->notes_size, notes_at);
	if (!m->sparse)
		made_write_memory(m, fd);
	return fd;
}
