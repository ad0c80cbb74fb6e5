/* SPDX-License-Identifier: Apache-2.0 */
/* Source lines and inlined calls of real programs at every address, compared with addr2line. */
#include "symbolize/symbolizer.h"

#include <regex.h>

#include "base/array.h"
#include "symbolize/test-world.h"

static const char cpp_source[] =
	"#include <algorithm>\n"
	"#include <cstdio>\n"
	"#include <stdexcept>\n"
	"#include <string>\n"
	"#include <vector>\n"
	"namespace outer { namespace {\n"
	"struct counter {\n"
	"	int total = 0;\n"
	"	counter(int start) : total(start) { if (start > 900) throw "
	"std::runtime_error(\"x\"); }\n"
	"	int add(int x) { total += x; if (total > 1000) total /= 3; return total; }\n"
	"	template <typename T> T twice(T x) { return add((int)x) + add((int)x * 2); }\n"
	"};\n"
	"}\n"
	"inline int deepest(counter &c, int x) { return c.twice<long>(x) + c.add(1); }\n"
	"static inline int deeper(counter &c, int x) { return deepest(c, x) * deepest(c, x + 1); "
	"}\n"
	"__attribute__((noinline)) int work(std::vector<int> &v) {\n"
	"	counter c(v.size());\n"
	"	int sum = 0;\n"
	"	for (int x : v) sum += deeper(c, x);\n"
	"	std::sort(v.begin(), v.end(), [&](int a, int b) { return c.add(a) < c.add(b); });\n"
	"	if (sum == 12345) { std::fprintf(stderr, \"%d\\n\", sum); std::abort(); }\n"
	"	return sum;\n"
	"}\n"
	"}\n"
	"extern \"C\" int plain_c(int x) { return x * 3; }\n"
	"int main(int argc, char **argv) {\n"
	"	std::vector<int> v;\n"
	"	for (int i = 0; i < argc + 10; i++) v.push_back(i * 7 % 5);\n"
	"	std::string s(argv[0]);\n"
	"	return outer::work(v) + plain_c((int)s.size());\n"
	"}\n";

static const char c_source[] =
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"static inline int square(int x) { return x * x + rand(); }\n"
	"static inline int both(int a, int b)\n"
	"{\n"
	"	if (a > b)\n"
	"		return square(a) - square(b);\n"
	"	return square(b);\n"
	"}\n"
	"int outside(int a) { int outer_value = a; int nested(int b) { return b + outer_value; }\n"
	"	int (*volatile f)(int) = nested; return f(3) + both(a, 4); }\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	int sum = 0;\n"
	"	for (int i = 0; i < argc * 100; i++)\n"
	"		sum += both(i, argc) + outside(sum);\n"
	"	printf(\"%d\\n\", sum);\n"
	"	return 0;\n"
	"}\n";

static const char rust_source[] =
	"struct Tally { n: u64 }\n"
	"impl Tally {\n"
	"    #[inline(always)] fn add(&mut self, x: u64) -> u64 { self.n = self.n.wrapping_mul(31) "
	"+ x; self.n }\n"
	"}\n"
	"#[inline(never)] fn work(v: &[u64]) -> u64 {\n"
	"    let mut t = Tally { n: 1 };\n"
	"    v.iter().map(|x| t.add(*x)).filter(|x| x % 3 == 0).sum()\n"
	"}\n"
	"fn main() {\n"
	"    let v: Vec<u64> = std::env::args().map(|a| a.len() as u64).collect();\n"
	"    println!(\"{}\", work(&v));\n"
	"}\n";

struct line_text {
	char function[4096];
	char file[4096];
	unsigned line;
};

/* One pair of lines of addr2line -f. False: the next address, or the end, came. */
static bool read_pair(FILE *f, struct line_text *ret)
{
	long at = ftell(f);

	*ret = (struct line_text){0};
	if (!fgets(ret->function, sizeof(ret->function), f) || str_starts(ret->function, "0x") ||
	    !fgets(ret->file, sizeof(ret->file), f)) {
		fseek(f, at, SEEK_SET);
		return false;
	}
	ret->function[strcspn(ret->function, "\n")] = 0;
	char *colon = strrchr(ret->file, ':');
	ASSERT_TRUE(colon != NULL);
	ret->line = (unsigned)strtoul(colon + 1, NULL, 10);
	*colon = 0;
	return true;
}

