/* SPDX-License-Identifier: Apache-2.0 */
/* Applications in Python. uWSGI, which has files of its own, is in rules-uwsgi.c. */
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "identity/rules.h"
#include "identity/rules-python.h"

struct error *python_named(const struct program *program, const char *tool, const char *app,
			   char **ret)
{
	_cleanup_free_ char *path = NULL;

	TRY(program_module(program, app, &path));
	return str_format(ret, "%s: %s (%s)", tool, app, path);
}

static bool is_python(const char *word)
{
	const char *base = program_base(word);

	return program_is(base, "python") || program_is(base, "pypy");
}

/* What the interpreter was told to run; Python/initconfig.c and getopt.c of CPython 3.12 have its
 * options, and those of 2.7 and 3.6 are the same but for -Q. */
static struct python_start find_start(const struct program *program)
{
	struct python_start start = {0};

	if (!is_python(program->word[0]))
		return start;
	for (size_t i = 1; i < program->words; i++) {
		const char *word = program->word[i];
		if (word[0] != '-') {
			start = (struct python_start){.script = word, .rest = i + 1};
			return start;
		}
		if (!strcmp(word, "--check-hash-based-pycs")) {
			i++;
			continue;
		}
		const char *value = word[1] == '-' ? "" : word + strcspn(word, "cmWXQ");
		if (*value == 'c' || !word[1])
			return start;
		if (*value == 'm') {
			start.module = value[1] ? value + 1 : NULL;
			if (!start.module && ++i < program->words)
				start.module = program->word[i];
			start.rest = i + 1;
			return start;
		}
		i += *value && !value[1];
	}
	return start;
}

size_t python_tool(const struct program *program, const char *name)
{
	struct python_start start = find_start(program);

	if (!strcmp(program_base(program->word[0]), name))
		return 1;
	if (start.script && !strcmp(program_base(start.script), name))
		return start.rest;
	size_t length = strlen(name);
	if (start.module && str_starts(start.module, name) &&
	    (!start.module[length] || start.module[length] == '.'))
		return start.rest;
	// Started by something that stands in front of it.
	bool behind = program->words > 1 && !start.script && !start.module &&
		      !strcmp(program_base(program->word[1]), name);
	return behind ? 2 : 0;
}

struct error *rule_gunicorn_title(const struct application_options *options,
				  const struct program *program, char **ret)
{
	static const char *const titles[] = {"gunicorn: master [", "gunicorn: worker ["};
	const char *word = program->word[0];
	size_t length = strlen(word);

	for (size_t i = 0; i < ARRAY_COUNT(titles); i++) {
		if (program->words != 1 || !str_starts(word, titles[i]) || word[length - 1] != ']')
			continue;
		const char *from = word + strlen(titles[i]);
		_cleanup_free_ char *app = strndup(from, strlen(from) - 1);
		return app ? python_named(program, "gunicorn", app, ret) : error_oom();
	}
	return NULL;
}

/* Options of the servers below that have no value behind them. */
static const char *const server_flags[] = {
	"--access-log",
	"--capture-output",
	"--check-config",
	"--daemon",
	"--date-header",
	"--debug",
	"--do-handshake-on-connect",
	"--enable-stdio-inheritance",
	"--factory",
	"--http",
	"--initgroups",
	"--log-syslog",
	"--no-access-log",
	"--no-date-header",
	"--no-proxy-headers",
	"--no-sendfile",
	"--no-server-header",
	"--no-server-name",
	"--no-use-colors",
	"--no-ws",
	"--preload",
	"--print-config",
	"--proxy-headers",
	"--proxy-protocol",
	"--reload",
	"--reuse-port",
	"--server-header",
	"--spew",
	"--statsd-host-only",
	"--suppress-ragged-eofs",
	"--use-colors",
	"--ws",
	"-D",
	"-R",
};

/* Is the word behind WORD its value? */
static bool takes_value(const char *word)
{
	if (word[0] != '-' || strchr(word, '=') || (word[1] != '-' && word[1] && word[2]))
		return false;
	for (size_t i = 0; i < ARRAY_COUNT(server_flags); i++)
		if (!strcmp(word, server_flags[i]))
			return false;
	return true;
}

