/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl behind http_perform(). What requests say, and what answers mean, is the callers'. */
#define LOG_DOMAIN "http"
#include "http/client.h"

#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/log.h"
#include "base/str.h"

struct http_client {
	CURL *curl;
	bool verify;
	const atomic_bool *stop; /* borrowed; may be NULL */
	char problem[CURL_ERROR_SIZE];
};

/* The two halves of a URL that say who is asked. */
struct origin {
	char *scheme, *host; /* libcurl's: curl_free() */
};

static void origin_deinit(struct origin *origin)
{
	curl_free(origin->scheme);
	curl_free(origin->host);
}

static void cleanup_curlu(CURLU **url)
{
	curl_url_cleanup(*url);
}

static void cleanup_slist(struct curl_slist **list)
{
	curl_slist_free_all(*list);
}

struct error *http_client_new(bool verify, const atomic_bool *stop, struct http_client **ret)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return error_new("libcurl does not start");
	_cleanup_http_client_ struct http_client *client = calloc(1, sizeof(*client));
	if (!client) {
		curl_global_cleanup();
		return error_oom();
	}
	client->verify = verify;
	client->stop = stop;
	client->curl = curl_easy_init();
	if (!client->curl)
		return error_oom();
	*ret = take(client);
	return NULL;
}

void http_client_free(struct http_client *client)
{
	if (!client)
		return;
	curl_easy_cleanup(client->curl);
	curl_global_cleanup(); // counted by libcurl
	free(client);
}

void http_answer_deinit(struct http_answer *answer)
{
	free(answer->body);
	*answer = (struct http_answer)HTTP_ANSWER_INIT;
}

/* libcurl's write callback. Taking less than it offers ends the transfer. */
static size_t take_body(char *data, size_t size, size_t count, void *to)
{
	struct strbuf *body = to;
	size_t length = size * count;

	if (length > HTTP_ANSWER_MAX - body->length)
		return 0;
	struct error *err = strbuf_add(body, data, length);
	size_t taken = err ? 0 : length;
	error_free(err); // CURLE_WRITE_ERROR says it
	return taken;
}

static int see_progress(void *from, curl_off_t total_down, curl_off_t down, curl_off_t total_up,
			curl_off_t up)
{
	const struct http_client *client = from;

	return client->stop && atomic_load(client->stop);
}

/* Where certificates are, for those who have said it in the variables of other tools. */
static const char *certificates(void)
{
	static const char *const names[] = {"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
					    "SSL_CERT_FILE"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *path = getenv(names[i]);
		if (path && *path)
			return path;
	}
	return NULL;
}

static struct error *make_headers(const struct http_request *request, struct curl_slist **ret)
{
	// Without the second round trip that "Expect: 100-continue" asks for; many servers and
	// proxies answer it late or never.
	_cleanup_(cleanup_slist) struct curl_slist *list = curl_slist_append(NULL, "Expect:");

	for (size_t i = 0; list && request->headers && request->headers[i]; i++) {
		struct curl_slist *longer = curl_slist_append(list, request->headers[i]);
		if (!longer)
			return error_oom();
		list = longer;
	}
	if (!list)
		return error_oom();
	*ret = take(list);
	return NULL;
}

static void set_options(struct http_client *client, const struct http_request *request)
{
	CURL *curl = client->curl;

	curl_easy_reset(curl); // keeps connections
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->problem);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "cairn/" CAIRN_VERSION);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)(request->connect_ns / 1000000));
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(request->total_ns / 1000000));
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, see_progress);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, client);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, client->verify ? 1L : 0L);
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, client->verify ? 2L : 0L);
	if (certificates())
		curl_easy_setopt(curl, CURLOPT_CAINFO, certificates());
	if (!request->body)
		return;
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_size);
}

/* Is a proxy in use that may be what fails? Its variable; its value may hold a password. */
static const char *proxy_variable(void)
{
	static const char *const names[] = {"https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy",
					    "ALL_PROXY"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);
		if (value && *value)
			return names[i];
	}
	return NULL;
}

static struct error *transfer_error(const struct http_client *client, CURLcode code,
				    const char *url)
{
	const char *why = client->problem[0] ? client->problem : curl_easy_strerror(code);
	const char *proxy = proxy_variable();
	int length = (int)strcspn(url, "?");

	if (code == CURLE_ABORTED_BY_CALLBACK)
		return error_new("%.*s: stopped", length, url);
	if (code == CURLE_WRITE_ERROR)
		return error_new("%.*s: the answer is larger than %d bytes", length, url,
				 HTTP_ANSWER_MAX);
	if (proxy)
		return error_new("%.*s: %s (the variable %s names a proxy)", length, url, why,
				 proxy);
	return error_new("%.*s: %s", length, url, why);
}

/*
 * libcurl sends by sendmsg() with MSG_NOSIGNAL, but OpenSSL by write(): a server that closes would
 * end the process by SIGPIPE. It is blocked meanwhile, and one that came is taken away.
 */
static CURLcode perform_quietly(CURL *curl)
{
	static const struct timespec at_once = {0};
	sigset_t pipe, before, pending;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	CURLcode code = curl_easy_perform(curl);
	if (!sigismember(&pending, SIGPIPE))
		(void)sigtimedwait(&pipe, NULL, &at_once); // none is the usual case
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}

