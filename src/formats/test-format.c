/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each row of formats.def writes one profile, made here of names that nobody should have, to
 * exactly the bytes of tests/golden/profile.SUFFIX. To accept a change of a format on purpose, run
 * this test with CAIRN_GOLDEN_WRITE=1 and read the difference.
 *
 * The page's golden file holds the profile without the viewer around it: the viewer is built from
 * ui/, has tests of its own and changes without the format changing.
 */
#include "formats/format.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "formats/viewer.h"
#include "unit.h"

enum { LONG_NAME = 100 * 1000 };

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

static stack_id push_name(struct profile *profile, stack_id parent, enum frame_kind kind,
			  const char *name)
{
	struct frame frame = {.kind = kind, .function = text(profile, name)};

	return push(profile, parent, &frame);
}

static void add(struct profile *profile, const struct process *process, stack_id stack,
		uint64_t value)
{
	struct profile_sample sample = {.stack = stack, .value = value};

	ASSERT_OK(profile_process(profile, process, &sample.process));
	ASSERT_OK(profile_add(profile, &sample));
}

static void add_facts(struct profile *profile)
{
	struct session_facts *facts = profile_facts(profile);

	facts->start_realtime_ns = 1767323045000000000; // 2026-01-02T03:04:05
	facts->end_realtime_ns = 1767323105250000000;
	facts->rate_hz = 11;
	facts->cpus = 8;
	facts->title = text(profile, "the whole machine");
	facts->command = text(profile, "cairn record -a \"</script>\"");
	facts->version = text(profile, "0.1.0");
	facts->event = text(profile, "cpu-time");
	facts->host = text(profile, "node-7");
	facts->system = text(profile, "Linux");
	facts->kernel = text(profile, "6.8.0-1020-aws");
	facts->kernel_build = text(profile, "#22-Ubuntu SMP \xc3\xa9\xf0\x9f\x94\xa5");
	facts->machine = text(profile, "x86_64");
	facts->containers_named = true;
	facts->samples = 123;
	facts->lost = 4;
	facts->cuts[facts->cut_count++] = (struct profile_cut){"no unwind rows", 2};
	facts->notes[facts->note_count++] = text(profile, "throttled 3 times\nin all");
}

/* An ordinary program: a file, lines, an inlined call, code made at run time, the kernel. */
static void add_ordinary(struct profile *profile)
{
	struct process web = {.pid = 7,
			      .name = text(profile, "nginx: worker"),
			      .container = text(profile, "web-1")};
	struct process twin = {.pid = 8, .name = web.name, .container = web.container};
	struct frame frame = {.kind = KIND_native,
			      .function = text(profile, "main"),
			      .file = text(profile, "/src/main.c"),
			      .line = 12,
			      .object = text(profile, "/usr/sbin/nginx"),
			      .offset = 0x1000};
	stack_id main_stack = push(profile, STACK_EMPTY, &frame);

	frame.line = 14;
	stack_id other_line = push(profile, STACK_EMPTY, &frame);
	frame.function = text(profile, "std::vector<int>::operator[](unsigned long)");
	frame.inlined = true;
	stack_id inlined = push(profile, main_stack, &frame);
	stack_id jit = push_name(profile, inlined, KIND_jit, "LazyCompile:~run app.js:3");
	stack_id kernel = push_name(profile, jit, KIND_kernel, "do_syscall_64");
	add(profile, &web, kernel, 7);
	add(profile, &twin, kernel, 20);
	add(profile, &web, main_stack, 1);
	add(profile, &web, other_line, 2);
	stack_id cut = push_name(profile, STACK_EMPTY, KIND_cut, "[cut: no unwind rows]");
	add(profile, &twin, push_name(profile, cut, KIND_native, "(/opt/app+0x4a30)"), 2);
	add(profile, &(struct process){.pid = 0, .name = text(profile, "swapper/0")},
	    push_name(profile, STACK_EMPTY, KIND_kernel, "cpuidle_enter"), 40);
}

