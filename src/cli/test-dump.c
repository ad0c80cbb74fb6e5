/* SPDX-License-Identifier: Apache-2.0 */
/* What a made-up process looks like, as text and as JSON: tests/golden/dump.txt and dump.json. */
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/dump-print.h"

#include "unit.h"

enum { FILE_MAX = 1 << 20 };

static const struct target_local variables[] = {
	{"request", "<Request at 0x7f0012345678>", true},
	{"depth", "3", true},
	{"rows", "[1, 2, ... 998 more]", false},
	{"note", "'\xc2\x9b[31m red'", false},
};

static const struct target_frame serving[] = {
	{.kind = KIND_kernel, .function = "do_epoll_wait"},
	{.kind = KIND_native,
	 .function = "epoll_wait",
	 .object = "/usr/lib/libc.so.6",
	 .pc = 0x7f00000100aa},
	{.kind = KIND_go,
	 .function = "main.serve",
	 .file = "/srv/main.go",
	 .line = 41,
	 .first_line = 30,
	 .object = "/srv/app",
	 .pc = 0x401234,
	 .local = variables,
	 .locals = ARRAY_COUNT(variables)},
	{.kind = KIND_native,
	 .function = "inner",
	 .file = "/srv/inner.c",
	 .line = 7,
	 .inlined = true,
	 .object = "/srv/app",
	 .pc = 0x401300},
	{.kind = KIND_native,
	 .function = "(/srv/app+0x1300)",
	 .object = "/srv/app",
	 .pc = 0x401300},
};

static const struct target_frame working[] = {
	{.kind = KIND_native, .function = "work", .object = "/srv/app", .pc = 0x401400},
	{.kind = KIND_jit, .function = "[jit]", .pc = 0x7f0000200000},
	{.kind = KIND_cut, .function = "[cut: no unwind rows]"},
};

/* Names that would like to be more than names. */
static const struct target_frame hostile[] = {
	{.kind = KIND_native,
	 .function = "\x1b]0;title\x07\xff\xe2\x80\xae",
	 .file = "a\nb\"c",
	 .line = 4294967295},
};

static const struct target_frame fetching[] = {
	{.kind = KIND_python,
	 .function = "sleep",
	 .file = "/usr/lib/python3.11/asyncio/tasks.py",
	 .line = 639,
	 .first_line = 627},
	{.kind = KIND_python, .function = "fetch", .file = "a.py", .line = 7, .first_line = 5},
};

static struct target_frames frames_of(const struct target_frame *frame, size_t count)
{
	struct target_frames frames = TARGET_FRAMES_INIT;

	for (size_t i = 0; i < count; i++)
		ASSERT_OK(target_frames_add(&frames, &frame[i]));
	return frames;
}

static void add_thread(struct dump *dump, const struct dump_thread *thread,
		       const struct target_frame *frame, size_t count)
{
	struct dump_thread *added;

	ASSERT_OK(dump_add_thread(dump, thread, &added));
	added->frames = frames_of(frame, count);
}

/* By number: the last two wait for each other, and the one before has no thread. */
static const struct dump_task tasks[] = {
	{.addr = 0x7f10, .name = "Task-1", .tid = 4711, .waits_for = -1, .awaited_by = -1},
	{.addr = 0x7f20, .name = "Task-2", .tid = 4711, .waits_for = -1, .awaited_by = 0},
	{.addr = 0x7f30, .name = "evil \x1b[1m", .tid = 4711, .waits_for = -1, .awaited_by = 0},
	{.addr = 0x7f40, .tid = 4711, .state = DUMP_TASK_running, .waits_for = -1, .awaited_by = 1},
	{.addr = 0x7f50, .name = "Task-3", .tid = 4711, .waits_for = -1, .awaited_by = 0},
	{.addr = 0x7f60, .state = DUMP_TASK_ready, .waits_for = -1, .awaited_by = -1},
	{.addr = 0x7f70, .name = "one", .tid = 4711, .waits_for = 7, .awaited_by = 7},
	{.addr = 0x7f80, .name = "other", .tid = 4711, .waits_for = 6, .awaited_by = 6},
};

