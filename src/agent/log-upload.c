/* SPDX-License-Identifier: Apache-2.0 */
/* Lines are kept as JSON from the moment that they are written; a batch is these, joined. */
#define LOG_DOMAIN "log-upload"
#include "agent/log-upload.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <zlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/str.h"
#include "formats/emit.h"
#include "http/client.h"

#define SECOND_NS UINT64_C(1000000000)

/* Sizes and times are those of gProfiler's agent. */
enum {
	BUFFER_BYTES = 4 << 20,
	BUFFER_URGENT = BUFFER_BYTES / 5 * 4,
	LINES_MAX = 1 << 20,
	MESSAGE_MAX = 64 << 10, /* of one line; ours are shorter */
	WAKE_SECONDS = 10,
	SEND_SECONDS = 30,
	FAREWELL_SECONDS = 10,
	CONNECT_MS = 1500,
	TOTAL_SECONDS = 10,
	UUID_ROOM = 37,
};

struct log_upload {
	struct log_upload_settings settings; /* its texts are borrowed */
	struct http_client *client;          /* the thread's */
	char *url, *token_header;
	char run_id[UUID_ROOM];
	struct log_sink sink;
	atomic_bool abort;
	pthread_t thread;
	bool running, has_sink;
	pthread_mutex_t mutex; /* of what is below */
	pthread_cond_t changed;
	bool finishing, ended;
	char **lines; /* JSON objects, oldest first */
	size_t count, room, bytes;
	uint64_t lost, serial;
	char cycle_id[UUID_ROOM]; /* "": before the first session */
};

/* A batch as it is sent, and sent again if need be. */
struct batch {
	char *body; /* gzip; NULL: there is none */
	size_t size;
};

static void unlock(pthread_mutex_t **mutex)
{
	pthread_mutex_unlock(*mutex);
}

/* The mutex, locked, for a scope guard. */
static pthread_mutex_t *hold(struct log_upload *upload)
{
	pthread_mutex_lock(&upload->mutex);
	return &upload->mutex;
}

/* A random UUID (RFC 9562, version 4). */
static void make_uuid(char ret[UUID_ROOM])
{
	uint8_t id[16] = {0};
	char hex[33];

	// Bytes of the clock if the kernel has none yet: it only has to tell runs apart.
	if (getrandom(id, sizeof(id), GRND_NONBLOCK) != sizeof(id)) {
		uint64_t now_ns = clock_realtime_ns();
		memcpy(id, &now_ns, sizeof(now_ns));
	}
	id[6] = (uint8_t)((id[6] & 0x0f) | 0x40);
	id[8] = (uint8_t)((id[8] & 0x3f) | 0x80);
	str_hex(id, sizeof(id), hex);
	snprintf(ret, UUID_ROOM, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
		 hex + 20);
}

static unsigned severity_of(enum log_level level)
{
	static const unsigned severities[] = {
		[LOG_ERROR] = 5, [LOG_WARNING] = 4, [LOG_INFO] = 3, [LOG_DEBUG] = 2};

	return severities[level];
}

/* Members in gProfiler's order; what cairn's lines do not know is empty. */
static void emit_line(struct emit *emit, const struct log_upload *upload,
		      const struct log_line *line)
{
	size_t length = strnlen(line->message, MESSAGE_MAX);
	char time[20], fraction[32], domain[64];

	clock_format_utc(line->realtime_ns, time);
	snprintf(fraction, sizeof(fraction), "%s.%06" PRIu64, time,
		 line->realtime_ns / 1000 % 1000000);
	snprintf(domain, sizeof(domain), "cairn.%s", line->domain);
	emit_object(emit, NULL);
	emit_number(emit, "severity", severity_of(line->level));
	emit_thousandths(emit, "timestamp", line->realtime_ns / 1000);
	emit_object(emit, "text");
	emit_string(emit, "logger_name", domain);
	emit_number(emit, "serial_no", upload->serial);
	emit_text(emit, "message", line->message, length);
	emit_bool(emit, "truncated", line->message[length] != 0);
	emit_number(emit, "lineno", 0);
	emit_string(emit, "pathname", "");
	emit_string(emit, "funcname", "");
	emit_number(emit, "thread", (uint64_t)gettid());
	emit_string(emit, "timestamp", fraction);
	emit_string(emit, "exception", "");
	emit_object(emit, "extra");
	if (upload->cycle_id[0])
		emit_string(emit, "cycle_id", upload->cycle_id);
	else
		emit_null(emit, "cycle_id");
	emit_object_end(emit);
	emit_object_end(emit);
	emit_object_end(emit);
}

static struct error *print_line(const struct log_upload *upload, const struct log_line *line,
				char **ret)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return error_oom();
	struct emit emit = emit_to(stream, EMIT_ascii);
	emit_line(&emit, upload, line);
	if (fclose(stream))
		return error_oom();
	*ret = take(text);
	return NULL;
}

