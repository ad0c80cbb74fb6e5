/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server in a thread, for tests of clients: it gives one prepared answer for each connection and
 * keeps what it was sent. Answers are whole texts, "HTTP/1.1 200 OK\r\n...": what is wrong with
 * them is wrong on purpose.
 */
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit.h"

enum { TEST_REQUESTS_MAX = 64, TEST_REQUEST_BYTES = 1 << 20 };

struct test_server {
	int fd;
	uint16_t port;
	pthread_t thread;
	const char *const *answers; /* NULL in it: close without an answer; the last one repeats */
	size_t answer_count;
	char *requests[TEST_REQUESTS_MAX]; /* as they came, each with a NUL behind it */
	size_t sizes[TEST_REQUESTS_MAX];
	size_t count;
};

/* Where the body of REQUEST begins; NULL while its head is not whole. */
static inline char *test_request_body(const char *request)
{
	char *end = strstr(request, "\r\n\r\n");

	return end ? end + 4 : NULL;
}

static inline size_t test_body_length(const char *request)
{
	const char *at = strcasestr(request, "\r\nContent-Length: ");

	return at ? strtoul(at + 18, NULL, 10) : 0;
}

/* Read one whole request. */
static inline void test_read_request(struct test_server *server, int connection)
{
	char *request = calloc(1, TEST_REQUEST_BYTES + 1);
	size_t size = 0;
	const char *body = NULL;

	while (size < TEST_REQUEST_BYTES) {
		ssize_t got = read(connection, request + size, TEST_REQUEST_BYTES - size);
		if (got <= 0)
			break;
		size += (size_t)got;
		body = test_request_body(request);
		if (body && size >= (size_t)(body - request) + test_body_length(request))
			break;
	}
	server->requests[server->count] = request;
	server->sizes[server->count] = size;
}

static inline void *test_serve(void *data)
{
	struct test_server *server = data;

	for (int connection; server->count < TEST_REQUESTS_MAX &&
			     (connection = accept(server->fd, NULL, NULL)) >= 0;) {
		size_t at = server->count < server->answer_count ? server->count
								 : server->answer_count - 1;
		const char *answer = server->answers[at];
		test_read_request(server, connection);
		if (answer && send(connection, answer, strlen(answer), MSG_NOSIGNAL) < 0)
			print_message("the client did not wait for its answer\n");
		server->count++;
		close(connection);
	}
	return NULL;
}

static inline void test_server_start(struct test_server *server, const char *const *answers,
				     size_t count)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(at);

	*server = (struct test_server){.answers = answers, .answer_count = count};
	server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ASSERT_EQ(bind(server->fd, (void *)&at, sizeof(at)), 0);
	ASSERT_EQ(listen(server->fd, 16), 0);
	ASSERT_EQ(getsockname(server->fd, (void *)&at, &length), 0);
	server->port = ntohs(at.sin_port);
	ASSERT_EQ(pthread_create(&server->thread, NULL, test_serve, server), 0);
}

/* After this what it was sent can be read. */
static inline void test_server_stop(struct test_server *server)
{
	shutdown(server->fd, SHUT_RDWR); // accept() fails, and the thread ends
	pthread_join(server->thread, NULL);
	close(server->fd);
}

static inline void test_server_deinit(struct test_server *server)
{
	for (size_t i = 0; i < server->count; i++)
		free(server->requests[i]);
}
