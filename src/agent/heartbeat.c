/* SPDX-License-Identifier: Apache-2.0 */
/* Asking for commands and reporting them. What a command says is remote.c. */
#define LOG_DOMAIN "heartbeat"
#include "agent/heartbeat.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "formats/emit.h"
#include "http/client.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
	QUEUE_MAX = 12, /* commands that wait */
	IDS_MAX = 1000, /* gProfiler's limit */
	REPORTS_MAX = 64,
	REPORT_TRIES = 10,
	REPORT_TEXT_MAX = 300,
	TOTAL_SECONDS = 30,
	FAREWELL_SECONDS = 5,
	TIME_ROOM = 48,
	MEMORY_BYTES = 4096,
};

static const char done_mark[] = " done";

/* What the server is to be told of a command. */
struct report {
	char id[REMOTE_ID_MAX + 1];
	uint64_t seconds;
	char why[REPORT_TEXT_MAX]; /* "": completed */
	unsigned tries;
};

/* The last ids, oldest first. */
struct ids {
	char items[IDS_MAX][REMOTE_ID_MAX + 1];
	size_t count;
};

struct heartbeat {
	struct heartbeat_settings settings; /* its texts are borrowed */
	struct http_client *client;         /* the thread's */
	char *base, *token_header;
	uint64_t failures; /* in a row; the thread's */
	atomic_bool abort;
	pthread_t thread;
	bool running;
	pthread_mutex_t mutex; /* of what is below */
	pthread_cond_t changed;
	bool finishing, ended;
	struct remote_command queue[QUEUE_MAX];
	size_t waiting;
	struct report reports[REPORTS_MAX];
	size_t report_count;
	struct ids received, executed;
};

static void unlock(pthread_mutex_t **mutex)
{
	pthread_mutex_unlock(*mutex);
}

/* The mutex, locked, for a scope guard. */
static pthread_mutex_t *hold(struct heartbeat *heartbeat)
{
	pthread_mutex_lock(&heartbeat->mutex);
	return &heartbeat->mutex;
}

static bool ids_have(const struct ids *ids, const char *id)
{
	for (size_t i = 0; i < ids->count; i++)
		if (!strcmp(ids->items[i], id))
			return true;
	return false;
}

static void ids_add(struct ids *ids, const char *id)
{
	if (ids->count == IDS_MAX) {
		memmove(ids->items, ids->items + 1, sizeof(ids->items[0]) * (IDS_MAX - 1));
		ids->count--;
	}
	snprintf(ids->items[ids->count++], sizeof(ids->items[0]), "%s", id);
}

static void emit_ids(struct emit *emit, const char *key, const struct ids *ids)
{
	emit_array(emit, key);
	for (size_t i = 0; i < ids->count; i++)
		emit_string(emit, NULL, ids->items[i]);
	emit_array_end(emit);
}

/* The address that this machine is reached at: the one it would use towards a public address.
 * Nothing is sent for that. */
static void find_address(char ret[INET_ADDRSTRLEN])
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53)}, from = {0};
	socklen_t length = sizeof(from);
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(ret, INET_ADDRSTRLEN, "127.0.0.1");
	if (fd < 0 || inet_pton(AF_INET, "8.8.8.8", &to.sin_addr) != 1 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&from, &length) < 0)
		return;
	(void)inet_ntop(AF_INET, &from.sin_addr, ret, INET_ADDRSTRLEN);
}

/* gProfiler's agent gives the local time here, with microseconds and without a zone. */
static void print_local_time(char ret[TIME_ROOM])
{
	uint64_t now_ns = clock_realtime_ns();
	time_t seconds = (time_t)(now_ns / SECOND_NS);
	struct tm tm = {0};
	char text[32] = "";

	localtime_r(&seconds, &tm);
	(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(ret, TIME_ROOM, "%s.%06" PRIu64, text, now_ns / 1000 % 1000000);
}

static void emit_beat(struct emit *emit, struct heartbeat *heartbeat)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(heartbeat);
	const struct ids *received = &heartbeat->received;
	char address[INET_ADDRSTRLEN], time[TIME_ROOM];

	find_address(address);
	print_local_time(time);
	emit_object(emit, NULL);
	emit_string(emit, "ip_address", address);
	emit_string(emit, "hostname", heartbeat->settings.host);
	emit_string(emit, "service_name", heartbeat->settings.service);
	if (received->count)
		emit_string(emit, "last_command_id", received->items[received->count - 1]);
	else
		emit_null(emit, "last_command_id");
	emit_string(emit, "status", "active");
	emit_string(emit, "timestamp", time);
	emit_ids(emit, "received_command_ids", received);
	emit_ids(emit, "executed_command_ids", &heartbeat->executed);
	emit_object_end(emit);
}

