/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests over HTTP and HTTPS, through libcurl: proxies as its variables say (https_proxy,
 * no_proxy, ...), the system's certificates or those of SSL_CERT_FILE, REQUESTS_CA_BUNDLE or
 * CURL_CA_BUNDLE.
 *
 * What a server answers is an outcome, whatever its status; a failure is that no whole answer came.
 * (libcurl takes a head that is cut short for a whole answer without a body: who must know that a
 * request was done looks into the body.)
 * Redirects are followed on the same host only, and never from https to http: requests carry
 * tokens, which are nobody else's business. Their method and body stay as they are.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
	HTTP_ANSWER_MAX = 1 << 20,
	HTTP_REDIRECTS_MAX = 5,
};

/* Keeps connections open between requests; for one thread at a time. */
struct http_client;

/*
 * VERIFY: refuse servers whose certificate does not prove who they are. STOP, which may be NULL and
 * is borrowed: once it is true, what is under way fails within a second or so.
 */
struct error *http_client_new(bool verify, const atomic_bool *stop, struct http_client **ret);
void http_client_free(struct http_client *client);
static inline void cleanup_http_client(struct http_client **client)
{
	http_client_free(*client);
}
#define _cleanup_http_client_ _cleanup_(cleanup_http_client)

/* All of it is borrowed for the time of the call. */
struct http_request {
	const char *url;
	const char *const *headers; /* "Name: value", with NULL behind the last; NULL: none */
	const void *body;           /* NULL: a GET; else a POST */
	size_t body_size;
	uint64_t connect_ns; /* at most that long until there is a connection */
	uint64_t total_ns;   /* and that long for everything */
};

struct http_answer {
	int status;
	char *body; /* with a NUL behind it; owned */
	size_t size;
	uint64_t retry_after_s; /* what the server asks for; 0: nothing */
};

#define HTTP_ANSWER_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

void http_answer_deinit(struct http_answer *answer);

/* Send REQUEST and wait for the whole answer. */
struct error *http_perform(struct http_client *client, const struct http_request *request,
			   struct http_answer *ret);

/* "http://host:port" of an address without its trailing slashes; a failure if it is none that can
 * be asked, or has a user, a query or a fragment. RET is the caller's. */
struct error *http_base_parse(const char *text, char **ret);

/* May what goes to URL be read on the way? True of http to another machine. */
bool http_is_open(const char *url);

/* TEXT as part of a URL, escaped. RET is the caller's. */
struct error *http_escape(const char *text, char **ret);