static void add_hostile(struct profile *profile)
{
	static const char *const names[] = {
		"a;b c 12",
		"two\nlines\r\n# {}",
		"</script><script>alert(1)</script><!--",
		"invalid \xff\xc0\xaf\xed\xa0\x80 \xf0\x9f\x94",
		"\xe2\x80\xae"
		"evitcepsni\xe2\x81\xa9",
		"quotes \"'\\ and \xe2\x80\xa8 ends",
		"\x1b]0;title\x07\x7f\xc2\x9b",
		"\xf0\x9f\x94\xa5\xe6\xbc\xa2\xc3\xa9",
		"",
		" ",
	};
	struct process process = {.pid = UINT32_MAX,
				  .name = text(profile, "e;v\nil"),
				  .container = text(profile, "pod;\"1\"\n\xff")};
	_cleanup_free_ char *long_name = calloc(1, LONG_NAME + 1);
	string_id with_zero = 0;
	stack_id stack = STACK_EMPTY;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		stack = push_name(profile, stack, KIND_native, names[i]);
	add(profile, &process, stack, UINT64_MAX);
	ASSERT_TRUE(long_name != NULL);
	memset(long_name, 'x', LONG_NAME);
	add(profile, &process, push_name(profile, STACK_EMPTY, KIND_go, long_name), 3);
	ASSERT_OK(profile_string(profile, "a\0b", 3, &with_zero));
	struct frame frame = {.kind = KIND_native, .function = with_zero, .line = UINT32_MAX};
	add(profile, &process, push(profile, STACK_EMPTY, &frame), 5);
	add(profile, &(struct process){.pid = 9}, STACK_EMPTY, 6);
}

static void make_profile(struct profile **ret)
{
	ASSERT_OK(profile_new(NULL, ret));
	add_facts(*ret);
	add_ordinary(*ret);
	add_hostile(*ret);
}

static void write_text(const struct format *format, const struct profile *profile, char **ret,
		       size_t *ret_size)
{
	FILE *stream = open_memstream(ret, ret_size);

	ASSERT_TRUE(stream != NULL);
	ASSERT_OK(format->write(profile, stream));
	ASSERT_EQ(fclose(stream), 0);
}

/* The bytes between the viewer's two parts, if they stand around TEXT. */
static void cut_viewer(const char **text, size_t *size)
{
	if (*size < viewer_before_size + viewer_after_size ||
	    memcmp(*text, viewer_before, viewer_before_size) != 0)
		return;
	*size -= viewer_before_size + viewer_after_size;
	*text += viewer_before_size;
	ASSERT_EQ(memcmp(*text + *size, viewer_after, viewer_after_size), 0);
}

static void replace_golden(const char *path, const char *text, size_t size)
{
	_cleanup_(file_writer_deinit) struct file_writer writer = FILE_WRITER_INIT;

	ASSERT_OK(file_writer_open(path, &writer));
	ASSERT_EQ(fwrite(text, 1, size, writer.stream), size);
	ASSERT_OK(file_writer_commit(&writer));
}

TEST(every_format_writes_its_golden_file)
{
	_cleanup_profile_ struct profile *profile = NULL;
	const struct format *format;

	make_profile(&profile);
	for (size_t i = 0; (format = format_at(i)); i++) {
		_cleanup_free_ char *path = NULL;
		_cleanup_free_ char *expected = NULL;
		_cleanup_free_ char *whole = NULL;
		size_t size, expected_size;
		write_text(format, profile, &whole, &size);
		const char *out = whole;
		cut_viewer(&out, &size);
		ASSERT_OK(str_format(&path, "%s/golden/profile%s", getenv("CAIRN_TESTS"),
				     format->suffix));
		if (getenv("CAIRN_GOLDEN_WRITE"))
			replace_golden(path, out, size);
		ASSERT_OK(file_read(AT_FDCWD, path, 16 << 20, &expected, &expected_size));
		if (size != expected_size || memcmp(out, expected, size) != 0)
			print_error("%s: not the bytes of %s\n", format->name, path);
		ASSERT_EQ(size, expected_size);
		ASSERT_EQ(memcmp(out, expected, size), 0);
	}
}

