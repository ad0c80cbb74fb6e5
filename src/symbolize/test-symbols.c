/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols, PLT names, lines and inlined calls of real programs, compared with what nm, objdump and
 * addr2line say about them. Programs are built here, in a directory that stands for the root.
 */
#include "symbolize/symbolizer.h"

#include "base/array.h"
#include "symbolize/debuginfod.h"
#include "symbolize/test-world.h"

static const char plain_source[] =
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"#include <string.h>\n"
	"__attribute__((noinline)) static int local_one(int a) { return a * 7 + getpid_like(); }\n"
	"int getpid_like(void) { return rand(); }\n"
	"__attribute__((weak)) int weak_one(int a) { return local_one(a) ^ 3; }\n"
	"int __noisy(int a) { return weak_one(a) + local_one(a + 1); }\n"
	"int quiet(int a) __attribute__((alias(\"__noisy\")));\n"
	"asm(\".text\\n.globl unsized\\nunsized: nop\\nnop\\nret\\n.type sized,@function\\n\"\n"
	"    \"sized: nop\\ninner: nop\\nret\\n.size sized,.-sized\\n\");\n"
	"int main(int argc, char **argv) {\n"
	"	char *copy = strdup(argv[0]);\n"
	"	printf(\"%d %s\\n\", quiet(argc), copy);\n"
	"	free(copy);\n"
	"	return 0;\n"
	"}\n";

static void build_plain(struct world *world, const char *flags)
{
	_cleanup_free_ char *source = NULL;

	ASSERT_OK(str_format(&source, "int getpid_like(void);\n%s", plain_source));
	write_file(world, "plain.c", source);
	MUST_RUN(world, "gcc -O1 %s -o plain plain.c", flags);
}

/* One line of nm: a name at an address. */
struct nm_line {
	unsigned long long addr, size;
	char type;
	char name[1024];
};

/* Is FOUND what some line of the file nm wrote says about ADDR? */
static bool nm_agrees(const char *path, uint64_t addr, const char *found)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	char line[2048];
	struct nm_line at;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %llx %c %1023s", &at.addr, &at.size, &at.type, at.name) ==
			    4 &&
		    at.addr == addr) {
			at.name[strcspn(at.name, "@")] = 0;
			if (!strcmp(at.name, found))
				return true;
		}
	return false;
}

/* Every sized function that nm lists is found by its first and its last byte. Returns how many. */
static unsigned compare_with_nm(struct world *world, const char *nm_options, const char *file)
{
	_cleanup_free_ char *list = NULL;
	char line[2048];
	struct nm_line at;
	unsigned compared = 0;

	MUST_RUN(world, "nm -S --defined-only %s %s >nm.txt", nm_options, file);
	ASSERT_OK(str_format(&list, "%s/nm.txt", world->root));
	_cleanup_fclose_ FILE *f = fopen(list, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx %llx %c %1023s", &at.addr, &at.size, &at.type, at.name) !=
			    4 ||
		    !strchr("tTwW", at.type))
			continue;
		const char *first = name_at(world, at.addr);
		ASSERT_TRUE(world->found[0].named && world->found[0].identified);
		ASSERT_EQ(world->found[0].start, at.addr);
		if (!nm_agrees(list, at.addr, first))
			fail_msg("0x%llx is %s, found %s", at.addr, at.name, first);
		name_at(world, at.addr + at.size - 1);
		ASSERT_TRUE(world->found[0].named);
		compared++;
	}
	return compared;
}

TEST(every_function_is_found_as_nm_has_it)
{
	struct world world;

	world_begin(&world);
	build_plain(&world, "");
	open_program(&world, "plain", false);
	ASSERT_TRUE(compare_with_nm(&world, "", "plain") >= 6);
	world_end(&world);
}

TEST(the_better_of_two_names_is_shown)
{
	struct world world;

	world_begin(&world);
	build_plain(&world, "");
	open_program(&world, "plain", false);
	ASSERT_STREQ(name_at(&world, addr_of(&world, "plain", "quiet") + 1), "quiet");
	uint64_t unsized = addr_of(&world, "plain", "unsized");
	uint64_t sized = addr_of(&world, "plain", "sized");
	ASSERT_STREQ(name_at(&world, unsized), "unsized");
	ASSERT_STREQ(name_at(&world, sized - 1), "unsized");
	ASSERT_STREQ(name_at(&world, sized), "sized");
	// "inner" is a label inside of it.
	ASSERT_STREQ(name_at(&world, sized + 1), "sized");
	ASSERT_STREQ(name_at(&world, sized + 2), "sized");
	ASSERT_OK(symbolize_object(world.symbols, sized + 3, true, world.found, &world.count));
	ASSERT_STREQ(world.found[0].function, "sized");
	ASSERT_EQ(world.found[0].start, sized);
	ASSERT_EQ(world.found[0].kind, KIND_native);
	world_end(&world);
}

