/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of gProfiler's agent and what their answers mean. When to send is sender.c. */
#define LOG_DOMAIN "upload"
#include "agent/upload.h"

#include <jansson.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "http/client.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
	HEALTH_SECONDS = 5,
	CONNECT_SECONDS = 30,
	MESSAGE_MAX = 300, /* characters of a server's message that are shown */
	GPID_MAX = 128,    /* bytes of JSON */
};

struct upload {
	struct upload_settings settings; /* its texts are borrowed */
	struct http_client *client;
	char *base, *token_header;
	char *gpid; /* JSON: what the server answered last; NULL: nothing yet */
};

static struct error *check_header_text(const char *what, const char *text)
{
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return error_new("the %s holds control characters", what);
	return NULL;
}

struct error *upload_new(const struct upload_settings *settings, const atomic_bool *stop,
			 struct upload **ret)
{
	_cleanup_upload_ struct upload *upload = calloc(1, sizeof(*upload));

	if (!upload)
		return error_oom();
	TRY(check_header_text("token", settings->token));
	TRY(check_header_text("name of the service", settings->service));
	if (strlen(settings->service) > PARCEL_SERVICE_MAX)
		return error_new("the name of the service is longer than %d bytes",
				 PARCEL_SERVICE_MAX);
	upload->settings = *settings;
	TRY(http_base_parse(settings->server, &upload->base));
	TRY(str_format(&upload->token_header, "GPROFILER-API-KEY: %s", settings->token));
	TRY(http_client_new(settings->verify, stop, &upload->client));
	*ret = take(upload);
	return NULL;
}

void upload_free(struct upload *upload)
{
	if (!upload)
		return;
	http_client_free(upload->client);
	if (upload->token_header)
		explicit_bzero(upload->token_header, strlen(upload->token_header));
	free(upload->token_header);
	free(upload->base);
	free(upload->gpid);
	free(upload);
}

/* "BASE/PATH?service=...&hostname=...&timestamp=..." */
static struct error *make_url(const struct upload *upload, const char *path, const char *service,
			      const char *more, char **ret)
{
	_cleanup_free_ char *service_part = NULL, *host_part = NULL, *time_part = NULL;
	char time[20];

	clock_format_utc(clock_realtime_ns(), time);
	TRY(http_escape(service, &service_part));
	TRY(http_escape(upload->settings.host, &host_part));
	TRY(http_escape(time, &time_part));
	return str_format(ret, "%s/api/%s?service=%s&hostname=%s&timestamp=%s%s", upload->base,
			  path, service_part, host_part, time_part, more);
}

/* For those who want to do by hand what cairn does. The token stays out of it. */
static void show_curl(const struct upload *upload, const char *url, const char *const *headers)
{
	_cleanup_(strbuf_deinit) struct strbuf line = STRBUF_INIT;
	struct error *err = strbuf_addf(&line, "curl%s", upload->settings.verify ? "" : " -k");

	if (!upload->settings.show_curl)
		return error_free(err);
	for (size_t i = 0; headers[i] && !err; i++)
		err = headers[i] == upload->token_header
			      ? strbuf_addf(&line, " -H \"GPROFILER-API-KEY: $TOKEN\"")
			      : strbuf_addf(&line, " -H '%s'", headers[i]);
	if (!err)
		log_debug("%s '%s'", line.text, url);
	error_free(err); // a line of the log less
}

/* The text of member KEY of what a server answered, cut to what fits into a line. */
static struct error *message_of(const struct http_answer *answer, char **ret)
{
	static const char *const keys[] = {"message", "detail", "error"};
	json_t *json = json_loadb(answer->body, answer->size, 0, NULL);
	const char *text = NULL;

	for (size_t i = 0; i < ARRAY_COUNT(keys) && !text; i++)
		text = json_string_value(json_object_get(json, keys[i]));
	struct error *err = str_format(ret, "%.*s", MESSAGE_MAX, text ? text : "no message");
	json_decref(json);
	return err;
}

/* "POST URL: answered 400: Invalid API key" */
static struct error *answer_error(const char *what, const struct http_answer *answer)
{
	_cleanup_free_ char *message = NULL;

	TRY(message_of(answer, &message));
	return error_new("%s answered %d: %s", what, answer->status, message);
}

struct error *upload_check_health(struct upload *upload, bool *ret_refused)
{
	_cleanup_(http_answer_deinit) struct http_answer answer = HTTP_ANSWER_INIT;
	_cleanup_free_ char *url = NULL, *service = NULL;

