/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions on their way to the server: each is put into the spool before anything else happens to
 * it, and sent from there by a thread of its own (agent/sender.h). What does not arrive is counted,
 * and said in the log and in the notes of the next profile.
 */
#pragma once

#include <stdint.h>

#include "agent/sender.h"
#include "agent/spool.h"
#include "agent/upload.h"
#include "base/error.h"
#include "profile/profile.h"

struct delivery_settings {
	struct upload_settings upload; /* its texts are borrowed; without host: this machine's */
	const char *spool;             /* directory; NULL: delivery_directory() */
	uint64_t spool_bytes;
	uint32_t spool_sessions;
};

struct delivery_state {
	struct sender_state sender;
	struct spool_counts spool;
};

struct delivery;

/*
 * Where sessions wait unless told otherwise: /var/lib/cairn/spool for root, below $XDG_STATE_HOME
 * or ~/.local/state for others. RET, the caller's, is NULL if there is no such place.
 */
struct error *delivery_directory(char **ret);

/*
 * Ask the server whether it knows the token, open the spool, begin to send what waits there. A
 * server that does not answer is no failure, one that refuses the token is.
 */
struct error *delivery_open(const struct delivery_settings *settings, struct delivery **ret);
void delivery_free(struct delivery *delivery);
static inline void cleanup_delivery(struct delivery **delivery)
{
	delivery_free(*delivery);
}
#define _cleanup_delivery_ _cleanup_(cleanup_delivery)

/* A file beside the waiting sessions, for what must outlive the agent as they do: its path, or NULL
 * where they are in memory. RET is the caller's. */
struct error *delivery_memory(const struct delivery *delivery, char **ret);

/* Add a note to PROFILE of what has not arrived since the last one. */
struct error *delivery_note(struct delivery *delivery, struct profile *profile);

/* Take a session. What becomes of it is logged and counted; a failure is that it was not made. */
struct error *delivery_add(struct delivery *delivery, const struct profile *profile);

/*
 * Send what is left for at most GRACE_NS. *RET_WAITING: how many sessions have not been sent;
 * *RET_LOST: how many of those wait in memory only.
 */
void delivery_finish(struct delivery *delivery, uint64_t grace_ns, uint64_t *ret_waiting,
		     uint64_t *ret_lost);

struct delivery_state delivery_state(struct delivery *delivery);
