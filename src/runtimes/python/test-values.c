/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of real interpreters, as tests/targets/python-values.py tells them. */
#include "runtimes/python/values.h"

#include "runtimes/python/locals.h"
#include "runtimes/python/test-rows.h"
#include "runtimes/python/thread-names.h"

enum { LOCALS_MAX = 64, FAILURES_MAX = 400 };

struct counts {
	long values, locals, names, failures, reads;
};

/* Every single read of a value failing in turn: less is told, and nothing else happens. */
static void check_failures(struct telling *telling, const struct python_values *from, uint64_t addr,
			   struct counts *counts)
{
	char text[ROW_TEXT_MAX];
	long reads = telling->failing.reads;

	for (long i = 0; i < reads && i < FAILURES_MAX; i++) {
		telling->failing.reads = 0;
		telling->failing.fails_at = i;
		size_t length = python_value_print(from, addr, text, sizeof(text));
		ASSERT_EQ(strlen(text), length);
		ASSERT_TRUE(length);
		counts->failures++;
	}
	telling->failing.fails_at = -1;
}

/* In any room the text is cut between characters, and says so. */
static void check_rooms(const struct python_values *from, uint64_t addr, const char *whole)
{
	char text[ROW_TEXT_MAX];

	for (size_t size = 8; size < 64; size++) {
		memset(text, '#', sizeof(text));
		size_t length = python_value_print(from, addr, text, size);
		ASSERT_TRUE(length < size);
		ASSERT_EQ(text[length], 0);
		ASSERT_EQ(text[size], '#');
		if (strcmp(text, whole) != 0) {
			ASSERT_TRUE(length >= 3);
			ASSERT_STREQ(text + length - 3, "\u2026");
			ASSERT_EQ(memcmp(text, whole, length - 3), 0);
		}
	}
}

static void check_value(struct telling *telling, const struct python_value_limits *limits,
			struct counts *counts)
{
	const struct python_values from = {&telling->memory, &telling->at, limits};
	char expected[ROW_TEXT_MAX], found[ROW_TEXT_MAX];
	char *row = telling->row + 2;
	uint64_t addr = row_number(&row);

	row_text(&row, expected);
	telling->failing.reads = 0;
	size_t length = python_value_print(&from, addr, found, sizeof(found));
	counts->reads += telling->failing.reads;
	ASSERT_STREQ(found, expected);
	ASSERT_EQ(length, strlen(expected));
	check_failures(telling, &from, addr, counts);
	check_rooms(&from, addr, expected);
	counts->values++;
}

struct found_local {
	char name[256], text[ROW_TEXT_MAX];
	enum python_local_kind kind;
};

struct found_locals {
	const struct python_values *from;
	struct found_local local[LOCALS_MAX];
	size_t count;
	bool addresses_alone;
};

static bool add_local(void *context, const struct python_local *local)
{
	struct found_locals *found = context;

	if (found->count == LOCALS_MAX)
		return false;
	struct found_local *to = &found->local[found->count++];
	to->kind = local->kind;
	snprintf(to->name, sizeof(to->name), "%s", local->name);
	if (!found->addresses_alone)
		python_value_print(found->from, local->value, to->text, sizeof(to->text));
	return true;
}

static void check_local(const struct found_locals *found, char *row)
{
	enum python_local_kind kind = (enum python_local_kind)row_number(&row);
	char name[ROW_TEXT_MAX], text[ROW_TEXT_MAX];

	row_text(&row, name);
	bool any = !strncmp(row, "*", 1);
	row_text(&row, text);
	for (size_t i = 0; i < found->count; i++) {
		if (strcmp(found->local[i].name, name) != 0)
			continue;
		ASSERT_EQ(found->local[i].kind, kind);
		if (!any)
			ASSERT_STREQ(found->local[i].text, text);
		return;
	}
	print_error("no variable %s\n", name);
	fail();
}

