/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cores that were made for the purpose: whole, cut, packed, huge, of others, and with files that
 * are or are not those that were mapped. test-core-live.c has cores of real processes.
 */
#include "object/core.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <lzma.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "object/test-core-make.h"
#include "object/test-elf.h"
#include "unit.h"

enum { PAGE = 4096, HEAP = 0x100000, TEXT = 0x400000, DATA = 0x600000, VDSO = 0x7fff0000 };

/* Files that there are for a test. */
struct world {
	const char *path;
	const void *data;
	size_t size;
	enum root_outcome outcome;
	unsigned opened;
};

static struct error *open_in_world(void *context, const char *path, enum root_outcome *ret,
				   int *ret_fd)
{
	struct world *world = context;

	if (strcmp(path, world->path) != 0 || world->outcome != ROOT_opened) {
		*ret = strcmp(path, world->path) ? ROOT_absent : world->outcome;
		return NULL;
	}
	world->opened++;
	*ret_fd = memfd_create("file", MFD_CLOEXEC);
	ASSERT_EQ(write(*ret_fd, world->data, world->size), world->size);
	*ret = ROOT_opened;
	return NULL;
}

static struct error *temporary(void *context, int *ret_fd)
{
	return file_open_unnamed(ret_fd);
}

static const struct core_options nothing_else = {.temporary = temporary};

static struct core *open_ok(int fd, const struct core_options *options)
{
	struct core *core = NULL;

	ASSERT_OK(core_open(fd, "test.core", options, &core));
	return core;
}

/* A process with two threads, a heap, a text and data from /bin/x and a vdso. */
static void make_usual(struct made_core *m)
{
	static const struct made_row rows[] = {
		{TEXT, TEXT + 2 * PAGE, 0, "/bin/x"},
		{DATA, DATA + PAGE, 2 * PAGE, "/bin/x"},
	};
	uint8_t process[136] = {0}, info[128] = {0};
	const uint32_t ids[4] = {1000, 1001, 77, 66};
	const uint64_t met = 0x1234;

	made_core_init(m);
	memcpy(process + 16, ids, sizeof(ids));
	memcpy(process + 40, "a program", 9);
	memcpy(process + 56, "/bin/x --long way ", 18);
	made_core_thread(m, 77, SIGSEGV);
	made_core_note(m, NT_PRPSINFO, process, sizeof(process));
	info[0] = SIGSEGV;
	info[8] = SEGV_MAPERR;
	memcpy(info + 16, &met, sizeof(met));
	made_core_note(m, NT_SIGINFO, info, sizeof(info));
	made_core_auxv(m, TEXT + 64, TEXT + PAGE, VDSO);
	made_core_files(m, rows, ARRAY_COUNT(rows));
	made_core_thread(m, 78, SIGSEGV);
	made_core_load(m, HEAP, 4 * PAGE, 4 * PAGE, PF_R | PF_W);
	made_core_load(m, TEXT, 2 * PAGE, 0, PF_R | PF_X);
	made_core_load(m, DATA, PAGE, PAGE, PF_R | PF_W);
	made_core_load(m, VDSO, PAGE, PAGE, PF_R | PF_X);
}

static bool reads(struct core *core, uint64_t addr, size_t size)
{
	struct memory memory = core_memory(core);
	static uint8_t data[8 * PAGE];

	if (memory_read(&memory, addr, data, size))
		return false;
	for (size_t i = 0; i < size; i++)
		ASSERT_EQ(data[i], made_byte(addr + i));
	return true;
}

static bool has_remark(const struct core *core, const char *text)
{
	size_t count;
	const char *const *remarks = core_remarks(core, &count);

	for (size_t i = 0; i < count; i++)
		if (strstr(remarks[i], text))
			return true;
	return false;
}

