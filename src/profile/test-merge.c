/* SPDX-License-Identifier: Apache-2.0 */
/* Two profiles become one, whatever ids their parts had. */
#include "profile/merge.h"

#include <stdio.h>

#include "unit.h"

static string_id text(struct profile *profile, const char *string)
{
	string_id id = 0;

	ASSERT_OK(profile_string(profile, string, strlen(string), &id));
	return id;
}

/* Add VALUE to the stack NAMES, one letter a frame, of process PID. */
static void add(struct profile *profile, uint32_t pid, const char *names, uint64_t value)
{
	struct process process = {.pid = pid, .name = text(profile, "app")};
	struct profile_sample sample = {.stack = STACK_EMPTY, .value = value};

	for (; *names; names++) {
		struct frame frame = {.kind = KIND_native, .file = text(profile, "x.c")};
		frame_id id = 0;
		ASSERT_OK(profile_string(profile, names, 1, &frame.function));
		ASSERT_OK(profile_frame(profile, &frame, &id));
		ASSERT_OK(profile_stack(profile, sample.stack, id, &sample.stack));
	}
	ASSERT_OK(profile_process(profile, &process, &sample.process));
	ASSERT_OK(profile_add(profile, &sample));
}

/* The value of the stack NAMES of PID, 0 when there is none. */
static uint64_t value_of(const struct profile *profile, uint32_t pid, const char *names)
{
	uint64_t found = 0;

	for (size_t i = 0; i < profile_samples(profile); i++) {
		const struct profile_sample *sample = profile_sample_at(profile, i);
		char path[32];
		size_t at = sizeof(path) - 1;
		path[at] = 0;
		for (stack_id id = sample->stack; id; id = profile_stack_parent(profile, id)) {
			frame_id frame = profile_stack_frame(profile, id);
			string_id name = profile_frame_at(profile, frame)->function;
			path[--at] = profile_text(profile, name, NULL)[0];
		}
		if (!strcmp(path + at, names) &&
		    profile_process_at(profile, sample->process)->pid == pid)
			found += sample->value;
	}
	return found;
}

TEST(samples_of_both_add_up_and_nothing_is_there_twice)
{
	_cleanup_profile_ struct profile *into = NULL;
	_cleanup_profile_ struct profile *from = NULL;

	ASSERT_OK(profile_new(NULL, &into));
	ASSERT_OK(profile_new(NULL, &from));
	add(into, 1, "abc", 10);
	add(into, 2, "ax", 1);
	add(from, 2, "xa", 3);
	add(from, 1, "abc", 5);
	add(from, 1, "abd", 7);
	ASSERT_OK(profile_merge(into, from));
	ASSERT_EQ(value_of(into, 1, "abc"), 15);
	ASSERT_EQ(value_of(into, 1, "abd"), 7);
	ASSERT_EQ(value_of(into, 2, "ax"), 1);
	ASSERT_EQ(value_of(into, 2, "xa"), 3);
	ASSERT_EQ(profile_samples(into), 4);
	ASSERT_EQ(profile_frames(into), 5);     // a b c d x
	ASSERT_EQ(profile_stacks(into), 1 + 7); // abc, ax; abd shares ab; x, xa
	ASSERT_EQ(profile_processes(into), 2);
	ASSERT_EQ(profile_samples(from), 3);
}

