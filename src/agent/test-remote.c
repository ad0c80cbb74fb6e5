/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/remote.h"

#include "base/array.h"
#include "unit.h"

#define COMMAND(type, config)                                                                      \
	"{\"success\":true,\"message\":\"\",\"command_id\":\"c-1\",\"profiling_command\":"         \
	"{\"command_type\":" type ",\"combined_config\":" config "}}"

static struct error *parse(const char *text, struct remote_command *ret)
{
	return remote_parse(text, strlen(text), "node-7", ret);
}

TEST(a_start_has_what_the_server_asks_for)
{
	struct remote_command command;

	ASSERT_OK(
		parse(COMMAND("\"start\"", "{\"duration\":30,\"frequency\":99,\"continuous\":true,"
					   "\"pids\":[7,8],\"target_hostnames\":[\"a\",\"node-7\"],"
					   "\"profiling_mode\":\"cpu\",\"max_processes\":10,"
					   "\"profiler_configs\":{\"perf\":{\"mode\":\"disabled\"},"
					   "\"pyperf\":\"disabled\",\"pyspy\":\"disabled\"}}"),
		      &command));
	ASSERT_EQ(command.kind, REMOTE_start);
	ASSERT_STREQ(command.id, "c-1");
	ASSERT_EQ(command.duration_ns, UINT64_C(30000000000));
	ASSERT_EQ(command.hz, 99);
	ASSERT_TRUE(command.continuous);
	ASSERT_EQ(command.pid_count, 2);
	ASSERT_EQ(command.pids[1], 8);
	ASSERT_TRUE(command.no_perf);
	ASSERT_TRUE(command.no_python);
}

TEST(what_is_not_said_is_left_to_the_agent)
{
	struct remote_command command;

	ASSERT_OK(parse(COMMAND("\"start\"", "null"), &command));
	ASSERT_EQ(command.kind, REMOTE_start);
	ASSERT_EQ(command.duration_ns + command.hz + command.pid_count, 0);
	ASSERT_FALSE(command.continuous || command.no_perf || command.no_python);
	ASSERT_OK(parse(COMMAND("\"start\"", "{\"pids\":\"7,8\"}"), &command));
	ASSERT_EQ(command.pids[1], 8);
}

TEST(no_command_and_those_of_others_are_none)
{
	static const char *const texts[] = {
		"{\"success\":true,\"command_id\":null,\"profiling_command\":null}",
		"{\"success\":false,\"command_id\":\"c\",\"profiling_command\":{}}",
		"{}",
		COMMAND("\"start\"", "{\"target_hostnames\":[\"node-8\"]}"),
	};

	for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
		struct remote_command command;
		ASSERT_OK(parse(texts[i], &command));
		ASSERT_EQ(command.kind, REMOTE_none);
	}
}

TEST(what_is_wrong_with_a_command_is_said)
{
	static const struct {
		const char *text, *why;
		bool has_id;
	} rows[] = {
		{"", "no JSON object", false},
		{"[1]", "no JSON object", false},
		{"{\"success\":true,\"command_id\":\"a b\",\"profiling_command\":{}}", "no id",
		 false},
		{"{\"success\":true,\"command_id\":7,\"profiling_command\":{}}", "no id", false},
		{COMMAND("\"explode\"", "{}"), "no command explode", true},
		{COMMAND("7", "{}"), "without a type", true},
		{COMMAND("\"start\"", "{\"duration\":-1}"), "duration", true},
		{COMMAND("\"start\"", "{\"duration\":\"60\"}"), "duration", true},
		{COMMAND("\"start\"", "{\"duration\":99999999999}"), "duration", true},
		{COMMAND("\"start\"", "{\"frequency\":100000}"), "frequency", true},
		{COMMAND("\"start\"", "{\"pids\":[1.5]}"), "pids", true},
		{COMMAND("\"start\"", "{\"pids\":\"1;2\"}"), "pids", true},
		{COMMAND("\"start\"", "{\"pids\":{}}"), "pids", true},
		{COMMAND("\"start\"", "{\"profiling_mode\":\"allocation\"}"), "CPU time", true},
	};

	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		struct remote_command command;
		ASSERT_FAILS(parse(rows[i].text, &command), rows[i].why);
		ASSERT_EQ(command.id[0] != 0, rows[i].has_id);
	}
}

RUN_TESTS(UNIT_TEST(a_start_has_what_the_server_asks_for),
	  UNIT_TEST(what_is_not_said_is_left_to_the_agent),
	  UNIT_TEST(no_command_and_those_of_others_are_none),
	  UNIT_TEST(what_is_wrong_with_a_command_is_said))