	*ret_refused = false;
	TRY(make_url(upload, "v1/health_check", upload->settings.service, "", &url));
	TRY(str_format(&service, "GPROFILER-SERVICE-NAME: %s", upload->settings.service));
	const char *const headers[] = {upload->token_header, service, NULL};
	struct http_request request = {
		.url = url,
		.headers = headers,
		.connect_ns = HEALTH_SECONDS * SECOND_NS,
		.total_ns = HEALTH_SECONDS * SECOND_NS,
	};
	show_curl(upload, url, headers);
	TRY(http_perform(upload->client, &request, &answer));
	if (answer.status / 100 == 2)
		return NULL;
	*ret_refused = answer.status / 100 == 4 && answer.status != 408 && answer.status != 429;
	return answer_error(upload->base, &answer);
}

/* Keep the gpid of an answer for the next upload; false: it is no answer of a studio. */
static bool take_gpid(struct upload *upload, const struct http_answer *answer)
{
	json_t *json = json_loadb(answer->body, answer->size, 0, NULL);
	json_t *gpid = json_object_get(json, "gpid");
	bool is_object = json_is_object(json);
	char *text = NULL;

	if (json_is_integer(gpid) || json_is_string(gpid))
		text = json_dumps(gpid, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	if (text && strlen(text) > GPID_MAX)
		free(take(text));
	free(upload->gpid);
	upload->gpid = text;
	json_decref(json);
	return is_object;
}

/*
 * What a status other than 2xx says about the session. The studio answers 400 also to a wrong token
 * and when its database fails while it reads the metadata (profiles_routes.py, new_profile_v2), so
 * 400 is not yet a verdict. Statuses of gateways and of rights say nothing about the session.
 */
static enum upload_end end_of(int status)
{
	switch (status) {
	case 413: // Content Too Large
	case 422: // Unprocessable Content
		return UPLOAD_refused;
	case 400:
	case 411: // Length Required
	case 415: // Unsupported Media Type
	case 500:
		return UPLOAD_doubtful;
	default:
		return UPLOAD_later;
	}
}

static bool is_about_token(const struct error *err)
{
	return strcasestr(error_text(err), "api key") || strcasestr(error_text(err), "token");
}

static struct upload_result read_answer(struct upload *upload, const struct http_answer *answer)
{
	struct upload_result result = {.retry_after_s = answer->retry_after_s};

	if (answer->status / 100 == 2 && take_gpid(upload, answer))
		return result;
	if (answer->status / 100 == 2) {
		// A sign-in page of a network, or a proxy that speaks for a server that is gone.
		result.why = error_new("%s answered %d, but not as a studio does", upload->base,
				       answer->status);
		result.end = UPLOAD_later;
		return result;
	}
	result.why = answer_error(upload->base, answer);
	result.end = end_of(answer->status);
	if (result.end == UPLOAD_doubtful && is_about_token(result.why))
		result.end = UPLOAD_later;
	return result;
}

static struct error *post(struct upload *upload, const struct parcel *parcel,
			  struct http_answer *ret)
{
	_cleanup_free_ char *url = NULL, *service = NULL, *key = NULL, *body = NULL;
	size_t size;

	TRY(make_url(upload, upload->settings.v1 ? "v1/profiles" : "v2/profiles", parcel->service,
		     "&version=" CAIRN_VERSION, &url));
	TRY(str_format(&service, "GPROFILER-SERVICE-NAME: %s", parcel->service));
	TRY(str_format(&key, "Idempotency-Key: %s", parcel->id));
	TRY(parcel_body(parcel, upload->gpid ? upload->gpid : "\"\"", &body, &size));
	const char *const headers[] = {"Content-Type: application/json",
				       "Content-Encoding: gzip",
				       upload->token_header,
				       service,
				       key,
				       NULL};
	struct http_request request = {
		.url = url,
		.headers = headers,
		.body = body,
		.body_size = size,
		.connect_ns = CONNECT_SECONDS * SECOND_NS,
		.total_ns = upload->settings.timeout_ns,
	};
	show_curl(upload, url, headers);
	return http_perform(upload->client, &request, ret);
}

struct upload_result upload_send(struct upload *upload, const struct parcel *parcel)
{
	_cleanup_(http_answer_deinit) struct http_answer answer = HTTP_ANSWER_INIT;
	struct upload_result result = {.end = UPLOAD_later};

	result.why = post(upload, parcel, &answer);
	if (!result.why)
		result = read_answer(upload, &answer);
	// gProfiler's agent forgets it with any failure, and then registers anew.
	if (result.end != UPLOAD_sent)
		free(take(upload->gpid));
	return result;
}
