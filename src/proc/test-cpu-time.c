/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time of children of our own, and the text that it comes from. */
#include "proc/cpu-time.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "unit.h"

enum { BUSY_NS = 200 * 1000 * 1000 };

static void spin(void)
{
	volatile unsigned sink = 0;
	uint64_t now_ns, begin_ns = 0;

	ASSERT_TRUE(cpu_time_of_process(getpid(), &begin_ns));
	do {
		for (unsigned i = 0; i < 10000; i++)
			sink += i;
		(void)cpu_time_of_process(getpid(), &now_ns);
	} while (now_ns < begin_ns + BUSY_NS);
}

TEST(what_a_thread_has_consumed_is_what_it_was_busy_for)
{
	struct thread_meter meter = thread_meter_open(getpid(), getpid());
	enum meter_look look;
	struct meter_reading before, after;

	ASSERT_OK(thread_meter_read(&meter, &look, &before));
	ASSERT_EQ(look, METER_read);
	spin();
	ASSERT_OK(thread_meter_read(&meter, &look, &after));
	ASSERT_EQ(look, METER_read);
	uint64_t spent_ns = after.cpu_ns - before.cpu_ns;
	// A timer tick is 10 ms at most.
	ASSERT_TRUE(spent_ns > BUSY_NS - 20000000 && spent_ns < 2ull * BUSY_NS);
	thread_meter_close(&meter);
}

TEST(without_a_descriptor_it_is_read_all_the_same)
{
	const struct thread_meter meter = {.fd = -1, .pid = getpid(), .tid = getpid()};
	enum meter_look look = METER_gone;
	struct meter_reading reading = {0};

	ASSERT_OK(thread_meter_read(&meter, &look, &reading));
	ASSERT_EQ(look, METER_read);
	ASSERT_TRUE(reading.cpu_ns > 0);
}

TEST(one_that_has_ended_is_gone)
{
	pid_t child = fork();
	enum meter_look look = METER_read;
	struct meter_reading reading;
	uint64_t ns;

	if (!child)
		pause();
	struct thread_meter meter = thread_meter_open(child, child);
	ASSERT_TRUE(meter.fd >= 0);
	ASSERT_TRUE(cpu_time_of_process(child, &ns));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ASSERT_OK(thread_meter_read(&meter, &look, &reading));
	ASSERT_EQ(look, METER_gone);
	ASSERT_FALSE(cpu_time_of_process(child, &ns));
	thread_meter_close(&meter);
	meter = thread_meter_open(child, child);
	look = METER_read;
	ASSERT_OK(thread_meter_read(&meter, &look, &reading));
	ASSERT_EQ(look, METER_gone);
}

TEST(the_text_is_three_numbers_or_nothing)
{
	static const struct {
		const char *text;
		bool good;
		uint64_t cpu_ns, turns;
	} cases[] = {
		{"437270 44968 1\n", true, 437270, 1},
		{"18446744073709551615 0 7\n", true, UINT64_MAX, 7},
		{"0 0 0\n", false, 0, 0}, // a kernel that does not count
		{"", false, 0, 0},
		{"12 13\n", false, 0, 0},
		{"-1 2 3\n", false, 0, 0},
		{"18446744073709551616 0 7\n", false, 0, 0},
		{"1x 2 3\n", false, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct meter_reading reading = {0};
		ASSERT_EQ(meter_parse_schedstat(cases[i].text, &reading), cases[i].good);
		ASSERT_EQ(reading.cpu_ns, cases[i].cpu_ns);
		ASSERT_EQ(reading.turns, cases[i].turns);
	}
}

RUN_TESTS(UNIT_TEST(what_a_thread_has_consumed_is_what_it_was_busy_for),
	  UNIT_TEST(without_a_descriptor_it_is_read_all_the_same),
	  UNIT_TEST(one_that_has_ended_is_gone), UNIT_TEST(the_text_is_three_numbers_or_nothing))
