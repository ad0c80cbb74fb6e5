/* SPDX-License-Identifier: Apache-2.0 */
/* uWSGI: from its options, or from the file that they name. */
#include <string.h>

#include "base/str.h"
#include "identity/rules-python.h"
#include "identity/rules.h"

/* The one word that is a file of settings; NULL: there is none, or there are two. */
static const char *bare_ini(const struct program *program)
{
	const char *found = NULL;

	for (size_t i = 1; i < program->words; i++) {
		const char *word = program->word[i];
		if (word[0] == '-' || !str_ends(word, ".ini"))
			continue;
		if (found)
			return NULL;
		found = word;
	}
	return found;
}

/* INI is "FILE" or "FILE:SECTION". */
static struct error *name_ini(const struct program *program, const char *ini, char **ret)
{
	static const char *const keys[] = {"module", "wsgi", "wsgi-file", "file"};
	const char *colon = strrchr(ini, ':');
	_cleanup_free_ char *file = strndup(ini, colon ? (size_t)(colon - ini) : strlen(ini));
	const char *section = colon && colon[1] ? colon + 1 : "uwsgi";
	_cleanup_free_ char *text = NULL;
	_cleanup_free_ char *path = NULL;

	if (!file)
		return error_oom();
	TRY(program_file(program, file, &text));
	for (size_t i = 0; text && i < sizeof(keys) / sizeof(keys[0]); i++) {
		_cleanup_free_ char *module = NULL;
		TRY(program_setting(text, section, keys[i], &module));
		if (!module || !module[0])
			continue;
		TRY(program_module(program, module, &path));
		return str_format(ret, "uwsgi: %s (%s)", ini, path);
	}
	return str_format(ret, "uwsgi: %s", ini);
}

struct error *rule_uwsgi(const struct application_options *options, const struct program *program,
			 char **ret)
{
	static const char *const modules[] = {"-w",     "--module", "--wsgi", "--wsgi-file",
					      "--file", "--py",     NULL};
	static const char *const inis[] = {"--ini", "--ini-paste", "--ini-paste-logged", NULL};
	static const char *const others[] = {"--yaml", "--yml", "-y", "--json",
					     "-j",     "--xml", NULL};
	const char *base = program_base(program->word[0]);

	if (!str_starts(base, "uwsgi"))
		return NULL;
	const char *module = program_option(program, 1, modules);
	if (module)
		return python_named(program, "uwsgi", module, ret);
	const char *ini = program_option(program, 1, inis);
	ini = ini ? ini : bare_ini(program);
	if (ini)
		return name_ini(program, ini, ret);
	const char *other = program_option(program, 1, others);
	if (other)
		return str_format(ret, "uwsgi: %s", other);
	return str_copy(ret, "uwsgi: ini file / wsgi module not found");
}
