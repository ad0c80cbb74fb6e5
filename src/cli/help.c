/* SPDX-License-Identifier: Apache-2.0 */
/* The help command and its text for terminals. Man pages are manual.c, shells completion.c. */
#include "cli/help.h"

#include <string.h>

#include "base/str.h"
#include "cli/agent-options.h"
#include "cli/options.h"

enum {
	HELP_INDENT = 2,
	HELP_LEFT_MAX = 32, /* a longer left side stands on a line of its own */
};

struct help_args {
	struct text_list commands;
	bool manual;
	const char *shell;
};

const char *help_headline(void)
{
	return "a profiler for whole Linux machines";
}

static const struct command_exit shared_exits[] = {
	{STATUS_ok, "done"},
	{STATUS_failed, "could not be done; one line on standard error says why"},
	{STATUS_usage, "asked wrongly; nothing has been done"},
	{0},
};

const char *help_exit(const struct command *command, int status)
{
	const struct command_exit *own = command ? command->exits : NULL;

	for (; own && own->help; own++)
		if (own->status == status)
			return own->help;
	for (const struct command_exit *row = shared_exits; row->help; row++)
		if (row->status == status)
			return row->help;
	return NULL;
}

const char *help_environment(const struct command *command, char ret[static 512])
{
	const char *other = command ? command->variables : NULL;

	snprintf(ret, 512,
		 "Every option can be given in the environment too, under its long name in "
		 "capitals: --some-name 5 as CAIRN_SOME_NAME=5%s%s%s, a flag as "
		 "CAIRN_SOME_NAME=yes. The command line wins.%s%s%s",
		 other ? " or " : "", other ? other : "", other ? "SOME_NAME=5" : "",
		 command && command->config ? " Then comes the file that --config names, then "
					    : "",
		 command && command->config ? command->config : "",
		 command && command->config ? ": some-name = 5 in a line, a flag alone." : "");
	return ret;
}

/* Columns that LENGTH bytes of UTF-8 take: every byte that begins a character. */
static size_t columns(const char *text, size_t length)
{
	size_t count = 0;

	for (size_t i = 0; i < length; i++)
		count += ((unsigned char)text[i] & 0xc0) != 0x80;
	return count;
}

/* Print TEXT from column AT on, wrapped at the width, further lines indented by INDENT. */
static void print_wrapped(FILE *out, size_t at, size_t indent, const char *text)
{
	size_t column = at;

	while (*text) {
		size_t length = strcspn(text, " \n");
		size_t width = columns(text, length);
		if (column > indent && column + 1 + width > HELP_WIDTH) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			fputc(' ', out);
			column++;
		}
		fprintf(out, "%.*s", (int)length, text);
		column += width;
		text += length;
		if (str_starts(text, "\n\n")) {
			fprintf(out, "\n\n%*s", (int)indent, "");
			column = indent;
		}
		text += strspn(text, " \n");
	}
	fputc('\n', out);
}

void help_print_row(FILE *out, size_t column, const char *left, const char *text)
{
	size_t width = HELP_INDENT + columns(left, strlen(left));

	fprintf(out, "%*s%s", HELP_INDENT, "", left);
	if (width + 2 > column)
		fprintf(out, "\n%*s", (int)column, "");
	else
		fprintf(out, "%*s", (int)(column - width), "");
	print_wrapped(out, column, column, text);
}

static struct error *option_left(const struct option_row *row, char **ret)
{
	char letter[8] = "    ";

	if (row->letter)
		snprintf(letter, sizeof(letter), "-%c, ", row->letter);
	return str_format(ret, "%s--%s%s%s", letter, row->name, option_has_value(row) ? " " : "",
			  option_has_value(row) ? option_value_name(row) : "");
}

/* Where the second column of the options begins. */
static struct error *option_column(const struct command *command, size_t *ret)
{
	size_t widest = strlen("-h, --help");

	for (struct option_iterator it = options_begin(command->options); options_next(&it);) {
		_cleanup_free_ char *left = NULL;
		TRY(option_left(it.row, &left));
		size_t width = columns(left, strlen(left));
		if (width > widest && width <= HELP_LEFT_MAX)
			widest = width;
	}
	*ret = HELP_INDENT + widest + 2;
	return NULL;
}

static struct error *print_options(FILE *out, const struct command *command)
{
	size_t column;

	TRY(option_column(command, &column));
	fputs("\nOptions:\n", out);
	for (struct option_iterator it = options_begin(command->options); options_next(&it);) {
		_cleanup_free_ char *left = NULL, *text = NULL;
		TRY(option_left(it.row, &left));
		TRY(option_print_help(it.row, &text));
		help_print_row(out, column, left, text);
	}
	help_print_row(out, column, "-h, --help", "print this");
	return NULL;
}

