/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/profile-file.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "unit.h"

static struct error *read_text(const char *text, struct profile_file *ret)
{
	char path[] = "/tmp/cairn-test-XXXXXX";
	int fd = mkstemp(path);

	ASSERT_EQ(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	struct error *err = profile_file_read(path, ret);
	unlink(path);
	return err;
}

TEST(a_col_file_is_sent_as_it_is)
{
	_cleanup_(profile_file_deinit) struct profile_file file = PROFILE_FILE_INIT;
	static const char text[] = "# {\"metadata\":{\"hostname\":\"other\",\"current_time\":"
				   "\"2026-01-02T03:04:05\"},\"metrics\":{\"cpu_avg\":37.5,"
				   "\"mem_avg\":null}}\n0;;app;main 3\n0;;app;run 4";

	ASSERT_OK(read_text(text, &file));
	ASSERT_STREQ(file.col, text);
	ASSERT_EQ(file.size, strlen(text));
	ASSERT_EQ(file.start_ns, UINT64_C(1767323045000000000));
	ASSERT_EQ(file.end_ns, file.start_ns);
	ASSERT_EQ(file.cpu_thousandths, 37500);
	ASSERT_EQ(file.memory_thousandths, -1);
}

TEST(times_of_the_header_come_first)
{
	_cleanup_(profile_file_deinit) struct profile_file file = PROFILE_FILE_INIT;

	ASSERT_OK(read_text("# {\"start_time\":\"2026-01-02T03:04:05.25\",\"end_time\":"
			    "\"2026-01-02T03:05:05Z\",\"metadata\":{}}\n;a 1\n\n",
			    &file));
	ASSERT_EQ(file.start_ns, UINT64_C(1767323045000000000));
	ASSERT_EQ(file.end_ns, UINT64_C(1767323105000000000));
	ASSERT_TRUE(file.col[file.size - 1] == '1');
}

TEST(folded_stacks_get_a_header_of_this_machine_and_an_empty_container)
{
	_cleanup_(profile_file_deinit) struct profile_file file = PROFILE_FILE_INIT;
	char host[65] = "";

	gethostname(host, sizeof(host) - 1);
	ASSERT_OK(read_text("# {\"start_time\":\"2026-01-02T03:04:05\",\"end_time\":"
			    "\"2026-01-02T03:05:05\"}\nmain;run it 3\r\n\nother 12\n",
			    &file));
	ASSERT_TRUE(strncmp(file.col, "# {", 3) == 0);
	char *stacks = strchr(file.col, '\n');
	ASSERT_STREQ(stacks, "\n;main;run it 3\n;other 12");
	ASSERT_TRUE(strstr(file.col, "\"metadata\":{") != NULL);
	ASSERT_TRUE(strstr(file.col, host) != NULL);
	ASSERT_EQ(file.end_ns, UINT64_C(1767323105000000000));
}

TEST(folded_stacks_without_a_header_are_of_now)
{
	_cleanup_(profile_file_deinit) struct profile_file file = PROFILE_FILE_INIT;
	uint64_t now_ns = clock_realtime_ns();

	ASSERT_OK(read_text("main;run 3", &file));
	ASSERT_TRUE(file.end_ns >= now_ns && file.end_ns < now_ns + UINT64_C(60000000000));
}

TEST(what_is_no_profile_is_refused_with_its_place)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"", "holds no stacks"},
		{"\n\n", "holds no stacks"},
		{"# {}", "holds no stacks"},
		{"# not json\na 1", "the header is no JSON object"},
		{"# [1]\na 1", "the header is no JSON object"},
		{"# {\"start_time\":\"2026-01-02T03:04:05\"}\na 1", "both belong together"},
		{"# {\"start_time\":\"yesterday\",\"end_time\":\"now\"}\na 1", "is no time"},
		{"# {\"start_time\":\"2026-01-02T03:04:05\",\"end_time\":\"2026-01-02T03:04:04\"}"
		 "\na 1",
		 "before start_time"},
		{"a 1\nb", ":2: \"b\" is no stack"},
		{"a;b 1x", "is no stack"},
		{"a;b 123456789012345678901234567890", "is no stack"},
		{" 12", "is no stack"},
	};

	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		struct profile_file file = PROFILE_FILE_INIT;
		ASSERT_FAILS(read_text(rows[i].text, &file), rows[i].why);
		ASSERT_TRUE(file.col == NULL);
	}
}

RUN_TESTS(UNIT_TEST(a_col_file_is_sent_as_it_is), UNIT_TEST(times_of_the_header_come_first),
	  UNIT_TEST(folded_stacks_get_a_header_of_this_machine_and_an_empty_container),
	  UNIT_TEST(folded_stacks_without_a_header_are_of_now),
	  UNIT_TEST(what_is_no_profile_is_refused_with_its_place))
