/* SPDX-License-Identifier: Apache-2.0 */
/* Applications of Node.js, Ruby, .NET and PHP. */
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "identity/rules.h"

static bool one_of(const char *word, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(word, *names))
			return true;
	return false;
}

static bool ends_in(const char *word, const char *const *endings)
{
	for (; *endings; endings++)
		if (str_ends(word, *endings))
			return true;
	return false;
}

/* "LANGUAGE: SCRIPT (PATH)". */
static struct error *name_script(const struct program *program, const char *language,
				 const char *script, char **ret)
{
	_cleanup_free_ char *path = NULL;

	TRY(program_path(program, script, &path));
	return str_format(ret, "%s: %s (%s)", language, script, path);
}

struct script_form {
	const char *const *valued;  /* options with a value behind them */
	const char *const *code;    /* options whose value is the program */
	const char *const *endings; /* of scripts */
};

/*
 * The script among the words: the first that is no option. One behind an option that is not known
 * may be its value, so there a later one with an ending goes first. NULL: there is none.
 */
static const char *find_script(const struct program *program, const struct script_form *form)
{
	const char *doubtful = NULL;

	for (size_t i = 1; i < program->words; i++) {
		const char *word = program->word[i];
		if (one_of(word, form->code))
			return NULL;
		if (one_of(word, form->valued)) {
			i++;
			continue;
		}
		if (word[0] == '-' || !word[0])
			continue;
		const char *before = program->word[i - 1];
		bool doubt = i > 1 && before[0] == '-' && strcmp(before, "--") != 0;
		if (ends_in(word, form->endings))
			return word;
		if (!doubt)
			return doubtful ? doubtful : word;
		doubtful = doubtful ? doubtful : word;
	}
	return doubtful;
}

struct error *rule_node(const struct application_options *options, const struct program *program,
			char **ret)
{
	// Of node's doc/api/cli.md, version 22.
	static const char *const valued[] = {"-r",
					     "--require",
					     "--import",
					     "--loader",
					     "--experimental-loader",
					     "-C",
					     "--conditions",
					     "--title",
					     "--inspect-port",
					     "--icu-data-dir",
					     "--input-type",
					     "--env-file",
					     "--openssl-config",
					     NULL};
	static const char *const code[] = {"-e", "--eval", "-p", "--print", "-pe", NULL};
	static const char *const endings[] = {".js",  ".mjs", ".cjs", ".ts",
					      ".mts", ".cts", ".jsx", NULL};
	static const struct script_form form = {valued, code, endings};
	const char *script = find_script(program, &form);

	return script ? name_script(program, "nodejs", script, ret) : NULL;
}

/* --- Ruby */

/* "TOOL: APP (DIR)"; the directory's name stands for an application without one. */
static struct error *name_in_directory(const struct program *program, const char *tool,
				       const char *app, char **ret)
{
	return str_format(ret, "%s: %s (%s)", tool,
			  app && app[0] ? app : program_base(program->cwd), program->cwd);
}

/* What stands between FROM and the next of ENDS in TEXT, without the blanks around it. */
static struct error *part(const char *text, const char *ends, char **ret)
{
	size_t length;

	text += strspn(text, " ");
	length = strcspn(text, ends);
	while (length && text[length - 1] == ' ')
		length--;
	*ret = strndup(text, length);
	return *ret ? NULL : error_oom();
}

struct error *rule_ruby_title(const struct application_options *options,
			      const struct program *program, char **ret)
{
	// "puma 6.4.0 (tcp://0.0.0.0:3000) [shop]", "puma: cluster worker 0: 7 [shop]",
	// "sidekiq 7.2.0 shop [0 of 5 busy]", "unicorn worker[0] -c config.rb",
	// "resque-2.6.0: Waiting for *", "Passenger RubyApp: /srv/shop (production)".
	const char *title = program->word[0];
	_cleanup_free_ char *app = NULL;
	const char *at;

	if (program->words != 1 || !strchr(title, ' '))
		return NULL;
	if (str_starts(title, "puma ") || str_starts(title, "puma: ")) {
		at = strrchr(title, '[');
		TRY(part(at ? at + 1 : "", "]", &app));
		return name_in_directory(program, "puma", app, ret);
	}
	if (str_starts(title, "sidekiq ")) {
		at = strchr(title + strlen("sidekiq "), ' ');
		TRY(part(at ? at : "", "[", &app));
		return name_in_directory(program, "sidekiq", app, ret);
	}
	if (str_starts(title, "unicorn "))
		return name_in_directory(program, "unicorn", NULL, ret);
	if (str_starts(title, "resque-"))
		return name_in_directory(program, "resque", NULL, ret);
	if (!str_starts(title, "Passenger RubyApp: "))
		return NULL;
	TRY(part(title + strlen("Passenger RubyApp: "), "(", &app));
	return str_format(ret, "passenger: %s (%s)", program_base(app), app);
}

