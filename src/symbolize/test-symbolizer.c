/* SPDX-License-Identifier: Apache-2.0 */
/* The front of this layer: the kernel, run-time code of processes, and what is kept in memory. */
#include "symbolize/symbolizer.h"

#include "base/array.h"
#include "base/clock.h"
#include "symbolize/test-world.h"

/* Files by the path that is asked for; what is not here does not exist. */
struct files {
	const char *path;
	int fd;
	uint32_t pid;
	unsigned asked;
};

static int open_file(void *context, uint32_t pid, const char *path)
{
	struct files *files = context;

	files->asked++;
	files->pid = pid;
	if (strcmp(path, files->path) != 0)
		return -1;
	return fcntl(files->fd, F_DUPFD_CLOEXEC, 0);
}

static struct symbol jit(struct symbolizer *symbolizer, uint64_t pc, uint64_t time_ns)
{
	struct symbol_jit at = {.pid = 100, .ns_pid = 5, .pc = pc, .time_ns = time_ns};
	struct symbol symbol;

	ASSERT_OK(symbolize_jit(symbolizer, &at, &symbol));
	ASSERT_EQ(symbol.kind, KIND_jit);
	return symbol;
}

TEST(run_time_code_is_named_by_the_map_of_its_process)
{
	_cleanup_symbolizer_ struct symbolizer *symbolizer = NULL;
	_cleanup_close_ int fd = memory_file("1000 100 Lazy:~f /a b.js:1\n", 27);
	struct files files = {.path = "/tmp/perf-5.map", .fd = fd};
	struct symbolizer_options options = {.open = open_file, .context = &files};

	ASSERT_OK(symbolizer_new(&options, &symbolizer));
	struct symbol symbol = jit(symbolizer, 0x1080, 1);
	ASSERT_STREQ(symbol.function, "Lazy:~f /a b.js:1");
	ASSERT_TRUE(symbol.named && symbol.identified && !symbol.file);
	ASSERT_EQ(files.pid, 100);
	symbol = jit(symbolizer, 0x2000, 1);
	ASSERT_STREQ(symbol.function, "[jit]");
	ASSERT_FALSE(symbol.named || symbol.identified);
	ASSERT_EQ(files.asked, 1); // both samples are older than what was read

	ASSERT_EQ(write(fd, "2000 100 g\n", 11), 11);
	ASSERT_STREQ(jit(symbolizer, 0x2000, 1).function, "[jit]");
	usleep(1000);
	ASSERT_STREQ(jit(symbolizer, 0x2000, clock_monotonic_ns()).function, "g");
	ASSERT_EQ(files.asked, 2);
	ASSERT_STREQ(jit(symbolizer, 0x2000, 0).function, "g");
	ASSERT_STREQ(jit(symbolizer, 0x2000, UINT64_MAX).function, "g");
	ASSERT_EQ(files.asked, 2); // it was looked at within the last tenth of a second
}

