/* SPDX-License-Identifier: Apache-2.0 */
/* Which rules are tried on a program, and what becomes of their answers. */
#define LOG_DOMAIN "identity"
#include "identity/application.h"

#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/str.h"
#include "identity/rules.h"

enum { FILTERS_MAX = 64 };

enum language {
	LANGUAGE_any,
	LANGUAGE_python,
	LANGUAGE_node,
	LANGUAGE_ruby,
	LANGUAGE_java,
	LANGUAGE_dotnet,
	LANGUAGE_php,
};

static const struct {
	const char *name; /* of the program */
	enum language language;
} programs[] = {
	{"python", LANGUAGE_python},     {"pypy", LANGUAGE_python},      {"uwsgi", LANGUAGE_python},
	{"uwsgi-core", LANGUAGE_python}, {"node", LANGUAGE_node},        {"nodejs", LANGUAGE_node},
	{"ruby", LANGUAGE_ruby},         {"truffleruby", LANGUAGE_ruby}, {"java", LANGUAGE_java},
	{"dotnet", LANGUAGE_dotnet},     {"php", LANGUAGE_php},          {"php-fpm", LANGUAGE_php},
};

static const struct rule {
	enum language language;
	rule_fn *name;
} rules[] = {
#define RULE(language, name, pattern, text) {LANGUAGE_##language, rule_##name},
#include "identity/rules.def"
#undef RULE
};

void application_options_deinit(struct application_options *options)
{
	for (size_t i = 0; i < options->filters; i++)
		regfree(&options->filter[i]);
	free(options->filter);
}

/* Python's "\d", "\D" and "(?:" in POSIX's words; the rest is the same or refused. */
static struct error *to_posix(const char *expression, char **ret)
{
	_cleanup_(strbuf_deinit) struct strbuf buf = STRBUF_INIT;

	for (const char *at = expression; *at; at++) {
		bool escape = at[0] == '\\' && at[1];
		if (escape && at[1] == 'd')
			TRY(strbuf_addf(&buf, "[0-9]"));
		else if (escape && at[1] == 'D')
			TRY(strbuf_addf(&buf, "[^0-9]"));
		else if (escape)
			TRY(strbuf_add(&buf, at, 2));
		else if (str_starts(at, "(?:"))
			TRY(strbuf_addf(&buf, "("));
		else if (str_starts(at, "(?"))
			return error_new("\"%.200s\": (?...) is not known here", expression);
		else
			TRY(strbuf_add(&buf, at, 1));
		at += escape ? 1 : str_starts(at, "(?:") ? 2 : 0;
	}
	if (!buf.length)
		return error_new("an empty expression finds everything");
	*ret = take(buf.text);
	return NULL;
}

struct error *application_add_filter(struct application_options *options, const char *expression)
{
	_cleanup_free_ char *posix = NULL;
	size_t room = options->filters;
	char reason[128];
	regex_t regex;

	TRY(to_posix(expression, &posix));
	int code = regcomp(&regex, posix, REG_EXTENDED | REG_NOSUB);
	if (code) {
		regerror(code, &regex, reason, sizeof(reason));
		return error_new("\"%.200s\": %s", expression, reason);
	}
	struct error *err = ARRAY_RESERVE(options->filter, room, options->filters, 1, FILTERS_MAX,
					  "filters of arguments");
	if (err)
		regfree(&regex);
	else
		options->filter[options->filters++] = regex;
	return err;
}

static enum language language_of(const struct program *program)
{
	const char *base = program_base(program->exe[0] ? program->exe : program->word[0]);

	for (size_t i = 0; i < ARRAY_COUNT(programs); i++)
		if (program_is(base, programs[i].name))
			return programs[i].language;
	return LANGUAGE_any;
}

/* TEXT, but not longer than it may be, and not cut inside a character. */
static void cut(char *text)
{
	size_t length = strlen(text);

	if (length <= APPLICATION_TEXT_MAX)
		return;
	length = APPLICATION_TEXT_MAX - 3;
	while (length && (text[length] & 0xc0) == 0x80)
		length--;
	memcpy(text + length, "...", 4);
}

static struct error *try_rules(const struct application_options *options,
			       const struct program *program, char **ret)
{
	_cleanup_(strbuf_deinit) struct strbuf joined = STRBUF_INIT;
	enum language language = language_of(program);

	for (size_t i = 0; i < ARRAY_COUNT(rules); i++) {
		_cleanup_free_ char *text = NULL;
		bool fits = rules[i].language == LANGUAGE_any || rules[i].language == language;
		if (!fits || (joined.length && language != LANGUAGE_java))
			continue;
		struct error *err = rules[i].name(options, program, &text);
		if (err)
			log_debug("application of %d: %s", program->pid, error_text(err));
		error_free(err); // the next rule may know more
		if (text)
			TRY(strbuf_addf(&joined, "%s%s", joined.length ? ", " : "", text));
	}
	*ret = take(joined.text);
	return NULL;
}

struct error *application_name(const struct application_options *options,
			       const struct program *program, char **ret)
{
	_cleanup_(program_deinit) struct program title = PROGRAM_INIT;

	*ret = NULL;
	if (!program->words)
		return NULL;
	TRY(try_rules(options, program, ret));
	if (!*ret) {
		TRY(program_split_title(program, &title));
		if (title.words)
			TRY(try_rules(options, &title, ret));
	}
	if (*ret)
		cut(*ret);
	return NULL;
}

struct error *application_find(const struct application_options *options, pid_t pid, char **ret)
{
	_cleanup_(program_deinit) struct program program = PROGRAM_INIT;
	_cleanup_free_ char *text = NULL;
	bool there;

	*ret = NULL;
	TRY(program_read(pid, &there, &program));
	if (there)
		TRY(application_name(options, &program, &text));
	return text ? str_format(ret, "appid: %s", text) : NULL;
}