static void emit_report(struct emit *emit, const struct heartbeat *heartbeat,
			const struct report *report)
{
	emit_object(emit, NULL);
	emit_string(emit, "command_id", report->id);
	emit_string(emit, "hostname", heartbeat->settings.host);
	emit_string(emit, "status", report->why[0] ? "failed" : "completed");
	emit_number(emit, "execution_time", report->seconds);
	if (report->why[0])
		emit_string(emit, "error_message", report->why);
	else
		emit_null(emit, "error_message");
	emit_null(emit, "results_path");
	emit_object_end(emit);
}

/* POST the beat, or REPORT if there is one, to PATH. */
static struct error *post(struct heartbeat *heartbeat, const char *path,
			  const struct report *report, struct http_answer *ret)
{
	const char *const headers[] = {"Content-Type: application/json", heartbeat->token_header,
				       NULL};
	_cleanup_free_ char *url = NULL, *body = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&body, &size);

	if (!stream)
		return error_oom();
	struct emit emit = emit_to(stream, EMIT_ascii);
	if (report)
		emit_report(&emit, heartbeat, report);
	else
		emit_beat(&emit, heartbeat);
	if (fclose(stream))
		return error_oom();
	TRY(str_format(&url, "%s/api/metrics/%s", heartbeat->base, path));
	const struct http_request request = {
		.url = url,
		.headers = headers,
		.body = body,
		.body_size = size,
		.connect_ns = TOTAL_SECONDS * SECOND_NS,
		.total_ns = TOTAL_SECONDS * SECOND_NS,
	};
	TRY(http_perform(heartbeat->client, &request, ret));
	if (ret->status / 100 != 2)
		return error_new("%s answered %d", url, ret->status);
	return NULL;
}

/* Keep ID where the next agent finds it; and whether the server need not be told of it any more. */
static void remember(const struct heartbeat *heartbeat, const char *id, bool done)
{
	_cleanup_(file_writer_deinit) struct file_writer writer = FILE_WRITER_INIT;
	struct error *err = NULL;

	if (!heartbeat->settings.memory)
		return;
	err = file_writer_open(heartbeat->settings.memory, &writer);
	if (!err) {
		fprintf(writer.stream, "%s%s\n", id, done ? done_mark : "");
		err = file_writer_commit(&writer);
	}
	if (err)
		log_warning("%s; the next agent may take the last command once more",
			    error_text(err));
	error_free(err); // the command itself is not in the way
}

/* Holds the mutex. */
static void add_report(struct heartbeat *heartbeat, const char *id, uint64_t seconds,
		       const char *why)
{
	if (!ids_have(&heartbeat->executed, id))
		ids_add(&heartbeat->executed, id);
	const struct ids *received = &heartbeat->received;
	if (received->count && !strcmp(received->items[received->count - 1], id))
		remember(heartbeat, id, true);
	if (heartbeat->report_count == REPORTS_MAX) {
		log_warning("too much to report; the server is not told of command=%s", id);
		return;
	}
	struct report *report = &heartbeat->reports[heartbeat->report_count++];
	*report = (struct report){.seconds = seconds};
	snprintf(report->id, sizeof(report->id), "%s", id);
	snprintf(report->why, sizeof(report->why), "%s", why ? why : "");
	pthread_cond_broadcast(&heartbeat->changed);
}

/* The last command of the agent before: it is not taken again, and if that one has not come to its
 * end the server is told. */
static void recall(struct heartbeat *heartbeat)
{
	_cleanup_free_ char *text = NULL;
	size_t size;

	if (!heartbeat->settings.memory)
		return;
	struct error *err =
		file_read(AT_FDCWD, heartbeat->settings.memory, MEMORY_BYTES, &text, &size);
	if (err)
		return error_free(err); // there is none before the first command
	text[strcspn(text, "\n")] = 0;
	bool done = str_ends(text, done_mark);
	text[strcspn(text, " ")] = 0;
	if (!*text || strlen(text) > REMOTE_ID_MAX)
		return;
	ids_add(&heartbeat->received, text);
	if (done)
		ids_add(&heartbeat->executed, text);
	else
		add_report(heartbeat, text, 0, "the agent ended before it was done");
}

