/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One upload to the studio, by gProfiler's protocol: GET /api/v1/health_check, and POST
 * /api/v2/profiles (or v1) with the token and the service in headers. The token is nowhere else: a
 * URL is written to the logs of servers and proxies.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/parcel.h"
#include "base/error.h"

struct upload_settings {
	const char *server;  /* "https://host:port"; all texts are borrowed */
	const char *service; /* of the health check; a session has its own */
	const char *token, *host;
	bool v1;        /* the older path */
	bool verify;    /* certificates */
	bool show_curl; /* a line for curl per request, at the debug level */
	uint64_t timeout_ns;
};

struct upload;

/* STOP, which is borrowed: once true, what is under way ends. */
struct error *upload_new(const struct upload_settings *settings, const atomic_bool *stop,
			 struct upload **ret);
void upload_free(struct upload *upload);
static inline void cleanup_upload(struct upload **upload)
{
	upload_free(*upload);
}
#define _cleanup_upload_ _cleanup_(cleanup_upload)

/*
 * Ask whether the server is there and knows the token. *RET_REFUSED: it answered that something is
 * wrong with what it was told, so that to wait for it is no use.
 */
struct error *upload_check_health(struct upload *upload, bool *ret_refused);

enum upload_end {
	UPLOAD_sent,
	UPLOAD_later,    /* no answer, or one that says nothing about this session */
	UPLOAD_doubtful, /* answered as if it were wrong, or as if something broke over it */
	UPLOAD_refused,  /* this session will never be accepted */
};

struct upload_result {
	enum upload_end end;
	uint64_t retry_after_s; /* what the server asks for; 0: nothing */
	struct error *why;      /* NULL if it was sent; the caller's */
};

/*
 * Send PARCEL once. Whether a server got a session whose answer was lost cannot be known; it is
 * sent again then, with the same Idempotency-Key header, by which a server can tell.
 */
struct upload_result upload_send(struct upload *upload, const struct parcel *parcel);
