/* SPDX-License-Identifier: Apache-2.0 */
/* The order depends on texts, not on when something was added. */
#include "formats/order.h"

#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

static string_id text(struct profile *profile, const char *string)
{
	string_id id = 0;

	ASSERT_OK(profile_string(profile, string, strlen(string), &id));
	return id;
}

/* A sample of process NAME with a stack of one-letter functions. */
static void add(struct profile *profile, const char *container, const char *name, const char *stack)
{
	struct process process = {.name = text(profile, name),
				  .container = text(profile, container)};
	struct profile_sample sample = {.stack = STACK_EMPTY, .value = 1};

	for (; *stack; stack++) {
		struct frame frame = {.kind = KIND_native};
		frame_id id = 0;
		ASSERT_OK(profile_string(profile, stack, 1, &frame.function));
		ASSERT_OK(profile_frame(profile, &frame, &id));
		ASSERT_OK(profile_stack(profile, sample.stack, id, &sample.stack));
	}
	ASSERT_OK(profile_process(profile, &process, &sample.process));
	ASSERT_OK(profile_add(profile, &sample));
}

/* "container name stack" of sample INDEX. */
static void print_sample(const struct profile *profile, uint32_t index, FILE *stream)
{
	const struct profile_sample *sample = profile_sample_at(profile, index);
	const struct process *process = profile_process_at(profile, sample->process);
	char stack[16];
	size_t at = sizeof(stack) - 1;

	stack[at] = 0;
	for (stack_id id = sample->stack; id; id = profile_stack_parent(profile, id)) {
		frame_id frame = profile_stack_frame(profile, id);
		string_id name = profile_frame_at(profile, frame)->function;
		stack[--at] = profile_text(profile, name, NULL)[0];
	}
	fprintf(stream, "%s %s %s\n", profile_text(profile, process->container, NULL),
		profile_text(profile, process->name, NULL), stack + at);
}

static char *ordered(const struct profile *profile)
{
	_cleanup_free_ uint32_t *order = NULL;
	char *out = NULL;
	size_t size;
	FILE *stream = open_memstream(&out, &size);

	ASSERT_OK(order_samples(profile, &order));
	for (size_t i = 0; i < profile_samples(profile); i++)
		print_sample(profile, order[i], stream);
	fclose(stream);
	return out;
}

static const struct {
	const char *container, *name, *stack;
} sorted[] = {
	{"", "app", ""},   {"", "app", "a"},    {"", "app", "ab"}, {"", "app", "abz"},
	{"", "app", "ac"}, {"", "app", "b"},    {"", "app", "ba"}, {"", "appendix", "a"},
	{"", "b", "a"},    {"box", "app", "a"}, {"box", "b", ""},
};
enum { COUNT = sizeof(sorted) / sizeof(sorted[0]) };

TEST(any_order_of_adding_gives_the_same_order)
{
	_cleanup_free_ char *expected = NULL;
	size_t size;
	FILE *stream = open_memstream(&expected, &size);

	for (size_t i = 0; i < COUNT; i++)
		fprintf(stream, "%s %s %s\n", sorted[i].container, sorted[i].name, sorted[i].stack);
	fclose(stream);
	// Steps that have no divisor in common with the count visit every row once.
	for (size_t step = 1; step < COUNT; step++) {
		_cleanup_profile_ struct profile *profile = NULL;
		ASSERT_OK(profile_new(NULL, &profile));
		for (size_t i = 0; i < COUNT; i++)
			add(profile, sorted[i * step % COUNT].container,
			    sorted[i * step % COUNT].name, sorted[i * step % COUNT].stack);
		ASSERT_EQ(profile_samples(profile), COUNT);
		_cleanup_free_ char *out = ordered(profile);
		ASSERT_STREQ(out, expected);
	}
}

TEST(an_empty_profile_has_an_empty_order)
{
	_cleanup_profile_ struct profile *profile = NULL;

	ASSERT_OK(profile_new(NULL, &profile));
	_cleanup_free_ char *out = ordered(profile);
	ASSERT_STREQ(out, "");
}

RUN_TESTS(UNIT_TEST(any_order_of_adding_gives_the_same_order),
	  UNIT_TEST(an_empty_profile_has_an_empty_order))
