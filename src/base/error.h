/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A failure is for a person: a sentence that says what could not be done, and why. NULL is success.
 * Whoever receives one frees it, wraps it, or passes it on. Outcomes that a program acts on (a walk
 * stopped, a file is gone) are enums of their own and never travel as a struct error.
 */
#pragma once

#include "base/cleanup.h"

struct error;

/* A failure in words. Never returns NULL: without memory it is error_oom(). */
struct error *error_new(const char *format, ...)
	__attribute__((format(printf, 1, 2), warn_unused_result));

/* The same with the text of the current errno appended: "open /x: Permission denied". */
struct error *error_errno(const char *format, ...)
	__attribute__((format(printf, 1, 2), warn_unused_result));

/* Add what was being done: "map of pid 7: " in front. ERR is consumed. */
struct error *error_wrap(struct error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3), warn_unused_result));

/* Out of memory, without allocating. */
struct error *error_oom(void) __attribute__((warn_unused_result));

/* The sentence; lives as long as ERR. */
const char *error_text(const struct error *err);

/* The errno that error_errno() met, kept by wraps; 0 when there was none. */
int error_code(const struct error *err);

/* Swallow a failure (NULL too). Where a failure is swallowed a reason stands beside the call. */
void error_free(struct error *err);

static inline void cleanup_error(struct error **err)
{
	error_free(*err);
}
#define _cleanup_error_ _cleanup_(cleanup_error)

/* Return the failure of CALL, if it fails. The one macro in cairn that returns. */
#define TRY(call)                                                                                  \
	do {                                                                                       \
		struct error *_err = (call);                                                       \
		if (_err)                                                                          \
			return _err;                                                               \
	} while (0)