/* Of a profile without samples and facts: how what is written begins and ends. */
static const struct {
	const char *name, *begins, *ends;
} of_nothing[] = {
	{"col",
	 "# {\"containers\":[],\"container_names_enabled\":false,"
	 "\"metadata\":{\"profiling_mode\":\"cpu\"},"
	 "\"metrics\":{\"cpu_avg\":null,\"mem_avg\":null},\"application_metadata\":[null],",
	 "\"hwmetrics\":null,\"htmlblob\":null,\"flamegraph_html\":null}"},
	{"folded", "", ""},
	{"html",
	 "{\"version\":1,\"session\":{},\"value\":{\"name\":\"samples\",\"unit\":\"count\"},",
	 "\"strings\":[\"\"],\"frames\":{\"name\":[],\"kind\":[],\"file\":[],\"line\":[],"
	 "\"object\":[],"
	 "\"inlined\":[]},\"stacks\":{\"parent\":[],\"frame\":[]},"
	 "\"processes\":{\"pid\":[],\"name\":[]},"
	 "\"samples\":{\"stack\":[],\"process\":[],\"value\":[]}}"},
};

TEST(what_is_not_known_is_left_out)
{
	_cleanup_profile_ struct profile *profile = NULL;

	ASSERT_OK(profile_new(NULL, &profile));
	for (size_t i = 0; i < sizeof(of_nothing) / sizeof(of_nothing[0]); i++) {
		_cleanup_free_ char *whole = NULL;
		_cleanup_free_ char *text = NULL;
		size_t size;
		write_text(format_find(of_nothing[i].name), profile, &whole, &size);
		const char *out = whole;
		cut_viewer(&out, &size);
		ASSERT_OK(str_format(&text, "%.*s", (int)size, out));
		ASSERT_TRUE(str_starts(text, of_nothing[i].begins));
		ASSERT_TRUE(str_ends(text, of_nothing[i].ends));
		ASSERT_TRUE(size > 0 || !strcmp(of_nothing[i].name, "folded"));
	}
}

TEST(every_format_says_when_the_output_was_lost)
{
	_cleanup_profile_ struct profile *profile = NULL;
	const struct format *format;

	make_profile(&profile);
	for (size_t i = 0; (format = format_at(i)); i++) {
		_cleanup_fclose_ FILE *full = fopen("/dev/full", "we");
		if (!full)
			SKIP("there is no /dev/full");
		ASSERT_FAILS(format->write(profile, full), "write: ");
	}
}

TEST(formats_are_found_by_name_and_by_suffix_and_no_other_way)
{
	const struct format *format;

	for (size_t i = 0; (format = format_at(i)); i++) {
		_cleanup_free_ char *path = NULL;
		ASSERT_TRUE(format_find(format->name) == format);
		ASSERT_OK(str_format(&path, "/tmp/x.y%s", format->suffix));
		ASSERT_TRUE(format_of_path(path) == format);
		ASSERT_TRUE(format->suffix[0] == '.' && format->help[0]);
	}
	ASSERT_TRUE(format_find("htm") == NULL);
	ASSERT_TRUE(format_find("") == NULL);
	ASSERT_TRUE(format_of_path("profile.col.gz") == NULL);
	ASSERT_TRUE(format_of_path("html") == NULL);
}

/* What a reader of folded lines needs: each line ends in a space and a number, and a line has as
 * many frames as its stack. */
TEST(no_name_breaks_a_line_of_folded_text)
{
	_cleanup_profile_ struct profile *profile = NULL;
	_cleanup_free_ char *text = NULL;
	size_t size, lines = 0;
	char *rest, *line;

	make_profile(&profile);
	write_text(format_find("folded"), profile, &text, &size);
	ASSERT_EQ(strlen(text), size);
	rest = text;
	while ((line = strsep(&rest, "\n")) && rest) {
		uint64_t value;
		const char *space = strrchr(line, ' ');
		ASSERT_TRUE(space && str_parse_u64(space + 1, 1, UINT64_MAX, &value));
		lines++;
	}
	ASSERT_STREQ(line, ""); // the last line ends in a newline too
	ASSERT_EQ(lines, 8);
}

RUN_TESTS(UNIT_TEST(every_format_writes_its_golden_file), UNIT_TEST(what_is_not_known_is_left_out),
	  UNIT_TEST(every_format_says_when_the_output_was_lost),
	  UNIT_TEST(formats_are_found_by_name_and_by_suffix_and_no_other_way),
	  UNIT_TEST(no_name_breaks_a_line_of_folded_text))