/* The name without what each tool shows in its own way: blanks, the suffixes of clones. */
static void normalize(const char *name, char ret[4096])
{
	const char *end = strstr(name, " [clone ");
	size_t length = 0;

	if (!end)
		end = strstr(name, " (.");
	if (!end && !strchr(name, ':')) // "main.cold" of C
		end = strchr(name, '.');
	for (; *name && name != end && length < 4095; name++)
		if (*name != ' ')
			ret[length++] = *name;
	ret[length] = 0;
}

static bool same_function(const char *found, const char *wanted)
{
	char a[4096], b[4096];

	normalize(found, a);
	normalize(wanted, b);
	// Without a linkage name (functions of anonymous namespaces) the others show no scope.
	size_t a_length = strlen(a), b_length = strlen(b);
	bool scoped = a_length > b_length + 2 && !strncmp(a + a_length - b_length - 2, "::", 2);
	return !strcmp(scoped ? a + a_length - b_length : a, b);
}

/* Paths differ in how they write what is above: compare without "./" and "../" resolved. */
static bool same_file(const char *found, const char *wanted)
{
	_cleanup_free_ char *a = found ? realpath(found, NULL) : NULL;
	_cleanup_free_ char *b = realpath(wanted, NULL);

	if (!found)
		return !strcmp(wanted, "??");
	return !strcmp(found, wanted) || (a && b && !strcmp(a, b));
}

struct comparison {
	unsigned addresses, calls, inlined, other_functions, other_lines, other_counts;
};

static void tell(const char *what, uint64_t addr, const struct symbol *found,
		 const struct line_text *wanted)
{
	print_message("0x%llx %s: %.80s %s:%u\n", (unsigned long long)addr, what, found->function,
		      found->file ? found->file : "??", found->line);
	print_message("        addr2line: %.80s %s:%u\n", wanted->function, wanted->file,
		      wanted->line);
}

/* Compare one address, whose pairs F is at. */
static void compare_address(struct world *world, uint64_t addr, FILE *f, struct comparison *c)
{
	struct line_text wanted;
	size_t count = 0;

	name_at(world, addr);
	c->addresses++;
	while (read_pair(f, &wanted)) {
		if (count >= world->count) {
			count++;
			continue;
		}
		const struct symbol *found = &world->found[count++];
		c->calls++;
		c->inlined += found->inlined;
		if (!same_function(found->function, wanted.function) && c->other_functions++ < 5)
			tell("function", addr, found, &wanted);
		if ((found->line != wanted.line || !same_file(found->file, wanted.file)) &&
		    c->other_lines++ < 5)
			tell("line", addr, found, &wanted);
	}
	if (count != world->count && c->other_counts++ < 5)
		print_message("0x%llx: %zu calls, addr2line: %zu\n", (unsigned long long)addr,
			      world->count, count);
}

/* Write every address of each function whose mangled name matches PATTERN. */
static void list_addresses(const struct world *world, const char *file, const char *pattern)
{
	_cleanup_free_ char *symbols = NULL;
	_cleanup_free_ char *addresses = NULL;
	unsigned long long addr, size;
	char line[4096], name[4096], type;
	regex_t wanted;

	ASSERT_EQ(regcomp(&wanted, pattern, REG_EXTENDED | REG_NOSUB), 0);
	MUST_RUN(world, "nm -S --defined-only %s >nm.txt", file);
	ASSERT_OK(str_format(&symbols, "%s/nm.txt", world->root));
	ASSERT_OK(str_format(&addresses, "%s/addresses.txt", world->root));
	_cleanup_fclose_ FILE *in = fopen(symbols, "re");
	_cleanup_fclose_ FILE *out = fopen(addresses, "we");
	ASSERT_TRUE(in && out);
	while (fgets(line, sizeof(line), in))
		if (sscanf(line, "%llx %llx %c %4095s", &addr, &size, &type, name) == 4 &&
		    strchr("tTwW", type) && !regexec(&wanted, name, 0, NULL, 0))
			for (unsigned long long i = 0; i < size; i++)
				fprintf(out, "0x%llx\n", addr + i);
	regfree(&wanted);
}

