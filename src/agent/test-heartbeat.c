/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/heartbeat.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/str.h"
#include "http-server.h"

#define HEAD "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
#define DONE HEAD "{\"success\":true,\"message\":\"\"}"
#define COMMAND(id, type)                                                                          \
	HEAD "{\"success\":true,\"message\":\"\",\"command_id\":\"" id "\",\"profiling_command\":" \
	     "{\"command_type\":\"" type "\",\"combined_config\":{}}}"

struct stage {
	char memory[32];
	char *base;
	struct test_server server;
	struct heartbeat *heartbeat;
};

static void begin(struct stage *stage, const char *const *answers, size_t count)
{
	test_server_start(&stage->server, answers, count);
	free(stage->base);
	ASSERT_OK(str_format(&stage->base, "http://127.0.0.1:%d", stage->server.port));
	const struct heartbeat_settings settings = {.server = stage->base,
						    .token = "secret",
						    .service = "shop",
						    .host = "node-7",
						    .memory = stage->memory,
						    .interval_ns = 20000000};
	ASSERT_OK(heartbeat_start(&settings, &stage->heartbeat));
}

static void end(struct stage *stage)
{
	heartbeat_free(stage->heartbeat);
	test_server_stop(&stage->server);
}

static struct remote_command take_one(struct stage *stage)
{
	struct remote_command command = {0};

	for (int i = 0; i < 500 && !heartbeat_take(stage->heartbeat, &command); i++)
		usleep(10000);
	return command;
}

/* The body of the first request to command_completion. */
static const char *find_report(const struct test_server *server)
{
	for (size_t i = 0; i < server->count; i++)
		if (str_starts(server->requests[i], "POST /api/metrics/command_completion "))
			return test_request_body(server->requests[i]);
	return "";
}

TEST(a_command_is_taken_once_and_reported_when_it_is_done)
{
	static const char *const answers[] = {COMMAND("c-1", "start")};
	struct stage stage = {.memory = "/tmp/cairn-test-XXXXXX"};
	struct remote_command again;

	close(mkstemp(stage.memory));
	begin(&stage, answers, 1);
	struct remote_command command = take_one(&stage);
	ASSERT_STREQ(command.id, "c-1");
	usleep(200000); // some beats more
	ASSERT_FALSE(heartbeat_take(stage.heartbeat, &again));
	heartbeat_report(stage.heartbeat, "c-1", 60, NULL);
	end(&stage);
	const char *first = stage.server.requests[0], *beat = test_request_body(first);
	ASSERT_TRUE(str_starts(first, "POST /api/metrics/heartbeat HTTP/1.1\r\n"));
	ASSERT_TRUE(strstr(first, "\r\nAuthorization: Bearer secret\r\n") != NULL);
	ASSERT_TRUE(strstr(beat, "\"hostname\":\"node-7\",\"service_name\":\"shop\","
				 "\"last_command_id\":null,\"status\":\"active\"") != NULL);
	ASSERT_TRUE(strstr(test_request_body(stage.server.requests[1]),
			   "\"received_command_ids\":[\"c-1\"],\"executed_command_ids\":[]") !=
		    NULL);
	ASSERT_STREQ(find_report(&stage.server),
		     "{\"command_id\":\"c-1\",\"hostname\":\"node-7\",\"status\":\"completed\","
		     "\"execution_time\":60,\"error_message\":null,\"results_path\":null}");
	test_server_deinit(&stage.server);

	begin(&stage, answers, 1); // the agent is started anew
	usleep(200000);
	ASSERT_FALSE(heartbeat_take(stage.heartbeat, &again));
	end(&stage);
	ASSERT_STREQ(find_report(&stage.server), "");
	test_server_deinit(&stage.server);
	unlink(stage.memory);
	free(stage.base);
}

TEST(a_command_that_the_agent_did_not_survive_is_reported_by_the_next)
{
	static const char *const answers[] = {COMMAND("c-1", "start")};
	struct stage stage = {.memory = "/tmp/cairn-test-XXXXXX"};
	struct remote_command again;

	close(mkstemp(stage.memory));
	begin(&stage, answers, 1);
	ASSERT_STREQ(take_one(&stage).id, "c-1");
	end(&stage);
	test_server_deinit(&stage.server);
	begin(&stage, answers, 1);
	usleep(100000);
	ASSERT_FALSE(heartbeat_take(stage.heartbeat, &again));
	end(&stage);
	ASSERT_TRUE(strstr(find_report(&stage.server), "\"failed\"") != NULL);
	ASSERT_TRUE(strstr(find_report(&stage.server), "ended before it was done") != NULL);
	test_server_deinit(&stage.server);
	unlink(stage.memory);
	free(stage.base);
}

TEST(a_stop_goes_before_what_has_not_begun)
{
	static const char *const answers[] = {COMMAND("c-1", "start"), COMMAND("c-2", "start"),
					      COMMAND("c-3", "stop"), DONE};
	struct stage stage = {.memory = "/tmp/cairn-test-XXXXXX"};

	close(mkstemp(stage.memory));
	begin(&stage, answers, ARRAY_COUNT(answers));
	for (int i = 0; i < 500 && !heartbeat_waits(stage.heartbeat, true); i++)
		usleep(10000);
	ASSERT_STREQ(take_one(&stage).id, "c-3");
	ASSERT_FALSE(heartbeat_waits(stage.heartbeat, false));
	end(&stage);
	ASSERT_TRUE(strstr(find_report(&stage.server), "stopped before it had begun") != NULL);
	test_server_deinit(&stage.server);
	unlink(stage.memory);
	free(stage.base);
}

TEST(a_wrong_command_is_reported_and_blocks_nothing)
{
	static const char *const answers[] = {COMMAND("c-1", "explode"), DONE,
					      COMMAND("c-2", "start")};
	struct stage stage = {.memory = "/tmp/cairn-test-XXXXXX"};

	close(mkstemp(stage.memory));
	begin(&stage, answers, ARRAY_COUNT(answers));
	ASSERT_STREQ(take_one(&stage).id, "c-2");
	end(&stage);
	ASSERT_TRUE(strstr(find_report(&stage.server), "\"command_id\":\"c-1\"") != NULL);
	ASSERT_TRUE(strstr(find_report(&stage.server), "no command explode") != NULL);
	test_server_deinit(&stage.server);
	unlink(stage.memory);
	free(stage.base);
}

TEST(answers_that_are_none_are_passed_over)
{
	static const char *const answers[] = {NULL, "HTTP/1.1 500 No\r\nConnection: close\r\n\r\n",
					      HEAD "garbage", COMMAND("c-1", "start")};
	struct stage stage = {.memory = "/tmp/cairn-test-XXXXXX"};

	close(mkstemp(stage.memory));
	begin(&stage, answers, ARRAY_COUNT(answers));
	ASSERT_STREQ(take_one(&stage).id, "c-1");
	end(&stage);
	test_server_deinit(&stage.server);
	unlink(stage.memory);
	free(stage.base);
}

RUN_TESTS(UNIT_TEST(a_command_is_taken_once_and_reported_when_it_is_done),
	  UNIT_TEST(a_command_that_the_agent_did_not_survive_is_reported_by_the_next),
	  UNIT_TEST(a_stop_goes_before_what_has_not_begun),
	  UNIT_TEST(a_wrong_command_is_reported_and_blocks_nothing),
	  UNIT_TEST(answers_that_are_none_are_passed_over))