static void add_tasks(struct dump *dump)
{
	ASSERT_OK(ARRAY_NEW(dump->task, ARRAY_COUNT(tasks)));
	for (size_t i = 0; i < ARRAY_COUNT(tasks); i++) {
		dump->task[i] = tasks[i];
		dump->task[i].frames = frames_of(fetching, 1 + i % 2);
		dump->thread[0].tasks += tasks[i].tid != 0;
	}
	dump->tasks = ARRAY_COUNT(tasks);
}

static void made_up(struct dump *dump)
{
	struct dump_thread first = {.tid = 4711,
				    .main = true,
				    .name = "server",
				    .python_name = "MainThread",
				    .python_id = 0x7f0000001740,
				    .state = DUMP_idle,
				    .waits_in = "epoll_wait on 7 (anon_inode:[eventpoll])",
				    .end = END_root};
	struct dump_thread worker = {
		.tid = 4712, .name = "worker", .state = DUMP_waiting, .end = END_no_rows};
	struct dump_thread runs = {.tid = 4715,
				   .name = "evil \x1b[1m",
				   .state = DUMP_gil_holder,
				   .stopped_ns = 41234,
				   .end = END_root};
	struct dump_thread gone = {.tid = 4716, .state = DUMP_ended, .end = END_none};

	*dump = (struct dump){.pid = 4711,
			      .name = "server",
			      .command = "/srv/app --port 80",
			      .exe = "/srv/app",
			      .python = "3.11.2"};
	add_thread(dump, &first, serving, ARRAY_COUNT(serving));
	worker.waits_in = "futex 0x7f0000300000";
	add_thread(dump, &worker, working, ARRAY_COUNT(working));
	worker.tid++;
	worker.waits_in = "futex 0x7f0000300040";
	add_thread(dump, &worker, working, ARRAY_COUNT(working));
	add_thread(dump, &runs, hostile, ARRAY_COUNT(hostile));
	worker.tid++;
	add_thread(dump, &worker, working, ARRAY_COUNT(working));
	add_thread(dump, &gone, NULL, 0);
	add_tasks(dump);
	ASSERT_OK(dump_note(dump, "no kernel stacks: %s", "because"));
	ASSERT_OK(dump_note(dump, "no kernel stacks: %s", "because"));
}

/* NAME below tests/golden; the caller frees it. CAIRN_GOLDEN_WRITE=1 writes TEXT there first. */
static void assert_golden(const char *name, const char *text)
{
	_cleanup_free_ char *path = NULL, *wanted = NULL;
	size_t size;

	ASSERT_OK(str_format(&path, "%s/golden/%s", getenv("CAIRN_TESTS"), name));
	if (getenv("CAIRN_GOLDEN_WRITE")) {
		_cleanup_fclose_ FILE *file = fopen(path, "we");
		ASSERT_TRUE(file && fputs(text, file) >= 0);
	}
	ASSERT_OK(file_read(-1, path, FILE_MAX, &wanted, &size));
	ASSERT_STREQ(text, wanted);
}

static void assert_printed(const char *name, bool json, bool color)
{
	_cleanup_(dump_deinit) struct dump dump = DUMP_INIT;
	struct dump_style style = {.color = color};
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ASSERT_TRUE(out != NULL);
	made_up(&dump);
	if (json)
		dump_print_json(&dump, "0.0.0", out);
	else
		ASSERT_OK(dump_print_text(&dump, &style, out));
	fclose(out);
	assert_golden(name, text);
}

TEST(a_process_as_text_is_the_golden_one)
{
	assert_printed("dump.txt", false, false);
}

TEST(a_process_in_color_is_the_golden_one)
{
	assert_printed("dump-color.txt", false, true);
}

TEST(a_process_as_json_is_the_golden_one)
{
	assert_printed("dump.json", true, false);
}

RUN_TESTS(UNIT_TEST(a_process_as_text_is_the_golden_one),
	  UNIT_TEST(a_process_in_color_is_the_golden_one),
	  UNIT_TEST(a_process_as_json_is_the_golden_one))
