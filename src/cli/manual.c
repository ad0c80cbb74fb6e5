/* SPDX-License-Identifier: Apache-2.0 */
/* Man pages from the tables of commands and options. */
#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "cli/help.h"
#include "cli/options.h"

/* TEXT so that roff prints it as it is: dashes that can be searched for, no accidental requests. */
static void print_roff(FILE *out, const char *text)
{
	bool line_begins = true;

	for (; *text; text++) {
		if (line_begins && (*text == '.' || *text == '\''))
			fputs("\\&", out);
		line_begins = *text == '\n';
		if (str_starts(text, "\n\n")) {
			fputs("\n.PP\n", out);
			text++;
		} else if (*text == '\\') {
			fputs("\\e", out);
		} else if (*text == '-') {
			fputs("\\-", out);
		} else {
			fputc(*text, out);
		}
	}
	fputc('\n', out);
}

static void print_section(FILE *out, const char *name)
{
	fprintf(out, ".SH %s\n", name);
}

static void print_header(FILE *out, const struct command *command)
{
	fputs(".TH CAIRN", out);
	for (const char *at = command ? command->name : ""; *at; at++)
		fprintf(out, "%s%c", at == command->name ? "\\-" : "", toupper((unsigned char)*at));
	fprintf(out, " 1 \"\" \"cairn %s\" \"User Commands\"\n", CAIRN_VERSION);
}

static struct error *print_option(FILE *out, const struct option_row *row)
{
	_cleanup_free_ char *help = NULL;

	fputs(".TP\n", out);
	if (row->letter)
		fprintf(out, "\\fB\\-%c\\fR, ", row->letter);
	fputs("\\fB\\-\\-", out);
	for (const char *at = row->name; *at; at++)
		fprintf(out, "%s%c", *at == '-' ? "\\" : "", *at);
	fprintf(out, "\\fR%s%s%s\n", option_has_value(row) ? " \\fI" : "",
		option_has_value(row) ? option_value_name(row) : "",
		option_has_value(row) ? "\\fR" : "");
	TRY(option_print_help(row, &help));
	print_roff(out, help);
	return NULL;
}

static void print_exits(FILE *out, const struct command *command)
{
	print_section(out, "EXIT STATUS");
	for (int status = 0; status < HELP_EXITS; status++) {
		const char *help = help_exit(command, status);
		if (!help)
			continue;
		fprintf(out, ".TP\n\\fB%d\\fR\n", status);
		print_roff(out, help);
	}
}

static void print_environment(FILE *out, const struct command *command)
{
	char text[512];

	print_section(out, "ENVIRONMENT");
	print_roff(out, help_environment(command, text));
}

static struct error *print_command(FILE *out, const struct command *command)
{
	print_section(out, "NAME");
	fprintf(out, "cairn\\-%s \\- ", command->name);
	print_roff(out, command->help);
	print_section(out, "SYNOPSIS");
	fprintf(out, ".B cairn %s\n[OPTIONS]", command->name);
	fprintf(out, "%s%s", command->operands ? " " : "",
		command->operands ? command->operands : "");
	fprintf(out, "%s\n", command->takes_command ? " [\\-\\- COMMAND...]" : "");
	if (command->text) {
		print_section(out, "DESCRIPTION");
		print_roff(out, command->text);
	}
	print_section(out, "OPTIONS");
	for (struct option_iterator it = options_begin(command->options); options_next(&it);)
		TRY(print_option(out, it.row));
	fputs(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nprint the help\n", out);
	for (const struct command_example *row = command->examples; row && row->line; row++) {
		if (row == command->examples)
			print_section(out, "EXAMPLES");
		fputs(".TP\n.B ", out);
		print_roff(out, row->line);
		print_roff(out, row->help);
	}
	print_exits(out, command);
	print_environment(out, command);
	print_section(out, "SEE ALSO");
	fputs(".BR cairn (1)\n", out);
	return NULL;
}

static void print_overview(FILE *out)
{
	print_section(out, "NAME");
	fputs("cairn \\- ", out);
	print_roff(out, help_headline());
	print_section(out, "SYNOPSIS");
	fputs(".B cairn\nCOMMAND [OPTIONS] [OPERANDS]\n", out);
	print_section(out, "COMMANDS");
	for (size_t i = 0; command_at(i); i++) {
		fprintf(out, ".TP\n.BR cairn\\-%s (1)\n", command_at(i)->name);
		print_roff(out, command_at(i)->help);
	}
	print_section(out, "OPTIONS");
	fputs(".TP\n\\fB\\-\\-version\\fR\nprint the version\n", out);
	fputs(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nlist the commands\n", out);
	print_exits(out, NULL);
	print_environment(out, NULL);
	print_section(out, "SEE ALSO");
	for (size_t i = 0; command_at(i); i++)
		fprintf(out, ".BR cairn\\-%s (1)%s\n", command_at(i)->name,
			command_at(i + 1) ? "," : "");
}

struct error *manual_print(FILE *out, const struct command *command)
{
	print_header(out, command);
	if (command)
		return print_command(out, command);
	print_overview(out);
	return NULL;
}