TEST(a_jitdump_name_goes_before_one_of_the_perf_map)
{
	// Header, then LOAD of "dumped" at 0x1000, time 50.
	static const uint8_t dump[] = {
		0x44, 0x54, 0x69, 0x4a, 1,   0,   0, 0,    40,   0,    0,   0, 62, 0, 0, 0,
		0,    0,    0,    0,    1,   0,   0, 0,    0,    0,    0,   0, 0,  0, 0, 0,
		0,    0,    0,    0,    0,   0,   0, 0,    0,    0,    0,   0, 67, 0, 0, 0,
		50,   0,    0,    0,    0,   0,   0, 0,    1,    0,    0,   0, 1,  0, 0, 0,
		0,    0,    0,    0,    0,   0,   0, 0,    0,    0x10, 0,   0, 0,  0, 0, 0,
		4,    0,    0,    0,    0,   0,   0, 0,    1,    0,    0,   0, 0,  0, 0, 0,
		'd',  'u',  'm',  'p',  'e', 'd', 0, 0xcc, 0xcc, 0xcc, 0xcc};
	_cleanup_symbolizer_ struct symbolizer *symbolizer = NULL;
	_cleanup_close_ int fd = memory_file("1000 100 mapped\n", 16);
	_cleanup_close_ int dump_fd = memory_file(dump, sizeof(dump));
	struct files files = {.path = "/tmp/perf-5.map", .fd = fd};
	struct symbolizer_options options = {.open = open_file, .context = &files};

	ASSERT_OK(symbolizer_new(&options, &symbolizer));
	ASSERT_OK(symbolizer_load_jitdump(symbolizer, 100, dump_fd, "jit-5.dump"));
	ASSERT_OK(symbolizer_load_jitdump(symbolizer, 100, dump_fd, "jit-5.dump"));
	ASSERT_STREQ(jit(symbolizer, 0x1003, 60).function, "dumped");
	ASSERT_STREQ(jit(symbolizer, 0x1003, 40).function, "mapped");
	ASSERT_STREQ(jit(symbolizer, 0x1004, 60).function, "mapped");
	ASSERT_STREQ(jit(symbolizer, 0x1003, 0).function, "dumped");
	ASSERT_STREQ(jit(symbolizer, 0x1003, UINT64_MAX).function, "dumped");
}

TEST(a_map_that_is_none_costs_a_name_and_nothing_else)
{
	_cleanup_symbolizer_ struct symbolizer *symbolizer = NULL;
	_cleanup_close_ int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct files files = {.path = "/tmp/perf-5.map", .fd = fd};
	struct symbolizer_options options = {.open = open_file, .context = &files};

	ASSERT_OK(symbolizer_new(&options, &symbolizer));
	ASSERT_STREQ(jit(symbolizer, 0x1000, 0).function, "[jit]");
}

TEST(processes_not_asked_about_are_forgotten_at_the_second_trim)
{
	_cleanup_symbolizer_ struct symbolizer *symbolizer = NULL;
	_cleanup_close_ int fd = memory_file("1000 100 f\n", 11);
	struct files files = {.path = "/tmp/perf-5.map", .fd = fd};
	struct symbolizer_options options = {.open = open_file, .context = &files};

	ASSERT_OK(symbolizer_new(&options, &symbolizer));
	ASSERT_STREQ(jit(symbolizer, 0x1000, 1).function, "f");
	symbolizer_trim(symbolizer);
	ASSERT_TRUE(symbolizer_bytes(symbolizer) > 0);
	symbolizer_trim(symbolizer);
	ASSERT_EQ(symbolizer_bytes(symbolizer), 0);
	ASSERT_STREQ(jit(symbolizer, 0x1000, 1).function, "f");
}

TEST(maps_beyond_the_budget_push_out_the_oldest)
{
	_cleanup_symbolizer_ struct symbolizer *symbolizer = NULL;
	_cleanup_close_ int fd = memory_file("", 0);
	struct files files = {.path = "/tmp/perf-5.map", .fd = fd};
	struct symbolizer_options options = {
		.open = open_file, .context = &files, .max_bytes = 1 << 20};

	for (int i = 0; i < 5000; i++)
		dprintf(fd, "%x 10 function_number_%d\n", 0x1000 + 16 * i, i);
	ASSERT_OK(symbolizer_new(&options, &symbolizer));
	for (uint32_t pid = 1; pid <= 40; pid++) {
		struct symbol_jit at = {.pid = pid, .ns_pid = 5, .pc = 0x1000 + 16 * pid};
		struct symbol symbol;
		ASSERT_OK(symbolize_jit(symbolizer, &at, &symbol));
		ASSERT_TRUE(symbol.named);
		ASSERT_TRUE(symbolizer_bytes(symbolizer) <= 1 << 20);
	}
	ASSERT_TRUE(symbolizer_bytes(symbolizer) > 1 << 19);
}