TEST(a_pc_outside_every_function_belongs_to_none)
{
	struct world world;

	world_begin(&world);
	build_plain(&world, "");
	open_program(&world, "plain", false);
	ASSERT_STREQ(name_at(&world, 0), "(/plain)");
	ASSERT_FALSE(world.found[0].named || world.found[0].identified);
	ASSERT_STREQ(name_at(&world, UINT64_MAX), "(/plain)");
	ASSERT_STREQ(name_at(&world, UINT64_MAX >> 8), "(/plain)");
	uint64_t start;
	ASSERT_TRUE(object_addr_of_offset(world.object, 0, &start));
	ASSERT_STREQ(name_at(&world, start + 0x10), "(/plain)"); // the ELF header
	world_end(&world);
}

TEST(without_a_name_the_start_of_the_function_is_shown)
{
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
	struct symbol_place place = {.path = "/plain", .pid = 7, .rows = &rows};
	_cleanup_free_ char *wanted = NULL;
	struct symbol_object *symbols;
	struct symbol found[SYMBOLS_MAX];
	struct world world;
	size_t count;

	world_begin(&world);
	build_plain(&world, "");
	uint64_t local = addr_of(&world, "plain", "local_one");
	uint64_t noisy = addr_of(&world, "plain", "__noisy");
	MUST_RUN(&world, "strip plain");
	open_program(&world, "plain", false);
	ASSERT_OK(rows_compile(world.object, &rows));
	struct symbol_object *first = world.symbols;
	ASSERT_OK(symbolizer_object(world.symbolizer, world.object, &place, &symbols));
	ASSERT_TRUE(symbols == first);
	symbol_object_free(symbols);
	ASSERT_OK(symbolizer_object(world.symbolizer, world.object, &place, &symbols));

	ASSERT_OK(str_format(&wanted, "(/plain+0x%llx)", (unsigned long long)local));
	ASSERT_OK(symbolize_object(symbols, local + 3, false, found, &count));
	ASSERT_EQ(count, 1);
	ASSERT_STREQ(found[0].function, wanted);
	ASSERT_TRUE(found[0].identified && !found[0].named);
	ASSERT_EQ(found[0].start, local);
	// A return address at the very start of a function belongs to the one before.
	ASSERT_OK(symbolize_object(symbols, noisy, true, found, &count));
	ASSERT_TRUE(found[0].start < noisy);
	rows_deinit(&rows);
	world_end(&world);
}

/* "*ABS*+0x9c6a0@plt" of objdump: is FOUND, less its "@plt", what nm calls the resolver there? */
static bool is_resolver(const struct world *world, const char *name, const char *found)
{
	_cleanup_free_ char *list = NULL;
	_cleanup_free_ char *bare = NULL;

	ASSERT_OK(str_format(&list, "%s/nm.txt", world->root));
	ASSERT_OK(str_copy(&bare, found));
	ASSERT_TRUE(str_ends(bare, "@plt"));
	bare[strlen(bare) - 4] = 0;
	return nm_agrees(list, strtoull(name + strlen("*ABS*+"), NULL, 16), bare);
}

/* Every "<name@plt>:" of objdump is found under that name. */
static unsigned compare_plt(struct world *world, const char *file)
{
	_cleanup_free_ char *list = NULL;
	unsigned long long addr;
	char name[512];
	unsigned compared = 0;

	MUST_RUN(world,
		 "objdump -d %s | sed -n 's/^\\([0-9a-f]*\\) <\\(.*@plt\\)>:/\\1 \\2/p' >plt.txt",
		 file);
	ASSERT_OK(str_format(&list, "%s/plt.txt", world->root));
	_cleanup_fclose_ FILE *f = fopen(list, "re");
	while (f && fscanf(f, "%llx %511s", &addr, name) == 2) {
		const char *found = name_at(world, addr);
		if (!str_starts(name, "*ABS*"))
			ASSERT_STREQ(found, name);
		else if (!is_resolver(world, name, found))
			fail_msg("%s was found as %s", name, found);
		ASSERT_EQ(world->found[0].start, addr);
		ASSERT_STREQ(name_at(world, addr + 7), found);
		compared++;
	}
	return compared;
}

