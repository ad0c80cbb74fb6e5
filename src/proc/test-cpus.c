/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of CPUs. */
#include "proc/cpus.h"

#include <string.h>
#include <unistd.h>

#include "unit.h"

static struct error *parse(const char *text, struct cpus *ret)
{
	return cpus_parse(bytes_over(text, strlen(text), "online"), ret);
}

TEST(ranges_and_single_cpus_are_listed_one_by_one)
{
	static const uint32_t expected[] = {0, 1, 2, 3, 8, 10, 11};
	_cleanup_(cpus_deinit) struct cpus cpus = CPUS_INIT;

	ASSERT_OK(parse("0-3,8,10-11\n", &cpus));
	ASSERT_EQ(cpus.count, 7);
	for (size_t i = 0; i < cpus.count; i++)
		ASSERT_EQ(cpus.cpu[i], expected[i]);
}

TEST(an_empty_list_is_no_cpu)
{
	_cleanup_(cpus_deinit) struct cpus cpus = CPUS_INIT;

	ASSERT_OK(parse("\n", &cpus));
	ASSERT_EQ(cpus.count, 0);
	ASSERT_OK(parse("", &cpus));
	ASSERT_EQ(cpus.count, 0);
}

TEST(the_whole_range_fits_and_not_one_more)
{
	_cleanup_(cpus_deinit) struct cpus cpus = CPUS_INIT;

	ASSERT_OK(parse("0-65535", &cpus));
	ASSERT_EQ(cpus.count, CPUS_MAX);
	ASSERT_FAILS(parse("0-65536", &cpus), "CPU numbers end at 65535");
}

TEST(a_damaged_list_is_refused_where_it_is_damaged)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{",", "offset 0x0: expected a CPU number"},
		{"0-", "expected a CPU number"},
		{"0,", "offset 0x2: expected a CPU number"},
		{"3-1", "do not ascend"},
		{"0-3,3", "do not ascend"},
		{"0 1", "offset 0x1: expected ','"},
		{"99999999999", "CPU numbers end"},
		{"0\n\n", "expected ','"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cpus cpus = CPUS_INIT;
		ASSERT_FAILS(parse(rows[i].text, &cpus), rows[i].says);
		ASSERT_TRUE(cpus.cpu == NULL);
	}
}

TEST(as_many_cpus_are_online_as_the_c_library_counts)
{
	_cleanup_(cpus_deinit) struct cpus cpus = CPUS_INIT;

	ASSERT_OK(cpus_read_online(&cpus));
	ASSERT_EQ(cpus.count, sysconf(_SC_NPROCESSORS_ONLN));
}

RUN_TESTS(UNIT_TEST(ranges_and_single_cpus_are_listed_one_by_one),
	  UNIT_TEST(an_empty_list_is_no_cpu), UNIT_TEST(the_whole_range_fits_and_not_one_more),
	  UNIT_TEST(a_damaged_list_is_refused_where_it_is_damaged),
	  UNIT_TEST(as_many_cpus_are_online_as_the_c_library_counts))