/* Put COMMAND into the queue. A stop ends what came before it, also what has not begun. */
static void enqueue(struct heartbeat *heartbeat, const struct remote_command *command)
{
	if (command->kind == REMOTE_stop) {
		for (size_t i = 0; i < heartbeat->waiting; i++)
			add_report(heartbeat, heartbeat->queue[i].id, 0,
				   "stopped before it had begun");
		heartbeat->waiting = 0;
	}
	if (heartbeat->waiting == QUEUE_MAX) {
		add_report(heartbeat, command->id, 0, "too many commands wait");
		return;
	}
	heartbeat->queue[heartbeat->waiting++] = *command;
}

/* COMMAND came, with what is WRONG with it. */
static void receive(struct heartbeat *heartbeat, const struct remote_command *command,
		    const struct error *wrong)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(heartbeat);

	if (!command->id[0] || ids_have(&heartbeat->received, command->id))
		return;
	ids_add(&heartbeat->received, command->id);
	remember(heartbeat, command->id, false);
	if (wrong) {
		log_warning("command=%s cannot be done: %s", command->id, error_text(wrong));
		add_report(heartbeat, command->id, 0, error_text(wrong));
		return;
	}
	log_info("command=%s %s", command->id,
		 command->kind == REMOTE_none    ? "is for other machines"
		 : command->kind == REMOTE_start ? "starts"
						 : "stops");
	if (command->kind != REMOTE_none)
		enqueue(heartbeat, command);
}

static struct error *beat(struct heartbeat *heartbeat)
{
	_cleanup_(http_answer_deinit) struct http_answer answer = HTTP_ANSWER_INIT;
	struct remote_command command;

	TRY(post(heartbeat, "heartbeat", NULL, &answer));
	struct error *wrong =
		remote_parse(answer.body, answer.size, heartbeat->settings.host, &command);
	if (wrong && !command.id[0])
		return wrong;
	receive(heartbeat, &command, wrong);
	error_free(wrong); // the server is told
	return NULL;
}

/* The oldest report, if there is one. */
static bool first_report(struct heartbeat *heartbeat, struct report *ret)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(heartbeat);

	if (!heartbeat->report_count)
		return false;
	heartbeat->reports[0].tries++;
	*ret = heartbeat->reports[0];
	return true;
}

static void drop_report(struct heartbeat *heartbeat)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(heartbeat);

	heartbeat->report_count--;
	memmove(heartbeat->reports, heartbeat->reports + 1,
		heartbeat->report_count * sizeof(heartbeat->reports[0]));
}

/* Tell the server what has not been told, in order. */
static struct error *send_reports(struct heartbeat *heartbeat)
{
	struct report report;

	while (first_report(heartbeat, &report)) {
		_cleanup_(http_answer_deinit) struct http_answer answer = HTTP_ANSWER_INIT;
		struct error *err = post(heartbeat, "command_completion", &report, &answer);
		if (err && report.tries < REPORT_TRIES)
			return err;
		if (err)
			log_warning("%s; the server is not told of command=%s", error_text(err),
				    report.id);
		error_free(err); // given up
		drop_report(heartbeat);
	}
	return NULL;
}

/* Lines at the first, second, fourth ... failure in a row. */
static void note_result(struct heartbeat *heartbeat, struct error *err)
{
	heartbeat->failures = err ? heartbeat->failures + 1 : 0;
	if (err && (heartbeat->failures & (heartbeat->failures - 1)) == 0)
		log_warning("%s failures=%" PRIu64, error_text(err), heartbeat->failures);
	error_free(err); // the next beat tries again
}

/* Wait for the time of the next beat or for something to report. False: it is time to end. */
static bool wait_for_beat(struct heartbeat *heartbeat, uint64_t next_ns, size_t reports)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(heartbeat);
	struct timespec at = {.tv_sec = (time_t)(next_ns / SECOND_NS),
			      .tv_nsec = (long)(next_ns % SECOND_NS)};

	while (!heartbeat->finishing && heartbeat->report_count <= reports)
		if (pthread_cond_timedwait(&heartbeat->changed, held, &at))
			break;
	return !heartbeat->finishing;
}

