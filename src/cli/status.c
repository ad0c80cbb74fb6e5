/* SPDX-License-Identifier: Apache-2.0 */
/* The status command: asks a running agent what it does. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/status.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/options.h"
#include "formats/emit.h"

struct status_args {
	struct logging_args logging;
	const char *socket;
	bool json;
};

static void print_text(const char *name, const char *value)
{
	printf("%-22s ", name);
	for (; *value; value++)
		if ((unsigned char)*value < 0x20 || *value == 0x7f)
			printf("\\x%02x", (unsigned char)*value);
		else
			putchar(*value);
	putchar('\n');
}

/* Print the agent's ANSWER, lines of "name value", which is taken apart. */
static void print_answer(char *answer, bool json)
{
	struct emit emit = emit_to(stdout, EMIT_utf8);
	uint64_t number;

	if (json)
		emit_object(&emit, NULL);
	for (char *line; (line = strsep(&answer, "\n"));) {
		char *value = strchr(line, ' ');
		if (!value)
			continue;
		*value++ = 0;
		if (!json)
			print_text(line, value);
		else if (str_parse_u64(value, 0, UINT64_MAX, &number))
			emit_number(&emit, line, number);
		else
			emit_string(&emit, line, value);
	}
	if (!json)
		return;
	emit_object_end(&emit);
	putchar('\n');
}

/* The agent at the user's own place, else the machine's. */
static struct error *ask_default(char **ret)
{
	_cleanup_free_ char *own = NULL, *machines = NULL;

	TRY(status_path(!geteuid(), &own));
	if (own && geteuid()) {
		struct error *err = status_ask(own, ret);
		if (!err)
			return NULL;
		error_free(err); // then the machine's
	}
	TRY(status_path(true, &machines));
	return status_ask(machines, ret);
}

static struct error *status_run(const void *data, int *ret_status)
{
	const struct status_args *args = data;
	_cleanup_free_ char *answer = NULL;

	logging_apply(&args->logging);
	TRY(args->socket ? status_ask(args->socket, &answer) : ask_default(&answer));
	print_answer(answer, args->json);
	return NULL;
}

static const struct option_row status_options[] = {
	{.name = "json",
	 .letter = 'j',
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct status_args, json),
	 .help = "print an object of JSON"},
	{.name = "socket",
	 .kind = OPTION_FILE,
	 .at = offsetof(struct status_args, socket),
	 .help = "where the agent listens, if it was given --status-socket"},
	{.kind = OPTION_GROUP,
	 .group = options_logging,
	 .at = offsetof(struct status_args, logging)},
	{0},
};

static const struct command_example status_examples[] = {
	{"cairn status", "what the agent on this machine does"},
	{"cairn status -j", "the same for programs"},
	{0},
};

const struct command command_status = {
	.name = "status",
	.help = "say what the agent on this machine does",
	.text = "Asks the running agent: since when it runs, how it samples, how many sessions it "
		"has "
		"written, the last of them, and what has been sent or waits to be sent. Any user "
		"may "
		"ask; no secret is in the answer. An agent answers within a second, or when it has "
		"written the session that it is putting together.\n"
		"\n"
		"Without an agent the exit status is 1.",
	.options = status_options,
	.examples = status_examples,
	.args_size = sizeof(struct status_args),
	.run = status_run,
};
