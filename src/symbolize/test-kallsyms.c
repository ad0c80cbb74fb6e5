/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/kallsyms.h"

#include "base/array.h"
#include "symbolize/test-helpers.h"

static const char sample[] = "0000000000000000 A fixed_percpu_data\n"
			     "ffffffff81000000 T _stext\n"
			     "ffffffff81000000 T _text\n"
			     "ffffffff81000100 t __do_softirq.isra.0\n"
			     "ffffffff81000100 T do_softirq\n"
			     "ffffffff81000200 W weak_one\n"
			     "ffffffff81000300 T _etext\n"
			     "ffffffff82000000 D __start_rodata\n"
			     "ffffffff82000100 R some_table\n"
			     "no line at all\n"
			     "\n"
			     "ffffffffc0201000 t xfs_read\t[xfs]\n"
			     "ffffffffc0201080 d xfs_data\t[xfs]\n"
			     "ffffffffc0300000 t bpf_prog_6deef7357e7b4530_sd_devices\t[bpf]\n"
			     "ffffffffc0000000 t module_before [m]";

TEST(a_kernel_pc_gets_the_function_that_holds_it)
{
	static const struct {
		uint64_t pc;
		const char *name;
		uint64_t start;
	} cases[] = {
		{0xffffffff81000000, "_stext", 0xffffffff81000000},
		{0xffffffff810000ff, "_stext", 0xffffffff81000000},
		{0xffffffff81000100, "do_softirq", 0xffffffff81000100},
		{0xffffffff810002ff, "weak_one", 0xffffffff81000200},
		{0xffffffffc0201010, "xfs_read", 0xffffffffc0201000},
		{0xffffffffc0000010, "module_before", 0xffffffffc0000000},
		{0xffffffffc0300005, "bpf_prog_6deef7357e7b4530_sd_devices", 0xffffffffc0300000},
		{0xffffffff80ffffff, NULL, 0}, // below the first
		{0xffffffff81000300, NULL, 0}, // behind the kernel's text
		{0xffffffff82000110, NULL, 0}, // data
		{0xffffffffc0201090, NULL, 0}, // data of a module
		{0xffffffffff000000, NULL, 0}, // far behind the last
		{0x400000, NULL, 0},           // user space
		{0, NULL, 0},
	};
	_cleanup_close_ int fd = memory_file(sample, sizeof(sample) - 1);
	_cleanup_(kallsyms_deinit) struct kallsyms symbols = KALLSYMS_INIT;

	ASSERT_OK(kallsyms_read(fd, &symbols));
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		uint64_t start = 0;
		const char *name = kallsyms_find(&symbols, cases[i].pc, &start);
		if (cases[i].name)
			ASSERT_STREQ(name ? name : "nothing", cases[i].name);
		else
			ASSERT_TRUE(name == NULL);
		ASSERT_EQ(start, cases[i].start);
	}
}

TEST(hidden_addresses_leave_an_empty_table)
{
	static const char hidden[] = "0000000000000000 T _stext\n0000000000000000 t a\t[xfs]\n";
	_cleanup_close_ int fd = memory_file(hidden, sizeof(hidden) - 1);
	_cleanup_(kallsyms_deinit) struct kallsyms symbols = KALLSYMS_INIT;
	uint64_t start;

	ASSERT_OK(kallsyms_read(fd, &symbols));
	ASSERT_EQ(symbols.count, 0);
	ASSERT_TRUE(kallsyms_find(&symbols, 0xffffffff81000000, &start) == NULL);
}

TEST(every_function_of_the_running_kernel_is_found_at_its_address)
{
	_cleanup_(kallsyms_deinit) struct kallsyms symbols = KALLSYMS_INIT;
	_cleanup_free_ char *text = NULL;
	size_t functions = 0, size;
	unsigned long long addr;
	char type, name[512];

	// BPF programs come and go: both sides must see the same moment.
	struct error *err = file_read(AT_FDCWD, "/proc/kallsyms", 256 << 20, &text, &size);
	if (err) {
		error_free(err);
		SKIP("no /proc/kallsyms");
	}
	_cleanup_close_ int fd = memory_file(text, size);
	_cleanup_fclose_ FILE *f = fmemopen(text, size, "r");
	ASSERT_TRUE(f != NULL);
	ASSERT_OK(kallsyms_read(fd, &symbols));
	if (!symbols.count)
		SKIP("/proc/kallsyms hides addresses");
	while (fscanf(f, "%llx %c %511s%*[^\n]", &addr, &type, name) == 3) {
		uint64_t start = 0;
		if (!strchr("tTwW", type) || !strcmp(name, "_etext") || !strcmp(name, "_einittext"))
			continue;
		const char *found = kallsyms_find(&symbols, addr, &start);
		ASSERT_TRUE(found != NULL);
		ASSERT_EQ(start, addr);
		functions++;
	}
	ASSERT_TRUE(functions >= symbols.count / 2);
	print_message("%zu functions, %zu entries\n", functions, symbols.count);
}

TEST(damaged_kallsyms_give_fewer_names_and_no_crash)
{
	char data[sizeof(sample)];
	uint64_t seed = 1;

	for (int round = 0; round < 2000; round++) {
		_cleanup_(kallsyms_deinit) struct kallsyms symbols = KALLSYMS_INIT;
		size_t size = round < (int)sizeof(sample) ? (size_t)round : sizeof(sample) - 1;
		memcpy(data, sample, sizeof(sample));
		for (int i = 0; round >= (int)sizeof(sample) && i < 8; i++)
			data[next_random(&seed) % size] ^= (char)(1 << next_random(&seed) % 8);
		_cleanup_close_ int fd = memory_file(data, size);
		uint64_t start;
		ASSERT_OK(kallsyms_read(fd, &symbols));
		kallsyms_find(&symbols, 0xffffffff81000150, &start);
		kallsyms_find(&symbols, UINT64_MAX, &start);
	}
}

RUN_TESTS(UNIT_TEST(a_kernel_pc_gets_the_function_that_holds_it),
	  UNIT_TEST(hidden_addresses_leave_an_empty_table),
	  UNIT_TEST(every_function_of_the_running_kernel_is_found_at_its_address),
	  UNIT_TEST(damaged_kallsyms_give_fewer_names_and_no_crash))
