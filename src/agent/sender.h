/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that empties the spool: one session after the other, in order, each until the server
 * has said that it has it. In between it waits longer and longer, by a part that is random, so that
 * a fleet does not come back all at once. Sampling never waits for it.
 */
#pragma once

#include <stdint.h>

#include "agent/spool.h"
#include "agent/upload.h"
#include "base/error.h"

struct sender_settings {
	struct upload_settings upload; /* its texts are borrowed */
	uint64_t first_wait_ns, longest_wait_ns;
	uint32_t doubtful_tries; /* then a session that the server answers as wrong is given up */
};

struct sender_state {
	uint64_t sent, refused; /* sessions: arrived; given up for what the server answers */
	uint64_t failures;      /* attempts in a row that have failed; 0: all is well */
	uint64_t last_sent_ns;  /* wall clock; 0: none yet */
	char problem[256];      /* what failed last; "" while all is well */
};

struct sender;

/* Begin to send what is in SPOOL, which is borrowed. */
struct error *sender_start(const struct sender_settings *settings, struct spool *spool,
			   struct sender **ret);

/* Something was added to the spool. */
void sender_wake(struct sender *sender);

/*
 * Send what is left for at most GRACE_NS, and end the thread. It ends earlier when nothing waits,
 * or when the server fails again and again.
 */
void sender_finish(struct sender *sender, uint64_t grace_ns);

void sender_free(struct sender *sender);
static inline void cleanup_sender(struct sender **sender)
{
	sender_free(*sender);
}
#define _cleanup_sender_ _cleanup_(cleanup_sender)

struct sender_state sender_state(struct sender *sender);