TEST(facts_threads_and_registers_are_read)
{
	static const uint8_t places[UNWIND_REGISTERS] = {10, 12, 11, 5, 13, 14, 4, 19,
							 9,  8,  7,  6, 3,  2,  1, 0};
	struct made_core made;
	size_t count;

	make_usual(&made);
	_cleanup_core_ struct core *core = open_ok(made_core_finish(&made), &nothing_else);
	const struct core_facts *facts = core_facts(core);
	ASSERT_EQ(facts->pid, 77);
	ASSERT_EQ(facts->parent_pid, 66);
	ASSERT_EQ(facts->uid, 1000);
	ASSERT_STREQ(facts->name, "a program");
	ASSERT_STREQ(facts->arguments, "/bin/x --long way");
	ASSERT_EQ(facts->signal, SIGSEGV);
	ASSERT_EQ(facts->signal_code, SEGV_MAPERR);
	ASSERT_EQ(facts->signal_addr, 0x1234);
	ASSERT_EQ(facts->signal_tid, 77);
	ASSERT_EQ(facts->vdso, VDSO);
	ASSERT_EQ(facts->entry, TEXT + PAGE);
	ASSERT_EQ(facts->missing_ranges, 0);

	const struct core_thread *threads = core_threads(core, &count);
	ASSERT_EQ(count, 2);
	for (size_t i = 0; i < 2; i++) {
		uint64_t base = (77 + i) * 256;
		ASSERT_EQ(threads[i].tid, 77 + i);
		ASSERT_EQ(threads[i].state.pc, base + 16);
		ASSERT_EQ(threads[i].state.sp, base + 19);
		ASSERT_EQ(threads[i].state.fp, base + 4);
		ASSERT_EQ(threads[i].fs_base, base + 21);
		ASSERT_EQ(threads[i].syscall, base + 15);
		for (size_t k = 0; k < UNWIND_REGISTERS; k++)
			ASSERT_EQ(threads[i].state.reg[k], base + places[k]);
	}
	core_remarks(core, &count);
	ASSERT_EQ(count, 0);
	made_core_deinit(&made);
}

TEST(mappings_are_those_of_the_segments_with_the_files_behind_them)
{
	static const struct {
		uint64_t start, end, offset;
		unsigned prot;
		const char *path;
	} expected[] = {
		{HEAP, HEAP + 4 * PAGE, 0, MAPS_READ | MAPS_WRITE, ""},
		{TEXT, TEXT + 2 * PAGE, 0, MAPS_READ | MAPS_EXECUTE, "/bin/x"},
		{DATA, DATA + PAGE, 2 * PAGE, MAPS_READ | MAPS_WRITE, "/bin/x"},
		{VDSO, VDSO + PAGE, 0, MAPS_READ | MAPS_EXECUTE, "[vdso]"},
	};
	struct made_core made;

	make_usual(&made);
	_cleanup_core_ struct core *core = open_ok(made_core_finish(&made), &nothing_else);
	const struct maps *maps = core_maps(core);
	ASSERT_EQ(maps->count, ARRAY_COUNT(expected));
	for (size_t i = 0; i < maps->count; i++) {
		const struct map *map = &maps->map[i];
		ASSERT_EQ(map->start, expected[i].start);
		ASSERT_EQ(map->end, expected[i].end);
		ASSERT_EQ(map->offset, expected[i].offset);
		ASSERT_EQ(map->prot, expected[i].prot);
		ASSERT_STREQ(map->path, expected[i].path);
		ASSERT_EQ(map_is_file(map), expected[i].path[0] == '/');
	}
	ASSERT_STREQ(core_exe(core), "/bin/x");
	made_core_deinit(&made);
}