static size_t count_reports(struct heartbeat *heartbeat)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(heartbeat);

	return heartbeat->report_count;
}

static void *heartbeat_run(void *data)
{
	struct heartbeat *heartbeat = data;
	uint64_t next_ns = clock_monotonic_ns();

	do {
		struct error *err = NULL;
		if (clock_monotonic_ns() >= next_ns) {
			err = beat(heartbeat);
			next_ns = clock_monotonic_ns() + heartbeat->settings.interval_ns;
		}
		note_result(heartbeat, err ? err : send_reports(heartbeat));
	} while (wait_for_beat(heartbeat, next_ns, count_reports(heartbeat)));
	error_free(send_reports(heartbeat)); // once, whether it works or not

	_cleanup_(unlock) pthread_mutex_t *held = hold(heartbeat);
	heartbeat->ended = true;
	pthread_cond_broadcast(&heartbeat->changed);
	return NULL;
}

/* Signals are for the thread that samples. */
static int start_thread(struct heartbeat *heartbeat)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	int code = pthread_create(&heartbeat->thread, NULL, heartbeat_run, heartbeat);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}

struct error *heartbeat_start(const struct heartbeat_settings *settings, struct heartbeat **ret)
{
	_cleanup_heartbeat_ struct heartbeat *heartbeat = calloc(1, sizeof(*heartbeat));
	pthread_condattr_t attributes;

	if (!heartbeat)
		return error_oom();
	heartbeat->settings = *settings;
	pthread_mutex_init(&heartbeat->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); // the other one jumps
	pthread_cond_init(&heartbeat->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	TRY(http_base_parse(settings->server, &heartbeat->base));
	TRY(str_format(&heartbeat->token_header, "Authorization: Bearer %s", settings->token));
	TRY(http_client_new(settings->verify, &heartbeat->abort, &heartbeat->client));
	recall(heartbeat);
	errno = start_thread(heartbeat);
	if (errno)
		return error_errno("start the thread of the heartbeat");
	heartbeat->running = true;
	*ret = take(heartbeat);
	return NULL;
}

static void let_end(struct heartbeat *heartbeat)
{
	uint64_t until_ns = clock_monotonic_ns() + FAREWELL_SECONDS * SECOND_NS;
	struct timespec at = {.tv_sec = (time_t)(until_ns / SECOND_NS),
			      .tv_nsec = (long)(until_ns % SECOND_NS)};
	_cleanup_(unlock) pthread_mutex_t *held = hold(heartbeat);

	heartbeat->finishing = true;
	pthread_cond_broadcast(&heartbeat->changed);
	while (!heartbeat->ended && !pthread_cond_timedwait(&heartbeat->changed, held, &at))
		continue;
}

void heartbeat_free(struct heartbeat *heartbeat)
{
	if (!heartbeat)
		return;
	if (heartbeat->running) {
		let_end(heartbeat);
		atomic_store(&heartbeat->abort, true);
		pthread_join(heartbeat->thread, NULL);
	}
	http_client_free(heartbeat->client);
	if (heartbeat->token_header)
		explicit_bzero(heartbeat->token_header, strlen(heartbeat->token_header));
	free(heartbeat->token_header);
	free(heartbeat->base);
	pthread_cond_destroy(&heartbeat->changed);
	pthread_mutex_destroy(&heartbeat->mutex);
	free(heartbeat);
}

bool heartbeat_take(struct heartbeat *heartbeat, struct remote_command *ret)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(heartbeat);

	if (!heartbeat->waiting)
		return false;
	*ret = heartbeat->queue[0];
	heartbeat->waiting--;
	memmove(heartbeat->queue, heartbeat->queue + 1,
		heartbeat->waiting * sizeof(heartbeat->queue[0]));
	return true;
}

bool heartbeat_waits(struct heartbeat *heartbeat, bool stop_only)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(heartbeat);

	// A stop has nothing before it.
	return heartbeat->waiting && (!stop_only || heartbeat->queue[0].kind == REMOTE_stop);
}

void heartbeat_report(struct heartbeat *heartbeat, const char *id, uint64_t seconds,
		      const char *why)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(heartbeat);

	add_report(heartbeat, id, seconds, why);
}
