/* SPDX-License-Identifier: Apache-2.0 */
/* Completion scripts for shells, from the tables of commands and options. */
#include <string.h>

#include "base/array.h"
#include "cli/help.h"
#include "cli/options.h"

struct shell {
	const char *name;
	void (*print)(FILE *out);
};

static void print_commands(FILE *out)
{
	for (size_t i = 0; command_at(i); i++)
		fprintf(out, "%s%s", i ? " " : "", command_at(i)->name);
}

static void print_choices(FILE *out, const struct option_row *row)
{
	for (size_t i = 0; option_choice(row, i); i++)
		fprintf(out, "%s%s", i ? " " : "", option_choice(row, i));
}

/* The value of one option, behind it: names, files, or nothing that we know. */
static void bash_value(FILE *out, const struct command *command, const struct option_row *row)
{
	fprintf(out, "\t%s,--%s", command->name, row->name);
	if (row->letter)
		fprintf(out, " | %s,-%c", command->name, row->letter);
	if (row->kind == OPTION_CHOICE) {
		fputs(")\n\t\twords=\"", out);
		print_choices(out, row);
		fputs("\"\n\t\t;;\n", out);
	} else if (row->kind == OPTION_FILE || row->kind == OPTION_CONFIG) {
		fputs(")\n\t\tmapfile -t COMPREPLY < <(compgen -f -- "
		      "\"$cur\")\n\t\treturn\n\t\t;;\n",
		      out);
	} else {
		fputs(")\n\t\treturn\n\t\t;;\n", out);
	}
}

static void bash_options(FILE *out, const struct command *command)
{
	fprintf(out, "\t%s,*)\n\t\twords=\"", command->name);
	if (command == &command_help) {
		print_commands(out);
		fputc(' ', out);
	}
	for (struct option_iterator it = options_begin(command->options); options_next(&it);)
		fprintf(out, "--%s ", it.row->name);
	fputs("--help\"\n", out);
	if (command->takes_command || (command->operands && command != &command_help))
		fputs("\t\t[[ $cur != -* ]] && files=1\n", out);
	fputs("\t\t;;\n", out);
}

static void bash_print(FILE *out)
{
	fputs("# cairn's completion for bash, written by: cairn help --completions bash\n"
	      "_cairn() {\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words= "
	      "files=\n"
	      "\tCOMPREPLY=()\n"
	      "\t# bash breaks --name=value into three words.\n"
	      "\tif [[ $prev == = ]]; then\n"
	      "\t\tprev=${COMP_WORDS[COMP_CWORD - 2]}\n"
	      "\telif [[ $cur == = ]]; then\n"
	      "\t\tcur=\n"
	      "\tfi\n"
	      "\tif ((COMP_CWORD == 1)); then\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -W \"",
	      out);
	print_commands(out);
	fputs(" --version --help\" -- \"$cur\")\n\t\treturn\n\tfi\n\tcase ${COMP_WORDS[1]},$prev "
	      "in\n",
	      out);
	for (size_t i = 0; command_at(i); i++) {
		const struct option_row *rows = command_at(i)->options;
		for (struct option_iterator it = options_begin(rows); options_next(&it);)
			if (option_has_value(it.row))
				bash_value(out, command_at(i), it.row);
	}
	for (size_t i = 0; command_at(i); i++)
		bash_options(out, command_at(i));
	fputs("\tesac\n"
	      "\tmapfile -t COMPREPLY < <(\n"
	      "\t\tcompgen -W \"$words\" -- \"$cur\"\n"
	      "\t\t[[ -z $files ]] || compgen -f -- \"$cur\"\n"
	      "\t)\n"
	      "}\n"
	      "complete -F _cairn cairn\n",
	      out);
}

/* TEXT inside single quotes, with a backslash before every character of SPECIAL. */
static void print_quoted(FILE *out, const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'') {
			fputs("'\\''", out);
			continue;
		}
		if (strchr(special, *text))
			fputc('\\', out);
		fputc(*text, out);
	}
}

static void zsh_option(FILE *out, const struct option_row *row)
{
	bool repeats =
		row->kind == OPTION_LIST || row->kind == OPTION_UINTS || row->kind == OPTION_TEXTS;
	const char *equals = option_has_value(row) ? "=" : "";

	if (row->letter && repeats)
		fprintf(out, "\t\t\t'*'{-%c,--%s%s}'[", row->letter, row->name, equals);
	else if (row->letter)
		fprintf(out, "\t\t\t'(-%c --%s)'{-%c,--%s%s}'[", row->letter, row->name,
			row->letter, row->name, equals);
	else
		fprintf(out, "\t\t\t'%s--%s%s[", repeats ? "*" : "", row->name, equals);
	print_quoted(out, row->help, "[]:\\");
	fputc(']', out);
	if (option_has_value(row)) {
		fputc(':', out);
		print_quoted(out, option_value_name(row), "[]:\\");
		fputc(':', out);
	}
	if (row->kind == OPTION_FILE || row->kind == OPTION_CONFIG)
		fputs("_files", out);
	if (row->kind == OPTION_CHOICE) {
		fputc('(', out);
		print_choices(out, row);
		fputc(')', out);
	}
	fputs("' \\\n", out);
}