static void check_frame(struct telling *telling, struct counts *counts)
{
	const struct python_values from = {&telling->memory, &telling->at, &python_value_line};
	struct found_locals *found = calloc(1, sizeof(*found));
	char *row = telling->row + 2;
	struct python_frame frame = {.addr = row_number(&row)};

	frame.code = row_number(&row);
	bool definitions = row_number(&row);
	size_t count = row_number(&row);

	ASSERT_TRUE(found);
	found->from = &from;
	if (telling->at.frame_object_frame != PYTHON_ABSENT)
		ASSERT_EQ(memory_read_u64(&telling->memory,
					  frame.addr + telling->at.frame_object_frame, &frame.addr),
			  0);
	telling->failing.reads = 0;
	found->addresses_alone = true;
	ASSERT_EQ(python_locals(&from, &frame, definitions, add_local, found), PYTHON_LOCALS_read);
	long reads = telling->failing.reads;
	found->addresses_alone = false;
	found->count = 0;
	ASSERT_EQ(python_locals(&from, &frame, definitions, add_local, found), PYTHON_LOCALS_read);
	for (size_t i = 0; i < count; i++)
		check_local(found, telling_row(telling));
	for (size_t i = 0; i < found->count && found->count != count; i++)
		print_error("%s = %s\n", found->local[i].name, found->local[i].text);
	ASSERT_EQ(found->count, count);
	counts->locals += (long)count;
	found->addresses_alone = true;
	for (long i = 0; i < reads; i++) {
		telling->failing.reads = found->count = 0;
		telling->failing.fails_at = i;
		python_locals(&from, &frame, definitions, add_local, found);
		ASSERT_TRUE(found->count <= count);
		counts->failures++;
	}
	telling->failing.fails_at = -1;
	free(found);
}

static void check_names_end(struct telling *telling, uint64_t modules)
{
	struct python_thread_names spent = {.reads = PYTHON_THREAD_NAMES_READS};
	enum python_thread_names_outcome outcome;

	ASSERT_OK(python_thread_names_read(&telling->memory, &telling->at, modules, &outcome,
					   &spent));
	ASSERT_EQ(outcome, PYTHON_THREAD_NAMES_unreadable);
	ASSERT_EQ(spent.count, 0);
}

static void check_names(struct telling *telling, struct counts *counts)
{
	_cleanup_(python_thread_names_deinit) struct python_thread_names names = {0};
	enum python_thread_names_outcome outcome;
	char *row = telling->row + 2;
	uint64_t modules = row_number(&row), count = row_number(&row);

	telling->failing.reads = 0;
	ASSERT_OK(python_thread_names_read(&telling->memory, &telling->at, modules, &outcome,
					   &names));
	long reads = telling->failing.reads;
	ASSERT_EQ(outcome, PYTHON_THREAD_NAMES_read);
	ASSERT_EQ(names.count, count);
	check_names_end(telling, modules);
	for (uint64_t i = 0; i < count; i++) {
		char name[ROW_TEXT_MAX];
		row = telling_row(telling);
		uint64_t id = row_number(&row);
		row_text(&row, name);
		const char *found = python_thread_name_find(&names, id);
		ASSERT_TRUE(found);
		if (strlen(name) < PYTHON_THREAD_NAME_MAX)
			ASSERT_STREQ(found, name);
		else
			ASSERT_EQ(memcmp(found, name, 100), 0);
		counts->names++;
	}
	for (long i = 0; i < reads; i++) {
		_cleanup_(python_thread_names_deinit) struct python_thread_names fewer = {0};
		telling->failing.reads = 0;
		telling->failing.fails_at = i;
		ASSERT_OK(python_thread_names_read(&telling->memory, &telling->at, modules,
						   &outcome, &fewer));
		ASSERT_TRUE(fewer.count <= count);
		counts->failures++;
	}
	telling->failing.fails_at = -1;
}

static void check_rows(struct telling *telling, struct counts *counts)
{
	while (telling_row(telling)) {
		if (telling->row[0] == 'L')
			check_value(telling, &python_value_line, counts);
		else if (telling->row[0] == 'M')
			check_value(telling, &python_value_more, counts);
		else if (telling->row[0] == 'F')
			check_frame(telling, counts);
		else if (telling->row[0] == 'T')
			check_names(telling, counts);
		else
			break;
	}
	ASSERT_STREQ(telling->row, "E\n");
}

TEST(each_interpreter_s_own_word_on_values_locals_and_threads_is_met)
{
	_cleanup_(interpreters_deinit) struct interpreters found = interpreters_find();
	bool debian = false;

	for (size_t i = 0; i < found.count; i++) {
		_cleanup_(telling_deinit) struct telling telling = {0};
		struct counts counts = {0};
		if (!telling_start(found.path[i], "targets/python-values.py", &telling)) {
			print_message("skipped: %s does not run, or is of an unknown version\n",
				      found.path[i]);
			continue;
		}
		check_rows(&telling, &counts);
		print_message("%s: %ld values (%ld reads), %ld variables, %ld names of threads, "
			      "%ld reads that failed\n",
			      found.path[i], counts.values, counts.reads, counts.locals,
			      counts.names, counts.failures);
		debian = debian || str_starts(found.path[i], "/usr/bin/");
		ASSERT_TRUE(counts.values >= 120 && counts.locals >= 25 && counts.names >= 5);
	}
	ASSERT_TRUE(debian);
}

RUN_TESTS(UNIT_TEST(each_interpreter_s_own_word_on_values_locals_and_threads_is_met))
