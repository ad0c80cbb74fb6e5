/* SPDX-License-Identifier: Apache-2.0 */
#include "object/object.h"

#include <fcntl.h>
#include <libelf.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/str.h"
#include "object/test-check.h"
#include "object/test-elf.h"

#include "unit.h"

enum { F = MAKE_TEXT, COMPRESS_ZSTD = 2 };

/* The FDEs of two functions, in which there is a bit of everything. */
static void make_frames(struct cfi_make *c)
{
	static const char program[] =
		"\x41\x0e\x10\x86\x02\x43\x0d\x06\x0a\x42\x0c\x07\x08\x41\x0b"
		"\x44\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00\x42\x09\x10\x05";

	*c = (struct cfi_make){.addr = MAKE_FRAMES, .eh = true};
	cfi_make_usual_cie(c);
	cfi_make_fde(c, F, 0x100, program, sizeof(program) - 1);
	cfi_make_fde(c, F + 0x100, 0x100, "\x0e\x20", 2);
	put(&c->out, 0, 4);
}

/* A file with frames and sections. */
static void make_usual(struct made *m)
{
	struct cfi_make c;

	make_frames(&c);
	made_usual(m, &c.out);
}

/* Code that has no unwind information: a function with a branch and a switch, and some others. */
static const uint8_t scanned_code[] = {
	0x55,                                     // 00 push %rbp
	0x53,                                     // 01 push %rbx
	0x48, 0x83, 0xec, 0x18,                   // 02 sub $0x18,%rsp
	0x48, 0x89, 0xfd,                         // 06 mov %rdi,%rbp
	0x74, 0x10,                               // 09 je 1b
	0x48, 0x8d, 0x05, 0,    7,    0,    0,    // 0b lea 0x700(%rip),%rax
	0x3e, 0xff, 0xe0,                         // 12 notrack jmp *%rax
	0xff, 0xd7,                               // 15 call *%rdi, in a case of the switch
	0xeb, 0x02,                               // 17 jmp 1b
	0x0f, 0x0b,                               // 19 ud2
	0x48, 0x83, 0xc4, 0x18,                   // 1b add $0x18,%rsp
	0x5b,                                     // 1f pop %rbx
	0x5d,                                     // 20 pop %rbp
	0xc3,                                     // 21 ret
	0x0f, 0x1f, 0x44, 0,    0,                // 22 nop
	0xb8, 15,   0,    0,    0,    0x0f, 0x05, // 27 mov $15,%eax; syscall
	0x90, 0x90,                               // 2e
	0x31, 0xed, 0x48, 0x89, 0xe7,             // 30 xor %ebp,%ebp; mov %rsp,%rdi
	0x48, 0x83, 0xe4, 0xf0,                   // 35 and $-16,%rsp
	0xe8, 0xc2, 255,  255,  255,  0xf4,       // 39 call 00; hlt
};

enum { SCANNED_RETURN = 0x27, SCANNED_ENTRY = 0x30 };

static void make_scanned(struct made *m)
{
	Elf64_Sym symbols[] = {{0},
			       {.st_name = 1,
				.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				.st_shndx = 1,
				.st_value = F,
				.st_size = 0x22}};

	made_init(m);
	made_section(m, ".text", F, scanned_code, sizeof(scanned_code))->sh_flags |= SHF_EXECINSTR;
	Elf64_Shdr *table = made_section(m, ".symtab", 0x1800, symbols, sizeof(symbols));
	table->sh_type = SHT_SYMTAB;
	table->sh_flags = 0;
	made_section(m, ".strtab", 0x1900, "\0function", 10)->sh_flags = 0;
	made_segment(m, PT_LOAD, PF_R | PF_X, F, sizeof(scanned_code));
	m->entry = F + SCANNED_ENTRY;
}

/* A .plt with a head and two stubs, made the classic way. */
static void make_stubs(struct made *m)
{
	static const uint8_t head[16] = {0xff, 0x35, 0, 0, 0,    0,    0xff, 0x25,
					 0,    0,    0, 0, 0x0f, 0x1f, 0x40};
	static const uint8_t stub[16] = {0xff, 0x25, 0, 0, 0, 0, 0x68, 0, 0, 0, 0, 0xe9};
	struct writer plt = {.size = 0};

	put_bytes(&plt, head, sizeof(head));
	put_bytes(&plt, stub, sizeof(stub));
	put_bytes(&plt, stub, sizeof(stub));
	make_usual(m);
	made_section(m, ".plt", 0x1f00, plt.data, plt.size)->sh_flags |= SHF_EXECINSTR;
}

