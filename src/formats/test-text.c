/* SPDX-License-Identifier: Apache-2.0 */
/* Names that would break a line of folded text. */
#include "formats/text.h"

#include <stdlib.h>

#include "unit.h"

static string_id text(struct profile *profile, const char *string)
{
	string_id id = 0;

	ASSERT_OK(profile_string(profile, string, strlen(string), &id));
	return id;
}

static stack_id push(struct profile *profile, stack_id parent, const struct frame *frame)
{
	frame_id id = 0;
	stack_id stack = 0;

	ASSERT_OK(profile_frame(profile, frame, &id));
	ASSERT_OK(profile_stack(profile, parent, id, &stack));
	return stack;
}

static void add(struct profile *profile, const struct process *process, stack_id stack,
		uint64_t value)
{
	struct profile_sample sample = {.stack = stack, .value = value};

	ASSERT_OK(profile_process(profile, process, &sample.process));
	ASSERT_OK(profile_add(profile, &sample));
}

static char *written(const struct profile *profile, const struct text_form *form)
{
	char *out = NULL;
	size_t size;
	FILE *stream = open_memstream(&out, &size);

	ASSERT_OK(text_write(profile, form, stream));
	ASSERT_EQ(fclose(stream), 0);
	ASSERT_EQ(strlen(out), size);
	return out;
}