TEST(facts_span_both_and_keep_only_what_both_say)
{
	_cleanup_profile_ struct profile *into = NULL;
	_cleanup_profile_ struct profile *from = NULL;

	ASSERT_OK(profile_new(NULL, &into));
	ASSERT_OK(profile_new(NULL, &from));
	text(from, "so that ids differ");
	add(into, 1, "a", 1);
	add(from, 1, "a", 1);
	struct session_facts *a = profile_facts(into), *b = profile_facts(from);
	*a = (struct session_facts){.start_realtime_ns = 100, .end_realtime_ns = 200};
	*b = (struct session_facts){.start_realtime_ns = 50, .end_realtime_ns = 150};
	a->rate_hz = b->rate_hz = 99;
	a->period = 5;
	a->cpus = 2;
	b->cpus = 4;
	a->host = text(into, "one");
	b->host = text(from, "two");
	a->kernel = text(into, "6.1");
	b->kernel = text(from, "6.1");
	a->samples = b->samples = 4;
	b->lost = 3;
	a->counters.value[COUNTER_samples] = b->counters.value[COUNTER_samples] = 4;
	a->cuts[a->cut_count++] = (struct profile_cut){"too deep", 1};
	b->cuts[b->cut_count++] = (struct profile_cut){"unknown code", 2};
	b->cuts[b->cut_count++] = (struct profile_cut){"too deep", 4};
	a->notes[a->note_count++] = text(into, "note");
	b->notes[b->note_count++] = text(from, "note");
	b->notes[b->note_count++] = text(from, "second");

	ASSERT_OK(profile_merge(into, from));
	ASSERT_EQ(a->start_realtime_ns, 50);
	ASSERT_EQ(a->end_realtime_ns, 200);
	ASSERT_EQ(a->rate_hz, 99);
	ASSERT_EQ(a->period, 0);
	ASSERT_EQ(a->cpus, 0);
	ASSERT_EQ(a->host, 0);
	ASSERT_STREQ(profile_text(into, a->kernel, NULL), "6.1");
	ASSERT_EQ(a->samples, 8);
	ASSERT_EQ(a->lost, 3);
	ASSERT_EQ(a->counters.value[COUNTER_samples], 8);
	ASSERT_EQ(a->cut_count, 2);
	ASSERT_EQ(a->cuts[0].samples, 5);
	ASSERT_EQ(a->cuts[1].samples, 2);
	ASSERT_EQ(a->note_count, 2);
	ASSERT_STREQ(profile_text(into, a->notes[1], NULL), "second");
}

TEST(an_empty_profile_takes_the_facts_of_the_other)
{
	_cleanup_profile_ struct profile *into = NULL;
	_cleanup_profile_ struct profile *from = NULL;

	ASSERT_OK(profile_new(NULL, &into));
	ASSERT_OK(profile_new(NULL, &from));
	add(from, 1, "a", 1);
	profile_facts(from)->rate_hz = 99;
	profile_facts(from)->period = 7;
	profile_facts(from)->start_realtime_ns = 50;
	profile_facts(from)->host = text(from, "one");
	ASSERT_OK(profile_merge(into, from));
	ASSERT_EQ(profile_facts(into)->rate_hz, 99);
	ASSERT_EQ(profile_facts(into)->period, 7);
	ASSERT_EQ(profile_facts(into)->start_realtime_ns, 50);
	ASSERT_STREQ(profile_text(into, profile_facts(into)->host, NULL), "one");
	ASSERT_OK(profile_merge(into, into));
	ASSERT_EQ(value_of(into, 1, "a"), 2);
}

TEST(a_merge_that_does_not_fit_says_so_and_leaves_a_sound_profile)
{
	const struct profile_limits limits = {.stacks = 3};
	_cleanup_profile_ struct profile *into = NULL;
	_cleanup_profile_ struct profile *from = NULL;

	ASSERT_OK(profile_new(&limits, &into));
	ASSERT_OK(profile_new(NULL, &from));
	add(into, 1, "ab", 1);
	add(from, 1, "xy", 1);
	ASSERT_FAILS(profile_merge(into, from), "more than 3 stacks");
	ASSERT_EQ(profile_samples(into), 1);
	add(into, 1, "ab", 1);
	ASSERT_EQ(value_of(into, 1, "ab"), 2);
}

RUN_TESTS(UNIT_TEST(samples_of_both_add_up_and_nothing_is_there_twice),
	  UNIT_TEST(facts_span_both_and_keep_only_what_both_say),
	  UNIT_TEST(an_empty_profile_takes_the_facts_of_the_other),
	  UNIT_TEST(a_merge_that_does_not_fit_says_so_and_leaves_a_sound_profile))
