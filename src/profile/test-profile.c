/* SPDX-License-Identifier: Apache-2.0 */
/* Interning, counting, and the maxima. */
#include "profile/profile.h"

#include <stdio.h>

#include "unit.h"

static string_id text(struct profile *profile, const char *string)
{
	string_id id = 0;

	ASSERT_OK(profile_string(profile, string, strlen(string), &id));
	return id;
}

/* The frame of a native function with this name. */
static frame_id function(struct profile *profile, const char *name)
{
	struct frame frame = {.kind = KIND_native, .function = text(profile, name)};
	frame_id id = 0;

	ASSERT_OK(profile_frame(profile, &frame, &id));
	return id;
}

static stack_id push(struct profile *profile, stack_id parent, const char *name)
{
	stack_id id = 0;

	ASSERT_OK(profile_stack(profile, parent, function(profile, name), &id));
	return id;
}

static uint32_t process(struct profile *profile, uint32_t pid, const char *name)
{
	struct process add = {.pid = pid, .name = text(profile, name)};
	uint32_t index = 0;

	ASSERT_OK(profile_process(profile, &add, &index));
	return index;
}

TEST(a_new_profile_holds_the_empty_string_and_the_empty_stack)
{
	_cleanup_profile_ struct profile *profile = NULL;
	size_t length = 7;

	ASSERT_OK(profile_new(NULL, &profile));
	ASSERT_EQ(profile_strings(profile), 1);
	ASSERT_EQ(profile_stacks(profile), 1);
	ASSERT_EQ(profile_frames(profile), 0);
	ASSERT_EQ(profile_processes(profile), 0);
	ASSERT_EQ(profile_samples(profile), 0);
	ASSERT_STREQ(profile_text(profile, 0, &length), "");
	ASSERT_EQ(length, 0);
	ASSERT_EQ(text(profile, ""), 0);
}

TEST(equal_text_has_one_id_and_one_copy)
{
	_cleanup_profile_ struct profile *profile = NULL;
	char name[] = "main", nul[] = "a\0b";
	string_id whole = 0, half = 0;
	size_t length;

	ASSERT_OK(profile_new(NULL, &profile));
	string_id id = text(profile, name);
	name[0] = 'x'; // the profile has its own
	ASSERT_EQ(text(profile, "main"), id);
	ASSERT_STREQ(profile_text(profile, id, NULL), "main");
	ASSERT_TRUE(text(profile, "mai") != id);
	ASSERT_OK(profile_string(profile, nul, 3, &whole));
	ASSERT_OK(profile_string(profile, nul, 1, &half));
	ASSERT_TRUE(whole != half);
	ASSERT_EQ(memcmp(profile_text(profile, whole, &length), nul, 4), 0);
	ASSERT_EQ(length, 3);
	ASSERT_EQ(profile_strings(profile), 5);
}

TEST(a_frame_differs_by_each_of_its_members)
{
	_cleanup_profile_ struct profile *profile = NULL;
	frame_id ids[8], again;

	ASSERT_OK(profile_new(NULL, &profile));
	string_id a = text(profile, "a"), b = text(profile, "b");
	const struct frame frames[8] = {
		{.kind = KIND_native, .function = a},
		{.kind = KIND_kernel, .function = a},
		{.kind = KIND_native, .function = b},
		{.kind = KIND_native, .function = a, .inlined = true},
		{.kind = KIND_native, .function = a, .file = b},
		{.kind = KIND_native, .function = a, .line = 2},
		{.kind = KIND_native, .function = a, .object = b},
		{.kind = KIND_native, .function = a, .offset = 2},
	};
	for (size_t i = 0; i < 8; i++) {
		ASSERT_OK(profile_frame(profile, &frames[i], &ids[i]));
		ASSERT_EQ(ids[i], i);
	}
	for (size_t i = 0; i < 8; i++) {
		ASSERT_OK(profile_frame(profile, &frames[i], &again));
		ASSERT_EQ(again, ids[i]);
		const struct frame *frame = profile_frame_at(profile, ids[i]);
		ASSERT_EQ(frame->kind, frames[i].kind);
		ASSERT_EQ(frame->line, frames[i].line);
		ASSERT_EQ(frame->offset, frames[i].offset);
	}
	ASSERT_EQ(profile_frames(profile), 8);
}

TEST(stacks_share_what_they_have_in_common_from_the_root)
{
	_cleanup_profile_ struct profile *profile = NULL;

	ASSERT_OK(profile_new(NULL, &profile));
	stack_id root = push(profile, STACK_EMPTY, "main");
	stack_id left = push(profile, root, "left");
	stack_id right = push(profile, root, "right");
	stack_id deep = push(profile, left, "main"); // the same frame elsewhere is another stack
	ASSERT_EQ(push(profile, root, "left"), left);
	ASSERT_TRUE(left != right && deep != root);
	ASSERT_EQ(profile_stacks(profile), 5);
	ASSERT_EQ(profile_stack_parent(profile, deep), left);
	ASSERT_EQ(profile_stack_parent(profile, root), STACK_EMPTY);
	ASSERT_EQ(profile_stack_frame(profile, deep), profile_stack_frame(profile, root));
	for (stack_id id = 1; id < profile_stacks(profile); id++)
		ASSERT_TRUE(profile_stack_parent(profile, id) < id);
}