TEST(lists_that_contradict_each_other_give_mappings_that_do_not_overlap)
{
	static const struct made_row rows[] = {
		{0x5000, 0x9000, 0, "/one"},
		{0x7000, 0x8000, 0x1000, "/two (deleted)"},
		{0xf000, 0x11000, 0, "/three"},
		{0x3000, 0x3000, 0, "/empty"},
	};
	static const struct {
		uint64_t start, end;
		const char *path;
	} expected[] = {
		{0x1000, 0x3000, ""},         {0x3000, 0x5000, ""},     {0x5000, 0x6000, "/one"},
		{0x6000, 0x7000, "/one"},     {0x7000, 0x8000, "/two"}, {0xf000, 0x10000, "/three"},
		{0x10000, 0x11000, "/three"},
	};
	struct made_core made;

	made_core_init(&made);
	made_core_files(&made, rows, ARRAY_COUNT(rows));
	made_core_load(&made, 0x3000, 0x3000, 0, PF_R);
	made_core_load(&made, 0x1000, 0x4000, 0, PF_R | PF_W);
	made_core_load(&made, 0x10000, 0x1000, 0, PF_R);
	made_core_load(&made, UINT64_MAX - 5, 0x1000, 0, PF_R);
	_cleanup_core_ struct core *core = open_ok(made_core_finish(&made), &nothing_else);
	const struct maps *maps = core_maps(core);
	ASSERT_EQ(maps->count, ARRAY_COUNT(expected));
	for (size_t i = 0; i < maps->count; i++) {
		ASSERT_EQ(maps->map[i].start, expected[i].start);
		ASSERT_EQ(maps->map[i].end, expected[i].end);
		ASSERT_STREQ(maps->map[i].path, expected[i].path);
	}
	ASSERT_TRUE(maps->map[4].deleted && !maps->map[2].deleted);
	ASSERT_TRUE(maps->map[3].prot & MAPS_EXECUTE); // known from the list of files alone
	ASSERT_TRUE(has_remark(core, "tells of no threads"));
	made_core_deinit(&made);
}

TEST(memory_is_what_the_segments_hold)
{
	struct made_core made;
	uint8_t byte;

	make_usual(&made);
	made_core_load(&made, HEAP + 4 * PAGE, PAGE, PAGE, PF_R); // right behind another
	_cleanup_core_ struct core *core = open_ok(made_core_finish(&made), &nothing_else);
	struct memory memory = core_memory(core);
	ASSERT_TRUE(reads(core, HEAP, 1));
	ASSERT_TRUE(reads(core, HEAP + 17, 3 * PAGE));
	ASSERT_TRUE(reads(core, HEAP + 4 * PAGE - 8, 16));
	ASSERT_TRUE(reads(core, HEAP, 5 * PAGE));
	ASSERT_TRUE(reads(core, VDSO, PAGE));
	ASSERT_FALSE(reads(core, HEAP + 5 * PAGE - 8, 16));
	ASSERT_FALSE(reads(core, HEAP - 1, 2));
	ASSERT_FALSE(reads(core, TEXT, 1));
	ASSERT_EQ(memory_read(&memory, UINT64_MAX - 2, &byte, 8), -1);
	ASSERT_EQ(memory_read(&memory, HEAP, &byte, SIZE_MAX), -1);
	ASSERT_EQ(memory_read(&memory, 0, &byte, 0), 0);
	made_core_deinit(&made);
}

static int cut_at(const struct made_core *made, int whole, uint64_t size)
{
	int fd = memfd_create("cut", MFD_CLOEXEC);
	_cleanup_free_ uint8_t *data = malloc(size + 1);

	ASSERT_EQ(pread(whole, data, size, 0), size);
	ASSERT_EQ(write(fd, data, size), size);
	return fd;
}

TEST(a_core_that_was_cut_anywhere_gives_what_it_holds_and_says_what_it_lacks)
{
	struct made_core made;
	struct stat st;

	make_usual(&made);
	_cleanup_close_ int whole = made_core_finish(&made);
	ASSERT_EQ(fstat(whole, &st), 0);
	for (uint64_t size = 0; size < (uint64_t)st.st_size;
	     size += size < made.data_at ? 8 : 509) {
		_cleanup_close_ int fd = cut_at(&made, whole, size);
		_cleanup_core_ struct core *core = NULL;
		struct error *err = core_open(fd, "cut.core", &nothing_else, &core);
		if (size < sizeof(Elf64_Ehdr)) {
			ASSERT_TRUE(err != NULL);
			error_free(err);
			continue;
		}
		ASSERT_OK(err);
		(void)take_fd(&fd);
		ASSERT_TRUE(has_remark(core, "the core is cut"));
		for (uint64_t at = HEAP; at < HEAP + 4 * PAGE; at += 1000) {
			uint64_t offset = made.load[0].p_offset + (at - HEAP);
			ASSERT_EQ(reads(core, at, 8), offset + 8 <= size);
		}
	}
	made_core_deinit(&made);
}