static void zsh_operands(FILE *out, const struct command *command)
{
	if (command == &command_help) {
		fputs("\t\t\t'1:command:(", out);
		print_commands(out);
		fputs(")' \\\n", out);
	} else if (command->operands || command->takes_command) {
		fputs("\t\t\t'*:operand:_files' \\\n", out);
	}
}

static void zsh_print(FILE *out)
{
	fputs("#compdef cairn\n"
	      "# cairn's completion for zsh, written by: cairn help --completions zsh\n"
	      "_cairn() {\n"
	      "\tlocal context state state_descr line\n"
	      "\ttypeset -A opt_args\n"
	      "\t_arguments -C '--version[print the version]' '1:command:->command' "
	      "'*::operand:->rest'\n"
	      "\tcase $state in\n"
	      "\tcommand)\n"
	      "\t\tlocal -a commands=(\n",
	      out);
	for (size_t i = 0; command_at(i); i++) {
		fprintf(out, "\t\t\t'%s:", command_at(i)->name);
		print_quoted(out, command_at(i)->help, ":\\");
		fputs("'\n", out);
	}
	fputs("\t\t)\n\t\t_describe command commands\n\t\t;;\n\trest)\n\t\tcase $words[1] in\n",
	      out);
	for (size_t i = 0; command_at(i); i++) {
		const struct command *command = command_at(i);
		fprintf(out, "\t\t%s)\n\t\t\t_arguments -s -S \\\n", command->name);
		for (struct option_iterator it = options_begin(command->options);
		     options_next(&it);)
			zsh_option(out, it.row);
		zsh_operands(out, command);
		fputs("\t\t\t'(-h --help)'{-h,--help}'[print the help]'\n\t\t\t;;\n", out);
	}
	fputs("\t\tesac\n\t\t;;\n\tesac\n}\n_cairn \"$@\"\n", out);
}

static void fish_option(FILE *out, const struct command *command, const struct option_row *row)
{
	fprintf(out, "complete -c cairn -n '__fish_seen_subcommand_from %s' -l %s", command->name,
		row->name);
	if (row->letter)
		fprintf(out, " -s %c", row->letter);
	if (row->kind == OPTION_CHOICE) {
		fputs(" -x -a '", out);
		print_choices(out, row);
		fputc('\'', out);
	} else if (row->kind == OPTION_FILE || row->kind == OPTION_CONFIG) {
		fputs(" -r -F", out);
	} else if (option_has_value(row)) {
		fputs(" -x", out);
	}
	fputs(" -d '", out);
	// In fish's single quotes a backslash quotes itself and the quote.
	for (const char *at = row->help; *at; at++)
		fprintf(out, "%s%c", *at == '\'' || *at == '\\' ? "\\" : "", *at);
	fputs("'\n", out);
}

static void fish_print(FILE *out)
{
	fputs("# cairn's completion for fish, written by: cairn help --completions fish\n"
	      "complete -c cairn -f\n"
	      "complete -c cairn -n __fish_use_subcommand -l version -d 'print the version'\n"
	      "complete -c cairn -s h -l help -d 'print the help'\n"
	      "complete -c cairn -n '__fish_seen_subcommand_from help' -a '",
	      out);
	print_commands(out);
	fputs("'\n", out);
	for (size_t i = 0; command_at(i); i++) {
		const struct command *command = command_at(i);
		fprintf(out, "complete -c cairn -n __fish_use_subcommand -a %s -d '",
			command->name);
		for (const char *at = command->help; *at; at++)
			fprintf(out, "%s%c", *at == '\'' || *at == '\\' ? "\\" : "", *at);
		fputs("'\n", out);
		if (command->takes_command || (command->operands && command != &command_help))
			fprintf(out, "complete -c cairn -n '__fish_seen_subcommand_from %s' -F\n",
				command->name);
		for (struct option_iterator it = options_begin(command->options);
		     options_next(&it);)
			fish_option(out, command, it.row);
	}
}

static const struct shell shells[] = {
	{"bash", bash_print},
	{"fish", fish_print},
	{"zsh", zsh_print},
};

const char *completion_shell(size_t index)
{
	return index < ARRAY_COUNT(shells) ? shells[index].name : NULL;
}

struct error *completion_print(FILE *out, const char *shell)
{
	for (size_t i = 0; i < ARRAY_COUNT(shells); i++)
		if (!strcmp(shells[i].name, shell)) {
			shells[i].print(out);
			return NULL;
		}
	return error_new("no completion for %s", shell);
}