TEST(samples_add_up_by_stack_process_and_thread)
{
	_cleanup_profile_ struct profile *profile = NULL;

	ASSERT_OK(profile_new(NULL, &profile));
	stack_id stack = push(profile, STACK_EMPTY, "main");
	uint32_t one = process(profile, 7, "a"), renamed = process(profile, 7, "b");
	ASSERT_TRUE(one != renamed);
	ASSERT_EQ(process(profile, 7, "a"), one);
	const struct profile_sample samples[] = {
		{stack, one, 7, 1},     {stack, one, 8, 10},         {stack, one, 7, 100},
		{stack, renamed, 7, 5}, {STACK_EMPTY, one, 7, 1000},
	};
	const uint64_t values[] = {101, 10, 5, 1000};
	for (size_t i = 0; i < 5; i++)
		ASSERT_OK(profile_add(profile, &samples[i]));
	ASSERT_EQ(profile_samples(profile), 4);
	for (size_t i = 0; i < 4; i++)
		ASSERT_EQ(profile_sample_at(profile, i)->value, values[i]);
}

TEST(a_weight_is_never_none_and_never_overflows)
{
	_cleanup_profile_ struct profile *profile = NULL;

	ASSERT_OK(profile_new(NULL, &profile));
	struct profile_sample sample = {STACK_EMPTY, process(profile, 7, "a"), 0, 0};
	ASSERT_FAILS(profile_add(profile, &sample), "without weight");
	ASSERT_EQ(profile_samples(profile), 0);
	sample.value = UINT64_MAX;
	ASSERT_OK(profile_add(profile, &sample));
	sample.value = 1;
	ASSERT_FAILS(profile_add(profile, &sample), "more than 64 bits");
	ASSERT_EQ(profile_sample_at(profile, 0)->value, UINT64_MAX);
}

TEST(each_maximum_is_kept_and_known_things_still_get_in)
{
	const struct profile_limits limits = {
		.strings_bytes = 48, .frames = 2, .stacks = 3, .samples = 1, .processes = 1};
	_cleanup_profile_ struct profile *profile = NULL;
	struct frame frame = {.kind = KIND_native, .line = 9};
	struct process other = {.pid = 8};
	uint32_t id = 77;

	ASSERT_OK(profile_new(&limits, &profile));
	stack_id a = push(profile, STACK_EMPTY, "a");
	stack_id b = push(profile, a, "b");
	struct profile_sample sample = {b, process(profile, 7, "c"), 0, 1};
	ASSERT_OK(profile_add(profile, &sample));

	ASSERT_FAILS(profile_string(profile, "another text that is long", 25, &id), "bytes");
	ASSERT_FAILS(profile_frame(profile, &frame, &id), "more than 2 frames in a profile");
	ASSERT_FAILS(profile_stack(profile, b, profile_stack_frame(profile, a), &id),
		     "more than 3 stacks in a profile");
	ASSERT_FAILS(profile_process(profile, &other, &id), "more than 1 processes in a profile");
	sample.stack = a;
	ASSERT_FAILS(profile_add(profile, &sample), "more than 1 samples in a profile");
	ASSERT_EQ(id, 77);
	profile_turn_away(profile, sample.value);
	ASSERT_EQ(profile_facts_const(profile)->counters.value[COUNTER_profile_full], 1);

	ASSERT_EQ(push(profile, a, "b"), b);
	sample.stack = b;
	ASSERT_OK(profile_add(profile, &sample));
	ASSERT_EQ(profile_sample_at(profile, 0)->value, 2);
	ASSERT_EQ(profile_samples(profile), 1);
}

TEST(many_things_keep_their_ids_while_everything_grows)
{
	_cleanup_profile_ struct profile *profile = NULL;
	char name[16];

	ASSERT_OK(profile_new(NULL, &profile));
	uint32_t owner = process(profile, 7, "a");
	for (int round = 0; round < 2; round++) {
		stack_id stack = STACK_EMPTY;
		for (uint32_t i = 0; i < 50000; i++) {
			(void)snprintf(name, sizeof(name), "f%u", i);
			stack = push(profile, i % 100 ? stack : STACK_EMPTY, name);
			ASSERT_EQ(stack, i + 1);
			ASSERT_OK(
				profile_add(profile, &(struct profile_sample){stack, owner, 0, 1}));
		}
	}
	ASSERT_EQ(profile_stacks(profile), 50001);
	ASSERT_EQ(profile_frames(profile), 50000);
	ASSERT_EQ(profile_samples(profile), 50000);
	ASSERT_EQ(profile_sample_at(profile, 49999)->value, 2);
}

RUN_TESTS(UNIT_TEST(a_new_profile_holds_the_empty_string_and_the_empty_stack),
	  UNIT_TEST(equal_text_has_one_id_and_one_copy),
	  UNIT_TEST(a_frame_differs_by_each_of_its_members),
	  UNIT_TEST(stacks_share_what_they_have_in_common_from_the_root),
	  UNIT_TEST(samples_add_up_by_stack_process_and_thread),
	  UNIT_TEST(a_weight_is_never_none_and_never_overflows),
	  UNIT_TEST(each_maximum_is_kept_and_known_things_still_get_in),
	  UNIT_TEST(many_things_keep_their_ids_while_everything_grows))