/* ORACLE prints the calls at each address of the file "prog" as addr2line does. */
static struct comparison compare_lines(struct world *world, const char *oracle, const char *pattern)
{
	_cleanup_free_ char *list = NULL;
	struct comparison c = {0};
	unsigned long long addr;
	char line[64];

	list_addresses(world, "prog", pattern);
	MUST_RUN(world, "cat addresses.txt | %s >lines.txt", oracle);
	ASSERT_OK(str_format(&list, "%s/lines.txt", world->root));
	_cleanup_fclose_ FILE *f = fopen(list, "re");
	while (f && fgets(line, sizeof(line), f) && sscanf(line, "0x%llx", &addr) == 1)
		compare_address(world, addr, f, &c);
	print_message("%u addresses, %u calls, %u inlined; other: %u functions, %u lines, %u "
		      "counts\n",
		      c.addresses, c.calls, c.inlined, c.other_functions, c.other_lines,
		      c.other_counts);
	return c;
}

/* Both read addresses. The two demanglers differ in lambdas, so that only one of them is used. */
#define BINUTILS "addr2line -a -f -i -C -e prog"
#define LLVM "llvm-symbolizer --output-style=GNU --no-demangle -a -f -i -e prog | c++filt"

struct build {
	const char *command;
	const char *pattern; /* names of the program's own functions */
	const char *needs;   /* a compiler that may be missing */
	const char *oracle;
	const char *packing; /* of the debug sections, for objcopy; the oracle sees them unpacked */
};

#define C_NAMES "main|both|outside|nested|square"
#define CPP_NAMES "outer|main|plain_c|sort"

static void write_sources(const struct world *world)
{
	write_file(world, "c.c", c_source);
	write_file(world, "cpp.cc", cpp_source);
	write_file(world, "rs.rs", rust_source);
	MUST_RUN(world, "mkdir -p sub && cp c.c sub/");
	MUST_RUN(world, "sed '/int outside/,/nested; return/c int outside(int a) "
			"{ return both(a, 4); }' c.c >c2.c");
}

TEST(lines_and_inlined_calls_are_those_of_addr2line)
{
	static const struct build builds[] = {
		{"gcc -g -O2 -o prog c.c", C_NAMES, "gcc", BINUTILS, NULL},
		{"gcc -g -O0 -gdwarf-3 -o prog c.c", C_NAMES, "gcc", BINUTILS, NULL},
		{"gcc -g -O2 -o prog sub/c.c", C_NAMES, "gcc", BINUTILS, NULL},
		{"gcc -g -O2 -gdwarf-4 -o prog sub/c.c", C_NAMES, "gcc", BINUTILS, NULL},
		{"gcc -g -O2 -o prog c.c", C_NAMES, "gcc", BINUTILS, "zlib"},
		{"gcc -g -O2 -gdwarf-4 -o prog c.c", C_NAMES, "gcc", BINUTILS, "zlib-gnu"},
		{"g++ -g -O2 -o prog cpp.cc", CPP_NAMES, "g++", LLVM, NULL},
		{"g++ -g -O2 -gdwarf-4 -o prog cpp.cc", CPP_NAMES, "g++", LLVM, NULL},
		{"g++ -g -O2 -flto -o prog cpp.cc", CPP_NAMES, "g++", LLVM, NULL},
		{"clang -g -O2 -o prog c2.c", C_NAMES, "clang", LLVM, NULL},
		{"clang++ -g -O2 -o prog cpp.cc", CPP_NAMES, "clang++", LLVM, NULL},
		{"rustc -g -O -o prog rs.rs", "work|4main", "rustc", BINUTILS, NULL},
	};
	struct world world;

	world_begin(&world);
	write_sources(&world);
	for (size_t i = 0; i < ARRAY_COUNT(builds); i++) {
		const struct build *build = &builds[i];
		int tool = (int)strcspn(build->oracle, " ");
		if (!run(&world, "command -v %s && command -v %.*s", build->needs, tool,
			 build->oracle)) {
			print_message("skipped: no %s or no %.*s\n", build->needs, tool,
				      build->oracle);
			continue;
		}
		print_message("%s %s\n", build->command, build->packing ? build->packing : "");
		MUST_RUN(&world, "%s && cp prog packed", build->command);
		if (build->packing)
			MUST_RUN(&world, "objcopy --compress-debug-sections=%s packed",
				 build->packing);
		open_program(&world, "packed", true);
		struct comparison c = compare_lines(&world, build->oracle, build->pattern);
		ASSERT_TRUE(c.addresses > 100);
		ASSERT_EQ(c.other_functions + c.other_lines + c.other_counts, 0);
	}
	world_end(&world);
}

