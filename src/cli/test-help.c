/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"
#include "cli/help.h"
#include "cli/options.h"

#include "unit.h"

/* What PRINT writes about COMMAND; the caller frees it. */
static char *printed(struct error *(*print)(FILE *out, const struct command *command),
		     const struct command *command)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ASSERT_TRUE(out != NULL);
	ASSERT_OK(print(out, command));
	fclose(out);
	return text;
}

/* Columns of the widest line. */
static size_t widest(const char *text)
{
	size_t most = 0, column = 0;

	for (; *text; text++) {
		column = *text == '\n' ? 0 : column + (((unsigned char)*text & 0xc0) != 0x80);
		most = column > most ? column : most;
	}
	return most;
}

TEST(help_names_every_command_and_every_option_within_the_width)
{
	_cleanup_free_ char *overview = printed(help_print, NULL);

	ASSERT_TRUE(widest(overview) <= HELP_WIDTH);
	for (size_t i = 0; command_at(i); i++) {
		const struct command *command = command_at(i);
		_cleanup_free_ char *text = printed(help_print, command);
		ASSERT_TRUE(strstr(overview, command->help) != NULL);
		ASSERT_TRUE(widest(text) <= HELP_WIDTH);
		for (struct option_iterator it = options_begin(command->options);
		     options_next(&it);)
			ASSERT_TRUE(strstr(text, it.row->name) != NULL);
	}
}

TEST(every_row_of_a_command_is_complete_and_unique)
{
	for (size_t i = 0; command_at(i); i++) {
		const struct command *command = command_at(i);
		bool letters[256] = {['h'] = true}; // -h is help in every command
		size_t rows = 0;
		ASSERT_TRUE(command->help && *command->help);
		ASSERT_TRUE(command->run != NULL);
		ASSERT_TRUE(!command_at(i + 1) ||
			    strcmp(command->name, command_at(i + 1)->name) < 0);
		for (struct option_iterator it = options_begin(command->options); options_next(&it);
		     rows++) {
			unsigned char letter = (unsigned char)it.row->letter;
			ASSERT_TRUE(it.row->help && *it.row->help);
			ASSERT_TRUE(it.at < command->args_size);
			ASSERT_TRUE(!letter || !letters[letter]);
			letters[letter] = true;
		}
		ASSERT_TRUE(rows < OPTIONS_MAX);
	}
}

static const struct option_row odd_rows[] = {
	{.name = "odd",
	 .letter = 'o',
	 .kind = OPTION_UINT,
	 .min = 1,
	 .max = 9,
	 .fallback = 3,
	 .unit = "Hz",
	 .help = ".starts like a request, has a \\ and 'quotes'"},
	{0},
};

static const struct command odd = {
	.name = "odd",
	.help = "test what quoting is for",
	.text = "First.\n\n'Second' paragraph.\n.third line",
	.options = odd_rows,
	.args_size = 8,
};

TEST(a_man_page_shows_what_the_row_says)
{
	_cleanup_free_ char *text = printed(manual_print, &odd);

	ASSERT_TRUE(strstr(text, ".TH CAIRN\\-ODD 1") != NULL);
	ASSERT_TRUE(strstr(text, "\\fB\\-o\\fR, \\fB\\-\\-odd\\fR \\fINUMBER\\fR\n") != NULL);
	ASSERT_TRUE(strstr(text, "\n\\&.starts like a request, has a \\e and 'quotes' (1 to 9 Hz; "
				 "default 3)\n") != NULL);
	ASSERT_TRUE(strstr(text, "First.\n.PP\n\\&'Second' paragraph.\n\\&.third line\n") != NULL);
}

TEST(help_shows_range_and_default)
{
	_cleanup_free_ char *text = printed(help_print, &odd);

	ASSERT_TRUE(strstr(text, "  -o, --odd NUMBER  .starts like a request") != NULL);
	ASSERT_TRUE(strstr(text, "(1 to 9 Hz; default 3)") != NULL);
}

TEST(every_shell_gets_every_command_and_option)
{
	size_t shells = 0;

	for (; completion_shell(shells); shells++) {
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);
		ASSERT_OK(completion_print(out, completion_shell(shells)));
		fclose(out);
		for (size_t i = 0; command_at(i); i++) {
			const struct option_row *rows = command_at(i)->options;
			ASSERT_TRUE(strstr(text, command_at(i)->name) != NULL);
			for (struct option_iterator it = options_begin(rows); options_next(&it);)
				ASSERT_TRUE(strstr(text, it.row->name) != NULL);
		}
		free(text);
	}
	ASSERT_EQ(shells, 3);
	ASSERT_FAILS(completion_print(stdout, "tcsh"), "no completion for tcsh");
}

RUN_TESTS(UNIT_TEST(help_names_every_command_and_every_option_within_the_width),
	  UNIT_TEST(every_row_of_a_command_is_complete_and_unique),
	  UNIT_TEST(a_man_page_shows_what_the_row_says), UNIT_TEST(help_shows_range_and_default),
	  UNIT_TEST(every_shell_gets_every_command_and_option))
