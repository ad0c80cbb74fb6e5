/* SPDX-License-Identifier: Apache-2.0 */
#include "http/client.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/str.h"
#include "http-server.h"

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
#define SECOND_NS 1000000000u

/* GET, or POST of BODY, to PATH of the server on PORT. */
static struct error *ask(uint16_t port, const char *body, struct http_answer *ret)
{
	_cleanup_http_client_ struct http_client *client = NULL;
	_cleanup_free_ char *url = NULL;
	static const char *const headers[] = {"X-Token: secret", NULL};

	TRY(http_client_new(true, NULL, &client));
	TRY(str_format(&url, "http://127.0.0.1:%d/path?a=b", port));
	struct http_request request = {
		.url = url,
		.headers = headers,
		.body = body,
		.body_size = body ? strlen(body) : 0,
		.connect_ns = SECOND_NS,
		.total_ns = SECOND_NS,
	};
	return http_perform(client, &request, ret);
}

static struct error *ask_once(const char *answer, const char *body, struct http_answer *ret)
{
	struct test_server server;

	test_server_start(&server, &answer, 1);
	struct error *err = ask(server.port, body, ret);
	test_server_stop(&server);
	test_server_deinit(&server);
	return err;
}

TEST(a_request_arrives_as_it_was_said)
{
	_cleanup_(http_answer_deinit) struct http_answer answer = HTTP_ANSWER_INIT;
	static const char *const answers[] = {OK_ANSWER};
	struct test_server server;

	test_server_start(&server, answers, 1);
	ASSERT_OK(ask(server.port, "four", &answer));
	test_server_stop(&server);
	ASSERT_EQ(answer.status, 200);
	ASSERT_STREQ(answer.body, "hi");
	ASSERT_TRUE(!strncmp(server.requests[0], "POST /path?a=b HTTP/1.1\r\n", 25));
	ASSERT_TRUE(strstr(server.requests[0], "\r\nX-Token: secret\r\n") != NULL);
	ASSERT_TRUE(strstr(server.requests[0], "Expect:") == NULL);
	ASSERT_STREQ(test_request_body(server.requests[0]), "four");
	test_server_deinit(&server);
}

TEST(an_answer_that_is_not_whole_is_a_failure)
{
	static const char *const broken[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhalf",
		"\x16\x03\x01 what is this\r\n\r\n",
		NULL, // closed without a word
	};

	for (size_t i = 0; i < ARRAY_COUNT(broken); i++) {
		_cleanup_(http_answer_deinit) struct http_answer answer = HTTP_ANSWER_INIT;
		ASSERT_FAILS(ask_once(broken[i], "body", &answer), "http://127.0.0.1");
		ASSERT_TRUE(answer.body == NULL);
	}
}

TEST(statuses_are_outcomes)
{
	_cleanup_(http_answer_deinit) struct http_answer answer = HTTP_ANSWER_INIT;

	ASSERT_OK(ask_once("HTTP/1.1 503 No\r\nRetry-After: 7\r\nContent-Length: 0\r\n"
			   "Connection: close\r\n\r\n",
			   NULL, &answer));
	ASSERT_EQ(answer.status, 503);
	ASSERT_EQ(answer.retry_after_s, 7);
	ASSERT_STREQ(answer.body, "");
}

TEST(a_redirect_on_the_same_host_keeps_method_body_and_headers)
{
	_cleanup_(http_answer_deinit) struct http_answer answer = HTTP_ANSWER_INIT;
	static const char *const answers[] = {
		"HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n"
		"Connection: close\r\n\r\n",
		OK_ANSWER};
	struct test_server server;

	test_server_start(&server, answers, 2);
	ASSERT_OK(ask(server.port, "four", &answer));
	test_server_stop(&server);
	ASSERT_EQ(server.count, 2);
	ASSERT_TRUE(!strncmp(server.requests[1], "POST /other ", 12));
	ASSERT_TRUE(strstr(server.requests[1], "X-Token: secret") != NULL);
	ASSERT_STREQ(test_request_body(server.requests[1]), "four");
	test_server_deinit(&server);
}