TEST(a_stripped_program_has_the_lines_of_its_debug_file)
{
	struct world world;

	world_begin(&world);
	write_sources(&world);
	MUST_RUN(&world, "gcc -g -O2 -o prog c.c && cp prog packed");
	MUST_RUN(&world, "objcopy --only-keep-debug packed packed.debug && strip packed && "
			 "objcopy --add-gnu-debuglink=packed.debug packed");
	open_program(&world, "packed", true);
	struct comparison c = compare_lines(&world, BINUTILS, C_NAMES);
	ASSERT_TRUE(c.inlined > 50);
	ASSERT_EQ(c.other_functions + c.other_lines + c.other_counts, 0);
	world_end(&world);
}

/* What libdw would open by itself is a FIFO here, on which it would wait for ever. */
TEST(split_dwarf_gives_lines_and_nothing_is_opened_behind_our_back)
{
	struct world world;
	unsigned lines = 0;

	world_begin(&world);
	write_sources(&world);
	for (unsigned version = 4; version <= 5; version++) {
		MUST_RUN(&world, "rm -f *.dwo; gcc -g -O2 -gdwarf-%u -gsplit-dwarf -o prog c2.c",
			 version);
		MUST_RUN(&world, "rm *.dwo && mkfifo prog-c2.dwo");
		open_program(&world, "prog", true);
		alarm(60);
		uint64_t addr = addr_of(&world, "prog", "main");
		for (int i = 0; i < 100; i++) {
			name_at(&world, addr + i);
			ASSERT_EQ(world.count, 1);
			lines += world.found[0].line > 0 && str_ends(world.found[0].file, "c2.c");
		}
		ASSERT_STREQ(name_at(&world, addr), "main");
		alarm(0);
		ASSERT_TRUE(lines >= 50 * (version - 3));
	}
	world_end(&world);
}

TEST(what_dwz_moved_into_a_shared_file_is_found_there_or_left_alone)
{
	struct world world;

	world_begin(&world);
	if (!run(&world, "command -v dwz")) {
		world_end(&world);
		SKIP("no dwz");
	}
	write_sources(&world);
	MUST_RUN(&world, "gcc -gdwarf-4 -g -O2 -o prog c.c && gcc -gdwarf-4 -g -O2 -o other c2.c");
	MUST_RUN(&world, "cp prog packed && dwz -m shared -M /usr/lib/debug/.dwz/shared packed "
			 "other && mkdir -p usr/lib/debug/.dwz && mv shared usr/lib/debug/.dwz/");
	open_program(&world, "packed", true);
	struct comparison c = compare_lines(&world, BINUTILS, C_NAMES);
	ASSERT_TRUE(c.inlined > 50);
	ASSERT_EQ(c.other_functions + c.other_lines + c.other_counts, 0);

	MUST_RUN(&world, "gcc -gdwarf-4 -g -O2 -o other c2.c && cp prog packed && "
			 "dwz -m shared -M $PWD/shared packed other && rm shared && mkfifo shared");
	open_program(&world, "packed", true);
	alarm(60);
	ASSERT_STREQ(name_at(&world, addr_of(&world, "packed", "main")), "main");
	alarm(0);
	world_end(&world);
}

static const char go_source[] = "package main\n"
				"import (\"fmt\"; \"os\")\n"
				"func tiny(x int) int { return x*3 + len(os.Args) }\n"
				"//go:noinline\n"
				"func work(n int) int {\n"
				"	s := 0\n"
				"	for i := 0; i < n; i++ {\n"
				"		s += tiny(i)\n"
				"	}\n"
				"	return s\n"
				"}\n"
				"func main() { fmt.Println(work(len(os.Args))) }\n";