/* One request without following redirects. */
static struct error *perform_once(struct http_client *client, const struct http_request *request,
				  const char *url, struct http_answer *ret)
{
	_cleanup_(cleanup_slist) struct curl_slist *headers = NULL;
	_cleanup_(strbuf_deinit) struct strbuf body = STRBUF_INIT;
	curl_off_t retry_after = 0;
	long status = 0;

	TRY(make_headers(request, &headers));
	TRY(strbuf_add(&body, "", 0));
	set_options(client, request);
	curl_easy_setopt(client->curl, CURLOPT_URL, url);
	curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, &body);
	client->problem[0] = 0;
	CURLcode code = perform_quietly(client->curl);
	if (code)
		return transfer_error(client, code, url);
	curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(client->curl, CURLINFO_RETRY_AFTER, &retry_after);
	log_debug("%s %.*s status=%ld size=%zu", request->body ? "POST" : "GET",
		  (int)strcspn(url, "?"), url, status, body.length);
	ret->status = (int)status;
	ret->size = body.length;
	ret->body = take(body.text);
	ret->retry_after_s = retry_after > 0 ? (uint64_t)retry_after : 0;
	return NULL;
}

static struct error *origin_parse(const char *text, struct origin *ret)
{
	_cleanup_(cleanup_curlu) CURLU *url = curl_url();
	_cleanup_(origin_deinit) struct origin origin = {0};

	if (!url)
		return error_oom();
	if (curl_url_set(url, CURLUPART_URL, text, 0) ||
	    curl_url_get(url, CURLUPART_SCHEME, &origin.scheme, 0) ||
	    curl_url_get(url, CURLUPART_HOST, &origin.host, 0))
		return error_new("%s: no address of a server; one is like https://host:8080", text);
	*ret = take_struct(origin);
	return NULL;
}

/* A redirect from FROM to TO: may it be followed? */
static struct error *check_redirect(const char *from, const char *to)
{
	_cleanup_(origin_deinit) struct origin here = {0}, there = {0};

	TRY(origin_parse(from, &here));
	TRY(origin_parse(to, &there));
	if (strcasecmp(here.host, there.host))
		return error_new("%s redirects to another host, %s, which gets no token; if it is "
				 "right, name it as the server",
				 here.host, there.host);
	if (!strcmp(here.scheme, "https") && strcmp(there.scheme, "https"))
		return error_new("%s redirects from https to %s", here.host, there.scheme);
	return NULL;
}

static bool is_redirect(int status)
{
	return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

struct error *http_perform(struct http_client *client, const struct http_request *request,
			   struct http_answer *ret)
{
	_cleanup_free_ char *url = NULL;

	TRY(str_copy(&url, request->url));
	for (int i = 0; i <= HTTP_REDIRECTS_MAX; i++) {
		_cleanup_(http_answer_deinit) struct http_answer answer = HTTP_ANSWER_INIT;
		char *next = NULL;
		TRY(perform_once(client, request, url, &answer));
		curl_easy_getinfo(client->curl, CURLINFO_REDIRECT_URL, &next);
		if (!is_redirect(answer.status) || !next) {
			*ret = take_struct(answer);
			return NULL;
		}
		TRY(check_redirect(url, next));
		free(take(url));
		TRY(str_copy(&url, next));
	}
	return error_new("%.*s: redirects more than %d times", (int)strcspn(request->url, "?"),
			 request->url, HTTP_REDIRECTS_MAX);
}

static bool has_part(CURLU *url, CURLUPart part)
{
	char *text = NULL;
	bool has = !curl_url_get(url, part, &text, 0);

	curl_free(text);
	return has;
}

struct error *http_base_parse(const char *text, char **ret)
{
	_cleanup_(cleanup_curlu) CURLU *url = curl_url();
	_cleanup_free_ char *copy = NULL;

	if (!url)
		return error_oom();
	if ((!str_starts(text, "http://") && !str_starts(text, "https://")) ||
	    curl_url_set(url, CURLUPART_URL, text, 0))
		return error_new("%s: no address of a server; one is like https://host:8080", text);
	if (has_part(url, CURLUPART_USER) || has_part(url, CURLUPART_QUERY) ||
	    has_part(url, CURLUPART_FRAGMENT))
		return error_new("the address of a server has no user, query or fragment");
	TRY(str_copy(&copy, text));
	for (size_t length = strlen(copy); length && copy[length - 1] == '/'; length--)
		copy[length - 1] = 0;
	*ret = take(copy);
	return NULL;
}

bool http_is_open(const char *url)
{
	_cleanup_(origin_deinit) struct origin origin = {0};
	struct error *err = origin_parse(url, &origin);
	bool parsed = !err;

	error_free(err); // whoever asks it will say so
	return parsed && !strcmp(origin.scheme, "http") && strcmp(origin.host, "localhost") != 0 &&
	       strcmp(origin.host, "[::1]") != 0 && !str_starts(origin.host, "127.");
}

struct error *http_escape(const char *text, char **ret)
{
	char *escaped = curl_easy_escape(NULL, text, 0);

	if (!escaped)
		return error_oom();
	struct error *err = str_copy(ret, escaped);
	curl_free(escaped);
	return err;
}
