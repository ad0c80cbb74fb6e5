/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines, environments and configuration files, in this order: what one of them says, those
 * behind it do not change. What a single value may be is option.c.
 */
#include "cli/options.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/config-file.h"
#include "cli/nearest.h"

/* Where values come from; a higher one wins. */
enum level {
	LEVEL_none, /* the default holds */
	LEVEL_file, /* a configuration file that is read because it is there */
	LEVEL_asked_file,
	LEVEL_environment,
	LEVEL_line,
};

struct parser {
	const struct command *command;
	char *args;
	struct option_sources *sources; /* where the command keeps them; may be NULL */
	char **words;                   /* borrowed from main */
	int count, next;
	bool help; /* nothing more is to be read */
	bool alone;
	enum level level[OPTIONS_MAX]; /* by index of the row: what has set it */
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

static struct error *set_fallbacks(struct parser *p)
{
	for (struct option_iterator it = options_begin(p->command->options); options_next(&it);) {
		assert(it.index < OPTIONS_MAX);
		TRY(option_set_fallback(it.row, field_of(p, &it)));
	}
	return NULL;
}

/* Was the field of IT set by what wins over LEVEL, by its own row or by its opposite? */
static bool is_given(const struct parser *p, const struct option_iterator *it, enum level level)
{
	for (struct option_iterator i = options_begin(p->command->options); options_next(&i);)
		if (i.at == it->at && p->level[i.index] > level)
			return true;
	return false;
}

static struct error *remember_source(struct parser *p, const struct option_iterator *it,
				     const char *from)
{
	if (!p->sources)
		return NULL;
	free(p->sources->of[it->index]);
	p->sources->of[it->index] = NULL;
	return str_copy(&p->sources->of[it->index], from);
}

/* Set what IT stands for to TEXT (NULL: it stands alone). FROM is how it was asked for. */
static struct error *set_at_level(struct parser *p, const struct option_iterator *it,
				  const char *from, const char *text, enum level level)
{
	if (is_given(p, it, level))
		return NULL;
	// A list replaces what a lower level said, and is then added to.
	if (p->level[it->index] != level)
		option_clear(it->row, field_of(p, it));
	p->level[it->index] = level;
	TRY(option_set(it->row, text, field_of(p, it)));
	return option_asks(it->row, text) ? remember_source(p, it, from) : NULL;
}

/* TEXT of a configuration file or the environment: "[a, 'b']" is a list, else it is one value. */
static struct error *set_from_text(struct parser *p, const struct option_iterator *it,
				   const char *from, const char *text, enum level level)
{
	bool list = it->row->kind == OPTION_LIST || it->row->kind == OPTION_UINTS ||
		    it->row->kind == OPTION_TEXTS;
	size_t length = strlen(text);

	if (!list || length < 2 || text[0] != '[' || text[length - 1] != ']')
		return set_at_level(p, it, from, text, level);
	_cleanup_free_ char *items = strndup(text + 1, length - 2);
	if (!items)
		return error_oom();
	for (char *rest = items, *item; (item = strsep(&rest, ","));) {
		item += strspn(item, " \t\"'");
		for (size_t end = strlen(item); end && strchr(" \t\"'", item[end - 1]); end--)
			item[end - 1] = 0;
		if (*item)
			TRY(set_at_level(p, it, from, item, level));
	}
	return NULL;
}

static struct error *options_variable(const char *prefix, const struct option_row *row, char **ret)
{
	TRY(str_format(ret, "%s%s", prefix, row->name));
	for (char *at = *ret + strlen(prefix); *at; at++)
		*at = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
	return NULL;
}

/* What the environment says about IT under the name that begins with PREFIX. */
static struct error *set_from_variable(struct parser *p, const struct option_iterator *it,
				       const char *prefix)
{
	_cleanup_free_ char *variable = NULL;

	TRY(options_variable(prefix, it->row, &variable));
	const char *text = getenv(variable);
	if (!text || !*text) // empty is the way to unset one in unit files and manifests
		return NULL;
	struct error *err = set_from_text(p, it, variable, text, LEVEL_environment);
	return err ? error_wrap(err, "%s=%s", variable, text) : NULL;
}

static struct error *set_from_environment(struct parser *p)
{
	for (struct option_iterator it = options_begin(p->command->options); options_next(&it);) {
		if (it.row->line_only || is_given(p, &it, LEVEL_environment))
			continue;
		TRY(set_from_variable(p, &it, "CAIRN_"));
		if (p->command->variables && p->level[it.index] != LEVEL_environment)
			TRY(set_from_variable(p, &it, p->command->variables));
	}
	return NULL;
}

static struct error *set_from_line(struct parser *p, const struct option_iterator *it,
				   const struct spelling *as, const char *text)
{
	char from[96]; // longer than every name

	snprintf(from, sizeof(from), "--%s", it->row->name);
	struct error *err = set_at_level(p, it, from, text, LEVEL_line);
	p->alone = p->alone || it->row->alone;
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
		if (!p->command->abbreviations || it.row->whole)
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
	if (it->row->bare && (p->next >= p->count || p->words[p->next][0] == '-')) {
		*ret = it->row->bare;
		return NULL;
	}
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
	while (p->next < p->count && !p->help && !p->alone) {
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

/* A key of a configuration file: a long name, with or without its dashes; no abbreviations. */
static struct error *find_key(const struct parser *p, const char *key, struct option_iterator *ret)
{
	const char *name = str_starts(key, "--") ? key + 2 : key;
	struct spelling as = {"--", name, (int)strlen(name)};

	for (struct option_iterator it = options_begin(p->command->options); options_next(&it);)
		if (!it.row->line_only &&
		    (name_is(it.row->name, &as) || name_is(it.row->alias, &as))) {
			*ret = it;
			return NULL;
		}
	return unknown_option(p, &as);
}

static struct error *set_from_config_line(struct parser *p, const struct config_line *line,
					  const char *from, enum level level)
{
	struct option_iterator it;
	struct error *err;

	err = find_key(p, line->key, &it);
	if (err)
		return error_wrap(err, "%s", from);
	const char *text = line->value ? line->value : it.row->bare;
	if (!text && option_has_value(it.row))
		return error_new("%s: %s: needs a value (%s)", from, line->key,
				 option_value_name(it.row));
	err = text ? set_from_text(p, &it, from, text, level)
		   : set_at_level(p, &it, from, NULL, level);
	if (err)
		return error_wrap(err, "%s: %s = %s", from, line->key, text ? text : "");
	return NULL;
}

/* Values point into the file: the sources keep it. */
static struct error *set_from_config(struct parser *p, const char *name, enum level level)
{
	struct config_file *file = &p->sources->files[level == LEVEL_asked_file];
	struct config_line line;

	struct error *err = config_file_open(name, file);
	if (err)
		return level == LEVEL_asked_file ? error_wrap(err, "--config %s", name) : err;
	for (;;) {
		_cleanup_free_ char *from = NULL;
		TRY(config_file_next(file, &line));
		if (!line.key)
			return NULL;
		TRY(str_format(&from, "%s:%u", name, file->line));
		TRY(set_from_config_line(p, &line, from, level));
	}
}

/* The file that an option names, then the one at the usual place. */
static struct error *set_from_configs(struct parser *p)
{
	const char *usual = p->command->config;

	if (!p->sources)
		return NULL;
	for (struct option_iterator it = options_begin(p->command->options); options_next(&it);) {
		const char *const *name = field_of(p, &it);
		if (it.row->kind == OPTION_CONFIG && *name)
			TRY(set_from_config(p, *name, LEVEL_asked_file));
	}
	if (usual && !access(usual, F_OK))
		return set_from_config(p, usual, LEVEL_file);
	return NULL;
}

/* Everything but the command line, and then what it all means together. */
static struct error *parse_elsewhere(struct parser *p)
{
	const struct command *command = p->command;
	const struct text_list *operands = (void *)(p->args + command->operands_at);

	TRY(set_from_environment(p));
	TRY(set_from_configs(p));
	if (command->operands && operands->count < command->operands_min)
		return error_new("something is missing; the usage is %s %s", command->name,
				 command->operands);
	return command->check ? command->check(p->args) : NULL;
}

struct error *options_parse(const struct command *command, int argc, char **argv, void *args,
			    bool *ret_help)
{
	struct parser p = {.command = command, .args = args, .words = argv, .count = argc};

	if (command->keeps_sources)
		p.sources = (void *)(p.args + command->sources_at);
	TRY(set_fallbacks(&p));
	// Before the environment: help is for whoever has set a variable wrongly, too.
	TRY(parse_words(&p));
	*ret_help = p.help;
	return p.help || p.alone ? NULL : parse_elsewhere(&p);
}

static void sources_deinit(struct option_sources *sources)
{
	for (size_t i = 0; i < OPTIONS_MAX; i++)
		free(sources->of[i]);
	for (size_t i = 0; i < ARRAY_COUNT(sources->files); i++)
		config_file_deinit(&sources->files[i]);
	*sources = (struct option_sources){0};
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
	if (command->keeps_sources)
		sources_deinit((void *)(base + command->sources_at));
}

const struct option_row options_logging[] = {
	{.name = "verbose",
	 .letter = 'v',
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct logging_args, verbose),
	 .help = "say more on standard error"},
	{.name = "quiet",
	 .whole = true,
	 .letter = 'q',
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct logging_args, quiet),
	 .help = "say nothing but errors on standard error"},
	{.name = "debug",
	 .whole = true,
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