TEST(a_stripped_go_program_has_functions_lines_and_inlined_calls)
{
	struct world world;
	unsigned inlined = 0;

	world_begin(&world);
	if (!run(&world, "command -v go")) {
		world_end(&world);
		SKIP("no go");
	}
	write_file(&world, "prog.go", go_source);
	MUST_RUN(&world,
		 "GOCACHE=$PWD/cache GO111MODULE=off CGO_ENABLED=0 go build -o prog prog.go "
		 "&& GOCACHE=$PWD/cache GO111MODULE=off CGO_ENABLED=0 go build "
		 "-ldflags '-s -w' -o packed prog.go");
	uint64_t addr = addr_of(&world, "prog", "main.work");
	open_program(&world, "packed", true);
	for (uint64_t at = addr; !strcmp(name_at(&world, at), "main.work"); at++) {
		ASSERT_EQ(world.found[0].kind, KIND_go);
		ASSERT_EQ(world.found[world.count - 1].start, addr);
		if (!world.found[0].file) // padding behind the function
			break;
		ASSERT_TRUE(str_ends(world.found[0].file, "/prog.go"));
		ASSERT_TRUE(world.found[0].line >= 3 && world.found[0].line <= 11);
		if (world.count == 2 && world.found[0].inlined) {
			ASSERT_STREQ(world.found[0].function, "main.tiny");
			ASSERT_EQ(world.found[0].line, 3);
			ASSERT_EQ(world.found[1].line, 8);
			inlined++;
		}
	}
	ASSERT_TRUE(inlined > 3);
	open_program(&world, "packed", false);
	ASSERT_STREQ(name_at(&world, addr), "main.work");
	ASSERT_TRUE(world.count == 1 && world.found[0].line == 0);
	world_end(&world);
}

/* Look up every 5th address of DATA as a program. */
static void survive(const uint8_t *data, size_t size, uint64_t from, uint64_t until)
{
	struct symbolizer_options options = {.lines = true};
	struct symbol_place place = {.path = "/prog"};
	_cleanup_object_ struct object *object = NULL;
	_cleanup_symbolizer_ struct symbolizer *symbolizer = NULL;
	struct symbol found[SYMBOLS_MAX];
	struct symbol_object *symbols;
	size_t count;

	struct error *err = object_open_memory(data, size, "prog", &object);
	if (err) {
		error_free(err);
		return;
	}
	ASSERT_OK(symbolizer_new(&options, &symbolizer));
	ASSERT_OK(symbolizer_object(symbolizer, object, &place, &symbols));
	for (uint64_t addr = from; addr < until; addr += 5) {
		ASSERT_OK(symbolize_object(symbols, addr, false, found, &count));
		ASSERT_TRUE(count >= 1 && count <= SYMBOLS_MAX);
	}
}

TEST(every_truncation_and_many_bit_flips_are_survived)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_free_ char *data = NULL;
	struct world world;
	uint64_t seed = 11;
	size_t size;

	world_begin(&world);
	write_sources(&world);
	MUST_RUN(&world, "gcc -g -O2 -o prog c.c");
	uint64_t from = addr_of(&world, "prog", "main");
	ASSERT_OK(str_format(&path, "%s/prog", world.root));
	ASSERT_OK(file_read(AT_FDCWD, path, 1 << 20, &data, &size));
	for (size_t cut = 0; cut < size; cut += cut < 1024 ? 1 : 37)
		survive((uint8_t *)data, cut, from, from + 100);
	for (int round = 0; round < 1500; round++) {
		_cleanup_free_ uint8_t *damaged = malloc(size);
		memcpy(damaged, data, size);
		// One of three goes into the headers, which decide most.
		size_t part = round % 3 ? size : 64 + (size - 64) * (round % 2);
		for (int i = 0; i < 1 + round % 16; i++)
			damaged[next_random(&seed) % part] ^=
				(uint8_t)(1 << next_random(&seed) % 8);
		survive(damaged, size, from, from + 100);
	}
	world_end(&world);
}

RUN_TESTS(UNIT_TEST(lines_and_inlined_calls_are_those_of_addr2line),
	  UNIT_TEST(a_stripped_program_has_the_lines_of_its_debug_file),
	  UNIT_TEST(split_dwarf_gives_lines_and_nothing_is_opened_behind_our_back),
	  UNIT_TEST(what_dwz_moved_into_a_shared_file_is_found_there_or_left_alone),
	  UNIT_TEST(a_stripped_go_program_has_functions_lines_and_inlined_calls),
	  UNIT_TEST(every_truncation_and_many_bit_flips_are_survived))