/* Drop the oldest lines, COUNT of them. */
static void drop_lines(struct log_upload *upload, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		upload->bytes -= strlen(upload->lines[i]);
		free(upload->lines[i]);
	}
	memmove(upload->lines, upload->lines + count,
		(upload->count - count) * sizeof(*upload->lines));
	upload->count -= count;
}

/* The sink. Whatever cannot be kept is counted: a log has nobody to complain to. */
static void take_line(void *data, const struct log_line *line)
{
	struct log_upload *upload = data;
	_cleanup_(unlock) pthread_mutex_t *held = hold(upload);
	_cleanup_free_ char *text = NULL;

	upload->serial++;
	struct error *err = print_line(upload, line, &text);
	if (!err)
		err = ARRAY_RESERVE(upload->lines, upload->room, upload->count, 1, LINES_MAX,
				    "lines of a log");
	if (err) {
		upload->lost++;
		error_free(err);
		return;
	}
	if (upload->bytes + strlen(text) > BUFFER_BYTES) {
		size_t dropped = (upload->count + 3) / 4;
		drop_lines(upload, dropped);
		upload->lost += dropped;
	}
	upload->bytes += strlen(text);
	upload->lines[upload->count++] = take(text);
	if (upload->bytes > BUFFER_URGENT)
		pthread_cond_broadcast(&upload->changed);
}

static void emit_batch_head(struct emit *emit, const struct log_upload *upload)
{
	char id[UUID_ROOM], hex[33] = "";

	make_uuid(id);
	snprintf(hex, sizeof(hex), "%.8s%.4s%.4s%.4s%.12s", id, id + 9, id + 14, id + 19, id + 24);
	emit_object(emit, NULL);
	emit_string(emit, "batch_id", hex);
	emit_object(emit, "metadata");
	emit_string(emit, "run_id", upload->run_id);
	emit_string(emit, "gprofiler_version", CAIRN_VERSION);
	emit_string(emit, "service_name", upload->settings.service);
	emit_string(emit, "hostname", upload->settings.host);
	emit_object_end(emit);
	emit_number(emit, "lost_logs_count", upload->lost);
	emit_array(emit, "logs");
}

/* All lines that there are, as JSON. Holds the mutex. */
static struct error *print_batch(const struct log_upload *upload, char **ret, size_t *ret_size)
{
	_cleanup_free_ char *text = NULL;
	FILE *stream = open_memstream(&text, ret_size);

	if (!stream)
		return error_oom();
	struct emit emit = emit_to(stream, EMIT_ascii);
	emit_batch_head(&emit, upload);
	for (size_t i = 0; i < upload->count; i++)
		fprintf(stream, "%s%s", i ? "," : "", upload->lines[i]);
	emit_array_end(&emit);
	emit_object_end(&emit);
	if (fclose(stream))
		return error_oom();
	*ret = take(text);
	return NULL;
}

static struct error *compress_body(const char *text, size_t size, struct batch *ret)
{
	z_stream zlib = {.next_in = (unsigned char *)text, .avail_in = (unsigned)size};

	if (deflateInit2(&zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return error_oom();
	size_t room = deflateBound(&zlib, size);
	_cleanup_free_ char *body = malloc(room);
	zlib.next_out = (unsigned char *)body;
	zlib.avail_out = (unsigned)room;
	int end = body ? deflate(&zlib, Z_FINISH) : Z_MEM_ERROR;
	deflateEnd(&zlib);
	if (end != Z_STREAM_END)
		return error_oom();
	ret->size = room - zlib.avail_out;
	ret->body = take(body);
	return NULL;
}

/* Make a batch of what has been kept, if anything has. */
static struct error *make_batch(struct log_upload *upload, struct batch *ret)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(upload);
	_cleanup_free_ char *text = NULL;
	size_t size = 0;

	if (!upload->count)
		return NULL;
	TRY(print_batch(upload, &text, &size));
	TRY(compress_body(text, size, ret));
	drop_lines(upload, upload->count);
	upload->lost = 0;
	return NULL;
}

static struct error *send_batch(struct log_upload *upload, const struct batch *batch)
{
	_cleanup_(http_answer_deinit) struct http_answer answer = HTTP_ANSWER_INIT;
	const char *const headers[] = {"Content-Type: application/json", "Content-Encoding: gzip",
				       "X-Application-Name: gprofiler", upload->token_header, NULL};
	const struct http_request request = {
		.url = upload->url,
		.headers = headers,
		.body = batch->body,
		.body_size = batch->size,
		.connect_ns = CONNECT_MS * (SECOND_NS / 1000),
		.total_ns = TOTAL_SECONDS * SECOND_NS,
	};

	TRY(http_perform(upload->client, &request, &answer));
	if (answer.status / 100 != 2)
		return error_new("%s answered %d", upload->url, answer.status);
	return NULL;
}

/* Wait until it is time to send, which LAST_NS was done. False: it is time to end, too. */
static bool wait_for_lines(struct log_upload *upload, uint64_t last_ns)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(upload);

