/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the command of a command line and runs it. The one place where failures are printed. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/help.h"
#include "cli/options.h"

/* "cairn: doctor: sentence". Names from strangers can be in it, so it stays one line of text. */
static void print_failure(const char *command, const struct error *err)
{
	fprintf(stderr, "cairn: %s%s", command ? command : "", command ? ": " : "");
	for (const char *at = error_text(err); *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			fprintf(stderr, "\\x%02x", (unsigned char)*at);
		else
			fputc(*at, stderr);
	fputc('\n', stderr);
}

static int usage_failure(const struct command *command, struct error *err)
{
	const char *name = command ? command->name : NULL;

	print_failure(name, err);
	fprintf(stderr, "Try: cairn help%s%s\n", name ? " " : "", name ? name : "");
	error_free(err);
	return STATUS_usage;
}

/* What is still in stdio's buffer fails at the last moment, for example on a full disk. */
static struct error *flush_output(void)
{
	if (fflush(stdout) || ferror(stdout))
		return error_errno("write standard output");
	return NULL;
}

static int finish(const struct command *command, struct error *err, int status)
{
	if (!err)
		err = flush_output();
	if (!err)
		return status;
	print_failure(command->name, err);
	error_free(err);
	return STATUS_failed;
}

static int run_parsed(const struct command *command, int argc, char **argv, void *args)
{
	int status = STATUS_ok;
	bool help = false;
	struct error *err = options_parse(command, argc, argv, args, &help);

	if (err)
		return usage_failure(command, err);
	err = help ? help_print(stdout, command) : command->run(args, &status);
	return finish(command, err, status);
}

static int run_command(const struct command *command, int argc, char **argv)
{
	_cleanup_free_ void *args = calloc(1, command->args_size ? command->args_size : 1);

	if (!args)
		return finish(command, error_oom(), STATUS_failed);
	int status = run_parsed(command, argc, argv, args);
	options_deinit(command, args);
	return status;
}

static int unknown_command(const char *name)
{
	const struct command *near = command_nearest(name);

	if (near)
		return usage_failure(
			NULL, error_new("%s: no such command; did you mean %s?", name, near->name));
	return usage_failure(NULL, error_new("%s: no such command", name));
}

int cli_run(int argc, char **argv)
{
	const char *first = argc > 1 ? argv[1] : "help";
	const struct command *agent = command_find("agent");

	if (!strcmp(first, "--version")) {
		printf("cairn %s\n", CAIRN_VERSION);
		return finish(&command_help, NULL, STATUS_ok);
	}
	if (argc < 2 || !strcmp(first, "--help") || !strcmp(first, "-h"))
		return run_command(&command_help, 0, NULL);
	// Options without a verb are the command line of gProfiler's users.
	if (first[0] == '-' && first[1] && agent)
		return run_command(agent, argc - 1, argv + 1);
	if (first[0] == '-')
		return usage_failure(
			NULL, error_new("%s: an option of which command? It comes first", first));

	// gProfiler has it as a word behind the agent's.
	if (argc > 2 && !strcmp(first, "agent") && !strcmp(argv[2], "upload-file"))
		return run_command(&command_upload_file, argc - 3, argv + 3);
	const struct command *command = command_find(first);
	return command ? run_command(command, argc - 2, argv + 2) : unknown_command(first);
}