static const char *ruby_script(const struct program *program)
{
	static const char *const valued[] = {"-r", "-I", "-C", "-E", "-W", NULL};
	static const char *const code[] = {"-e", NULL};
	static const char *const endings[] = {".rb", ".ru", NULL};
	static const struct script_form form = {valued, code, endings};

	return find_script(program, &form);
}

/* The first word behind SCRIPT that is no option; NULL: there is none. */
static const char *word_behind(const struct program *program, const char *script)
{
	size_t i = 1;

	while (i < program->words && program->word[i] != script)
		i++;
	while (++i < program->words)
		if (program->word[i][0] != '-' && program->word[i][0])
			return program->word[i];
	return NULL;
}

struct error *rule_ruby_tool(const struct application_options *options,
			     const struct program *program, char **ret)
{
	// Those of the first kind are named by what they do, the others by where they do it.
	static const char *const doing[] = {"rails", "rake", "jekyll", "bundle", NULL};
	static const char *const serving[] = {
		"puma",      "sidekiq", "unicorn",     "unicorn_rails", "rackup", "thin",
		"passenger", "resque",  "resque-pool", "good_job",      "falcon", NULL};
	const char *script = ruby_script(program);
	const char *tool = script ? program_base(script) : "";

	if (one_of(tool, serving))
		return name_in_directory(program, tool, NULL, ret);
	const char *what = script ? word_behind(program, script) : NULL;
	return one_of(tool, doing) && what ? name_in_directory(program, tool, what, ret) : NULL;
}

struct error *rule_ruby(const struct application_options *options, const struct program *program,
			char **ret)
{
	const char *script = ruby_script(program);

	return script ? name_script(program, "ruby", script, ret) : NULL;
}

/* --- .NET */

struct error *rule_dotnet(const struct application_options *options, const struct program *program,
			  char **ret)
{
	for (size_t i = 1; i < program->words; i++) {
		const char *word = program->word[i];
		if (word[0] != '-' && (str_ends(word, ".dll") || str_ends(word, ".exe")))
			return name_script(program, "dotnet", word, ret);
	}
	return NULL;
}

/* PATH without links is there. */
static struct error *is_there(const struct program *program, const char *path, bool *ret)
{
	_cleanup_free_ char *text = NULL;

	TRY(program_file(program, path, &text));
	*ret = text != NULL;
	return NULL;
}

struct error *rule_dotnet_host(const struct application_options *options,
			       const struct program *program, char **ret)
{
	_cleanup_free_ char *config = NULL;
	_cleanup_free_ char *assembly = NULL;
	bool there = false;

	// A program that starts .NET has its settings beside it (docs/core/deploying of .NET 8).
	if (program->exe[0] != '/')
		return NULL;
	TRY(str_format(&config, "%s.runtimeconfig.json", program->exe));
	TRY(is_there(program, config, &there));
	if (!there)
		return NULL;
	TRY(str_format(&assembly, "%s.dll", program->exe));
	return str_format(ret, "dotnet: %s (%s)", program_base(assembly), assembly);
}

/* --- PHP */

struct error *rule_php(const struct application_options *options, const struct program *program,
		       char **ret)
{
	static const char *const valued[] = {"-c", "-d", "-z", "-t", "-S", NULL};
	static const char *const code[] = {"-r", "-B", "-R", "-E", "-a", NULL};
	static const char *const endings[] = {".php", ".phar", NULL};
	static const struct script_form form = {valued, code, endings};
	static const char pool[] = "php-fpm: pool ";
	const char *title = program->word[0];

	if (str_starts(title, pool))
		return str_format(ret, "php-fpm: %s", title + strlen(pool));
	if (program_is(program_base(title), "php-fpm") || str_starts(title, "php-fpm:"))
		return NULL;
	const char *script = find_script(program, &form);
	const char *what = script ? word_behind(program, script) : NULL;
	if (script && what && !strcmp(program_base(script), "artisan"))
		return name_in_directory(program, "artisan", what, ret);
	return script ? name_script(program, "php", script, ret) : NULL;
}
