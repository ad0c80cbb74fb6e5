/* SPDX-License-Identifier: Apache-2.0 */
/* Applications of the JVM. Each rule adds what it knows. */
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "identity/rules.h"

enum { FILTERED_BYTES_MAX = 4096 }; /* of an argument: expressions take time by its length */

/* Options of the java launcher with a value behind them ("java --help-extra" of JDK 21). */
static const char *const valued[] = {
	"-cp",
	"-classpath",
	"--class-path",
	"-p",
	"--module-path",
	"--upgrade-module-path",
	"--add-modules",
	"--enable-native-access",
	"--add-exports",
	"--add-reads",
	"--add-opens",
	"--patch-module",
	"--limit-modules",
	"--source",
};

static bool takes_value(const char *word)
{
	for (size_t i = 0; i < ARRAY_COUNT(valued); i++)
		if (!strcmp(word, valued[i]))
			return true;
	return false;
}

/* Which word is the main class, archive or module; the number of words when none is. */
static size_t find_main(const struct program *program)
{
	for (size_t i = 1; i < program->words; i++) {
		const char *word = program->word[i];
		if (!strcmp(word, "-jar") || !strcmp(word, "-m") || !strcmp(word, "--module"))
			return i + 1 < program->words ? i + 1 : program->words;
		if (takes_value(word))
			i++;
		else if (word[0] != '-' && word[0] != '@' && word[0])
			return i;
	}
	return program->words;
}

static bool is_wanted(const struct application_options *options, const char *word)
{
	for (size_t i = 0; i < options->filters; i++)
		if (!regexec(&options->filter[i], word, 0, NULL, 0))
			return true;
	return false;
}

/* " (ARGUMENT ARGUMENT)": those of the JVM, in front of MAIN, that a filter finds. */
static struct error *add_wanted(const struct application_options *options,
				const struct program *program, size_t main, struct strbuf *buf)
{
	bool any = false;

	for (size_t i = 1; options->filters && i < main; i++) {
		_cleanup_free_ char *word = strndup(program->word[i], FILTERED_BYTES_MAX);
		if (!word)
			return error_oom();
		if (takes_value(word))
			i++;
		else if (is_wanted(options, word)) {
			TRY(strbuf_addf(buf, "%s%s", any ? " " : " (", word));
			any = true;
		}
	}
	return any ? strbuf_addf(buf, ")") : NULL;
}

struct error *rule_java(const struct application_options *options, const struct program *program,
			char **ret)
{
	_cleanup_(strbuf_deinit) struct strbuf buf = STRBUF_INIT;
	size_t main = find_main(program);

	if (main == program->words)
		return NULL;
	TRY(strbuf_addf(&buf, "java: %s", program->word[main]));
	TRY(add_wanted(options, program, main, &buf));
	*ret = take(buf.text);
	return NULL;
}

struct error *rule_spark(const struct application_options *options, const struct program *program,
			 char **ret)
{
	static const char missing[] = "app name not found";
	_cleanup_free_ char *text = NULL;
	_cleanup_free_ char *name = NULL;
	bool executor = false;

	for (size_t i = 1; options->spark && !executor && i < program->words; i++)
		executor = strstr(program->word[i], "org.apache.spark.executor");
	if (!executor)
		return NULL;
	TRY(program_file(program, "__spark_conf__/__spark_conf__.properties", &text));
	if (text)
		TRY(program_setting(text, NULL, "spark.app.name", &name));
	return str_format(ret, "spark: %s", name && name[0] ? name : missing);
}

struct error *rule_spring(const struct application_options *options, const struct program *program,
			  char **ret)
{
	static const char *const names[] = {"--spring.application.name", NULL};
	static const char property[] = "-Dspring.application.name=";
	_cleanup_free_ char *variable = NULL;
	const char *name = program_option(program, 1, names);

	for (size_t i = 1; !name && i < program->words; i++)
		if (str_starts(program->word[i], property))
			name = program->word[i] + strlen(property);
	if (!name) {
		TRY(program_variable(program, "SPRING_APPLICATION_NAME", &variable));
		name = variable;
	}
	return name && name[0] ? str_format(ret, "spring: %s", name) : NULL;
}

struct error *rule_gradle(const struct application_options *options, const struct program *program,
			  char **ret)
{
	size_t main = find_main(program);

	// "worker.org.gradle.process.internal.worker.GradleWorkerMain 'Gradle Test Executor 1'"
	if (main + 1 >= program->words || !str_ends(program->word[main], ".GradleWorkerMain"))
		return NULL;
	const char *name = program->word[main + 1];
	bool quoted = name[0] == '\'';
	return str_format(ret, "gradle: %.*s", (int)strcspn(name + quoted, "'"), name + quoted);
}