/* A packed .debug_frame: HOW is SHF_COMPRESSED's type, or 0 for .zdebug_frame. */
static void make_packed(struct made *m, uint32_t how)
{
	struct cfi_make c = {.addr = 0};
	struct writer out = {.size = 0};
	uint8_t packed[1024];
	size_t size = sizeof(packed);
	uLongf zlib_size = sizeof(packed);

	make_usual(m);
	cfi_make_usual_cie(&c);
	cfi_make_fde(&c, F + 0x400, 0x100, "\x0e\x40", 2);
	if (how == COMPRESS_ZSTD) {
		size = ZSTD_compress(packed, size, c.out.data, c.out.size, 3);
		assert_false(ZSTD_isError(size));
	} else {
		assert_int_equal(compress(packed, &zlib_size, c.out.data, c.out.size), Z_OK);
		size = zlib_size;
	}
	if (how) {
		Elf64_Chdr header = {.ch_type = how, .ch_size = c.out.size, .ch_addralign = 1};
		put_bytes(&out, &header, sizeof(header));
	} else {
		put_bytes(&out, "ZLIB", 4);
		put(&out, 0, 4);
		put(&out, __builtin_bswap32((uint32_t)c.out.size), 4);
	}
	put_bytes(&out, packed, size);
	made_section(m, how ? ".debug_frame" : ".zdebug_frame", 0x3000, out.data, out.size)
		->sh_flags = how ? SHF_COMPRESSED : 0;
}

/* The shapes that damage is done to; these are the corpus of the fuzz target too. */
static void make_shape(struct made *m, int shape)
{
	switch (shape) {
	case 0:
		make_usual(m);
		break;
	case 1:
		make_scanned(m);
		break;
	case 2:
		make_stubs(m);
		break;
	case 3:
		make_packed(m, ELFCOMPRESS_ZLIB);
		break;
	default:
		make_packed(m, COMPRESS_ZSTD);
		break;
	}
	made_finish(m);
}

enum { SHAPES = 5 };
static const char *const corpus[SHAPES] = {"frames", "code", "stubs", "zlib", "zstd"};

static void open_made(struct made *m, struct object **ret)
{
	made_finish(m);
	ASSERT_OK(object_open_memory(m->data, m->size, "made", ret));
}

static const struct unwind_rule *rule_at(const struct rows *rows, uint64_t addr)
{
	const struct unwind_rule *rule = rows_find(rows, addr);

	assert_non_null(rule);
	return rule;
}

TEST(a_build_id_is_who_an_object_is)
{
	static const uint8_t want[] = {1, 2, 3, 4, 5, 6, 7, 8};
	_cleanup_(made_deinit) struct made m;
	_cleanup_object_ struct object *object = NULL;

	make_usual(&m);
	open_made(&m, &object);
	const struct object_id *id = object_id(object);
	ASSERT_EQ(id->length, sizeof(want));
	ASSERT_EQ(id->hashed, 0);
	assert_memory_equal(id->data, want, sizeof(want));
}

/* Notes that are no build id, or none that says something. */
TEST(other_notes_and_empty_ids_are_passed_over)
{
	static const struct {
		uint32_t type;
		const char *name;
		size_t size;
		uint8_t first;
	} notes[] = {{1, "GNU", 8, 1},
		     {3, "Go\0", 8, 1},
		     {3, "GNU", 8, 0},
		     {3, "GNU", 0, 0},
		     {4, "Go\0", 83, 'a'}};

	for (size_t i = 0; i < ARRAY_COUNT(notes); i++) {
		_cleanup_(made_deinit) struct made m;
		_cleanup_object_ struct object *object = NULL;
		struct writer note = {.size = 0};
		put(&note, 4, 4);
		put(&note, notes[i].size, 4);
		put(&note, notes[i].type, 4);
		put_bytes(&note, notes[i].name, 4);
		for (size_t k = 0; k < notes[i].size; k++)
			put(&note, notes[i].first, 1);
		made_init(&m);
		made_section(&m, ".note", 0x400, note.data, note.size)->sh_type = SHT_NOTE;
		made_segment(&m, PT_NOTE, PF_R, 0x400, note.size);
		open_made(&m, &object);
		ASSERT_EQ(object_id(object)->hashed, 1);
		ASSERT_EQ(object_id(object)->length, 16);
	}
}