	while (!upload->finishing) {
		uint64_t now_ns = clock_monotonic_ns(),
			 until_ns = now_ns + WAKE_SECONDS * SECOND_NS;
		bool due = now_ns >= last_ns + SEND_SECONDS * SECOND_NS;
		bool urgent = upload->bytes > BUFFER_URGENT &&
			      now_ns >= last_ns + WAKE_SECONDS * SECOND_NS;
		if (due || urgent)
			return true;
		struct timespec at = {.tv_sec = (time_t)(until_ns / SECOND_NS),
				      .tv_nsec = (long)(until_ns % SECOND_NS)};
		pthread_cond_timedwait(&upload->changed, held, &at);
	}
	return false;
}

/* Send BATCH, or a new one, and forget it if it has arrived. FAILURES: in a row. */
static void try_to_send(struct log_upload *upload, struct batch *batch, uint64_t *failures)
{
	struct error *err = batch->body ? NULL : make_batch(upload, batch);

	if (!err && batch->body)
		err = send_batch(upload, batch);
	if (!err) {
		free(take(batch->body));
		*failures = 0;
		return;
	}
	++*failures;
	// At the first, second, fourth ... failure: this line is one more to send.
	if ((*failures & (*failures - 1)) == 0)
		log_warning("%s; the log is sent later failures=%" PRIu64, error_text(err),
			    *failures);
	error_free(err); // tried again
}

static void *log_upload_run(void *data)
{
	struct log_upload *upload = data;
	uint64_t last_ns = clock_monotonic_ns(), failures = 0;
	struct batch batch = {0};

	while (wait_for_lines(upload, last_ns)) {
		last_ns = clock_monotonic_ns();
		try_to_send(upload, &batch, &failures);
	}
	bool again = batch.body != NULL;
	try_to_send(upload, &batch, &failures);
	if (again && !batch.body) // behind one that had waited there may be more
		try_to_send(upload, &batch, &failures);
	free(batch.body);

	_cleanup_(unlock) pthread_mutex_t *held = hold(upload);
	upload->ended = true;
	pthread_cond_broadcast(&upload->changed);
	return NULL;
}

/* Signals are for the thread that samples. */
static int start_thread(struct log_upload *upload)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	int code = pthread_create(&upload->thread, NULL, log_upload_run, upload);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}

struct error *log_upload_start(const struct log_upload_settings *settings, struct log_upload **ret)
{
	_cleanup_log_upload_ struct log_upload *upload = calloc(1, sizeof(*upload));
	_cleanup_free_ char *base = NULL;
	pthread_condattr_t attributes;

	if (!upload)
		return error_oom();
	upload->settings = *settings;
	pthread_mutex_init(&upload->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); // the other one jumps
	pthread_cond_init(&upload->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	make_uuid(upload->run_id);
	TRY(http_base_parse(settings->server, &base));
	TRY(str_format(&upload->url, "%s/api/v1/logs", base));
	TRY(str_format(&upload->token_header, "X-Token: %s", settings->token));
	TRY(http_client_new(settings->verify, &upload->abort, &upload->client));
	upload->sink = (struct log_sink){.write = take_line, .data = upload};
	upload->has_sink = log_add_sink(&upload->sink);
	if (!upload->has_sink)
		return error_new("the log has too many readers");
	errno = start_thread(upload);
	if (errno)
		return error_errno("start the thread that sends the log");
	upload->running = true;
	*ret = take(upload);
	return NULL;
}

/* Let the thread send what is left, for a bounded time. */
static void let_end(struct log_upload *upload)
{
	uint64_t until_ns = clock_monotonic_ns() + FAREWELL_SECONDS * SECOND_NS;
	struct timespec at = {.tv_sec = (time_t)(until_ns / SECOND_NS),
			      .tv_nsec = (long)(until_ns % SECOND_NS)};
	_cleanup_(unlock) pthread_mutex_t *held = hold(upload);

	upload->finishing = true;
	pthread_cond_broadcast(&upload->changed);
	while (!upload->ended && !pthread_cond_timedwait(&upload->changed, held, &at))
		continue;
}

void log_upload_free(struct log_upload *upload)
{
	if (!upload)
		return;
	if (upload->running) {
		let_end(upload);
		atomic_store(&upload->abort, true);
		pthread_join(upload->thread, NULL);
	}
	if (upload->has_sink)
		log_remove_sink(&upload->sink);
	drop_lines(upload, upload->count);
	free(upload->lines);
	http_client_free(upload->client);
	if (upload->token_header)
		explicit_bzero(upload->token_header, strlen(upload->token_header));
	free(upload->token_header);
	free(upload->url);
	pthread_cond_destroy(&upload->changed);
	pthread_mutex_destroy(&upload->mutex);
	free(upload);
}

void log_upload_begin_session(struct log_upload *upload, bool only)
{
	_cleanup_(unlock) pthread_mutex_t *held = hold(upload);

	if (only)
		memcpy(upload->cycle_id, upload->run_id, sizeof(upload->cycle_id));
	else
		make_uuid(upload->cycle_id);
}
