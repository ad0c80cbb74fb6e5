/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The poll capture: how much a look is worth, when it is due, and what comes of looking at children
 * of our own. That takes no privileges beyond those over them.
 */
#include "capture/capture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "capture/captures.h"
#include "capture/poll-credit.h"
#include "proc/cpu-time.h"
#include "unit.h"

enum { PERIOD_NS = 10000000, HZ = 200, TAKE_MS = 1000, WAITERS = 3 };

/* --- credit */

TEST(one_that_always_runs_gets_a_sample_each_period)
{
	struct credit credit = {0};
	unsigned samples = 0;

	// The kernel tells its CPU time only at its own ticks, 4 ms late at times.
	for (unsigned i = 0; i < 1000; i++) {
		credit_add(&credit, PERIOD_NS + (i % 3 - 1) * 4000000);
		unsigned due = credit_due(&credit, PERIOD_NS);
		credit_take(&credit, due, PERIOD_NS);
		samples += due;
	}
	ASSERT_TRUE(samples >= 999 && samples <= 1000);
}

TEST(the_samples_of_one_that_is_met_now_and_then_are_its_cpu_time)
{
	struct credit credit = {0};
	unsigned samples = 0;

	// A third of the time on a CPU, and running at every seventh look.
	for (unsigned i = 0; i < 2100; i++) {
		credit_add(&credit, PERIOD_NS / 3);
		if (i % 7)
			continue;
		unsigned due = credit_due(&credit, PERIOD_NS);
		credit_take(&credit, due, PERIOD_NS);
		samples += due;
	}
	ASSERT_TRUE(samples >= 697 && samples <= 700);
}

TEST(one_look_is_worth_so_many_samples_at_most_and_the_rest_is_kept)
{
	struct credit credit = {0};

	credit_add(&credit, 20ull * PERIOD_NS);
	for (unsigned left = 20; left;) {
		unsigned due = credit_due(&credit, PERIOD_NS);
		ASSERT_EQ(due, left < CREDIT_SAMPLES_MAX ? left : CREDIT_SAMPLES_MAX);
		credit_take(&credit, due, PERIOD_NS);
		left -= due;
	}
	ASSERT_EQ(credit.ns, 0);
}

TEST(many_that_run_for_a_moment_get_their_share_together)
{
	unsigned samples = 0;

	// 10,000 threads of a tenth of a period: 1,000 samples.
	for (uint32_t i = 0; i < 10000; i++) {
		struct credit credit = credit_begin(i, PERIOD_NS);
		credit_add(&credit, PERIOD_NS / 10);
		samples += credit_due(&credit, PERIOD_NS);
	}
	ASSERT_TRUE(samples >= 990 && samples <= 1010);
}

TEST(what_no_look_took_is_lost_and_told_once)
{
	struct credit credit = {3 * PERIOD_NS + PERIOD_NS / 3};

	ASSERT_EQ(credit_lose(&credit, PERIOD_NS), 3);
	ASSERT_EQ(credit.ns, PERIOD_NS / 3);
	ASSERT_EQ(credit_lose(&credit, PERIOD_NS), 0);
	credit.ns = -PERIOD_NS / 2;
	ASSERT_EQ(credit_lose(&credit, PERIOD_NS), 0);
	ASSERT_EQ(credit.ns, -PERIOD_NS / 2);
}

TEST(absurd_times_do_not_overflow)
{
	struct credit credit = {0};

	for (int i = 0; i < 10; i++)
		credit_add(&credit, UINT64_MAX);
	ASSERT_TRUE(credit.ns > 0);
	ASSERT_EQ(credit_due(&credit, PERIOD_NS), CREDIT_SAMPLES_MAX);
	ASSERT_EQ(credit_due(&credit, 1000000000), CREDIT_SAMPLES_MAX);
	ASSERT_TRUE(credit_lose(&credit, PERIOD_NS) > 0);
	ASSERT_TRUE(credit.ns >= -PERIOD_NS && credit.ns <= PERIOD_NS);
}

TEST(looks_that_came_too_late_are_left_out)
{
	static const struct {
		uint64_t now_ns, late, due_ns;
	} cases[] = {
		{1000, 0, 1100},
		{1099, 0, 1100},
		{1100, 1, 1200},
		{1450, 4, 1500},
	};

	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct poll_schedule schedule = {.due_ns = 1000, .period_ns = 100};
		ASSERT_EQ(poll_schedule_advance(&schedule, cases[i].now_ns), cases[i].late);
		ASSERT_EQ(schedule.due_ns, cases[i].due_ns);
	}
}

/* --- children of ours */

static volatile unsigned long sink;

/* The functions whose names must come out. */
__attribute__((noipa)) void poll_test_spin(void);
__attribute__((noipa)) void poll_test_wait(int fd);

void poll_test_spin(void)
{
	for (;;)
		sink++;
}

void poll_test_wait(int fd)
{
	char byte;

	// Not read(): the sanitizer's own has a frame that only the frame pointer leads out of, and
	// of a thread that waits that is not known.
	for (;;)
		(void)syscall(SYS_read, fd, &byte, 1);
}