TEST(a_long_build_id_is_hashed_whole)
{
	struct object_id ids[3];

	for (int i = 0; i < 3; i++) {
		_cleanup_(made_deinit) struct made m;
		_cleanup_object_ struct object *object = NULL;
		struct writer note = {.size = 0};
		put(&note, 4, 4);
		put(&note, 32, 4);
		put(&note, 3, 4);
		put_text(&note, "GNU");
		for (int k = 0; k < 32; k++)
			put(&note, k == 31 ? (uint64_t)i / 2 : 7, 1);
		made_init(&m);
		made_segment(&m, PT_NOTE, PF_R, 0x400, note.size);
		memcpy(m.data + 0x400, note.data, note.size);
		open_made(&m, &object);
		ids[i] = *object_id(object);
	}
	ASSERT_EQ(ids[0].length, 16);
	ASSERT_TRUE(object_id_equal(&ids[0], &ids[1]));
	ASSERT_FALSE(object_id_equal(&ids[0], &ids[2]));
}

TEST(without_a_build_id_the_content_is_who_an_object_is)
{
	struct object_id ids[3];

	for (int i = 0; i < 3; i++) {
		_cleanup_(made_deinit) struct made m;
		_cleanup_object_ struct object *object = NULL;
		made_init(&m);
		made_section(&m, ".data", 0x5000, "x", 1);
		m.data[0x4abc] = i == 2;
		open_made(&m, &object);
		ids[i] = *object_id(object);
	}
	ASSERT_EQ(ids[0].hashed, 1);
	ASSERT_TRUE(object_id_equal(&ids[0], &ids[1]));
	ASSERT_EQ(object_id_hash(&ids[0]), object_id_hash(&ids[1]));
	ASSERT_FALSE(object_id_equal(&ids[0], &ids[2]));
}

TEST(addresses_follow_the_program_headers)
{
	static const struct {
		uint64_t offset, addr;
		bool found;
	} cases[] = {{0x1000, 0x401000, true}, {0x1fff, 0x401fff, true},
		     {0x2000, 0x602000, true}, // the page holds the end of text and the data
		     {0x2345, 0x602345, true}, {0x2400, 0, false},
		     {0x9000, 0, false}};
	_cleanup_(made_deinit) struct made m;
	_cleanup_object_ struct object *object = NULL;
	uint64_t addr;
	uint8_t byte;

	made_init(&m);
	made_segment(&m, PT_LOAD, PF_R | PF_X, 0x1000, 0x1000);
	made_segment(&m, PT_LOAD, PF_R | PF_W, 0x2340, 0xc0);
	m.segments[0].p_vaddr = 0x401000;
	m.segments[1].p_vaddr = 0x602340;
	m.segments[1].p_memsz = 0x1000;
	m.data[0x2350] = 42;
	open_made(&m, &object);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		ASSERT_EQ(object_addr_of_offset(object, cases[i].offset, &addr), cases[i].found);
		if (cases[i].found)
			ASSERT_EQ(addr, cases[i].addr);
	}
	ASSERT_TRUE(object_read(object, 0x602350, &byte, 1) && byte == 42);
	ASSERT_FALSE(object_read(object, 0x602400, &byte, 1)); // in memory, not in the file
}

TEST(packed_sections_are_read_as_if_they_were_not)
{
	static const uint32_t hows[] = {0, ELFCOMPRESS_ZLIB, COMPRESS_ZSTD};

	for (size_t i = 0; i < ARRAY_COUNT(hows); i++) {
		_cleanup_(made_deinit) struct made m;
		_cleanup_object_ struct object *object = NULL;
		_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
		struct bytes b, again;
		make_packed(&m, hows[i]);
		open_made(&m, &object);
		ASSERT_TRUE(object_section(object, ".debug_frame", &b, NULL));
		ASSERT_TRUE(object_section(object, ".debug_frame", &again, NULL));
		ASSERT_EQ(b.start, again.start);
		ASSERT_OK(rows_compile(object, &rows));
		ASSERT_EQ(rule_at(&rows, F + 0x400)->offset, 0x40);
	}
}