TEST(missing_memory_is_counted)
{
	struct made_core made;

	make_usual(&made);
	_cleanup_close_ int whole = made_core_finish(&made);
	int fd = cut_at(&made, whole, made.data_at + 4 * PAGE + 100);
	_cleanup_core_ struct core *core = open_ok(fd, &nothing_else);
	ASSERT_EQ(core_facts(core)->missing_ranges, 2);
	ASSERT_EQ(core_facts(core)->missing_bytes, 2 * PAGE - 100);
	ASSERT_TRUE(has_remark(core, "8092 bytes of memory in 2 mappings are missing"));
	made_core_deinit(&made);
}

TEST(what_is_no_core_of_x86_64_is_refused_by_name)
{
	static const struct {
		uint16_t type, machine;
		uint8_t class, order;
		const char *says;
	} cases[] = {
		{ET_CORE, EM_AARCH64, ELFCLASS64, ELFDATA2LSB, "core of an aarch64 program"},
		{ET_CORE, EM_386, ELFCLASS32, ELFDATA2LSB, "core of an i386 program"},
		{ET_CORE, EM_X86_64, ELFCLASS32, ELFDATA2LSB, "core of an x32 program"},
		{ET_CORE, 4711, ELFCLASS64, ELFDATA2LSB, "for ELF machine 4711"},
		{ET_DYN, EM_X86_64, ELFCLASS64, ELFDATA2LSB, "an ELF file, and not a core"},
	};

	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct made_core made;
		struct core *core = NULL;
		make_usual(&made);
		made.type = cases[i].type;
		made.machine = cases[i].machine;
		made.class = cases[i].class;
		made.order = cases[i].order;
		_cleanup_close_ int fd = made_core_finish(&made);
		ASSERT_FAILS(core_open(fd, "c", &nothing_else, &core), cases[i].says);
		ASSERT_TRUE(core == NULL);
		ASSERT_TRUE(fcntl(fd, F_GETFD) >= 0); // still ours
		made_core_deinit(&made);
	}
}

TEST(other_files_are_refused)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "is empty"},
		{"#!/bin/sh\n", "not a core file"},
		{"\x04\x22\x4d\x18 lz4", "unpack it with lz4 -d"},
		{"\x28\xb5\x2f\xfd nonsense", "the compressed file is damaged"},
		{"\x1f\x8b\x08", "ends too early"},
	};
	struct core *core = NULL;

	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		_cleanup_close_ int fd = memfd_create("file", MFD_CLOEXEC);
		size_t size = strlen(cases[i].text);
		ASSERT_EQ(write(fd, cases[i].text, size), size);
		ASSERT_FAILS(core_open(fd, "c", &nothing_else, &core), cases[i].says);
	}
	_cleanup_close_ int device = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	ASSERT_FAILS(core_open(device, "c", &nothing_else, &core), "not a regular file");
}

/* --- packed cores */

typedef size_t pack_fn(const uint8_t *data, size_t size, uint8_t *to, size_t room);

static size_t pack_zstd(const uint8_t *data, size_t size, uint8_t *to, size_t room)
{
	return ZSTD_compress(to, room, data, size, 3);
}

static size_t pack_xz(const uint8_t *data, size_t size, uint8_t *to, size_t room)
{
	size_t packed = 0;
	lzma_ret code =
		lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, data, size, to, &packed, room);

	ASSERT_EQ(code, LZMA_OK);
	return packed;
}

static size_t pack_gzip(const uint8_t *data, size_t size, uint8_t *to, size_t room)
{
	z_stream stream = {.next_in = (uint8_t *)(uintptr_t)data,
			   .avail_in = (uInt)size,
			   .next_out = to,
			   .avail_out = (uInt)room};

	ASSERT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
	deflateEnd(&stream);
	return stream.total_out;
}

static pack_fn *const packers[] = {pack_zstd, pack_xz, pack_gzip};

struct packed {
	uint8_t *plain, *data;
	size_t plain_size, size;
};

