/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"
#include "cli/thread-filter.h"

#include "unit.h"

static const struct thread_who threads[] = {
	{1, true, "python3", "MainThread"},
	{2, false, "python3", "worker-1"},
	{3, false, "pool-7", NULL},
	{4, false, NULL, NULL},
};

/* The threads that "-t A -t B" and "-L TID" choose, as digits. */
static const struct {
	const char *names[3];
	uint64_t tids[3];
	const char *chosen;
} cases[] = {
	{{NULL}, {0}, "1234"},
	{{"main"}, {0}, "1"},
	{{"!main"}, {0}, "234"},
	{{"^worker"}, {0}, "2"},
	{{"python"}, {0}, "12"},
	{{"python", "!main"}, {0}, "2"},
	{{"!python", "!pool"}, {0}, "4"},
	{{"pool|worker", "main"}, {0}, "123"},
	{{"mainx"}, {0}, ""},
	{{"MainThread"}, {0}, "1"},
	{{NULL}, {3, 4}, "34"},
	{{"pool"}, {2, 3}, "3"},
	{{"!pool"}, {2, 3}, "2"},
};

static void filter_init(struct thread_filter *filter, size_t i, struct uint_list *tids)
{
	struct text_list names = {0};

	for (size_t k = 0; cases[i].names[k]; k++)
		ASSERT_OK(text_list_add(&names, cases[i].names[k], strlen(cases[i].names[k])));
	tids->items = (uint64_t *)cases[i].tids;
	while (cases[i].tids[tids->count])
		tids->count++;
	ASSERT_OK(thread_filter_init(filter, &names, tids));
	text_list_deinit(&names);
}

TEST(threads_are_chosen_by_name_and_number)
{
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		_cleanup_(thread_filter_deinit) struct thread_filter filter = THREAD_FILTER_INIT;
		struct uint_list tids = {0};
		char chosen[ARRAY_COUNT(threads) + 1] = "";
		filter_init(&filter, i, &tids);
		for (size_t k = 0; k < ARRAY_COUNT(threads); k++)
			if (thread_filter_accepts(&filter, &threads[k]))
				chosen[strlen(chosen)] = (char)('0' + threads[k].tid);
		ASSERT_STREQ(chosen, cases[i].chosen);
	}
}

static const struct {
	const char *name, *says;
} wrong[] = {
	{"17", "-t 17: names threads; -L chooses them by number"},
	{"!17", "-L chooses them by number"},
	{"!", "needs a name"},
	{"a(", "-t a(: "},
};

TEST(what_is_no_name_is_refused_with_a_hint)
{
	for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
		_cleanup_(thread_filter_deinit) struct thread_filter filter = THREAD_FILTER_INIT;
		struct text_list names = {0};
		struct uint_list tids = {0};
		ASSERT_OK(text_list_add(&names, wrong[i].name, strlen(wrong[i].name)));
		ASSERT_FAILS(thread_filter_init(&filter, &names, &tids), wrong[i].says);
		text_list_deinit(&names);
	}
}

RUN_TESTS(UNIT_TEST(threads_are_chosen_by_name_and_number),
	  UNIT_TEST(what_is_no_name_is_refused_with_a_hint))