/* The stated size is wrong, absurd, or the method unknown. */
TEST(packed_sections_that_lie_are_none)
{
	static const struct {
		size_t at;
		uint64_t value;
	} lies[] = {{8, 1}, {8, 1 << 20}, {8, 1ull << 40}, {8, UINT64_MAX}, {0, 3}, {24, 0x55}};

	for (size_t i = 0; i < ARRAY_COUNT(lies); i++) {
		_cleanup_(made_deinit) struct made m;
		_cleanup_object_ struct object *object = NULL;
		struct bytes b;
		make_packed(&m, ELFCOMPRESS_ZLIB);
		memcpy(m.data + 0x3000 + lies[i].at, &lies[i].value, lies[i].at == 8 ? 8 : 4);
		open_made(&m, &object);
		ASSERT_FALSE(object_section(object, ".debug_frame", &b, NULL));
	}
}

TEST(a_section_that_the_file_does_not_hold_is_none)
{
	_cleanup_(made_deinit) struct made m;
	_cleanup_object_ struct object *object = NULL;
	struct bytes b;

	made_init(&m);
	made_section(&m, ".nobits", 0x1000, "", 0)->sh_type = SHT_NOBITS;
	made_section(&m, ".outside", 0x1000, "", 0)->sh_size = 1 << 20;
	made_section(&m, ".far", 0x1000, "", 0)->sh_offset = UINT64_MAX - 8;
	made_section(&m, ".empty", 0x1000, "", 0);
	open_made(&m, &object);
	ASSERT_FALSE(object_section(object, ".nobits", &b, NULL));
	ASSERT_FALSE(object_section(object, ".outside", &b, NULL));
	ASSERT_FALSE(object_section(object, ".far", &b, NULL));
	ASSERT_FALSE(object_section(object, ".none", &b, NULL));
	ASSERT_TRUE(object_section(object, ".empty", &b, NULL));
	ASSERT_EQ(bytes_left(&b), 0);
}

/* A file with the bytes of M, without a name. */
static int file_of(const struct made *m)
{
	int fd = memfd_create("object", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, m->data, m->size), (ssize_t)m->size);
	return fd;
}

TEST(a_file_is_consumed_if_it_opens_and_stays_the_callers_if_not)
{
	_cleanup_(made_deinit) struct made m;
	struct object *object = NULL;

	make_usual(&m);
	made_finish(&m);
	int fd = file_of(&m);
	ASSERT_OK(object_open(fd, "file", &object));
	ASSERT_TRUE(object_elf(object) && elf_kind(object_elf(object)) == ELF_K_ELF);
	object_free(object);
	ASSERT_EQ(fcntl(fd, F_GETFD), -1);

	m.data[0] = 'x';
	fd = file_of(&m);
	ASSERT_FAILS(object_open(fd, "file", &object), "not an ELF file");
	ASSERT_EQ(close(fd), 0);
}

TEST(a_file_that_is_cut_while_it_is_open_does_no_harm)
{
	_cleanup_(made_deinit) struct made m;
	_cleanup_object_ struct object *object = NULL;
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
	struct bytes b;

	make_usual(&m);
	made_finish(&m);
	int fd = file_of(&m);
	ASSERT_OK(object_open(fd, "file", &object));
	ASSERT_EQ(ftruncate(fd, 0x1800), 0);
	ASSERT_FALSE(object_section(object, ".eh_frame", &b, NULL));
	ASSERT_FALSE(object_at(object, MAKE_FRAMES, &b));
	ASSERT_OK(rows_compile(object, &rows));
	check_rows(&rows);
}

TEST(what_is_no_regular_file_is_refused)
{
	struct object *object;
	int fds[2];

	ASSERT_EQ(pipe(fds), 0);
	ASSERT_FAILS(object_open(fds[0], "pipe", &object), "not a regular file");
	close(fds[0]);
	close(fds[1]);
}

