/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/upload.h"

#include <zlib.h>

#include "base/array.h"
#include "base/str.h"
#include "http-server.h"

#define CLOSE "Connection: close\r\n\r\n"
#define ACCEPTED "HTTP/1.1 200 OK\r\n" CLOSE "{\"message\":\"ok\",\"gpid\":815}"

static struct upload_settings settings_for(const struct test_server *server, char **base)
{
	ASSERT_OK(str_format(base, "http://127.0.0.1:%d/", server->port));
	return (struct upload_settings){
		.server = *base,
		.service = "shop & co",
		.token = "secret-token",
		.host = "node-7",
		.verify = true,
		.timeout_ns = UINT64_C(2000000000),
	};
}

static void make_parcel(struct parcel *parcel)
{
	struct parcel_facts facts = {.service = "old shop", .host = "node-7"};

	ASSERT_OK(parcel_make(&facts, "# {}\na 1", 8, parcel));
}

/* What the text of request INDEX is when unpacked. */
static void read_body(const struct test_server *server, size_t index, char *ret, size_t room)
{
	char *body = test_request_body(server->requests[index]);
	z_stream zlib = {.next_in = (unsigned char *)body,
			 .avail_in = (unsigned)test_body_length(server->requests[index])};

	ASSERT_EQ(inflateInit2(&zlib, 16 + MAX_WBITS), Z_OK);
	zlib.next_out = (unsigned char *)ret;
	zlib.avail_out = (unsigned)room - 1;
	ASSERT_EQ(inflate(&zlib, Z_FINISH), Z_STREAM_END);
	ret[room - 1 - zlib.avail_out] = 0;
	inflateEnd(&zlib);
}

TEST(a_session_arrives_with_headers_query_and_the_gpid_of_the_one_before)
{
	static const char *const answers[] = {ACCEPTED};
	_cleanup_(parcel_deinit) struct parcel parcel = PARCEL_INIT;
	_cleanup_upload_ struct upload *upload = NULL;
	_cleanup_free_ char *base = NULL, *key = NULL;
	struct test_server server;

	test_server_start(&server, answers, 1);
	struct upload_settings settings = settings_for(&server, &base);
	ASSERT_OK(upload_new(&settings, NULL, &upload));
	make_parcel(&parcel);
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(upload_send(upload, &parcel).end, UPLOAD_sent);
	test_server_stop(&server);

	const char *head = server.requests[0];
	ASSERT_TRUE(str_starts(head, "POST /api/v2/profiles?service=old%20shop&hostname=node-7"
				     "&timestamp=20"));
	ASSERT_TRUE(strstr(head, "&version=" CAIRN_VERSION " HTTP/1.1\r\n") != NULL);
	ASSERT_TRUE(strstr(head, "\r\nGPROFILER-API-KEY: secret-token\r\n") != NULL);
	ASSERT_TRUE(strstr(head, "\r\nGPROFILER-SERVICE-NAME: old shop\r\n") != NULL);
	ASSERT_TRUE(strstr(head, "\r\nContent-Type: application/json\r\n") != NULL);
	ASSERT_TRUE(strstr(head, "\r\nContent-Encoding: gzip\r\n") != NULL);
	ASSERT_OK(str_format(&key, "\r\nIdempotency-Key: %s\r\n", parcel.id));
	ASSERT_TRUE(strstr(head, key) != NULL);
	ASSERT_TRUE(strstr(server.requests[1], key) != NULL);
	ASSERT_EQ(strcspn(head, "\r") > (size_t)(strstr(head, "secret") - head), 0);
	test_server_deinit(&server);
}

TEST(the_gpid_is_given_back_and_forgotten_with_a_failure)
{
	static const char *const answers[] = {ACCEPTED, ACCEPTED,
					      "HTTP/1.1 502 Bad\r\n" CLOSE "<html>", ACCEPTED};
	static const char *const expected[] = {"\"gpid\":\"\"}", "\"gpid\":815}", "\"gpid\":815}",
					       "\"gpid\":\"\"}"};
	_cleanup_(parcel_deinit) struct parcel parcel = PARCEL_INIT;
	_cleanup_upload_ struct upload *upload = NULL;
	_cleanup_free_ char *base = NULL;
	struct test_server server;

	test_server_start(&server, answers, ARRAY_COUNT(answers));
	struct upload_settings settings = settings_for(&server, &base);
	ASSERT_OK(upload_new(&settings, NULL, &upload));
	make_parcel(&parcel);
	for (size_t i = 0; i < ARRAY_COUNT(answers); i++)
		error_free(upload_send(upload, &parcel).why); // the third's, on purpose
	test_server_stop(&server);
	for (size_t i = 0; i < ARRAY_COUNT(answers); i++) {
		char text[1024];
		read_body(&server, i, text, sizeof(text));
		ASSERT_TRUE(str_ends(text, expected[i]));
	}
	test_server_deinit(&server);
}