TEST(plt_stubs_have_the_names_that_objdump_gives_them)
{
	static const char *const flags[] = {
		"-fcf-protection=none -Wl,-z,lazy",
		"-fcf-protection=none -Wl,-z,now",
		"-fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy",
		"-fcf-protection=full -Wl,-z,ibtplt -Wl,-z,now",
		"-no-pie -fcf-protection=none",
		"-s -fcf-protection=full",
	};
	struct world world;

	world_begin(&world);
	for (size_t i = 0; i < ARRAY_COUNT(flags); i++) {
		build_plain(&world, flags[i]);
		open_program(&world, "plain", false);
		unsigned compared = compare_plt(&world, "plain");
		print_message("%s: %u stubs\n", flags[i], compared);
		ASSERT_TRUE(compared >= 4);
	}
	world_end(&world);
}

TEST(a_stripped_program_is_named_by_its_debug_file)
{
	static const struct {
		const char *place; /* of the debug file */
		const char *flags;
	} cases[] = {
		{"plain.debug", "-Wl,--build-id=none"},
		{".debug/plain.debug", "-Wl,--build-id=none"},
		{"usr/lib/debug/plain.debug", "-Wl,--build-id=none"},
		{"plain.debug", "-Wl,--build-id=sha1"},
		{"usr/lib/debug/.build-id/ab/cdef0123456789.debug",
		 "-Wl,--build-id=0xabcdef0123456789"},
	};
	struct world world;

	world_begin(&world);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		MUST_RUN(&world, "rm -rf usr .debug; mkdir -p .debug usr/lib/debug/.build-id/ab");
		build_plain(&world, cases[i].flags);
		MUST_RUN(&world, "cp plain full; objcopy --only-keep-debug plain plain.debug");
		MUST_RUN(&world, "strip plain; objcopy --add-gnu-debuglink=plain.debug plain");
		MUST_RUN(&world, "mv -n plain.debug %s || test -e %s", cases[i].place,
			 cases[i].place);
		open_program(&world, "plain", false);
		ASSERT_TRUE(compare_with_nm(&world, "", "full") >= 6);
		ASSERT_EQ(world.opened, 1);
		world.opened = 0;
	}
	world_end(&world);
}

TEST(a_debug_file_that_is_not_the_right_one_is_not_used)
{
	struct world world;

	world_begin(&world);
	for (int build_id = 0; build_id < 2; build_id++) {
		build_plain(&world, build_id ? "" : "-Wl,--build-id=none");
		MUST_RUN(&world, "objcopy --only-keep-debug plain plain.debug; cp plain full");
		MUST_RUN(&world, "strip plain; objcopy --add-gnu-debuglink=plain.debug plain");
		uint64_t addr = addr_of(&world, "full", "local_one");
		open_program(&world, "plain", false);
		ASSERT_STREQ(name_at(&world, addr), "local_one");
		if (build_id)
			MUST_RUN(&world, "gcc -g -o other plain.c && "
					 "objcopy --only-keep-debug other plain.debug");
		else
			MUST_RUN(&world, "printf x >>plain.debug");
		open_program(&world, "plain", false);
		ASSERT_STREQ(name_at(&world, addr), "(/plain)");
	}
	MUST_RUN(&world, "rm plain.debug; mkfifo plain.debug");
	open_program(&world, "plain", false);
	ASSERT_STREQ(name_at(&world, 0x1200), "(/plain)");
	world_end(&world);
}

static void build_minidebug(struct world *world, const char *xz)
{
	build_plain(world, "-Wl,--build-id=none");
	MUST_RUN(world,
		 "cp plain full; objcopy -S --remove-section .comment plain mini 2>/dev/null; "
		 "objcopy --only-keep-debug plain mini");
	MUST_RUN(world, "%s mini -c >mini.xz; strip plain", xz);
	MUST_RUN(world, "objcopy --add-section .gnu_debugdata=mini.xz plain");
}

TEST(minidebuginfo_names_what_was_stripped)
{
	struct world world;

	world_begin(&world);
	if (!run(&world, "xz --version"))
		SKIP("no xz");
	build_minidebug(&world, "xz");
	open_program(&world, "plain", false);
	ASSERT_TRUE(compare_with_nm(&world, "", "full") >= 6);

	// One that claims to need more memory than it gets, and one that is cut.
	uint64_t addr = addr_of(&world, "full", "local_one");
	build_minidebug(&world, "xz --lzma2=dict=1GiB");
	open_program(&world, "plain", false);
	ASSERT_STREQ(name_at(&world, addr), "(/plain)");
	build_minidebug(&world, "xz");
	MUST_RUN(&world, "head -c 300 mini.xz >cut; objcopy --update-section "
			 ".gnu_debugdata=cut plain");
	open_program(&world, "plain", false);
	ASSERT_STREQ(name_at(&world, addr), "(/plain)");
	world_end(&world);
}