static void pack_made(struct packed *packed, pack_fn *pack)
{
	struct made_core made;
	struct stat st;

	make_usual(&made);
	// Half of it is a hole: as most of a large heap is zero.
	made_core_load(&made, HEAP * 16, 256 * PAGE, 256 * PAGE, PF_R | PF_W);
	_cleanup_close_ int fd = made_core_finish(&made);
	ASSERT_EQ(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			    (off_t)made.load[4].p_offset, 128 * PAGE),
		  0);
	ASSERT_EQ(fstat(fd, &st), 0);
	packed->plain_size = (size_t)st.st_size;
	packed->plain = malloc(packed->plain_size);
	packed->data = malloc(2 * packed->plain_size);
	ASSERT_EQ(pread(fd, packed->plain, packed->plain_size, 0), packed->plain_size);
	packed->size =
		pack(packed->plain, packed->plain_size, packed->data, 2 * packed->plain_size);
	made_core_deinit(&made);
}

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("packed", MFD_CLOEXEC);

	ASSERT_EQ(write(fd, data, size), size);
	return fd;
}

TEST(a_packed_core_reads_like_a_plain_one)
{
	for (size_t i = 0; i < ARRAY_COUNT(packers); i++) {
		struct packed packed;
		pack_made(&packed, packers[i]);
		int fd = file_of(packed.data, packed.size);
		_cleanup_core_ struct core *core = open_ok(fd, &nothing_else);
		ASSERT_EQ(core_facts(core)->size_bytes, packed.plain_size);
		ASSERT_EQ(core_facts(core)->signal_tid, 77);
		ASSERT_TRUE(reads(core, HEAP, 4 * PAGE));
		ASSERT_TRUE(reads(core, HEAP * 16 + 250 * PAGE, 6 * PAGE));
		uint64_t zero = 1;
		struct memory memory = core_memory(core);
		ASSERT_EQ(memory_read_u64(&memory, HEAP * 16, &zero), 0);
		ASSERT_EQ(zero, 0);
		size_t count;
		core_remarks(core, &count);
		ASSERT_EQ(count, 0);
		free(packed.plain);
		free(packed.data);
	}
}

TEST(a_packed_core_that_was_cut_gives_its_beginning)
{
	for (size_t i = 0; i < ARRAY_COUNT(packers); i++) {
		struct packed packed;
		unsigned opened = 0;
		pack_made(&packed, packers[i]);
		for (size_t part = 1; part < 16; part++) {
			_cleanup_close_ int fd = file_of(packed.data, packed.size * part / 16);
			_cleanup_core_ struct core *core = NULL;
			struct error *err = core_open(fd, "cut.core", &nothing_else, &core);
			opened += !err;
			if (!err) {
				(void)take_fd(&fd);
				ASSERT_TRUE(has_remark(core, "ends too early"));
			} else {
				ASSERT_TRUE(strstr(error_text(err), "ends too early") != NULL);
			}
			error_free(err);
		}
		ASSERT_TRUE(opened > 0 || packers[i] == pack_zstd);
		free(packed.plain);
		free(packed.data);
	}
}

TEST(unpacking_stops_at_the_limit)
{
	struct core_options options = nothing_else;
	struct packed packed;

	pack_made(&packed, pack_gzip);
	options.unpacked_max = 8 * PAGE;
	_cleanup_core_ struct core *core = open_ok(file_of(packed.data, packed.size), &options);
	ASSERT_EQ(core_facts(core)->size_bytes, 8 * PAGE);
	ASSERT_TRUE(has_remark(core, "the limit for unpacked cores is reached"));
	ASSERT_TRUE(has_remark(core, "the core is cut"));
	ASSERT_TRUE(reads(core, HEAP, PAGE));

	struct core *none = NULL;
	_cleanup_close_ int fd = file_of(packed.data, packed.size);
	options.temporary = NULL;
	ASSERT_FAILS(core_open(fd, "c", &options, &none), "a compressed core");
	free(packed.plain);
	free(packed.data);
}

/* --- mapped files */

