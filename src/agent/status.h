/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent does, for whoever asks at its socket: an answer is lines of "name value", and the
 * connection's end. The agent answers between two looks at the clock: nothing waits for a client.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

enum { STATUS_BYTES_MAX = 64 * 1024 };

/* Where the socket is unless told otherwise: below /run for root, else below $XDG_RUNTIME_DIR. RET,
 * the caller's, is NULL if there is no such place. */
struct error *status_path(bool root, char **ret);

/* Listen at PATH, where any user may ask. One that an agent still listens at is left to it: a
 * failure. The caller closes RET_FD. */
struct error *status_listen(const char *path, int *ret_fd);

/* The next client that waits for an answer; -1: nobody does. */
int status_accept(int listen_fd);

/* Give TEXT to the client, and close it. */
void status_answer(int client_fd, const char *text);

/* Ask the agent at PATH; the caller frees RET. */
struct error *status_ask(const char *path, char **ret);