TEST(kernel_code_without_a_name_says_that_it_is_the_kernel)
{
	static const char hidden[] = "0000000000000000 T _stext\n";
	static const char known[] = "ffffffff81000000 T _stext\nffffffff81000100 t f.cold\n";
	_cleanup_symbolizer_ struct symbolizer *symbolizer = NULL;
	_cleanup_close_ int hidden_fd = memory_file(hidden, sizeof(hidden) - 1);
	_cleanup_close_ int known_fd = memory_file(known, sizeof(known) - 1);
	struct symbolizer_options options = {0};
	struct symbol symbol;

	ASSERT_OK(symbolizer_new(&options, &symbolizer));
	for (int round = 0; round < 2; round++) {
		ASSERT_OK(symbolize_kernel(symbolizer, 0xffffffff81000101, &symbol));
		ASSERT_STREQ(symbol.function, "[kernel]");
		ASSERT_EQ(symbol.kind, KIND_kernel);
		ASSERT_FALSE(symbol.named || symbol.identified);
		ASSERT_EQ(symbolizer_kernel_count(symbolizer), 0);
		ASSERT_OK(symbolizer_load_kernel(symbolizer, hidden_fd));
	}
	ASSERT_OK(symbolizer_load_kernel(symbolizer, known_fd));
	ASSERT_EQ(symbolizer_kernel_count(symbolizer), 2);
	ASSERT_OK(symbolize_kernel(symbolizer, 0xffffffff81000101, &symbol));
	ASSERT_STREQ(symbol.function, "f.cold");
	ASSERT_EQ(symbol.start, 0xffffffff81000100);
	ASSERT_TRUE(symbol.named && symbol.identified);
}

TEST(objects_beyond_the_budget_are_dropped_and_named_again)
{
	enum { PROGRAMS = 6 };
	struct object *object[PROGRAMS];
	struct symbol_object *symbols[PROGRAMS];
	struct symbol_place place = {.path = "/prog", .pid = 7};
	struct symbolizer_options options = {.max_bytes = 8 << 10};
	struct symbol found[SYMBOLS_MAX];
	struct world world;
	size_t count;

	world_begin(&world);
	write_file(&world, "p.c",
		   "int shared_name(int a) { return a; }\n"
		   "int main(int c, char **v) { return shared_name(c); }\n");
	MUST_RUN(&world, "gcc -o p p.c");
	uint64_t addr = addr_of(&world, "p", "shared_name");
	ASSERT_OK(symbolizer_new(&options, &world.symbolizer));
	for (int i = 0; i < PROGRAMS; i++) {
		_cleanup_free_ char *path = NULL;
		ASSERT_OK(str_format(&path, "%s/p", world.root));
		ASSERT_OK(object_open(open(path, O_RDONLY | O_CLOEXEC), "p", &object[i]));
		ASSERT_OK(symbolizer_object(world.symbolizer, object[i], &place, &symbols[i]));
	}
	for (int i = 0; i < 3 * PROGRAMS; i++) {
		ASSERT_OK(symbolize_object(symbols[i % PROGRAMS], addr, false, found, &count));
		ASSERT_STREQ(found[0].function, "shared_name");
		ASSERT_TRUE(symbolizer_bytes(world.symbolizer) <= 8 << 10);
	}
	symbol_object_free(symbols[0]);
	object_free(object[0]);
	ASSERT_OK(symbolize_object(symbols[1], addr, false, found, &count));
	symbolizer_free(take(world.symbolizer));
	for (int i = 1; i < PROGRAMS; i++)
		object_free(object[i]);
	world_end(&world);
}

RUN_TESTS(UNIT_TEST(run_time_code_is_named_by_the_map_of_its_process),
	  UNIT_TEST(a_jitdump_name_goes_before_one_of_the_perf_map),
	  UNIT_TEST(a_map_that_is_none_costs_a_name_and_nothing_else),
	  UNIT_TEST(processes_not_asked_about_are_forgotten_at_the_second_trim),
	  UNIT_TEST(maps_beyond_the_budget_push_out_the_oldest),
	  UNIT_TEST(kernel_code_without_a_name_says_that_it_is_the_kernel),
	  UNIT_TEST(objects_beyond_the_budget_are_dropped_and_named_again))