TEST(objects_of_other_machines_have_an_identity_and_no_rows)
{
	_cleanup_(made_deinit) struct made m;
	_cleanup_object_ struct object *object = NULL;
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;

	make_usual(&m);
	made_finish(&m);
	((Elf64_Ehdr *)(void *)m.data)->e_machine = EM_AARCH64;
	ASSERT_OK(object_open_memory(m.data, m.size, "made", &object));
	ASSERT_EQ(object_machine(object), EM_AARCH64);
	ASSERT_EQ(object_id(object)->length, 8);
	ASSERT_OK(rows_compile(object, &rows));
	ASSERT_EQ(rows.count, 0);
}

TEST(a_32_bit_object_of_the_other_byte_order_opens)
{
	// Only the headers, as a MIPS file would have them.
	uint8_t data[64] = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2MSB, 1};
	_cleanup_object_ struct object *object = NULL;
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;

	data[19] = EM_MIPS;
	data[24] = 0x12; // entry
	ASSERT_OK(object_open_memory(data, sizeof(data), "made", &object));
	ASSERT_FALSE(object_is_64(object));
	ASSERT_EQ(object_machine(object), EM_MIPS);
	ASSERT_EQ(object_entry(object), 0x12000000);
	ASSERT_OK(rows_compile(object, &rows));
	ASSERT_EQ(rows.count, 0);
}

TEST(an_object_without_any_information_has_no_rows)
{
	_cleanup_(made_deinit) struct made m;
	_cleanup_object_ struct object *object = NULL;
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;

	made_init(&m);
	memset(m.data + F, 0x06, 0x100); // no instruction
	made_segment(&m, PT_LOAD, PF_R | PF_X, F, 0x100);
	m.no_sections = true;
	open_made(&m, &object);
	ASSERT_OK(rows_compile(object, &rows));
	ASSERT_EQ(rows.count, 0);
	ASSERT_EQ(rows_find(&rows, F), NULL);
}

TEST(jump_stubs_are_known_by_their_shape)
{
	_cleanup_(made_deinit) struct made m;
	_cleanup_object_ struct object *object = NULL;
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;

	make_stubs(&m);
	open_made(&m, &object);
	ASSERT_OK(rows_compile(object, &rows));
	ASSERT_EQ(rule_at(&rows, 0x1f00)->offset, 16);
	ASSERT_EQ(rule_at(&rows, 0x1f06)->offset, 24);
	ASSERT_EQ(rule_at(&rows, 0x1f10)->cfa, UNWIND_CFA_plt);
	ASSERT_EQ(rule_at(&rows, 0x1f10)->aux, 11);
	ASSERT_EQ(rule_at(&rows, 0x1f2f)->cfa, UNWIND_CFA_plt);
}

TEST(code_without_information_is_read)
{
	static const struct {
		uint64_t at;
		int32_t cfa;
		int16_t fp; /* 0: the caller's still */
	} cases[] = {{0x00, 8, 0},    {0x01, 16, -16}, {0x02, 24, -16}, {0x06, 48, -16},
		     {0x09, 48, -16}, {0x15, 48, -16}, {0x1b, 48, -16}, {0x1f, 24, -16},
		     {0x20, 16, -16}, {0x21, 8, 0}};
	_cleanup_(made_deinit) struct made m;
	_cleanup_object_ struct object *object = NULL;
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;

	make_scanned(&m);
	open_made(&m, &object);
	ASSERT_OK(rows_compile(object, &rows));
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		const struct unwind_rule *rule = rule_at(&rows, F + cases[i].at);
		if (rule->cfa != UNWIND_CFA_reg || rule->offset != cases[i].cfa ||
		    rule->fp != (cases[i].fp ? UNWIND_FP_cfa : UNWIND_FP_same) ||
		    rule->fp_offset != cases[i].fp)
			fail_msg("at 0x%lx: kind %u, %d, fp %u %d", (long)cases[i].at, rule->cfa,
				 rule->offset, rule->fp, rule->fp_offset);
	}
	ASSERT_EQ(rule_at(&rows, F + SCANNED_RETURN - 1)->cfa, UNWIND_CFA_signal);
	ASSERT_EQ(rule_at(&rows, F + SCANNED_RETURN)->cfa, UNWIND_CFA_signal);
	ASSERT_EQ(rule_at(&rows, F + SCANNED_ENTRY + 13)->cfa, UNWIND_CFA_root);
}