/* /bin/x with a build id whose first byte is ID (0: none), in TO. */
static void make_object(struct made *made, uint8_t id)
{
	static const struct writer no_frames;

	made_usual(made, &no_frames);
	made_segment(made, PT_LOAD, PF_R | PF_W, 2 * PAGE, PAGE);
	made_finish(made);
	if (id)
		made->data[0x410] = id;
	else
		made->data[0x408] = 99; // a note of another kind
}

/* A core of /bin/x: its first page is there if HEADER is not NULL; the rest of text is not. */
static struct core *core_of_object(const uint8_t *header, struct world *world)
{
	static const struct made_row rows[] = {
		{TEXT, TEXT + PAGE, 0, "/bin/x"},
		{TEXT + PAGE, TEXT + 2 * PAGE, PAGE, "/bin/x"},
		{DATA, DATA + PAGE, 2 * PAGE, "/bin/x"},
		{DATA + PAGE, DATA + 2 * PAGE, 2 * PAGE, "/bin/x"},
	};
	struct core_options options = {.open = open_in_world, .context = world};
	struct made_core made;

	made_core_init(&made);
	made_core_thread(&made, 1, 0);
	made_core_auxv(&made, TEXT + 64, 0, 0);
	made_core_files(&made, rows, ARRAY_COUNT(rows));
	made_core_load(&made, TEXT, PAGE, header ? PAGE : 0, PF_R);
	made_core_load(&made, TEXT + PAGE, PAGE, 0, PF_R | PF_X);
	made_core_load(&made, DATA, PAGE, 0, PF_R);
	made_core_load(&made, DATA + PAGE, PAGE, 0, PF_R | PF_W);
	int fd = made_core_finish(&made);
	if (header)
		made_write(fd, header, PAGE, made.load[0].p_offset);
	made_core_deinit(&made);
	return open_ok(fd, &options);
}

TEST(code_is_read_from_the_file_that_has_the_core_s_build_id)
{
	struct made object;
	uint8_t byte = 0;
	enum core_file look = CORE_FILE_absent;
	_cleanup_close_ int fd = -1;

	make_object(&object, 1);
	object.data[PAGE + 5] = 0x5a;
	struct world world = {"/bin/x", object.data, object.size, ROOT_opened, 0};
	_cleanup_core_ struct core *core = core_of_object(object.data, &world);
	struct memory memory = core_memory(core);
	ASSERT_EQ(world.opened, 0);
	ASSERT_EQ(memory_read(&memory, TEXT + PAGE + 5, &byte, 1), 0);
	ASSERT_EQ(byte, 0x5a);
	ASSERT_OK(core_open_file(core, &core_maps(core)->map[1], &look, &fd));
	ASSERT_EQ(look, CORE_FILE_same);
	ASSERT_TRUE(fd >= 0);
	ASSERT_EQ(world.opened, 1);
	// What the program may have written is not in the file any more, however it is mapped.
	ASSERT_EQ(memory_read(&memory, DATA, &byte, 1), -1);
	ASSERT_EQ(memory_read(&memory, DATA + PAGE, &byte, 1), -1);
	made_deinit(&object);
}

