/* SPDX-License-Identifier: Apache-2.0 */
/* When to send. What is sent, and what answers mean, is upload.c; where it waits, spool.c. */
#define LOG_DOMAIN "upload"
#include "agent/sender.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"

enum {
	FAREWELL_FAILURES = 3, /* in a row, when no more time is to be spent */
	RETRY_AFTER_MAX_SECONDS = 3600,
};

#define SECOND_NS UINT64_C(1000000000)

struct sender {
	struct sender_settings settings;
	struct spool *spool;   /* borrowed */
	struct upload *upload; /* the thread's */
	atomic_bool abort;
	pthread_t thread;
	bool running;
	pthread_mutex_t mutex; /* of what is below */
	pthread_cond_t changed;
	bool woken, finishing, ended;
	uint64_t deadline_ns; /* of finishing; monotonic */
	uint64_t farewell_failures;
	struct sender_state state;
};

static void unlock(pthread_mutex_t **mutex)
{
	pthread_mutex_unlock(*mutex);
}

/* The sender's mutex, locked, for a scope guard. */
static pthread_mutex_t *hold(struct sender *sender)
{
	pthread_mutex_lock(&sender->mutex);
	return &sender->mutex;
}

/* Between a half and the whole of what doubling gives, so that clients spread. */
static uint64_t wait_after(const struct sender_settings *settings, uint64_t failures)
{
	uint64_t wait_ns = settings->first_wait_ns;
	uint32_t random = 0;

	for (uint64_t i = 1; i < failures && wait_ns < settings->longest_wait_ns; i++)
		wait_ns *= 2;
	if (wait_ns > settings->longest_wait_ns)
		wait_ns = settings->longest_wait_ns;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (uint32_t)clock_monotonic_ns();
	return wait_ns / 2 + wait_ns / 2 / 1000 * (random % 1000);
}

/*
 * Wait until END_NS, or, with 0, until something is added. The end of the agent cuts a wait short,
 * once. False: it is time to end.
 */
static bool wait_until(struct sender *sender, uint64_t end_ns)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(sender);

	for (;;) {
		uint64_t now_ns = clock_monotonic_ns(), until_ns = end_ns;
		if (sender->finishing && now_ns >= sender->deadline_ns)
			return false;
		if (sender->woken && (!end_ns || sender->finishing))
			break;
		if (sender->finishing && !end_ns)
			return false;
		if (end_ns && now_ns >= end_ns)
			break;
		if (sender->finishing && until_ns > sender->deadline_ns)
			until_ns = sender->deadline_ns;
		struct timespec at = {.tv_sec = (time_t)(until_ns / SECOND_NS),
				      .tv_nsec = (long)(until_ns % SECOND_NS)};
		if (until_ns)
			pthread_cond_timedwait(&sender->changed, held, &at);
		else
			pthread_cond_wait(&sender->changed, held);
	}
	sender->woken = false;
	return true;
}

/* Lines at the first, second, fourth ... failure in a row. */
static bool is_told(uint64_t failures)
{
	return (failures & (failures - 1)) == 0;
}

static void note_sent(struct sender *sender, const struct parcel *parcel)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(sender);

	if (sender->state.failures)
		log_info("the server takes sessions again after failures=%" PRIu64,
			 sender->state.failures);
	log_debug("sent id=%s bytes=%zu", parcel->id, parcel->data_size);
	sender->state.sent++;
	sender->state.failures = sender->farewell_failures = 0;
	sender->state.problem[0] = 0;
	sender->state.last_sent_ns = clock_realtime_ns();
}

static void note_refused(struct sender *sender, const struct error *why)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(sender);

	log_error("a session is given up: %s", error_text(why));
	sender->state.refused++;
	sender->state.failures = sender->farewell_failures = 0;
}

/* RET: failures in a row. */
static uint64_t note_failure(struct sender *sender, const struct error *why)
{
	struct spool_counts counts = spool_count(sender->spool);
	_cleanup_(unlock) pthread_mutex_t *held = hold(sender);
	struct sender_state *state = &sender->state;

	state->failures++;
	sender->farewell_failures += sender->finishing;
	snprintf(state->problem, sizeof(state->problem), "%s", error_text(why));
	if (is_told(state->failures))
		log_warning("%s; waiting=%" PRIu64 " failures=%" PRIu64, error_text(why),
			    counts.waiting, state->failures);
	return state->failures;
}

static bool is_over(struct sender *sender)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(sender);

	return sender->farewell_failures >= FAREWELL_FAILURES ||
	       (sender->finishing && clock_monotonic_ns() >= sender->deadline_ns);
}