TEST(a_file_cut_anywhere_does_no_harm)
{
	unsigned with_rows = 0;

	for (int shape = 0; shape < SHAPES; shape++) {
		_cleanup_(made_deinit) struct made m;
		make_shape(&m, shape);
		for (size_t size = 0; size <= m.size; size++) {
			// In memory of just that size, so that reading on is seen.
			_cleanup_free_ uint8_t *data = malloc(size ? size : 1);
			memcpy(data, m.data, size);
			with_rows += check_object(data, size);
		}
	}
	ASSERT_TRUE(with_rows > SHAPES);
}

TEST(flipped_bits_do_no_harm)
{
	uint64_t seed = 20240229;
	unsigned with_rows = 0;

	for (int i = 0; i < 5000; i++) {
		_cleanup_(made_deinit) struct made m;
		make_shape(&m, i % SHAPES);
		for (int k = 0; k < 1 + i % 4; k++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			// Where there is something: the first and the last pages are headers.
			size_t at = (seed >> 33) % m.size;
			while (!m.data[at] && at > 0)
				at--;
			m.data[at] ^= 1 << (seed >> 29 & 7);
		}
		with_rows += check_object(m.data, m.size);
	}
	ASSERT_TRUE(with_rows > 2500);
}

/* With CAIRN_WRITE_CORPUS set the files are written instead. */
TEST(the_fuzz_corpus_is_what_is_built_here)
{
	const char *tests = getenv("CAIRN_TESTS");

	if (!tests)
		SKIP("CAIRN_TESTS does not say where the corpus is");
	for (int i = 0; i < SHAPES; i++) {
		_cleanup_(made_deinit) struct made m;
		_cleanup_free_ char *path = NULL, *data = NULL;
		size_t size;
		make_shape(&m, i);
		ASSERT_OK(str_format(&path, "%s/corpus/object/%s", tests, corpus[i]));
		if (getenv("CAIRN_WRITE_CORPUS")) {
			_cleanup_fclose_ FILE *file = fopen(path, "we");
			ASSERT_TRUE(file != NULL);
			ASSERT_EQ(fwrite(m.data, 1, m.size, file), m.size);
			continue;
		}
		ASSERT_OK(file_read(AT_FDCWD, path, MADE_ROOM, &data, &size));
		// How well libraries pack differs between their versions.
		if (i >= 3)
			continue;
		ASSERT_EQ(size, m.size);
		assert_memory_equal(data, m.data, size);
	}
}

RUN_TESTS(UNIT_TEST(a_build_id_is_who_an_object_is),
	  UNIT_TEST(other_notes_and_empty_ids_are_passed_over),
	  UNIT_TEST(a_long_build_id_is_hashed_whole),
	  UNIT_TEST(without_a_build_id_the_content_is_who_an_object_is),
	  UNIT_TEST(addresses_follow_the_program_headers),
	  UNIT_TEST(packed_sections_are_read_as_if_they_were_not),
	  UNIT_TEST(packed_sections_that_lie_are_none),
	  UNIT_TEST(a_section_that_the_file_does_not_hold_is_none),
	  UNIT_TEST(a_file_is_consumed_if_it_opens_and_stays_the_callers_if_not),
	  UNIT_TEST(a_file_that_is_cut_while_it_is_open_does_no_harm),
	  UNIT_TEST(what_is_no_regular_file_is_refused),
	  UNIT_TEST(objects_of_other_machines_have_an_identity_and_no_rows),
	  UNIT_TEST(a_32_bit_object_of_the_other_byte_order_opens),
	  UNIT_TEST(an_object_without_any_information_has_no_rows),
	  UNIT_TEST(jump_stubs_are_known_by_their_shape),
	  UNIT_TEST(code_without_information_is_read), UNIT_TEST(a_file_cut_anywhere_does_no_harm),
	  UNIT_TEST(flipped_bits_do_no_harm), UNIT_TEST(the_fuzz_corpus_is_what_is_built_here))
