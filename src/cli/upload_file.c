/* SPDX-License-Identifier: Apache-2.0 */
/* The upload-file command: one profile from a file to the server. */
#define LOG_DOMAIN "upload"

#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/profile-file.h"
#include "agent/upload.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/sending.h"
#include "cli/token.h"

enum { TRIES = 4 };

struct upload_file_args {
	struct logging_args logging;
	const char *path, *server, *api_server, *token, *token_file, *service;
	uint64_t timeout_ns;
	bool verify, curlify;
};

static struct error *make_parcel(const struct upload_file_args *args, const char *host,
				 struct parcel *ret)
{
	_cleanup_(profile_file_deinit) struct profile_file file = PROFILE_FILE_INIT;

	TRY(profile_file_read(args->path, &file));
	const struct parcel_facts facts = {
		.service = args->service,
		.host = host,
		.start_ns = file.start_ns,
		.end_ns = file.end_ns,
		.spawn_ns = clock_realtime_ns(),
		.cpu_thousandths = file.cpu_thousandths,
		.memory_thousandths = file.memory_thousandths,
	};
	return parcel_make(&facts, file.col, file.size, ret);
}

/* Somebody waits for it, so a server that is away is not waited for for long. */
static struct error *send_parcel(struct upload *upload, const struct parcel *parcel)
{
	for (unsigned i = 0;; i++) {
		struct upload_result result = upload_send(upload, parcel);
		if (result.end == UPLOAD_sent || result.end == UPLOAD_refused || i + 1 == TRIES)
			return result.why;
		log_info("%s; once more in %u s", error_text(result.why), 1u << i);
		error_free(result.why); // the next one counts
		nanosleep(&(struct timespec){.tv_sec = 1 << i}, NULL);
	}
}

static struct error *upload_file_run(const void *data, int *ret_status)
{
	const struct upload_file_args *args = data;
	_cleanup_(parcel_deinit) struct parcel parcel = PARCEL_INIT;
	_cleanup_upload_ struct upload *upload = NULL;
	_cleanup_token_ char *token = NULL;
	char host[HOST_NAME_MAX + 1] = "";
	bool refused;

	logging_apply(&args->logging);
	TRY(token_read(args->token, args->token_file, &token));
	if (gethostname(host, sizeof(host) - 1) < 0)
		return error_errno("name of this machine");
	TRY(make_parcel(args, host, &parcel));
	const struct upload_settings settings = {
		.server = args->server,
		.service = args->service,
		.token = token,
		.host = host,
		.verify = args->verify,
		.show_curl = args->curlify,
		.timeout_ns = args->timeout_ns,
	};
	TRY(upload_new(&settings, NULL, &upload));
	TRY(upload_check_health(upload, &refused));
	TRY(send_parcel(upload, &parcel));
	log_info("sent file=%s service=%s", args->path, args->service);
	return NULL;
}

static struct error *upload_file_check(void *data)
{
	const struct upload_file_args *args = data;

	if (!args->path)
		return error_new("say which file: --file-path FILE");
	if (!args->token && !args->token_file)
		return error_new("needs --token or --token-file");
	if (args->token && args->token_file)
		return error_new("--token and --token-file exclude each other");
	return args->service ? NULL : error_new("needs --service-name");
}

static const struct option_row upload_file_options[] = {
	{.name = "file-path",
	 .kind = OPTION_FILE,
	 .at = offsetof(struct upload_file_args, path),
	 .help = "the profile: a .col file, or folded stacks"},
	{.name = "server-host",
	 .kind = OPTION_TEXT,
	 .at = offsetof(struct upload_file_args, server),
	 .value = "URL",
	 .fallback_text = SENDING_SERVER,
	 .help = "where it is sent"},
	{.name = "token",
	 .kind = OPTION_TEXT,
	 .at = offsetof(struct upload_file_args, token),
	 .help = "the key that the server knows you by"},
	{.name = "token-file",
	 .kind = OPTION_FILE,
	 .whole = true,
	 .at = offsetof(struct upload_file_args, token_file),
	 .help = "a file with the token, instead of --token"},
	{.name = "service-name",
	 .kind = OPTION_TEXT,
	 .at = offsetof(struct upload_file_args, service),
	 .value = "NAME",
	 .help = "what the profile is filed under"},
	{.name = "server-upload-timeout",
	 .kind = OPTION_SECONDS,
	 .at = offsetof(struct upload_file_args, timeout_ns),
	 .fallback_text = "120",
	 .min = 1000000000,
	 .help = "how long it may take"},
	{.name = "no-verify",
	 .kind = OPTION_FLAG_OFF,
	 .at = offsetof(struct upload_file_args, verify),
	 .help = "do not check the server's certificate"},
	{.name = "curlify-requests",
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct upload_file_args, curlify),
	 .help = "log each request as a line of curl, with --debug upload"},
	{.name = "api-server",
	 .alias = "glogger-server",
	 .kind = OPTION_TEXT,
	 .at = offsetof(struct upload_file_args, api_server),
	 .value = "URL",
	 .help = "accepted for gProfiler's users; this command sends no logs"},
	{.kind = OPTION_GROUP,
	 .at = offsetof(struct upload_file_args, logging),
	 .group = options_logging},
	{0},
};

static const struct command_example upload_file_examples[] = {
	{"cairn upload-file --file-path last_profile.col --service-name shop --token-file key",
	 "send a profile to the studio on this machine"},
	{0},
};

const struct command command_upload_file = {
	.name = "upload-file",
	.help = "send a profile from a file to a server",
	.text = "A .col file is sent with its header as it is, so a profile that was made on "
		"another machine stays that machine's. Folded stacks, \"main;run 10\" in a line, "
		"get a header of this machine. A server that does not answer is asked again for "
		"a few seconds; if the profile has not arrived then, the exit status is 1.",
	.options = upload_file_options,
	.examples = upload_file_examples,
	.variables = "GPROFILER_",
	.abbreviations = true,
	.args_size = sizeof(struct upload_file_args),
	.check = upload_file_check,
	.run = upload_file_run,
};
