/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines on their way to the server, as gProfiler sends them: POST /api/v1/logs of the API
 * server, a batch at a time, by a thread of its own. What does not fit while the server is away is
 * dropped, oldest first, and the next batch says how many lines that were.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/log.h"

struct log_upload_settings {
	const char *server; /* texts are borrowed */
	const char *token, *service, *host;
	bool verify;
};

struct log_upload;

/* Begin. The sink is added to the log: no other thread may log meanwhile. */
struct error *log_upload_start(const struct log_upload_settings *settings, struct log_upload **ret);

/* Send what is left, for 10 s at most, and end. The same holds for other threads. */
void log_upload_free(struct log_upload *upload);
static inline void cleanup_log_upload(struct log_upload **upload)
{
	log_upload_free(*upload);
}
#define _cleanup_log_upload_ _cleanup_(cleanup_log_upload)

/* Lines from now on belong to a new session, whose id is the run's if it is the ONLY one. */
void log_upload_begin_session(struct log_upload *upload, bool only);
