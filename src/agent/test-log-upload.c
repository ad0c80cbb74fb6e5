/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_DOMAIN "agent"
#include "agent/log-upload.h"

#include <jansson.h>
#include <stdio.h>
#include <zlib.h>

#include "base/str.h"
#include "http-server.h"

#define CLOSE "Connection: close\r\n\r\n"

/* What request INDEX holds. */
static json_t *read_batch(const struct test_server *server, size_t index)
{
	enum { ROOM = 16 << 20 };
	char *body = test_request_body(server->requests[index]), *text = malloc(ROOM);
	z_stream zlib = {.next_in = (unsigned char *)body,
			 .avail_in = (unsigned)test_body_length(server->requests[index])};

	ASSERT_EQ(inflateInit2(&zlib, 16 + MAX_WBITS), Z_OK);
	zlib.next_out = (unsigned char *)text;
	zlib.avail_out = ROOM;
	ASSERT_EQ(inflate(&zlib, Z_FINISH), Z_STREAM_END);
	json_t *json = json_loadb(text, ROOM - zlib.avail_out, 0, NULL);
	inflateEnd(&zlib);
	free(text);
	ASSERT_TRUE(json != NULL);
	return json;
}

static struct log_upload *start(const struct test_server *server, char **base)
{
	struct log_upload *upload = NULL;

	ASSERT_OK(str_format(base, "http://127.0.0.1:%d/", server->port));
	const struct log_upload_settings settings = {
		.server = *base, .token = "secret", .service = "shop", .host = "node-7"};
	ASSERT_OK(log_upload_start(&settings, &upload));
	log_set_level(LOG_INFO);
	return upload;
}

TEST(lines_are_sent_at_the_end_with_what_belongs_to_them)
{
	static const char *const answers[] = {"HTTP/1.1 201 Created\r\n" CLOSE "{}"};
	struct test_server server;
	_cleanup_free_ char *base = NULL;
	const char *message, *run, *cycle;
	int severity, serial;

	test_server_start(&server, answers, 1);
	struct log_upload *upload = start(&server, &base);
	log_info("before");
	log_upload_begin_session(upload, false);
	log_warning("a \"quote\" of %d", 7);
	log_debug("not wanted");
	log_upload_free(upload);
	test_server_stop(&server);

	ASSERT_EQ(server.count, 1);
	ASSERT_TRUE(str_starts(server.requests[0], "POST /api/v1/logs HTTP/1.1\r\n"));
	ASSERT_TRUE(strstr(server.requests[0], "\r\nX-Token: secret\r\n") != NULL);
	ASSERT_TRUE(strstr(server.requests[0], "\r\nX-Application-Name: gprofiler\r\n") != NULL);
	json_t *batch = read_batch(&server, 0);
	json_t *logs = json_object_get(batch, "logs");
	ASSERT_EQ(json_array_size(logs), 2);
	ASSERT_EQ(json_unpack(batch, "{s{s:s}}", "metadata", "run_id", &run), 0);
	ASSERT_EQ(strlen(run), 36);
	ASSERT_TRUE(json_is_null(json_object_get(
		json_object_get(json_object_get(json_array_get(logs, 0), "text"), "extra"),
		"cycle_id")));
	ASSERT_EQ(json_unpack(json_array_get(logs, 1), "{s:i,s{s:s,s:i,s{s:s}}}", "severity",
			      &severity, "text", "message", &message, "serial_no", &serial, "extra",
			      "cycle_id", &cycle),
		  0);
	ASSERT_EQ(severity, 4);
	ASSERT_EQ(serial, 2);
	ASSERT_STREQ(message, "a \"quote\" of 7");
	ASSERT_EQ(strlen(cycle), 36);
	json_decref(batch);
	test_server_deinit(&server);
}

TEST(too_many_lines_lose_the_oldest_and_say_how_many)
{
	enum { LINES = 9000 };
	static const char *const answers[] = {"HTTP/1.1 200 OK\r\n" CLOSE "{}"};
	struct test_server server;
	_cleanup_free_ char *base = NULL;
	char filler[801];
	int lost, serial;

	memset(filler, 'x', 800);
	filler[800] = 0;
	test_server_start(&server, answers, 1);
	struct log_upload *upload = start(&server, &base);
	for (int i = 0; i < LINES; i++)
		log_info("%d %s", i, filler);
	log_upload_free(upload);
	test_server_stop(&server);
	json_t *batch = read_batch(&server, 0);
	json_t *logs = json_object_get(batch, "logs");
	ASSERT_EQ(json_unpack(batch, "{s:i}", "lost_logs_count", &lost), 0);
	ASSERT_TRUE(lost > 0);
	ASSERT_EQ(json_array_size(logs) + (size_t)lost, LINES);
	ASSERT_EQ(json_unpack(json_array_get(logs, 0), "{s{s:i}}", "text", "serial_no", &serial),
		  0);
	ASSERT_EQ(serial, lost + 1);
	json_decref(batch);
	test_server_deinit(&server);
}

TEST(a_server_that_does_not_take_lines_holds_nobody_up)
{
	static const char *const answers[] = {"HTTP/1.1 500 No\r\n" CLOSE};
	struct test_server server;
	_cleanup_free_ char *base = NULL;

	test_server_start(&server, answers, 1);
	struct log_upload *upload = start(&server, &base);
	log_info("lost");
	log_upload_free(upload);
	test_server_stop(&server);
	ASSERT_EQ(server.count, 1);
	test_server_deinit(&server);
}

RUN_TESTS(UNIT_TEST(lines_are_sent_at_the_end_with_what_belongs_to_them),
	  UNIT_TEST(too_many_lines_lose_the_oldest_and_say_how_many),
	  UNIT_TEST(a_server_that_does_not_take_lines_holds_nobody_up))
