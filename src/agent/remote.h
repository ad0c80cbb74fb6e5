/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of the server, as gProfiler's heartbeat brings them: what one asks for. Who asks, and
 * who is told what became of it, is agent/heartbeat.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
	REMOTE_ID_MAX = 128,
	REMOTE_PIDS_MAX = 1024,
	REMOTE_SECONDS_MAX = 7 * 86400,
	REMOTE_HZ_MAX = 10000,
};

enum remote_kind {
	REMOTE_none, /* there is no command in the answer, or it is for other machines */
	REMOTE_start,
	REMOTE_stop,
};

struct remote_command {
	enum remote_kind kind;
	char id[REMOTE_ID_MAX + 1];
	uint64_t duration_ns, hz; /* 0: not said */
	bool continuous;
	bool no_perf, no_python;
	uint32_t pids[REMOTE_PIDS_MAX];
	size_t pid_count; /* 0: all */
};

/*
 * The command in ANSWER, the server's words, for the machine HOST. A failure is one of the command:
 * RET has its id and kind then, so that the server can be told; without an id it is one of the
 * answer.
 */
struct error *remote_parse(const char *answer, size_t size, const char *host,
			   struct remote_command *ret);
