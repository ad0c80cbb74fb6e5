/* SPDX-License-Identifier: Apache-2.0 */
/* Spool and sender together, and what is said about them. */
#define LOG_DOMAIN "upload"
#include "agent/delivery.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "capture/captures.h"
#include "formats/format.h"
#include "http/client.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
	MEMORY_MIB = 8, /* of sessions that find no disk */
	LONGEST_WAIT_SECONDS = 60,
	DOUBTFUL_TRIES = 30, /* half an hour of answers that one session is wrong */
};

struct delivery {
	struct delivery_settings settings;
	char host[HOST_NAME_MAX + 1];
	char *directory;
	struct spool *spool;
	struct sender *sender;
	uint64_t spawn_ns;
	uint64_t missed; /* sessions that notes have told of */
};

struct error *delivery_directory(char **ret)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	*ret = NULL;
	if (!geteuid())
		return str_copy(ret, "/var/lib/cairn/spool");
	if (state && state[0] == '/')
		return str_format(ret, "%s/cairn/spool", state);
	if (home && home[0] == '/')
		return str_format(ret, "%s/.local/state/cairn/spool", home);
	return NULL;
}

static struct error *check_health(const struct delivery *delivery)
{
	_cleanup_upload_ struct upload *upload = NULL;
	bool refused;

	TRY(upload_new(&delivery->settings.upload, NULL, &upload));
	if (http_is_open(delivery->settings.upload.server))
		log_warning("%s is asked without encryption: the token can be read on the way",
			    delivery->settings.upload.server);
	struct error *err = upload_check_health(upload, &refused);
	if (err && refused)
		return err;
	if (err)
		log_warning("%s; sessions wait in %s until the server answers", error_text(err),
			    delivery->directory ? delivery->directory : "memory");
	error_free(err); // it may be there in a minute
	return NULL;
}

static struct error *open_spool(struct delivery *delivery)
{
	const struct spool_limits limits = {
		.bytes = delivery->settings.spool_bytes,
		.sessions = delivery->settings.spool_sessions,
		.memory_bytes = MEMORY_MIB << 20,
	};
	struct error *problem = NULL;

	TRY(spool_open(delivery->directory ? delivery->directory : "", &limits, &delivery->spool,
		       &problem));
	if (problem)
		log_warning("%s; sessions wait in memory, %d MiB of them at most, and do not "
			    "survive the end of the agent",
			    error_text(problem), MEMORY_MIB);
	error_free(problem); // less is kept, which the line above says
	uint64_t waiting = spool_count(delivery->spool).waiting;
	if (waiting)
		log_info("sessions of an earlier run wait to be sent: %" PRIu64, waiting);
	return NULL;
}

struct error *delivery_open(const struct delivery_settings *settings, struct delivery **ret)
{
	_cleanup_delivery_ struct delivery *delivery = calloc(1, sizeof(*delivery));

	if (!delivery)
		return error_oom();
	delivery->settings = *settings;
	delivery->spawn_ns = clock_realtime_ns();
	if (gethostname(delivery->host, sizeof(delivery->host) - 1) < 0)
		return error_errno("name of this machine");
	if (!delivery->settings.upload.host)
		delivery->settings.upload.host = delivery->host;
	TRY(settings->spool ? str_copy(&delivery->directory, settings->spool)
			    : delivery_directory(&delivery->directory));
	TRY(check_health(delivery));
	TRY(open_spool(delivery));
	struct sender_settings sender = {
		.upload = delivery->settings.upload,
		.first_wait_ns = SECOND_NS,
		.longest_wait_ns = LONGEST_WAIT_SECONDS * SECOND_NS,
		.doubtful_tries = DOUBTFUL_TRIES,
	};
	TRY(sender_start(&sender, delivery->spool, &delivery->sender));
	*ret = take(delivery);
	return NULL;
}

void delivery_free(struct delivery *delivery)
{
	if (!delivery)
		return;
	sender_free(delivery->sender); // before the spool, which it uses
	spool_close(delivery->spool);
	free(delivery->directory);
	free(delivery);
}

struct error *delivery_memory(const struct delivery *delivery, char **ret)
{
	*ret = NULL;
	if (!delivery->directory)
		return NULL;
	return str_format(ret, "%s/last-command", delivery->directory);
}

struct delivery_state delivery_state(struct delivery *delivery)
{
	return (struct delivery_state){
		.sender = sender_state(delivery->sender),
		.spool = spool_count(delivery->spool),
	};
}

struct error *delivery_note(struct delivery *delivery, struct profile *profile)
{
	struct delivery_state state = delivery_state(delivery);
	uint64_t missed = state.spool.dropped + state.spool.damaged + state.sender.refused;
	_cleanup_free_ char *note = NULL;

	if (missed == delivery->missed)
		return NULL;
	TRY(str_format(&note,
		       "%" PRIu64 " earlier sessions did not reach the server: %" PRIu64
		       " gave way in a full spool, %" PRIu64 " were damaged there, %" PRIu64
		       " the server would not take (since the agent began)",
		       missed, state.spool.dropped, state.spool.damaged, state.sender.refused));
	TRY(capture_note(profile, note));
	delivery->missed = missed;
	return NULL;
}

static struct error *make_parcel(const struct delivery *delivery, const struct profile *profile,
				 struct parcel *ret)
{
	const struct session_facts *facts = profile_facts_const(profile);
	const struct parcel_facts about = {
		.service = delivery->settings.upload.service,
		.host = delivery->settings.upload.host,
		.start_ns = facts->start_realtime_ns,
		.end_ns = facts->end_realtime_ns,
		.spawn_ns = delivery->spawn_ns,
		.cpu_thousandths = -1,
		.memory_thousandths = -1,
	};
	_cleanup_free_ char *col = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&col, &size);

	if (!stream)
		return error_oom();
	struct error *err = format_find("col")->write(profile, stream);
	if (fclose(stream) && !err)
		err = error_oom();
	return err ? err : parcel_make(&about, col, size, ret);
}

/* A line at the first, second, fourth ... session. */
static bool is_told(uint64_t count)
{
	return (count & (count - 1)) == 0;
}

struct error *delivery_add(struct delivery *delivery, const struct profile *profile)
{
	_cleanup_(parcel_deinit) struct parcel parcel = PARCEL_INIT;
	uint64_t before = spool_count(delivery->spool).dropped;
	struct error *why = NULL;

	TRY(make_parcel(delivery, profile, &parcel));
	enum spool_place place = spool_add(delivery->spool, &parcel, &why);
	sender_wake(delivery->sender);
	struct spool_counts counts = spool_count(delivery->spool);
	if (why && is_told(place == SPOOL_in_memory ? counts.in_memory : counts.dropped))
		log_warning("%s; a session %s", error_text(why),
			    place == SPOOL_in_memory ? "waits in memory" : "is lost");
	error_free(why); // counted
	if (counts.dropped != before && is_told(counts.dropped))
		log_warning("the spool is full: the oldest sessions give way dropped=%" PRIu64
			    " waiting=%" PRIu64,
			    counts.dropped, counts.waiting);
	return NULL;
}

void delivery_finish(struct delivery *delivery, uint64_t grace_ns, uint64_t *ret_waiting,
		     uint64_t *ret_lost)
{
	sender_finish(delivery->sender, grace_ns);
	struct spool_counts counts = spool_count(delivery->spool);
	*ret_waiting = counts.waiting;
	*ret_lost = counts.in_memory;
}