static void *wait_for_ever(void *context)
{
	poll_test_wait(*(int *)context);
	return NULL;
}

/* A child with a thread that runs, and WAITERS that wait. */
static pid_t start_child(void)
{
	pid_t child = fork();
	static int fds[2];
	pthread_t thread;

	ASSERT_TRUE(child >= 0);
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pipe(fds))
		_exit(1);
	for (int i = 0; i < WAITERS; i++)
		pthread_create(&thread, NULL, wait_for_ever, &fds[0]);
	poll_test_spin();
	_exit(0);
}

static struct profile *take_profile(pid_t child, bool wall)
{
	_cleanup_capture_ struct capture *capture = NULL;
	const uint32_t pid = (uint32_t)child;
	struct profile *profile = NULL;
	const struct capture_options options = {
		.capture = "poll",
		.event = "cpu-clock",
		.hz = HZ,
		.wall = wall,
		.kernel_stacks = true,
		.user_stacks = true,
		.depth = SAMPLE_USER_FRAMES,
		.memory_mib = 8,
		.pids = &pid,
		.pid_count = 1,
	};

	ASSERT_OK(capture_open(&options, &capture));
	ASSERT_STREQ(capture_name(capture), "poll");
	ASSERT_OK(capture_start(capture));
	ASSERT_OK(capture_wait(capture, TAKE_MS, -1));
	capture_stop(capture);
	ASSERT_OK(capture_end_session(capture, &profile));
	return profile;
}

/* The samples whose stacks hold a frame called NAME. */
static uint64_t count_samples(const struct profile *profile, const char *name)
{
	uint64_t count = 0;

	for (size_t i = 0; i < profile_samples(profile); i++) {
		const struct profile_sample *sample = profile_sample_at(profile, i);
		bool found = false;
		for (stack_id at = sample->stack; at != STACK_EMPTY;
		     at = profile_stack_parent(profile, at)) {
			frame_id id = profile_stack_frame(profile, at);
			string_id function = profile_frame_at(profile, id)->function;
			found |= !strcmp(profile_text(profile, function, NULL), name);
		}
		count += found ? sample->value : 0;
	}
	return count;
}

static bool may_stop(void)
{
	for (size_t i = 0; capture_row_at(i); i++) {
		if (strcmp(capture_row_at(i)->name, "poll") != 0)
			continue;
		struct error *err = capture_row_at(i)->source->probe();
		bool may = !err;
		error_free(err); // a sandbox that forbids ptrace()
		return may;
	}
	return false;
}

TEST(samples_are_the_cpu_time_of_those_that_ran)
{
	uint64_t before_ns = 0, after_ns = 0;

	if (!may_stop())
		SKIP("no process may be stopped here");
	pid_t child = start_child();
	usleep(100000);
	(void)cpu_time_of_process(child, &before_ns);
	_cleanup_profile_ struct profile *profile = take_profile(child, false);
	(void)cpu_time_of_process(child, &after_ns);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	// Warming up and naming take their time, in which nothing is sampled.
	uint64_t most = (after_ns - before_ns) * HZ / 1000000000 + 2;
	uint64_t samples = profile_facts_const(profile)->samples;
	ASSERT_TRUE(samples > 0 && samples <= most);
	ASSERT_EQ(count_samples(profile, "poll_test_wait"), 0);
	ASSERT_TRUE(count_samples(profile, "poll_test_spin") * 100 >= 95 * samples);
	// It says what it cannot show.
	ASSERT_TRUE(profile_facts_const(profile)->note_count > 0);
}

TEST(by_the_clock_all_threads_count_alike)
{
	if (!may_stop())
		SKIP("no process may be stopped here");
	pid_t child = start_child();
	usleep(100000);
	_cleanup_profile_ struct profile *profile = take_profile(child, true);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	uint64_t waits = count_samples(profile, "poll_test_wait");
	uint64_t looks = waits / WAITERS;
	ASSERT_TRUE(looks > 0 && looks <= HZ * (TAKE_MS + 100) / 1000);
	// It may wait for a CPU at many a look, on a machine that is busy.
	uint64_t runs = count_samples(profile, "poll_test_spin");
	ASSERT_TRUE(runs > 0 && runs <= looks + 1);
}

RUN_TESTS(UNIT_TEST(one_that_always_runs_gets_a_sample_each_period),
	  UNIT_TEST(the_samples_of_one_that_is_met_now_and_then_are_its_cpu_time),
	  UNIT_TEST(one_look_is_worth_so_many_samples_at_most_and_the_rest_is_kept),
	  UNIT_TEST(many_that_run_for_a_moment_get_their_share_together),
	  UNIT_TEST(what_no_look_took_is_lost_and_told_once),
	  UNIT_TEST(absurd_times_do_not_overflow), UNIT_TEST(looks_that_came_too_late_are_left_out),
	  UNIT_TEST(samples_are_the_cpu_time_of_those_that_ran),
	  UNIT_TEST(by_the_clock_all_threads_count_alike))