TEST(a_file_that_cannot_be_the_one_is_told_and_not_used)
{
	static const struct {
		bool header;
		uint8_t core_id, file_id;
		enum root_outcome outcome;
		size_t cut;
		enum core_file look;
		const char *remark; /* NULL: none */
	} cases[] = {
		{true, 1, 1, ROOT_opened, 0, CORE_FILE_same, NULL},
		{true, 0, 0, ROOT_opened, 0, CORE_FILE_same, NULL},
		{true, 1, 2, ROOT_opened, 0, CORE_FILE_other, "/bin/x: another file"},
		{true, 0, 1, ROOT_opened, 0, CORE_FILE_other, "/bin/x: another file"},
		{true, 1, 1, ROOT_opened, 2 * PAGE, CORE_FILE_other, "/bin/x: another file"},
		{false, 1, 1, ROOT_opened, 2 * PAGE, CORE_FILE_other, "/bin/x: another file"},
		{false, 1, 2, ROOT_opened, 0, CORE_FILE_unproven, "it is taken for it"},
		{true, 1, 1, ROOT_absent, 0, CORE_FILE_absent, "/bin/x: not found"},
		{true, 1, 1, ROOT_denied, 0, CORE_FILE_denied, "/bin/x: may not be read"},
		{true, 1, 1, ROOT_not_a_file, 0, CORE_FILE_no_object, NULL},
		{false, 1, 1, ROOT_opened, sizeof(Elf64_Ehdr), CORE_FILE_no_object, NULL},
	};

	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct made in_core, in_file;
		uint8_t byte;
		enum core_file look = CORE_FILE_absent;
		size_t count;
		_cleanup_close_ int fd = -1;
		make_object(&in_core, cases[i].core_id);
		make_object(&in_file, cases[i].file_id);
		struct world world = {"/bin/x", in_file.data,
				      cases[i].cut ? cases[i].cut : in_file.size, cases[i].outcome,
				      0};
		_cleanup_core_ struct core *core =
			core_of_object(cases[i].header ? in_core.data : NULL, &world);
		struct memory memory = core_memory(core);
		int read = memory_read(&memory, TEXT + PAGE, &byte, 1);
		ASSERT_OK(core_open_file(core, &core_maps(core)->map[0], &look, &fd));
		ASSERT_EQ(look, cases[i].look);
		bool used = look == CORE_FILE_same || look == CORE_FILE_unproven;
		ASSERT_EQ(fd >= 0, used);
		ASSERT_EQ(read, used ? 0 : -1);
		core_remarks(core, &count);
		ASSERT_EQ(count, cases[i].remark ? 1 : 0);
		ASSERT_TRUE(!cases[i].remark || has_remark(core, cases[i].remark));
		made_deinit(&in_core);
		made_deinit(&in_file);
	}
}

TEST(the_program_s_file_may_be_given)
{
	struct made object, wrong;
	uint8_t byte = 0;

	make_object(&object, 1);
	make_object(&wrong, 2);
	struct world world = {"/bin/x", wrong.data, wrong.size, ROOT_opened, 0};
	_cleanup_core_ struct core *core = core_of_object(object.data, &world);
	struct memory memory = core_memory(core);
	ASSERT_STREQ(core_exe(core), "/bin/x");
	ASSERT_EQ(memory_read(&memory, TEXT + PAGE, &byte, 1), -1);
	ASSERT_OK(core_set_exe(core, file_of(object.data, object.size)));
	ASSERT_EQ(memory_read(&memory, TEXT + PAGE, &byte, 1), 0);
	ASSERT_EQ(byte, object.data[PAGE]);
	ASSERT_OK(core_set_exe(core, file_of(wrong.data, wrong.size)));
	ASSERT_EQ(memory_read(&memory, TEXT + PAGE, &byte, 1), -1);
	made_deinit(&object);
	made_deinit(&wrong);
}

TEST(the_rest_of_a_file_s_last_page_is_zero)
{
	struct made object;
	uint8_t bytes[16];

	make_object(&object, 1);
	size_t size = 2 * PAGE - 8; // the text is cut, as its end is nothing but padding
	struct world world = {"/bin/x", object.data, size, ROOT_opened, 0};
	struct core_options options = {.open = open_in_world, .context = &world};
	static const struct made_row rows[] = {{TEXT, TEXT + 2 * PAGE, 0, "/bin/x"}};
	struct made_core made;

	made_core_init(&made);
	made_core_files(&made, rows, 1);
	made_core_load(&made, TEXT, 2 * PAGE, 0, PF_R | PF_X);
	_cleanup_core_ struct core *core = open_ok(made_core_finish(&made), &options);
	struct memory memory = core_memory(core);
	memset(bytes, 1, sizeof(bytes));
	ASSERT_EQ(memory_read(&memory, TEXT + size - 8, bytes, 16), 0);
	for (size_t i = 0; i < 16; i++)
		ASSERT_EQ(bytes[i], i < 8 ? 0x90 : 0);
	made_core_deinit(&made);
	made_deinit(&object);
}

/* --- large ones */

static long peak_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

