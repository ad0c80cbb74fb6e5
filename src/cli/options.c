/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines and environments. What a single value may be is option.c. */
#include "cli/options.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "cli/nearest.h"

struct parser {
	const struct command *command;
	char *args;
	char **words; /* borrowed from main */
	int count, next;
	bool help;
	bool given[OPTIONS_MAX]; /* by index of the row: set on the command line */
};

/* "--name value" or "-n value", as it is named in failures. */
struct spelling {
	const char *dashes, *name;
	int length;
};

static void *field_of(struct parser *p, const struct option_iterator *it)
{
	return p->args + it->at;
}

struct error *options_variable(const struct command *command, const struct option_row *row,
			       char **ret)
{
	const char *prefix = command->variables ? command->variables : "CAIRN_";

	TRY(str_format(ret, "%s%s", prefix, row->name));
	for (char *at = *ret + strlen(prefix); *at; at++)
		*at = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
	return NULL;
}

static struct error *set_fallbacks(struct parser *p)
{
	for (struct option_iterator it = options_begin(p->command->options); options_next(&it);) {
		assert(it.index < OPTIONS_MAX);
		TRY(option_set_fallback(it.row, field_of(p, &it)));
	}
	return NULL;
}

/* Was the field of IT set on the command line, by its own row or by its opposite? */
static bool is_given(const struct parser *p, const struct option_iterator *it)
{
	for (struct option_iterator i = options_begin(p->command->options); options_next(&i);)
		if (i.at == it->at && p->given[i.index])
			return true;
	return false;
}

static struct error *set_from_environment(struct parser *p)
{
	for (struct option_iterator it = options_begin(p->command->options); options_next(&it);) {
		_cleanup_free_ char *variable = NULL;
		if (is_given(p, &it))
			continue;
		TRY(options_variable(p->command, it.row, &variable));
		const char *text = getenv(variable);
		if (!text || !*text) // empty is the way to unset one in unit files and manifests
			continue;
		option_clear(it.row, field_of(p, &it));
		struct error *err = option_set(it.row, text, field_of(p, &it));
		if (err)
			return error_wrap(err, "%s=%s", variable, text);
	}
	return NULL;
}

static struct error *set_from_line(struct parser *p, const struct option_iterator *it,
				   const struct spelling *as, const char *text)
{
	// A list on the command line replaces its default, and is then added to.
	if (!p->given[it->index])
		option_clear(it->row, field_of(p, it));
	p->given[it->index] = true;

	struct error *err = option_set(it->row, text, field_of(p, it));
	if (!err)
		return NULL;
	return error_wrap(err, "%s%.*s%s%s", as->dashes, as->length, as->name, text ? " " : "",
			  text ? text : "");
}

static bool name_is(const char *name, const struct spelling *as)
{
	return name && strlen(name) == (size_t)as->length &&
	       !strncmp(name, as->name, (size_t)as->length);
}

static bool name_begins(const char *name, const struct spelling *as)
{
	return name && !strncmp(name, as->name, (size_t)as->length);
}

/* What other tools' users are told; NULL: nothing. */
static const char *hint_for(const struct parser *p, const struct spelling *as)
{
	size_t dashes = strlen(as->dashes);

	for (const struct command_hint *row = p->command->hints; row && row->typed; row++)
		if (!strncmp(row->typed, as->dashes, dashes) && name_is(row->typed + dashes, as))
			return row->hint;
	return NULL;
}

static struct error *unknown_option(const struct parser *p, const struct spelling *as)
{
	_cleanup_free_ char *typed = NULL;
	const char *found = NULL, *hint = hint_for(p, as);

	TRY(str_format(&typed, "%.*s", as->length, as->name));
	if (hint)
		return error_new("%s%s: %s", as->dashes, typed, hint);
	struct nearest nearest = nearest_to(typed);
	for (struct option_iterator it = options_begin(p->command->options); options_next(&it);)
		if (nearest_offer(&nearest, it.row->name))
			found = it.row->name;
	if (nearest_offer(&nearest, "help"))
		found = "help";
	if (found)
		return error_new("--%s: no such option; did you mean --%s?", typed, found);
	return error_new("--%s: no such option", typed);
}

/* The row called AS, or, where the command allows it, the only row whose name begins so. */
static struct error *find_long(const struct parser *p, const struct spelling *as,
			       struct option_iterator *ret)
{
	struct option_iterator found = {0};
	size_t matches = 0;

	for (struct option_iterator it = options_begin(p->command->options); options_next(&it);) {
		if (name_is(it.row->name, as) || name_is(it.row->alias, as)) {
			*ret = it;
			return NULL;
		}
		if (!p->command->abbreviations)
			continue;
		if (name_begins(it.row->name, as) || name_begins(it.row->alias, as)) {
			found = it;
			matches++;
		}
	}
	if (matches > 1)
		return error_new("--%.*s: more than one option begins like this", as->length,
				 as->name);
	if (!matches)
		return unknown_option(p, as);
	*ret = found;
	return NULL;
}

/* The value of an option that was not written together with it: the next word. */
static struct error *next_word(struct parser *p, const struct option_iterator *it,
			       const struct spelling *as, const char **ret)
{
	if (p->next >= p->count)
		return error_new("%s%.*s: needs a value (%s)", as->dashes, as->length, as->name,
				 option_value_name(it->row));
	*ret = p->words[p->next++];
	return NULL;
}