/* How often the session that is first in line was answered as wrong. */
struct doubts {
	uint64_t number;
	uint32_t tries;
};

/* RESULT says what became of an attempt. RET: nanoseconds to wait before the next. */
static uint64_t handle_result(struct sender *sender, uint64_t number, const struct parcel *parcel,
			      const struct upload_result *result, struct doubts *doubts)
{
	enum upload_end end = result->end;

	if (doubts->number != number)
		*doubts = (struct doubts){.number = number};
	if (end == UPLOAD_doubtful && ++doubts->tries >= sender->settings.doubtful_tries)
		end = UPLOAD_refused;
	switch (end) {
	case UPLOAD_sent:
		spool_done(sender->spool, number);
		note_sent(sender, parcel);
		return 0;
	case UPLOAD_refused:
		spool_done(sender->spool, number);
		note_refused(sender, result->why);
		return 0;
	case UPLOAD_doubtful:
	case UPLOAD_later:
		break;
	}
	spool_release(sender->spool);
	uint64_t wait_ns = wait_after(&sender->settings, note_failure(sender, result->why));
	uint64_t asked_s = result->retry_after_s < RETRY_AFTER_MAX_SECONDS
				   ? result->retry_after_s
				   : RETRY_AFTER_MAX_SECONDS;
	return wait_ns > asked_s * SECOND_NS ? wait_ns : asked_s * SECOND_NS;
}

static void note_end(struct sender *sender)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(sender);

	sender->ended = true;
	pthread_cond_broadcast(&sender->changed);
}

static void *sender_run(void *data)
{
	struct sender *sender = data;
	struct doubts doubts = {0};

	while (!is_over(sender)) {
		_cleanup_(parcel_deinit) struct parcel parcel = PARCEL_INIT;
		uint64_t number;
		if (!spool_first(sender->spool, &number, &parcel)) {
			if (!wait_until(sender, 0))
				break;
			continue;
		}
		struct upload_result result = upload_send(sender->upload, &parcel);
		uint64_t wait_ns = handle_result(sender, number, &parcel, &result, &doubts);
		error_free(result.why); // told by handle_result()
		if (wait_ns && !wait_until(sender, clock_monotonic_ns() + wait_ns))
			break;
	}
	note_end(sender);
	return NULL;
}

/* Signals are for the thread that samples. */
static int start_thread(struct sender *sender)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	int code = pthread_create(&sender->thread, NULL, sender_run, sender);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}

struct error *sender_start(const struct sender_settings *settings, struct spool *spool,
			   struct sender **ret)
{
	_cleanup_sender_ struct sender *sender = calloc(1, sizeof(*sender));
	pthread_condattr_t attributes;

	if (!sender)
		return error_oom();
	sender->settings = *settings;
	sender->spool = spool;
	pthread_mutex_init(&sender->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); // the other one jumps
	pthread_cond_init(&sender->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	TRY(upload_new(&settings->upload, &sender->abort, &sender->upload));
	errno = start_thread(sender);
	if (errno)
		return error_errno("start the thread that sends");
	sender->running = true;
	*ret = take(sender);
	return NULL;
}

void sender_wake(struct sender *sender)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(sender);

	sender->woken = true;
	pthread_cond_signal(&sender->changed);
}

/* Let the thread work until DEADLINE_NS, and wait for that. */
static void let_end(struct sender *sender, uint64_t deadline_ns)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(sender);
	struct timespec at = {.tv_sec = (time_t)(deadline_ns / SECOND_NS),
			      .tv_nsec = (long)(deadline_ns % SECOND_NS)};

	sender->finishing = sender->woken = true;
	sender->deadline_ns = deadline_ns;
	pthread_cond_broadcast(&sender->changed);
	while (!sender->ended && !pthread_cond_timedwait(&sender->changed, held, &at))
		continue;
}

void sender_finish(struct sender *sender, uint64_t grace_ns)
{
	if (!sender->running)
		return;
	let_end(sender, clock_monotonic_ns() + grace_ns);
	atomic_store(&sender->abort, true);
	pthread_join(sender->thread, NULL);
	sender->running = false;
}

void sender_free(struct sender *sender)
{
	if (!sender)
		return;
	sender_finish(sender, 0);
	upload_free(sender->upload);
	pthread_cond_destroy(&sender->changed);
	pthread_mutex_destroy(&sender->mutex);
	free(sender);
}

struct sender_state sender_state(struct sender *sender)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(sender);

	return sender->state;
}