TEST(a_hundred_thousand_mappings_and_four_thousand_threads_are_read)
{
	enum { MAPPINGS = 100000, THREADS = 4096 };
	struct made_row *rows = calloc(MAPPINGS, sizeof(*rows));
	struct made_core made;
	size_t count;

	made_core_init(&made);
	made.long_count = true;
	for (uint64_t i = 0; i < MAPPINGS; i++) {
		uint64_t addr = HEAP + 2 * i * PAGE;
		rows[i] = (struct made_row){addr, addr + PAGE, i * PAGE, i % 2 ? "/one" : "/two"};
		made_core_load(&made, addr, PAGE, i % 1000 ? 0 : PAGE, PF_R);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		made_core_thread(&made, i + 1, SIGABRT);
	made_core_files(&made, rows, MAPPINGS);
	_cleanup_close_ int whole = made_core_finish(&made);
	int cut = cut_at(&made, whole, made.data_at + PAGE);
	_cleanup_core_ struct core *core = open_ok(take_fd(&whole), &nothing_else);
	core_threads(core, &count);
	ASSERT_EQ(count, THREADS);
	ASSERT_EQ(core_maps(core)->count, MAPPINGS);
	ASSERT_STREQ(core_maps(core)->map[MAPPINGS - 1].path, "/one");
	ASSERT_TRUE(reads(core, HEAP + 2ull * 99000 * PAGE, PAGE));
	ASSERT_FALSE(reads(core, HEAP + 2ull * 99001 * PAGE, PAGE));

	// The count of mappings stands at the end, and is found again where that is lost.
	_cleanup_core_ struct core *less = open_ok(cut, &nothing_else);
	core_threads(less, &count);
	ASSERT_EQ(count, THREADS);
	ASSERT_EQ(core_maps(less)->count, MAPPINGS);
	ASSERT_EQ(core_facts(less)->missing_ranges, 99);
	made_core_deinit(&made);
	free(rows);
}

TEST(sixteen_gigabytes_of_holes_take_no_memory)
{
	const uint64_t size = 16ull << 30;
	struct made_core made;
	uint64_t value = 1;

	made_core_init(&made);
	made.sparse = true;
	made_core_thread(&made, 1, SIGABRT);
	made_core_load(&made, 1ull << 40, size, size, PF_R | PF_W);
	long before = peak_kib();
	_cleanup_core_ struct core *core = open_ok(made_core_finish(&made), &nothing_else);
	struct memory memory = core_memory(core);
	ASSERT_EQ(memory_read_u64(&memory, (1ull << 40) + size - 8, &value), 0);
	ASSERT_EQ(value, 0);
	ASSERT_EQ(memory_read_u64(&memory, (1ull << 40) + size - 7, &value), -1);
	ASSERT_TRUE(peak_kib() - before < 1024);
	made_core_deinit(&made);
}

RUN_TESTS(UNIT_TEST(facts_threads_and_registers_are_read),
	  UNIT_TEST(mappings_are_those_of_the_segments_with_the_files_behind_them),
	  UNIT_TEST(lists_that_contradict_each_other_give_mappings_that_do_not_overlap),
	  UNIT_TEST(memory_is_what_the_segments_hold),
	  UNIT_TEST(a_core_that_was_cut_anywhere_gives_what_it_holds_and_says_what_it_lacks),
	  UNIT_TEST(missing_memory_is_counted),
	  UNIT_TEST(what_is_no_core_of_x86_64_is_refused_by_name),
	  UNIT_TEST(other_files_are_refused), UNIT_TEST(a_packed_core_reads_like_a_plain_one),
	  UNIT_TEST(a_packed_core_that_was_cut_gives_its_beginning),
	  UNIT_TEST(unpacking_stops_at_the_limit),
	  UNIT_TEST(code_is_read_from_the_file_that_has_the_core_s_build_id),
	  UNIT_TEST(a_file_that_cannot_be_the_one_is_told_and_not_used),
	  UNIT_TEST(the_program_s_file_may_be_given),
	  UNIT_TEST(the_rest_of_a_file_s_last_page_is_zero),
	  UNIT_TEST(a_hundred_thousand_mappings_and_four_thousand_threads_are_read),
	  UNIT_TEST(sixteen_gigabytes_of_holes_take_no_memory))
