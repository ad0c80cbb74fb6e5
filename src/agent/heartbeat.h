/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gProfiler's heartbeat: a thread that asks the server for commands and tells it what became of
 * them. A command is "completed" when what it asked for is done, and "failed" with the reason. None
 * is taken twice: the server repeats its last command for ever, so the id of the last one is kept
 * in a file.
 */
#pragma once

#include <stdint.h>

#include "agent/remote.h"
#include "base/error.h"

struct heartbeat_settings {
	const char *server; /* all texts are borrowed */
	const char *token, *service, *host;
	const char *memory; /* the file with the id of the last command; NULL: it is forgotten */
	bool verify;
	uint64_t interval_ns;
};

struct heartbeat;

struct error *heartbeat_start(const struct heartbeat_settings *settings, struct heartbeat **ret);

/* Tell the server what is left to tell, for a few seconds at most, and end. */
void heartbeat_free(struct heartbeat *heartbeat);
static inline void cleanup_heartbeat(struct heartbeat **heartbeat)
{
	heartbeat_free(*heartbeat);
}
#define _cleanup_heartbeat_ _cleanup_(cleanup_heartbeat)

/* The next command, a stop before everything that came before it. False: there is none. */
bool heartbeat_take(struct heartbeat *heartbeat, struct remote_command *ret);

/* Does a command wait, or with STOP_ONLY one that says stop? */
bool heartbeat_waits(struct heartbeat *heartbeat, bool stop_only);

/* Command ID is done after SECONDS; or failed, which WHY, borrowed, says. */
void heartbeat_report(struct heartbeat *heartbeat, const char *id, uint64_t seconds,
		      const char *why);