TEST(a_redirect_to_another_host_gets_nothing)
{
	_cleanup_(http_answer_deinit) struct http_answer answer = HTTP_ANSWER_INIT;

	ASSERT_FAILS(ask_once("HTTP/1.1 307 Go\r\nLocation: http://localhost:1/\r\n"
			      "Content-Length: 0\r\nConnection: close\r\n\r\n",
			      "body", &answer),
		     "another host");
}

TEST(redirects_in_a_circle_end)
{
	_cleanup_(http_answer_deinit) struct http_answer answer = HTTP_ANSWER_INIT;

	ASSERT_FAILS(ask_once("HTTP/1.1 301 Go\r\nLocation: /again\r\nContent-Length: 0\r\n"
			      "Connection: close\r\n\r\n",
			      "body", &answer),
		     "more than 5 times");
}

TEST(a_server_that_says_nothing_is_left_in_time)
{
	_cleanup_(http_answer_deinit) struct http_answer answer = HTTP_ANSWER_INIT;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(at);
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ASSERT_EQ(bind(fd, (void *)&at, sizeof(at)), 0);
	ASSERT_EQ(listen(fd, 1), 0); // and nobody accepts
	ASSERT_EQ(getsockname(fd, (void *)&at, &length), 0);
	uint64_t start_ns = clock_monotonic_ns();
	ASSERT_FAILS(ask(ntohs(at.sin_port), NULL, &answer), "timed out");
	ASSERT_TRUE(clock_monotonic_ns() - start_ns < 10 * (uint64_t)SECOND_NS);
}

TEST(addresses_of_servers_are_checked)
{
	static const struct {
		const char *text, *base;
	} rows[] = {
		{"http://localhost:8080", "http://localhost:8080"},
		{"https://studio.example/", "https://studio.example"},
		{"https://studio.example/under///", "https://studio.example/under"},
		{"https://[::1]:4433", "https://[::1]:4433"},
		{"studio.example", NULL},
		{"ftp://studio.example", NULL},
		{"file:///etc/passwd", NULL},
		{"http://", NULL},
		{"http://user:password@studio.example", NULL},
		{"http://studio.example/?key=1", NULL},
		{"http://studio.example:99999", NULL},
	};

	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		_cleanup_free_ char *base = NULL;
		if (!rows[i].base) {
			ASSERT_FAILS(http_base_parse(rows[i].text, &base), "address of a server");
			continue;
		}
		ASSERT_OK(http_base_parse(rows[i].text, &base));
		ASSERT_STREQ(base, rows[i].base);
	}
}

TEST(it_is_known_who_can_read_along)
{
	ASSERT_TRUE(http_is_open("http://studio.example/x"));
	ASSERT_TRUE(http_is_open("http://10.0.0.1:80"));
	ASSERT_FALSE(http_is_open("https://studio.example/x"));
	ASSERT_FALSE(http_is_open("http://localhost:8080"));
	ASSERT_FALSE(http_is_open("http://127.0.0.1:8080"));
	ASSERT_FALSE(http_is_open("http://[::1]:8080"));
}

RUN_TESTS(UNIT_TEST(a_request_arrives_as_it_was_said),
	  UNIT_TEST(an_answer_that_is_not_whole_is_a_failure), UNIT_TEST(statuses_are_outcomes),
	  UNIT_TEST(a_redirect_on_the_same_host_keeps_method_body_and_headers),
	  UNIT_TEST(a_redirect_to_another_host_gets_nothing), UNIT_TEST(redirects_in_a_circle_end),
	  UNIT_TEST(a_server_that_says_nothing_is_left_in_time),
	  UNIT_TEST(addresses_of_servers_are_checked), UNIT_TEST(it_is_known_who_can_read_along))