/* The application among the words behind the server's own; ANY: one without ":" will do. */
static const char *server_app(const struct program *program, size_t from, bool any)
{
	const char *found = NULL;

	for (size_t i = from; i < program->words; i++) {
		const char *word = program->word[i];
		if (word[0] == '-' || (i > from && takes_value(program->word[i - 1])))
			continue;
		if (strchr(word, ':'))
			return word;
		found = any && word[0] ? word : found;
	}
	return found;
}

struct error *rule_server(const struct application_options *options, const struct program *program,
			  char **ret)
{
	static const struct {
		const char *name;
		bool any; /* takes a module without ":application" */
	} servers[] = {
		{"gunicorn", true}, {"uvicorn", false}, {"hypercorn", false},
		{"daphne", false},  {"granian", false}, {"waitress-serve", false},
	};

	for (size_t i = 0; i < ARRAY_COUNT(servers); i++) {
		size_t from = python_tool(program, servers[i].name);
		if (!from)
			continue;
		const char *app = server_app(program, from, servers[i].any);
		if (app)
			return python_named(program, servers[i].name, app, ret);
		return str_format(ret, "%s: unknown app name (unknown app name)", servers[i].name);
	}
	return NULL;
}

struct error *rule_celery(const struct application_options *options, const struct program *program,
			  char **ret)
{
	static const char *const apps[] = {"-A", "--app", NULL};
	static const char *const queues[] = {"-Q", "--queues", NULL};
	size_t from = python_tool(program, "celery");

	// Its workers write "[celeryd: celery@host:MainProcess] -active- (worker -A app ...".
	if (!from && program->words > 1 && !strcmp(program->word[0], "[celeryd:"))
		from = 1;
	if (!from)
		return NULL;
	const char *app = program_option(program, from, apps);
	if (app)
		return python_named(program, "celery", app, ret);
	const char *queue = program_option(program, from, queues);
	return queue ? str_format(ret, "celery queue: %s (%s)", queue, program->cwd) : NULL;
}

struct error *rule_pyspark(const struct application_options *options, const struct program *program,
			   char **ret)
{
	const char *module = find_start(program).module;

	return module && !strcmp(module, "pyspark.daemon") ? str_copy(ret, "pyspark") : NULL;
}

struct error *rule_flask(const struct application_options *options, const struct program *program,
			 char **ret)
{
	static const char *const apps[] = {"--app", "-A", NULL};
	_cleanup_free_ char *variable = NULL;
	size_t from = python_tool(program, "flask");

	if (!from)
		return NULL;
	const char *app = program_option(program, from, apps);
	if (!app) {
		TRY(program_variable(program, "FLASK_APP", &variable));
		app = variable && variable[0] ? variable : NULL;
	}
	if (!app) {
		// Where it looks itself (flask/cli.py of 3.0: wsgi.py, then app.py).
		_cleanup_free_ char *wsgi = NULL;
		TRY(program_file(program, "wsgi.py", &wsgi));
		app = wsgi ? "wsgi" : "app";
	}
	return python_named(program, "flask", app, ret);
}

struct error *rule_run_file(const struct application_options *options,
			    const struct program *program, char **ret)
{
	static const char *const tools[] = {"streamlit", "fastapi"};

	for (size_t i = 0; i < ARRAY_COUNT(tools); i++) {
		size_t from = python_tool(program, tools[i]);
		for (size_t k = from; from && k < program->words; k++)
			if (program->word[k][0] != '-' && str_ends(program->word[k], ".py"))
				return python_named(program, tools[i], program->word[k], ret);
	}
	return NULL;
}

struct error *rule_runner(const struct application_options *options, const struct program *program,
			  char **ret)
{
	static const char *const tools[] = {"poetry", "pipenv", "pdm", "hatch", "rye", "uv"};

	for (size_t i = 0; i < ARRAY_COUNT(tools); i++) {
		size_t at = python_tool(program, tools[i]);
		if (!at || at >= program->words || strcmp(program->word[at], "run") != 0)
			continue;
		while (++at < program->words && program->word[at][0] == '-')
			;
		if (at < program->words)
			return str_format(ret, "%s: run %s", tools[i], program->word[at]);
	}
	return NULL;
}

struct error *rule_python(const struct application_options *options, const struct program *program,
			  char **ret)
{
	struct python_start start = find_start(program);
	_cleanup_free_ char *path = NULL;

	if (start.module)
		return str_format(ret, "python: -m %s", start.module);
	if (!start.script || !start.script[0])
		return NULL;
	TRY(program_path(program, start.script, &path));
	return str_format(ret, "python: %s (%s)", start.script, path);
}
