/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that say in their file what they were built of. Go has since 1.18 in ".go.buildinfo"
 * (debug/buildinfo of Go 1.18): 32 bytes, of which the first 14 are a mark and bit 1 of the 16th
 * says that two texts follow, each behind its length: the version, and lines of "path\tPACKAGE",
 * "mod\t..." between 16 bytes on either side.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/str.h"
#include "identity/rules.h"

enum {
	SECTIONS_MAX = 512,
	NAMES_MAX = 64 << 10,
	BUILD_INFO_MAX = 256 << 10,
	GO_HEADER = 32,
	GO_FLAGS = 15,
	GO_INLINE = 2,
	GO_SENTINEL = 16,
};

/* Exactly SIZE bytes at OFFSET of FD; RET is NULL when they are not there. */
static struct error *read_at(int fd, uint64_t offset, size_t size, void **ret)
{
	_cleanup_free_ char *data = malloc(size + 1);

	if (!data)
		return error_oom();
	*ret = NULL;
	if (offset > INT64_MAX || pread(fd, data, size, (off_t)offset) != (ssize_t)size)
		return NULL;
	data[size] = 0;
	*ret = take(data);
	return NULL;
}

/* The bytes of section NAME of the 64-bit ELF file FD; RET is NULL without. */
static struct error *read_section(int fd, const char *name, void **ret, size_t *ret_size)
{
	_cleanup_free_ void *table = NULL;
	_cleanup_free_ void *names = NULL;
	Elf64_Ehdr header;

	*ret = NULL;
	if (pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum > SECTIONS_MAX ||
	    header.e_shstrndx >= header.e_shnum)
		return NULL;
	TRY(read_at(fd, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr), &table));
	if (!table)
		return NULL;
	const Elf64_Shdr *section = table, *strings = &section[header.e_shstrndx];
	size_t size = strings->sh_size < NAMES_MAX ? strings->sh_size : NAMES_MAX;
	TRY(read_at(fd, strings->sh_offset, size, &names));
	for (size_t i = 0; names && i < header.e_shnum; i++) {
		if (section[i].sh_name >= size || section[i].sh_type == SHT_NOBITS ||
		    strcmp((const char *)names + section[i].sh_name, name) != 0)
			continue;
		*ret_size =
			section[i].sh_size < BUILD_INFO_MAX ? section[i].sh_size : BUILD_INFO_MAX;
		return read_at(fd, section[i].sh_offset, *ret_size, ret);
	}
	return NULL;
}

/* The package in the lines of TEXT, which are SIZE bytes; RET is NULL without. */
static struct error *find_package(const char *text, size_t size, char **ret)
{
	_cleanup_free_ char *lines = strndup(text, size);

	if (!lines)
		return error_oom();
	for (char *rest = lines, *line; (line = strsep(&rest, "\n"));)
		if (str_starts(line, "path\t") && line[strlen("path\t")])
			return str_format(ret, "go: %s", line + strlen("path\t"));
	return NULL;
}

struct error *rule_go(const struct application_options *options, const struct program *program,
		      char **ret)
{
	static const char mark[] = "\xff Go buildinf:";
	_cleanup_free_ void *data = NULL;
	struct bytes version, lines;
	uint64_t length;
	char path[32];
	size_t size = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", program->pid);
	_cleanup_close_ int fd = program->pid ? open(path, O_RDONLY | O_CLOEXEC)
					      : open(program->exe, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	TRY(read_section(fd, ".go.buildinfo", &data, &size));
	if (!data || size < GO_HEADER || memcmp(data, mark, sizeof(mark) - 1) != 0 ||
	    !(((const char *)data)[GO_FLAGS] & GO_INLINE))
		return NULL;
	struct bytes bytes = bytes_over(data, size, ".go.buildinfo");
	TRY(bytes_skip(&bytes, GO_HEADER));
	TRY(bytes_uleb(&bytes, &length));
	TRY(bytes_cut(&bytes, length, &version));
	TRY(bytes_uleb(&bytes, &length));
	TRY(bytes_cut(&bytes, length, &lines));
	if (length < 2 * GO_SENTINEL)
		return NULL;
	return find_package((const char *)lines.at + GO_SENTINEL, length - 2 * GO_SENTINEL, ret);
}