static const struct {
	const char *answer;
	enum upload_end end;
	const char *why;
} rows[] = {
	{ACCEPTED, UPLOAD_sent, NULL},
	{"HTTP/1.1 200 OK\r\n" CLOSE "{}", UPLOAD_sent, NULL},
	{"HTTP/1.1 201 OK\r\n" CLOSE "{\"gpid\":[[1]]}", UPLOAD_sent, NULL},
	{"HTTP/1.1 200 OK\r\n" CLOSE "<html>Sign in</html>", UPLOAD_later, "not as a studio"},
	{"HTTP/1.1 200 OK\r\n" CLOSE "{\"message\":", UPLOAD_later, "not as a studio"},
	{"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n" CLOSE "{}", UPLOAD_later, ""},
	{NULL, UPLOAD_later, ""},
	{"HTTP/1.1 400 Bad\r\n" CLOSE "{\"message\":\"Invalid API key\"}", UPLOAD_later,
	 "answered 400: Invalid API key"},
	{"HTTP/1.1 400 Bad\r\n" CLOSE "{\"message\":\"Failed to parse v2 metadata\"}",
	 UPLOAD_doubtful, "Failed to parse"},
	{"HTTP/1.1 401 No\r\n" CLOSE, UPLOAD_later, "no message"},
	{"HTTP/1.1 404 No\r\n" CLOSE "{\"detail\":\"Not Found\"}", UPLOAD_later, "Not Found"},
	{"HTTP/1.1 413 Large\r\n" CLOSE, UPLOAD_refused, "413"},
	{"HTTP/1.1 422 No\r\n" CLOSE "{\"detail\":[{\"loc\":[]}]}", UPLOAD_refused, "no message"},
	{"HTTP/1.1 429 Slow\r\nRetry-After: 9\r\n" CLOSE, UPLOAD_later, "429"},
	{"HTTP/1.1 500 Oh\r\n" CLOSE, UPLOAD_doubtful, "500"},
	{"HTTP/1.1 503 Oh\r\n" CLOSE, UPLOAD_later, "503"},
	{"no HTTP at all", UPLOAD_later, ""},
};

TEST(every_kind_of_answer_has_a_meaning)
{
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		_cleanup_(parcel_deinit) struct parcel parcel = PARCEL_INIT;
		_cleanup_upload_ struct upload *upload = NULL;
		_cleanup_free_ char *base = NULL;
		struct test_server server;

		test_server_start(&server, &rows[i].answer, 1);
		struct upload_settings settings = settings_for(&server, &base);
		ASSERT_OK(upload_new(&settings, NULL, &upload));
		make_parcel(&parcel);
		struct upload_result result = upload_send(upload, &parcel);
		test_server_stop(&server);
		test_server_deinit(&server);
		ASSERT_EQ(result.end, rows[i].end);
		if (!rows[i].why)
			ASSERT_OK(result.why);
		else
			ASSERT_FAILS(result.why, rows[i].why);
	}
}

TEST(a_failure_never_names_the_token)
{
	_cleanup_(parcel_deinit) struct parcel parcel = PARCEL_INIT;
	_cleanup_upload_ struct upload *upload = NULL;
	_cleanup_free_ char *base = NULL;
	static const char *const answers[] = {"HTTP/1.1 404 No\r\n" CLOSE};
	struct test_server server;

	test_server_start(&server, answers, 1);
	struct upload_settings settings = settings_for(&server, &base);
	ASSERT_OK(upload_new(&settings, NULL, &upload));
	make_parcel(&parcel);
	struct upload_result result = upload_send(upload, &parcel);
	test_server_stop(&server);
	ASSERT_TRUE(strstr(error_text(result.why), "secret") == NULL);
	error_free(result.why);
	result = upload_send(upload, &parcel); // nobody is there any more
	ASSERT_TRUE(strstr(error_text(result.why), "secret") == NULL);
	error_free(result.why);
	test_server_deinit(&server);
}

TEST(health_is_asked_with_the_token_and_a_refusal_is_told_apart)
{
	static const char *const answers[] = {
		"HTTP/1.1 200 OK\r\n" CLOSE "{\"message\":\"ok\"}",
		"HTTP/1.1 400 Bad\r\n" CLOSE "{\"message\":\"Invalid API key\"}",
		"HTTP/1.1 503 No\r\n" CLOSE,
	};
	_cleanup_upload_ struct upload *upload = NULL;
	_cleanup_free_ char *base = NULL;
	struct test_server server;
	bool refused;

	test_server_start(&server, answers, ARRAY_COUNT(answers));
	struct upload_settings settings = settings_for(&server, &base);
	ASSERT_OK(upload_new(&settings, NULL, &upload));
	ASSERT_OK(upload_check_health(upload, &refused));
	ASSERT_FALSE(refused);
	ASSERT_FAILS(upload_check_health(upload, &refused), "Invalid API key");
	ASSERT_TRUE(refused);
	ASSERT_FAILS(upload_check_health(upload, &refused), "503");
	ASSERT_FALSE(refused);
	test_server_stop(&server);
	ASSERT_FAILS(upload_check_health(upload, &refused), "onnect");
	ASSERT_FALSE(refused);
	ASSERT_TRUE(str_starts(server.requests[0],
			       "GET /api/v1/health_check?service=shop%20%26%20co&hostname="));
	ASSERT_TRUE(strstr(server.requests[0], "GPROFILER-API-KEY: secret-token\r\n") != NULL);
	test_server_deinit(&server);
}

TEST(a_token_that_would_end_its_header_is_refused)
{
	_cleanup_upload_ struct upload *upload = NULL;
	struct upload_settings settings = {.server = "http://localhost:1",
					   .service = "shop",
					   .host = "node-7",
					   .token = "secret\r\nX-Evil: yes"};

	ASSERT_FAILS(upload_new(&settings, NULL, &upload), "control characters");
}

RUN_TESTS(UNIT_TEST(a_session_arrives_with_headers_query_and_the_gpid_of_the_one_before),
	  UNIT_TEST(the_gpid_is_given_back_and_forgotten_with_a_failure),
	  UNIT_TEST(every_kind_of_answer_has_a_meaning), UNIT_TEST(a_failure_never_names_the_token),
	  UNIT_TEST(health_is_asked_with_the_token_and_a_refusal_is_told_apart),
	  UNIT_TEST(a_token_that_would_end_its_header_is_refused))