TEST(a_name_keeps_what_cannot_break_a_line_and_nothing_else)
{
	static const struct {
		const char *name, *expected;
	} rows[] = {
		{"std::map<int, long>::operator[](int const&)",
		 "std::map<int, long>::operator[](int const&)"},
		{"a;b", "a|b"},
		{"a\nb\r\tc\v\f\x1c\x1d\x1e", "a b  c     "},
		{"a\x01\x1b[31m\x7f", "a??[31m?"},
		{"\xc2\x85\xe2\x80\xa8\xe2\x80\xa9", "   "},
		{"\xc2\x9b", "?"},
		{"\xe2\x80\xae"
		 "exe.",
		 "?exe."},
		{"\xd8\x9c\xe2\x81\xa6\xe2\x80\x8e", "???"},
		{"\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x94\xa5", "\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x94\xa5"},
		{"a\xff\xe2\x82z", "a\xef\xbf\xbd\xef\xbf\xbdz"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		_cleanup_(strbuf_deinit) struct strbuf buf = STRBUF_INIT;
		ASSERT_OK(text_add_name(&buf, rows[i].name, strlen(rows[i].name)));
		ASSERT_STREQ(buf.text, rows[i].expected);
	}
}

TEST(what_reads_the_same_is_one_line)
{
	static const struct text_form form = {.before = "", .after = "\n"};
	_cleanup_profile_ struct profile *profile = NULL;

	ASSERT_OK(profile_new(NULL, &profile));
	struct process one = {.pid = 1, .name = text(profile, "app")};
	struct process two = {.pid = 2, .name = text(profile, "app")};
	struct process odd = {.pid = 3, .name = text(profile, "a\x01p")};
	struct process odder = {.pid = 3, .name = text(profile, "a\x02p")};
	struct frame frame = {.kind = KIND_native, .function = text(profile, "main"), .line = 1};
	stack_id first = push(profile, STACK_EMPTY, &frame);
	frame.line = 2;
	stack_id second = push(profile, STACK_EMPTY, &frame);
	add(profile, &one, first, 1);
	add(profile, &two, first, 10);
	add(profile, &two, second, 100);
	add(profile, &odd, first, 3);
	add(profile, &odder, second, 4);
	_cleanup_free_ char *out = written(profile, &form);
	ASSERT_STREQ(out, "a?p;main 7\napp;main 111\n");
}

TEST(marks_say_what_a_frame_is)
{
	static const struct text_form all = {
		.mark_inlined = true, .mark_jit = true, .before = "", .after = ""};
	static const struct text_form none = {.before = "", .after = ""};
	_cleanup_profile_ struct profile *profile = NULL;

	ASSERT_OK(profile_new(NULL, &profile));
	string_id name = text(profile, "f");
	const struct frame frames[] = {
		{.kind = KIND_native, .function = name},
		{.kind = KIND_native, .function = name, .inlined = true},
		{.kind = KIND_jit, .function = name},
		{.kind = KIND_kernel, .function = name},
		{.kind = KIND_cut, .function = text(profile, "[cut: too deep]")},
	};
	stack_id stack = STACK_EMPTY;
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
		stack = push(profile, stack, &frames[i]);
	add(profile, &(struct process){.name = name}, stack, 5);
	_cleanup_free_ char *marked = written(profile, &all);
	_cleanup_free_ char *plain = written(profile, &none);
	ASSERT_STREQ(marked, "f;f;f_[i];f_[j];f_[k];[cut: too deep] 5");
	ASSERT_STREQ(plain, "f;f;f;f;f_[k];[cut: too deep] 5");
}

TEST(objects_stand_behind_the_names_of_native_functions)
{
	static const struct text_form form = {.objects = true, .before = "", .after = ""};
	_cleanup_profile_ struct profile *profile = NULL;

	ASSERT_OK(profile_new(NULL, &profile));
	string_id name = text(profile, "f"), object = text(profile, "/lib/a;b.so");
	const struct frame frames[] = {
		{.kind = KIND_native, .function = name, .object = object},
		{.kind = KIND_native, .function = name},
		{.kind = KIND_native, .function = text(profile, "(b.so+0x10)"), .object = object},
		{.kind = KIND_kernel, .function = name, .object = object},
		{.kind = KIND_go, .function = name, .object = object},
	};
	stack_id stack = STACK_EMPTY;
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
		stack = push(profile, stack, &frames[i]);
	add(profile, &(struct process){.name = name}, stack, 5);
	_cleanup_free_ char *out = written(profile, &form);
	ASSERT_STREQ(out, "f;f (/lib/a|b.so);f;(b.so+0x10);f_[k];f (/lib/a|b.so) 5");
}

TEST(a_missing_name_is_shown_and_a_missing_container_is_empty)
{
	static const struct text_form form = {.containers = true, .before = "<", .after = ">"};
	_cleanup_profile_ struct profile *profile = NULL;
	struct frame frame = {.kind = KIND_native};

	ASSERT_OK(profile_new(NULL, &profile));
	struct process process = {.name = text(profile, "app"), .container = text(profile, "w;1")};
	stack_id stack = push(profile, STACK_EMPTY, &frame);
	add(profile, &(struct process){0}, stack, 1);
	add(profile, &process, STACK_EMPTY, 2);
	_cleanup_free_ char *out = written(profile, &form);
	ASSERT_STREQ(out, "<;[unknown];[unknown] 1><w|1;app 2>");
}

TEST(the_application_stands_behind_the_process)
{
	static const struct text_form form = {.applications = true, .before = "", .after = "\n"};
	static const struct text_form without = {.before = "", .after = "\n"};
	_cleanup_profile_ struct profile *profile = NULL;
	struct frame frame = {.kind = KIND_native};

	ASSERT_OK(profile_new(NULL, &profile));
	frame.function = text(profile, "f");
	struct process process = {.name = text(profile, "python")};
	stack_id stack = push(profile, STACK_EMPTY, &frame);
	add(profile, &process, stack, 1);
	process.application = text(profile, "appid: python: b;.py");
	add(profile, &process, stack, 2);
	process.application = text(profile, "appid: python: a\n.py");
	add(profile, &process, STACK_EMPTY, 3);
	_cleanup_free_ char *out = written(profile, &form);
	ASSERT_STREQ(out, "python;f 1\n"
			  "python;appid: python: a .py 3\n"
			  "python;appid: python: b|.py;f 2\n");
	_cleanup_free_ char *plain = written(profile, &without);
	ASSERT_STREQ(plain, "python 3\npython;f 3\n");
}

TEST(no_process_can_make_its_line_a_comment)
{
	static const struct text_form form = {.before = "", .after = "\n"};
	_cleanup_profile_ struct profile *profile = NULL;
	struct frame frame = {.kind = KIND_native};

	ASSERT_OK(profile_new(NULL, &profile));
	struct process process = {.name = text(profile, "# app")};
	frame.function = text(profile, "#f");
	add(profile, &process, push(profile, STACK_EMPTY, &frame), 1);
	_cleanup_free_ char *out = written(profile, &form);
	ASSERT_STREQ(out, "? app;#f 1\n");
}

RUN_TESTS(UNIT_TEST(a_name_keeps_what_cannot_break_a_line_and_nothing_else),
	  UNIT_TEST(what_reads_the_same_is_one_line), UNIT_TEST(marks_say_what_a_frame_is),
	  UNIT_TEST(objects_stand_behind_the_names_of_native_functions),
	  UNIT_TEST(a_missing_name_is_shown_and_a_missing_container_is_empty),
	  UNIT_TEST(the_application_stands_behind_the_process),
	  UNIT_TEST(no_process_can_make_its_line_a_comment))
