/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a core: headers, segments, what is missing; and reading what the core itself holds. Notes
 * are in core-notes.c, mappings and mapped files in core-maps.c and core-files.c.
 */
#include "object/core-inside.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/str.h"
#include "object/unpack.h"

enum {
	HEADERS_AT_ONCE = 1024,
	HEADER_FIELDS = 16, /* e_type stands there */
};

/* --- bytes of the file */

/* Read up to SIZE bytes; fewer only at the end of the file. */
static struct error *read_some(const struct core *core, uint64_t offset, void *to, size_t size,
			       size_t *ret)
{
	uint8_t *at = to;
	size_t done = 0;

	while (done < size) {
		ssize_t got = pread(core->fd, at + done, size - done, (off_t)(offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_errno("read %s", core->name);
		if (got == 0)
			break;
		done += (size_t)got;
	}
	*ret = done;
	return NULL;
}

static bool in_block(const struct core *core, uint64_t offset, size_t size)
{
	uint64_t skip = offset - core->block_offset;

	return offset >= core->block_offset && skip <= core->block_size &&
	       size <= core->block_size - skip;
}

struct error *core_read_file(struct core *core, uint64_t offset, void *to, size_t size)
{
	uint64_t all = core->facts.size_bytes;
	size_t got;

	if (offset > all || size > all - offset)
		return error_new("%s: ends at byte 0x%" PRIx64 ", before what stands at 0x%" PRIx64,
				 core->name, all, offset);
	if (size > CORE_BLOCK) {
		TRY(read_some(core, offset, to, size, &got));
		return got == size ? NULL : error_new("%s: ends while it is read", core->name);
	}
	if (!in_block(core, offset, size)) {
		core->block_offset = offset;
		core->block_size = 0;
		TRY(read_some(core, offset, core->block, CORE_BLOCK, &core->block_size));
	}
	if (!in_block(core, offset, size))
		return error_new("%s: ends while it is read", core->name);
	memcpy(to, core->block + (offset - core->block_offset), size);
	return NULL;
}

struct error *core_remark(struct core *core, const char *format, ...)
{
	char *text = NULL;
	va_list args;

	if (core->remark_count == CORE_REMARKS_MAX)
		return NULL;
	va_start(args, format);
	int length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		return error_oom();
	core->remark[core->remark_count++] = text;
	return NULL;
}

/* --- headers */

/* The common name of an ELF machine; NULL for a rare one. */
static const char *machine_name(unsigned machine)
{
	static const struct {
		unsigned machine;
		const char *name;
	} names[] = {
		{EM_386, "i386"},
		{EM_AARCH64, "aarch64"},
		{EM_ARM, "arm"},
		{EM_PPC64, "ppc64"},
		{EM_PPC, "ppc"},
		{EM_S390, "s390"},
		{EM_RISCV, "riscv"},
		{EM_MIPS, "mips"},
		{EM_SPARCV9, "sparc64"},
		{EM_IA_64, "ia64"},
		{EM_LOONGARCH, "loongarch"},
		{EM_ALPHA, "alpha"},
		{EM_PARISC, "parisc"},
		{EM_SH, "sh"},
	};

	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (names[i].machine == machine)
			return names[i].name;
	return NULL;
}

static struct error *refuse_machine(const struct core *core, unsigned machine, bool is_64)
{
	const char *name = machine_name(machine);

	if (machine == EM_X86_64 && !is_64)
		name = "x32";
	if (name)
		return error_new("%s: the core of an %s program; only x86-64 is read", core->name,
				 name);
	return error_new("%s: the core of a program for ELF machine %u; only x86-64 is read",
			 core->name, machine);
}

static struct error *check_ident(const struct core *core, const uint8_t *ident, size_t size)
{
	if (size >= SELFMAG && !memcmp(ident, ELFMAG, SELFMAG))
		return NULL;
	if (!size)
		return error_new("%s: is empty", core->name);
	return error_new("%s: not a core file", core->name);
}

static struct error *check_kind(const struct core *core, const uint8_t *ident, unsigned type,
				unsigned machine)
{
	if (type != ET_CORE)
		return error_new("%s: an ELF file, and not a core", core->name);
	if (ident[EI_DATA] != ELFDATA2LSB || ident[EI_CLASS] != ELFCLASS64 || machine != EM_X86_64)
		return refuse_machine(core, machine, ident[EI_CLASS] == ELFCLASS64);
	return NULL;
}

/*
 * The number of program headers where the ELF header has no room for it. It stands in section 0,
 * which the kernel writes at the very end: a core that was cut has lost it. The notes, which the
 * first program header names, then tell where the program headers end.
 */
static struct error *read_long_count(struct core *core, uint64_t section_table)
{
	uint8_t data[sizeof(Elf64_Shdr)];
	uint64_t notes;

	struct error *err = core_read_file(core, section_table, data, sizeof(data));
	if (!err) {
		struct bytes b = bytes_over(data, sizeof(data), core->name);
		TRY(bytes_seek(&b, offsetof(Elf64_Shdr, sh_info)));
		return bytes_u32(&b, &core->program_count);
	}
	error_free(err); // it was cut: the other way
	TRY(core_read_file(core, core->program_table, data, sizeof(Elf64_Phdr)));
	struct bytes b = bytes_over(data, sizeof(Elf64_Phdr), core->name);
	TRY(bytes_seek(&b, offsetof(Elf64_Phdr, p_offset)));
	TRY(bytes_u64(&b, &notes));
	uint64_t count = notes > core->program_table
				 ? (notes - core->program_table) / sizeof(Elf64_Phdr)
				 : 0;
	core->program_count = count < MAPS_MAX ? (uint32_t)count : MAPS_MAX;
	return NULL;
}

static struct error *read_header(struct core *core)
{
	uint8_t data[sizeof(Elf64_Ehdr)] = {0};
	uint16_t type, machine, entry_size, count;
	uint64_t sections;
	size_t got;

	TRY(read_some(core, 0, data, sizeof(data), &got));
	TRY(check_ident(core, data, got));
	// Up to e_machine the two classes and byte orders are alike enough to say what it is.
	struct bytes b = bytes_over(data, got, core->name);
	b.big_endian = got > EI_DATA && data[EI_DATA] == ELFDATA2MSB;
	TRY(bytes_seek(&b, HEADER_FIELDS));
	TRY(bytes_u16(&b, &type));
	TRY(bytes_u16(&b, &machine));
	TRY(check_kind(core, data, type, machine));

	TRY(bytes_seek(&b, offsetof(Elf64_Ehdr, e_phoff)));
	TRY(bytes_u64(&b, &core->program_table));
	TRY(bytes_u64(&b, &sections));
	TRY(bytes_seek(&b, offsetof(Elf64_Ehdr, e_phentsize)));
	TRY(bytes_u16(&b, &entry_size));
	TRY(bytes_u16(&b, &count));
	core->program_count = count;
	if (count == PN_XNUM)
		TRY(read_long_count(core, sections));
	if (core->program_count && entry_size != sizeof(Elf64_Phdr))
		return error_new("%s: program headers of %u bytes make no sense", core->name,
				 entry_size);
	return NULL;
}

struct program_header {
	uint32_t type, flags;
	uint64_t offset, addr, file_size, mem_size;
};

static struct error *read_program_header(struct bytes *b, struct program_header *ret)
{
	uint64_t unused;

	TRY(bytes_u32(b, &ret->type));
	TRY(bytes_u32(b, &ret->flags));
	TRY(bytes_u64(b, &ret->offset));
	TRY(bytes_u64(b, &ret->addr));
	TRY(bytes_u64(b, &unused)); // physical address
	TRY(bytes_u64(b, &ret->file_size));
	TRY(bytes_u64(b, &ret->mem_size));
	return bytes_u64(b, &unused); // alignment
}

static struct error *add_segment(struct core *core, const struct program_header *header)
{
	// A debugger leaves the size in memory at 0 where it is that in the file.
	uint64_t size = header->mem_size > header->file_size ? header->mem_size : header->file_size;
	uint64_t all = core->facts.size_bytes;

	if (!size || size > UINT64_MAX - header->addr)
		return NULL;
	TRY(ARRAY_RESERVE(core->segment, core->segment_room, core->segment_count, 1, MAPS_MAX,
			  "segments"));
	uint64_t there = header->offset < all ? all - header->offset : 0;
	core->segment[core->segment_count++] = (struct core_segment){
		.start = header->addr,
		.end = header->addr + size,
		.offset = header->offset,
		.file_size = header->file_size,
		.held = header->file_size < there ? header->file_size : there,
		.flags = header->flags,
	};
	return NULL;
}

/* HEADERS_AT_ONCE of them, from number FIRST on. False: the file ends there. */
static struct error *read_program_headers_at(struct core *core, uint32_t first, bool notes)
{
	_cleanup_free_ uint8_t *data = NULL;
	struct program_header header;
	uint32_t count = core->program_count - first;

	if (count > HEADERS_AT_ONCE)
		count = HEADERS_AT_ONCE;
	size_t size = count * sizeof(Elf64_Phdr);
	data = malloc(size);
	if (!data)
		return error_oom();
	TRY(core_read_file(core, core->program_table + (uint64_t)first * sizeof(Elf64_Phdr), data,
			   size));
	struct bytes b = bytes_over(data, size, core->name);
	while (bytes_left(&b)) {
		TRY(read_program_header(&b, &header));
		if (notes && header.type == PT_NOTE)
			TRY(core_read_notes(core, header.offset, header.file_size));
		if (!notes && header.type == PT_LOAD)
			TRY(add_segment(core, &header));
	}
	return NULL;
}

/* Either all segments, or all notes. */
static struct error *read_program_headers(struct core *core, bool notes)
{
	uint64_t all = core->facts.size_bytes, table = core->program_table;
	uint64_t there = table < all ? (all - table) / sizeof(Elf64_Phdr) : 0;

	if (core->program_count > there) {
		TRY(core_remark(core,
				"%s: the core is cut: it should have %u program headers and "
				"has %" PRIu64,
				core->name, core->program_count, there));
		core->program_count = (uint32_t)there;
	}
	for (uint32_t i = 0; i < core->program_count; i += HEADERS_AT_ONCE)
		TRY(read_program_headers_at(core, i, notes));
	return NULL;
}

static int compare_segments(const void *a, const void *b)
{
	const struct core_segment *left = a, *right = b;

	return (left->start > right->start) - (left->start < right->start);
}

/* Sort them, cut off what overlaps, and count what is missing. */
static struct error *finish_segments(struct core *core)
{
	size_t kept = 0;
	struct core_facts *facts = &core->facts;

	if (core->segment_count)
		qsort(core->segment, core->segment_count, sizeof(*core->segment), compare_segments);
	for (size_t i = 0; i < core->segment_count; i++) {
		struct core_segment *segment = &core->segment[i];
		if (kept && core->segment[kept - 1].end > segment->start)
			core->segment[kept - 1].end = segment->start;
		if (kept && core->segment[kept - 1].end == core->segment[kept - 1].start)
			kept--;
		core->segment[kept++] = *segment;
		facts->missing_ranges += segment->held < segment->file_size;
		facts->missing_bytes += segment->file_size - segment->held;
	}
	core->segment_count = kept;
	if (!facts->missing_ranges)
		return NULL;
	return core_remark(core,
			   "%s: the core is cut: it ends at byte %" PRIu64 ", and %" PRIu64
			   " bytes of memory in %" PRIu64 " mappings are missing",
			   core->name, facts->size_bytes, facts->missing_bytes,
			   facts->missing_ranges);
}

static struct error *open_headers(struct core *core)
{
	struct stat st;

	if (fstat(core->fd, &st) < 0)
		return error_errno("stat %s", core->name);
	core->facts.size_bytes = (uint64_t)st.st_size;
	core->block = malloc(CORE_BLOCK);
	if (!core->block)
		return error_oom();
	TRY(read_header(core));
	TRY(read_program_headers(core, false));
	TRY(finish_segments(core));
	TRY(read_program_headers(core, true));
	if (!core->thread_count)
		TRY(core_remark(core, "%s: the core tells of no threads", core->name));
	return core_make_maps(core);
}

/* --- opening */

/* Replace core->fd, which is compressed, by an unpacked copy. */
static struct error *open_unpacked(struct core *core, int packed, enum unpack_kind kind)
{
	_cleanup_close_ int plain = -1;
	struct unpacked done;

	if (kind == UNPACK_lz4)
		return error_new("%s: compressed by lz4, which is not read: unpack it with lz4 -d",
				 core->name);
	if (!core->options.temporary)
		return error_new("%s: a compressed core", core->name);
	TRY(core->options.temporary(core->options.context, &plain));
	uint64_t max = core->options.unpacked_max ? core->options.unpacked_max : CORE_UNPACKED_MAX;
	struct error *err = unpack(packed, kind, plain, max, &done);
	if (err)
		return error_wrap(err, "%s", core->name);
	if (done.shortened)
		TRY(core_remark(core, "%s: %s: %" PRIu64 " bytes were unpacked", core->name,
				done.shortened, done.size));
	core->fd = take_fd(&plain);
	return NULL;
}

static struct error *open_core(struct core *core, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_errno("stat %s", core->name);
	if (!S_ISREG(st.st_mode))
		return error_new("%s: not a regular file", core->name);
	enum unpack_kind kind = unpack_kind(fd);
	if (kind == UNPACK_plain) {
		core->fd = fd;
		return open_headers(core);
	}
	TRY(open_unpacked(core, fd, kind));
	struct error *err = open_headers(core);
	// What the core lacks is then why.
	if (err && core->remark_count)
		return error_wrap(err, "%s", core->remark[0]);
	return err;
}

struct error *core_open(int fd, const char *name, const struct core_options *options,
			struct core **ret)
{
	_cleanup_core_ struct core *core = calloc(1, sizeof(*core));

	if (!core)
		return error_oom();
	core->fd = -1;
	core->options = *options;
	core->maps.paths.max_bytes = MAPS_PATHS_BYTES;
	TRY(str_copy(&core->name, name));
	struct error *err = open_core(core, fd);
	if (err) {
		core->fd = core->fd == fd ? -1 : core->fd;
		return err;
	}
	if (core->fd != fd)
		close(fd);
	*ret = take(core);
	return NULL;
}

void core_close(struct core *core)
{
	if (!core)
		return;
	core_close_files(core);
	for (size_t i = 0; i < core->remark_count; i++)
		free(core->remark[i]);
	if (core->fd >= 0)
		close(core->fd);
	maps_deinit(&core->maps);
	hash_index_deinit(&core->file_by_path);
	free(core->file);
	free(core->mapped);
	free(core->thread);
	free(core->segment);
	free(core->block);
	free(core->name);
	free(core);
}

const struct core_facts *core_facts(const struct core *core)
{
	return &core->facts;
}

const struct core_thread *core_threads(const struct core *core, size_t *ret_count)
{
	*ret_count = core->thread_count;
	return core->thread;
}

const struct maps *core_maps(const struct core *core)
{
	return &core->maps;
}

const char *const *core_remarks(const struct core *core, size_t *ret_count)
{
	*ret_count = core->remark_count;
	return (const char *const *)core->remark;
}

/* --- memory */

/* The segment that holds ADDR; NULL: none. */
static const struct core_segment *find_segment(struct core *core, uint64_t addr)
{
	size_t low = 0, high = core->segment_count;

	if (core->last < high && addr >= core->segment[core->last].start &&
	    addr < core->segment[core->last].end)
		return &core->segment[core->last];
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (core->segment[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == core->segment_count || core->segment[low].start > addr)
		return NULL;
	core->last = low;
	return &core->segment[low];
}

/* How many of SIZE bytes at ADDR the core holds in one piece; they are at RET_OFFSET. */
static size_t held_at(struct core *core, uint64_t addr, size_t size, uint64_t *ret_offset)
{
	const struct core_segment *segment = find_segment(core, addr);

	if (!segment || addr - segment->start >= segment->held)
		return 0;
	uint64_t skip = addr - segment->start;
	uint64_t held = segment->held < segment->end - segment->start
				? segment->held
				: segment->end - segment->start;
	if (skip >= held)
		return 0;
	*ret_offset = segment->offset + skip;
	return size < held - skip ? size : (size_t)(held - skip);
}

static int read_at(const struct core *core, uint64_t offset, void *to, size_t size)
{
	size_t got = 0;
	struct error *err = read_some(core, offset, to, size, &got);

	error_free(err); // the contract: memory that is not there
	return got == size ? 0 : -1;
}

int core_read_held(struct core *core, uint64_t addr, void *to, size_t size)
{
	uint64_t offset;
	uint8_t *at = to;

	if (size > UINT64_MAX - addr)
		return -1;
	while (size) {
		size_t piece = held_at(core, addr, size, &offset);
		if (!piece || read_at(core, offset, at, piece))
			return -1;
		at += piece;
		addr += piece;
		size -= piece;
	}
	return 0;
}

/* The first part of SIZE bytes at ADDR, from the core or from a file. Returns its size; 0: it is
 * not to be had. */
static size_t read_piece(struct core *core, uint64_t addr, void *to, size_t size)
{
	uint64_t offset;

	size_t piece = held_at(core, addr, size, &offset);
	if (piece)
		return read_at(core, offset, to, piece) ? 0 : piece;
	const struct map *map = maps_find(&core->maps, addr);
	if (!map || !map->inode)
		return 0;
	if (size > map->end - addr)
		size = (size_t)(map->end - addr);
	return core_read_mapped(core, map, addr, to, size) ? 0 : size;
}

static int memory_of_core(void *context, uint64_t addr, void *to, size_t size)
{
	struct core *core = context;
	uint8_t *at = to;

	if (size > UINT64_MAX - addr)
		return -1;
	while (size) {
		size_t piece = read_piece(core, addr, at, size);
		if (!piece)
			return -1;
		at += piece;
		addr += piece;
		size -= piece;
	}
	return 0;
}

struct memory core_memory(struct core *core)
{
	return (struct memory){.read = memory_of_core, .context = core};
}
