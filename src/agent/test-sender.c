/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sender.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/str.h"
#include "http-server.h"

#define CLOSE "Connection: close\r\n\r\n"
#define ACCEPTED "HTTP/1.1 200 OK\r\n" CLOSE "{\"message\":\"ok\",\"gpid\":815}"
#define FAILED "HTTP/1.1 500 Oh\r\n" CLOSE
#define SECOND_NS UINT64_C(1000000000)

struct stage {
	char directory[32];
	char *base;
	struct spool *spool;
	struct sender *sender;
	struct test_server server;
};

static void add(struct stage *stage, int number)
{
	_cleanup_(parcel_deinit) struct parcel parcel = {.data_size = 1};
	struct error *why = NULL;

	memset(parcel.id, '0' + number, PARCEL_ID_LENGTH);
	parcel.data = calloc(1, 1);
	ASSERT_OK(str_copy(&parcel.service, "shop"));
	ASSERT_EQ(spool_add(stage->spool, &parcel, &why), SPOOL_on_disk);
}

/* A sender to a server with these answers, and SESSIONS that wait. */
static void set_stage(struct stage *stage, const char *const *answers, size_t count, int sessions)
{
	struct spool_limits limits = {.bytes = 1 << 20, .sessions = 100, .memory_bytes = 1 << 20};
	struct error *problem = NULL;

	*stage = (struct stage){.directory = "/tmp/cairn-test-XXXXXX"};
	ASSERT_TRUE(mkdtemp(stage->directory) != NULL);
	test_server_start(&stage->server, answers, count);
	ASSERT_OK(str_format(&stage->base, "http://127.0.0.1:%d", stage->server.port));
	ASSERT_OK(spool_open(stage->directory, &limits, &stage->spool, &problem));
	ASSERT_OK(problem);
	for (int i = 1; i <= sessions; i++)
		add(stage, i);
	struct sender_settings settings = {
		.upload = {.server = stage->base,
			   .service = "shop",
			   .token = "secret",
			   .host = "node-7",
			   .timeout_ns = 5 * SECOND_NS},
		.first_wait_ns = 10000000,
		.longest_wait_ns = 40000000,
		.doubtful_tries = 4,
	};
	ASSERT_OK(sender_start(&settings, stage->spool, &stage->sender));
}

static void clear_stage(struct stage *stage)
{
	_cleanup_free_ char *command = NULL;

	sender_free(stage->sender);
	test_server_deinit(&stage->server);
	spool_close(stage->spool);
	free(stage->base);
	ASSERT_OK(str_format(&command, "rm -rf %s", stage->directory));
	ASSERT_EQ(system(command), 0);
}

/* The digits of the sessions in the order in which the server was asked to take them. */
static void asked(const struct test_server *server, char *ret)
{
	for (size_t i = 0; i < server->count; i++) {
		const char *key = strstr(server->requests[i], "Idempotency-Key: ");
		*ret++ = key ? key[17] : '?';
	}
	*ret = 0;
}

TEST(what_waits_is_sent_in_order_and_failures_are_tried_again)
{
	static const char *const answers[] = {ACCEPTED, FAILED, NULL, ACCEPTED};
	struct stage stage;
	char order[TEST_REQUESTS_MAX + 1];

	set_stage(&stage, answers, ARRAY_COUNT(answers), 3);
	for (int i = 0; i < 500 && sender_state(stage.sender).sent < 3; i++)
		usleep(10000);
	add(&stage, 4);
	sender_wake(stage.sender);
	sender_finish(stage.sender, 5 * SECOND_NS);
	struct sender_state end = sender_state(stage.sender);
	test_server_stop(&stage.server);
	asked(&stage.server, order);
	ASSERT_STREQ(order, "122234");
	ASSERT_EQ(end.sent, 4);
	ASSERT_EQ(end.failures, 0);
	ASSERT_TRUE(end.last_sent_ns > 0);
	ASSERT_EQ(spool_count(stage.spool).waiting, 0);
	clear_stage(&stage);
}

TEST(a_session_that_the_server_breaks_over_is_given_up_in_the_end)
{
	static const char *const answers[] = {FAILED, FAILED, FAILED, FAILED, ACCEPTED};
	struct stage stage;
	char order[TEST_REQUESTS_MAX + 1];

	set_stage(&stage, answers, ARRAY_COUNT(answers), 2);
	for (int i = 0; i < 500 && !sender_state(stage.sender).sent; i++)
		usleep(10000);
	sender_finish(stage.sender, SECOND_NS);
	struct sender_state end = sender_state(stage.sender);
	test_server_stop(&stage.server);
	asked(&stage.server, order);
	ASSERT_STREQ(order, "11112");
	ASSERT_EQ(end.refused, 1);
	ASSERT_EQ(end.sent, 1);
	clear_stage(&stage);
}

TEST(the_end_does_not_wait_for_a_server_that_is_gone)
{
	static const char *const answers[] = {NULL};
	struct stage stage;

	set_stage(&stage, answers, 1, 2);
	uint64_t start_ns = clock_monotonic_ns();
	sender_finish(stage.sender, 60 * SECOND_NS);
	ASSERT_TRUE(clock_monotonic_ns() - start_ns < 20 * SECOND_NS);
	test_server_stop(&stage.server);
	struct sender_state end = sender_state(stage.sender);
	ASSERT_EQ(end.sent, 0);
	ASSERT_TRUE(end.failures >= 3);
	ASSERT_TRUE(end.problem[0] != 0);
	ASSERT_EQ(spool_count(stage.spool).waiting, 2);
	clear_stage(&stage);
}

TEST(the_end_comes_in_time_when_a_server_says_nothing)
{
	static const char *const answers[] = {ACCEPTED};
	struct stage stage;

	set_stage(&stage, answers, 1, 0);
	// The server's thread is taken up by a connection that says nothing.
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(stage.server.port)};
	int idle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ASSERT_EQ(connect(idle, (void *)&at, sizeof(at)), 0);
	usleep(50000);
	add(&stage, 1);
	sender_wake(stage.sender);
	uint64_t start_ns = clock_monotonic_ns();
	sender_finish(stage.sender, SECOND_NS / 10);
	ASSERT_TRUE(clock_monotonic_ns() - start_ns < 4 * SECOND_NS);
	ASSERT_EQ(spool_count(stage.spool).waiting, 1);
	close(idle);
	test_server_stop(&stage.server);
	clear_stage(&stage);
}

RUN_TESTS(UNIT_TEST(what_waits_is_sent_in_order_and_failures_are_tried_again),
	  UNIT_TEST(a_session_that_the_server_breaks_over_is_given_up_in_the_end),
	  UNIT_TEST(the_end_does_not_wait_for_a_server_that_is_gone),
	  UNIT_TEST(the_end_comes_in_time_when_a_server_says_nothing))