/* WORD is "name" or "name=value", without its dashes. */
static struct error *parse_long(struct parser *p, const char *word)
{
	size_t length = strcspn(word, "=");
	const char *text = word[length] ? word + length + 1 : NULL;
	struct spelling as = {"--", word, (int)length};
	struct option_iterator it;

	if (name_is("help", &as) && !text) {
		p->help = true;
		return NULL;
	}
	TRY(find_long(p, &as, &it));
	if (!option_has_value(it.row) && text)
		return error_new("--%s: takes no value", it.row->name);
	if (option_has_value(it.row) && !text)
		TRY(next_word(p, &it, &as, &text));
	return set_from_line(p, &it, &as, text);
}

static bool find_letter(const struct parser *p, char letter, struct option_iterator *ret)
{
	for (struct option_iterator it = options_begin(p->command->options); options_next(&it);)
		if (it.row->letter == letter) {
			*ret = it;
			return true;
		}
	return false;
}

static struct error *unknown_letter(const struct parser *p, const struct spelling *as)
{
	const char *hint = hint_for(p, as);

	return error_new("-%c: %s", *as->name, hint ? hint : "no such option");
}

/* WORD is a bundle of letters without its dash; the first that takes a value takes the rest. */
static struct error *parse_letters(struct parser *p, const char *word)
{
	for (; *word; word++) {
		struct spelling as = {"-", word, 1};
		struct option_iterator it;
		const char *text = NULL;

		if (!find_letter(p, *word, &it)) {
			if (*word != 'h')
				return unknown_letter(p, &as);
			p->help = true;
			continue;
		}
		if (!option_has_value(it.row)) {
			TRY(set_from_line(p, &it, &as, NULL));
			continue;
		}
		text = word + 1;
		if (!*text)
			TRY(next_word(p, &it, &as, &text));
		return set_from_line(p, &it, &as, text);
	}
	return NULL;
}

static struct error *add_operand(struct parser *p, const char *word)
{
	struct text_list *list = (void *)(p->args + p->command->operands_at);

	if (!p->command->operands)
		return error_new("%s: takes options only", word);
	if (list->count >= p->command->operands_max)
		return error_new("%s: one too many; the usage is %s %s", word, p->command->name,
				 p->command->operands);
	return text_list_add(list, word, strlen(word));
}

/* What stands behind "--". */
static struct error *parse_rest(struct parser *p)
{
	struct text_list *line = (void *)(p->args + p->command->command_at);

	if (p->command->takes_command && p->next >= p->count)
		return error_new("--: needs a command behind it");
	while (p->next < p->count) {
		const char *word = p->words[p->next++];
		if (p->command->takes_command)
			TRY(text_list_add(line, word, strlen(word)));
		else
			TRY(add_operand(p, word));
	}
	return NULL;
}

static struct error *parse_words(struct parser *p)
{
	while (p->next < p->count && !p->help) {
		const char *word = p->words[p->next++];
		if (!strcmp(word, "--"))
			return parse_rest(p);
		if (str_starts(word, "--"))
			TRY(parse_long(p, word + 2));
		else if (word[0] == '-' && word[1])
			TRY(parse_letters(p, word + 1));
		else
			TRY(add_operand(p, word));
	}
	return NULL;
}

struct error *options_parse(const struct command *command, int argc, char **argv, void *args,
			    bool *ret_help)
{
	struct parser p = {.command = command, .args = args, .words = argv, .count = argc};

	TRY(set_fallbacks(&p));
	// Before the environment: help is for whoever has set a variable wrongly, too.
	TRY(parse_words(&p));
	if (p.help) {
		*ret_help = true;
		return NULL;
	}
	TRY(set_from_environment(&p));

	const struct text_list *operands = (void *)(p.args + command->operands_at);
	if (command->operands && operands->count < command->operands_min)
		return error_new("something is missing; the usage is %s %s", command->name,
				 command->operands);
	*ret_help = false;
	return command->check ? command->check(args) : NULL;
}

void options_deinit(const struct command *command, void *args)
{
	char *base = args;

	for (struct option_iterator it = options_begin(command->options); options_next(&it);)
		option_clear(it.row, base + it.at);
	if (command->operands)
		text_list_deinit((void *)(base + command->operands_at));
	if (command->takes_command)
		text_list_deinit((void *)(base + command->command_at));
}

const struct option_row options_logging[] = {
	{.name = "verbose",
	 .letter = 'v',
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct logging_args, verbose),
	 .help = "say more on standard error"},
	{.name = "quiet",
	 .letter = 'q',
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct logging_args, quiet),
	 .help = "say nothing but errors on standard error"},
	{.name = "debug",
	 .kind = OPTION_TEXT,
	 .value = "PART,...",
	 .at = offsetof(struct logging_args, debug),
	 .help = "debug messages of these parts (capture, symbolize, object, ...)"},
	{0},
};

void logging_apply(const struct logging_args *args)
{
	if (args->verbose)
		log_set_level(LOG_INFO);
	if (args->quiet)
		log_set_level(LOG_ERROR);
	if (args->debug)
		log_debug_domains(args->debug);
}