TEST(a_debug_server_is_asked_only_when_the_user_asked_for_it)
{
	struct symbolizer_options options = {0};
	struct symbol_place place = {.path = "/plain"};
	_cleanup_free_ char *url = NULL;
	_cleanup_free_ char *cache = NULL;
	struct symbol found[SYMBOLS_MAX];
	struct world world;
	size_t count;

	if (!debuginfod_is_built_in())
		SKIP("built without libdebuginfod");
	world_begin(&world);
	build_plain(&world, "-Wl,--build-id=0xabcdef0123456789");
	MUST_RUN(&world, "mkdir -p server/buildid/abcdef0123456789 && "
			 "objcopy --only-keep-debug plain "
			 "server/buildid/abcdef0123456789/debuginfo");
	uint64_t addr = addr_of(&world, "plain", "local_one");
	MUST_RUN(&world, "strip plain");
	ASSERT_OK(str_format(&url, "file://%s/server", world.root));
	ASSERT_OK(str_format(&cache, "%s/cache", world.root));
	setenv("DEBUGINFOD_URLS", url, 1);
	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	open_program(&world, "plain", false);
	for (int asked = 0; asked < 2; asked++) {
		_cleanup_symbolizer_ struct symbolizer *symbolizer = NULL;
		struct symbol_object *symbols;
		options.debuginfod = asked;
		ASSERT_OK(symbolizer_new(&options, &symbolizer));
		ASSERT_OK(symbolizer_object(symbolizer, world.object, &place, &symbols));
		ASSERT_OK(symbolize_object(symbols, addr, false, found, &count));
		ASSERT_STREQ(found[0].function, asked ? "local_one" : "(/plain)");
		ASSERT_EQ(access(cache, F_OK), asked ? 0 : -1);
	}
	world_end(&world);
}

TEST(the_c_library_of_this_machine_is_found_as_nm_has_it)
{
	struct world world;

	world_begin(&world);
	MUST_RUN(&world, "cp $(ldd /bin/true | awk '/libc.so/ { print $3 }') libc.so");
	open_program(&world, "libc.so", false);
	unsigned compared = compare_with_nm(&world, "-D", "libc.so");
	print_message("%u functions of libc, %zu bytes of tables\n", compared,
		      symbolizer_bytes(world.symbolizer));
	ASSERT_TRUE(compared > 1000);
	unsigned stubs = compare_plt(&world, "libc.so");
	print_message("%u stubs\n", stubs);
	ASSERT_TRUE(stubs >= 10);
	world_end(&world);
}

TEST(dropped_tables_come_back_with_the_same_names)
{
	struct world world;

	world_begin(&world);
	build_plain(&world, "");
	open_program(&world, "plain", true);
	uint64_t addr = addr_of(&world, "plain", "local_one");
	ASSERT_STREQ(name_at(&world, addr), "local_one");
	ASSERT_TRUE(symbolizer_bytes(world.symbolizer) > 0);
	symbolizer_trim(world.symbolizer);
	ASSERT_EQ(symbolizer_bytes(world.symbolizer), 0);
	ASSERT_STREQ(name_at(&world, addr), "local_one");
	object_release(world.object); // somebody else's use of the object
	ASSERT_STREQ(name_at(&world, addr), "local_one");
	world_end(&world);
}

RUN_TESTS(UNIT_TEST(every_function_is_found_as_nm_has_it),
	  UNIT_TEST(the_better_of_two_names_is_shown),
	  UNIT_TEST(a_pc_outside_every_function_belongs_to_none),
	  UNIT_TEST(without_a_name_the_start_of_the_function_is_shown),
	  UNIT_TEST(plt_stubs_have_the_names_that_objdump_gives_them),
	  UNIT_TEST(a_stripped_program_is_named_by_its_debug_file),
	  UNIT_TEST(a_debug_file_that_is_not_the_right_one_is_not_used),
	  UNIT_TEST(minidebuginfo_names_what_was_stripped),
	  UNIT_TEST(a_debug_server_is_asked_only_when_the_user_asked_for_it),
	  UNIT_TEST(the_c_library_of_this_machine_is_found_as_nm_has_it),
	  UNIT_TEST(dropped_tables_come_back_with_the_same_names))