static void print_exits(FILE *out, const struct command *command)
{
	char number[16];

	fputs("\nExit status:\n", out);
	for (int status = 0; status < HELP_EXITS; status++) {
		const char *help = help_exit(command, status);
		if (!help)
			continue;
		snprintf(number, sizeof(number), "%d", status);
		help_print_row(out, HELP_INDENT + 3, number, help);
	}
}

static struct error *print_command(FILE *out, const struct command *command)
{
	char environment[512];

	fprintf(out, "cairn %s - %s\n\nUsage: cairn %s [OPTIONS]%s%s%s\n", command->name,
		command->help, command->name, command->operands ? " " : "",
		command->operands ? command->operands : "",
		command->takes_command ? " [-- COMMAND...]" : "");
	if (command->text) {
		fputc('\n', out);
		print_wrapped(out, 0, 0, command->text);
	}
	TRY(print_options(out, command));
	for (const struct command_example *row = command->examples; row && row->line; row++) {
		if (row == command->examples)
			fputs("\nExamples:\n", out);
		fprintf(out, "  %s\n      ", row->line);
		print_wrapped(out, 6, 6, row->help);
	}
	print_exits(out, command);
	fputc('\n', out);
	print_wrapped(out, 0, 0, help_environment(command, environment));
	return NULL;
}

static void print_commands(FILE *out)
{
	char environment[512];
	size_t widest = 0;

	fprintf(out, "cairn %s - %s\n\nUsage: cairn COMMAND [OPTIONS] [OPERANDS]\n\nCommands:\n",
		CAIRN_VERSION, help_headline());
	for (size_t i = 0; command_at(i); i++)
		if (strlen(command_at(i)->name) > widest)
			widest = strlen(command_at(i)->name);
	for (size_t i = 0; command_at(i); i++)
		help_print_row(out, HELP_INDENT + widest + 2, command_at(i)->name,
			       command_at(i)->help);
	fputs("\ncairn help COMMAND tells more about one of them; cairn --version prints the "
	      "version.\n",
	      out);
	print_exits(out, NULL);
	fputc('\n', out);
	print_wrapped(out, 0, 0, help_environment(NULL, environment));
}

struct error *help_print(FILE *out, const struct command *command)
{
	if (command)
		return print_command(out, command);
	print_commands(out);
	return NULL;
}

static struct error *help_check(void *data)
{
	const struct help_args *args = data;

	const char *first = args->commands.count ? args->commands.items[0] : NULL;
	const char *second = args->commands.count > 1 ? args->commands.items[1] : NULL;

	if (first && !strcmp(first, "from")) {
		if (!second || strcmp(second, "gprofiler") != 0)
			return error_new("from: of the tools that one may come from, gprofiler is "
					 "known");
		return args->manual || args->shell ? error_new("from stands alone") : NULL;
	}
	if (second)
		return error_new("%s: one too many; the usage is help [COMMAND]", second);
	if (first && !command_find(first))
		return error_new("%s: no such command", first);
	if (args->shell && (args->manual || args->commands.count))
		return error_new("--completions stands alone");
	return NULL;
}

static struct error *help_run(const void *data, int *ret_status)
{
	const struct help_args *args = data;
	const struct command *command = NULL;

	if (args->commands.count > 1)
		return from_gprofiler_print(stdout);
	if (args->commands.count)
		command = command_find(args->commands.items[0]);
	if (args->shell)
		return completion_print(stdout, args->shell);
	return args->manual ? manual_print(stdout, command) : help_print(stdout, command);
}

static const struct option_row help_options[] = {
	{.name = "man",
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct help_args, manual),
	 .help = "write the man page, as roff"},
	{.name = "completions",
	 .kind = OPTION_CHOICE,
	 .choice = completion_shell,
	 .value = "SHELL",
	 .at = offsetof(struct help_args, shell),
	 .help = "write the script with which a shell completes cairn's commands and options"},
	{0},
};

static const struct command_example help_examples[] = {
	{"cairn help doctor", "what cairn doctor does, its options and exit statuses"},
	{"cairn help from gprofiler", "what becomes of gProfiler's options"},
	{"cairn help --completions bash > /etc/bash_completion.d/cairn",
	 "install completion where cairn was not installed by a package"},
	{0},
};

const struct command command_help = {
	.name = "help",
	.help = "tell about the commands",
	.text = "cairn help from gprofiler lists the options of gProfiler's agent, and what "
		"becomes "
		"of each in cairn agent.",
	.operands = "[COMMAND | from gprofiler]",
	.operands_max = 2,
	.operands_at = offsetof(struct help_args, commands),
	.options = help_options,
	.examples = help_examples,
	.args_size = sizeof(struct help_args),
	.check = help_check,
	.run = help_run,
};
