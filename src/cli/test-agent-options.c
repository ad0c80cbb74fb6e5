/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/agent-options.h"

#include "unit.h"

enum { WORDS_MAX = 16 };

/* A line of tests/golden/gprofiler-options.txt. */
struct expected {
	char name[64], value[64], effect[16], right[16], where[16], with[128];
};

/* Words for the agent, with those that every row needs; pointers are borrowed. */
struct words {
	char *items[WORDS_MAX];
	int count;
};

static void add_word(struct words *words, const char *word)
{
	ASSERT_TRUE(words->count < WORDS_MAX);
	words->items[words->count++] = (char *)word;
}

static struct error *parse(const struct words *words)
{
	struct agent_args args = {0};
	bool help;
	struct error *err =
		options_parse(&command_agent, words->count, (char **)words->items, &args, &help);

	options_deinit(&command_agent, &args);
	return err;
}

static struct error *parse_words(const char *const *items)
{
	struct words words = {0};

	while (*items)
		add_word(&words, *items++);
	return parse(&words);
}
#define PARSE(...) parse_words((const char *const[]){__VA_ARGS__, NULL})

static FILE *open_list(void)
{
	const char *tests = getenv("CAIRN_TESTS");
	char path[4096];

	if (!tests)
		return NULL;
	snprintf(path, sizeof(path), "%s/golden/gprofiler-options.txt", tests);
	return fopen(path, "re");
}

static bool read_expected(FILE *list, struct expected *ret)
{
	char line[512];

	while (fgets(line, sizeof(line), list)) {
		memset(ret, 0, sizeof(*ret));
		if (line[0] == '#')
			continue;
		ASSERT_TRUE(sscanf(line, "%63s %63s %15s %15s %15s %127[^\n]", ret->name,
				   ret->value, ret->effect, ret->right, ret->where,
				   ret->with) >= 5);
		return true;
	}
	return false;
}

static const struct agent_option *find_option(const char *name)
{
	for (size_t i = 0; agent_option_at(i); i++)
		if (!strcmp(agent_option_at(i)->name, name))
			return agent_option_at(i);
	if (!strcmp(name, "glogger-server"))
		return find_option("api-server");
	return NULL;
}

static bool effect_is(const struct agent_option *option, const char *word)
{
	static const char *const words[] = {
		[AGENT_same] = "same",       [AGENT_differs] = "differs", [AGENT_upload] = "upload",
		[AGENT_nearest] = "nearest", [AGENT_runtime] = "runtime", [AGENT_absent] = "absent",
	};

	return !strcmp(words[option->effect], word);
}

/* The words that ROW needs beside itself. WITH is cut. */
static struct words needed_words(const struct expected *row, char *with)
{
	struct words words = {0};

	snprintf(with, sizeof(row->with), "%s", row->with);
	if (strcmp(row->name, "output-dir") != 0) {
		add_word(&words, "-o");
		add_word(&words, "/tmp");
	}
	for (char *rest = with, *word; (word = strsep(&rest, " "));)
		if (*word)
			add_word(&words, word);
	return words;
}

static void check(const struct expected *row, const char *way, struct error *err)
{
	bool right = !strcmp(row->right, "ok") && strcmp(row->effect, "absent") != 0;

	if (!err != right) {
		print_error("%s = %s as %s: %s\n", row->name, row->value, way,
			    err ? error_text(err) : "was accepted");
		error_free(err);
		fail();
	}
	// Whoever has to mend it must find it; or what it needs, where that is at fault.
	if (err && !*row->with && !strstr(error_text(err), row->name) &&
	    !strstr(error_text(err), way)) {
		print_error("%s as %s: says \"%s\"\n", row->name, way, error_text(err));
		error_free(err);
		fail();
	}
	error_free(err);
}

static void try_option(const struct expected *row)
{
	char option[80], with[128];
	struct words words = needed_words(row, with);

	snprintf(option, sizeof(option), "--%s", row->name);
	add_word(&words, option);
	if (strcmp(row->value, "-") != 0)
		add_word(&words, row->value);
	check(row, option, parse(&words));
}

static void try_variable(const struct expected *row, const char *prefix)
{
	const char *name = strcmp(row->name, "glogger-server") ? row->name : "api-server";
	char variable[96], with[128];
	struct words words = needed_words(row, with);

	snprintf(variable, sizeof(variable), "%s%s", prefix, name);
	for (char *at = variable; *at; at++)
		*at = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
	setenv(variable, strcmp(row->value, "-") ? row->value : "true", 1);
	check(row, variable, parse(&words));
	unsetenv(variable);
}

static void try_key(const struct expected *row)
{
	char path[] = "/tmp/cairn-test-config-XXXXXX", with[128];
	struct words words = needed_words(row, with);
	int fd = mkstemp(path);

	ASSERT_TRUE(fd >= 0);
	if (strcmp(row->value, "-") != 0)
		dprintf(fd, "# test\n%s = %s\n", row->name, row->value);
	else
		dprintf(fd, "[test]\n%s\n", row->name);
	close(fd);
	add_word(&words, "--config");
	add_word(&words, path);
	struct error *err = parse(&words);
	unlink(path);
	check(row, path, err);
}

TEST(every_option_of_gprofiler_is_known_in_every_way_that_it_can_be_given)
{
	FILE *list = open_list();
	struct expected row;
	size_t rows = 0;

	if (!list)
		SKIP("CAIRN_TESTS does not say where the list is");
	for (; read_expected(list, &row); rows++) {
		const struct agent_option *option = find_option(row.name);
		if (!option || !effect_is(option, row.effect)) {
			print_error("%s: not in the table, or not %s\n", row.name, row.effect);
			fail();
		}
		try_option(&row);
		if (!strcmp(row.where, "line"))
			continue;
		try_variable(&row, "GPROFILER_");
		try_variable(&row, "CAIRN_");
		try_key(&row);
	}
	fclose(list);
	ASSERT_TRUE(rows > 100);
}

TEST(every_row_of_the_table_is_in_the_list_and_says_what_its_effect_needs)
{
	FILE *list = open_list();
	struct expected row;

	if (!list)
		SKIP("CAIRN_TESTS does not say where the list is");
	for (size_t i = 0; agent_option_at(i); i++) {
		const struct agent_option *option = agent_option_at(i);
		bool found = false;
		rewind(list);
		while (!found && read_expected(list, &row))
			found = !strcmp(row.name, option->name);
		if (!found)
			print_error("%s: not in the list\n", option->name);
		ASSERT_TRUE(found);
		ASSERT_TRUE(*option->note || option->effect == AGENT_same ||
			    option->effect == AGENT_upload);
	}
	fclose(list);
}

/* docs/from-gprofiler.md, whole; the caller frees it. NULL: it cannot be found. */
static char *read_document(void)
{
	const char *tests = getenv("CAIRN_TESTS");
	_cleanup_free_ char *path = NULL;
	char *text = NULL;
	size_t size;

	if (!tests)
		return NULL;
	ASSERT_OK(str_format(&path, "%s/../docs/from-gprofiler.md", tests));
	ASSERT_OK(file_read(AT_FDCWD, path, 1 << 20, &text, &size));
	return text;
}

TEST(the_document_has_a_line_for_every_option)
{
	_cleanup_free_ char *text = read_document();
	size_t wrong = 0;

	if (!text)
		SKIP("CAIRN_TESTS does not say where the document is");
	for (size_t i = 0; agent_option_at(i); i++) {
		const struct agent_option *option = agent_option_at(i);
		_cleanup_free_ char *line = NULL;
		ASSERT_OK(str_format(&line, "| `--%s` | %s | %s |", option->name,
				     agent_effect_text(option->effect), option->note));
		if (strstr(text, line))
			continue;
		print_error("docs/from-gprofiler.md lacks this line: %s\n", line);
		wrong++;
	}
	ASSERT_EQ(wrong, 0);
}

TEST(options_that_exclude_or_need_each_other_are_refused_in_gprofilers_order)
{
	ASSERT_FAILS(PARSE("-f", "13"), "say where profiles go");
	ASSERT_FAILS(PARSE("-f", "13", "--perf-event-period", "5"),
		     "--profiling-frequency and --perf-event-period exclude each other");
	ASSERT_FAILS(PARSE("--alloc-interval", "1mb"), "is only for --mode allocation");
	ASSERT_FAILS(PARSE("--mode=allocation", "-f", "9"), "--profiling-frequency: --mode");
	ASSERT_FAILS(PARSE("-u"), "--upload-results needs --token");
	ASSERT_FAILS(PARSE("-u", "--token", "x"), "--upload-results needs --service-name");
	ASSERT_FAILS(
		PARSE("-o", "/tmp", "--perf-mode", "dwarf", "--perf-dwarf-stack-size", "65529"),
		"--perf-dwarf-stack-size: must be 65528 at most");
	ASSERT_FAILS(PARSE("-o", "/tmp", "--perf-mode", "smart", "-f", "101"),
		     "--profiling-frequency: must be 100 Hz at most");
	ASSERT_OK(PARSE("-o", "/tmp", "-f", "101"));
	ASSERT_OK(PARSE("-o", "/tmp", "-f", "999", "--perf-mode", "fp"));
	ASSERT_FAILS(PARSE("-o", "/tmp", "--nodejs-mode", "perf", "--perf-mode", "dwarf"),
		     "--nodejs-mode needs --perf-mode fp or smart");
	ASSERT_FAILS(PARSE("-o", "/tmp", "--profile-spawned-processes", "--pids", "1"),
		     "--profile-spawned-processes and --pids exclude each other");
	ASSERT_FAILS(PARSE("-o", "/tmp", "--enable-heartbeat-server"),
		     "--enable-heartbeat-server needs --upload-results");
	ASSERT_FAILS(PARSE("-o", "/tmp", "--perf-event-period", "5"),
		     "--perf-event-period needs --perf-event");
	ASSERT_FAILS(PARSE("-o", "/tmp", "--hw-events-file", "x"),
		     "--hw-events-file needs --perf-event");
	ASSERT_FAILS(PARSE("-o", "/tmp", "--perf-event", "page-faults", "--mode", "none"),
		     "--perf-event needs --mode cpu");
	ASSERT_FAILS(PARSE("-o", "/tmp", "--java-no-version-check", "--java-safemode"),
		     "exclude each other");
	ASSERT_FAILS(PARSE("extract-resources"), "extract-resources needs --resources-dest");
	ASSERT_OK(PARSE("extract-resources", "--resources-dest", "x"));
	ASSERT_FAILS(PARSE("-o", "/tmp", "upload"), "upload: takes options only");
}

/* Parse and leave the result, which the caller frees with options_deinit(). */
static struct agent_args parsed(int count, const char *const *words)
{
	struct agent_args args = {0};
	bool help;

	ASSERT_OK(options_parse(&command_agent, count, (char **)words, &args, &help));
	return args;
}
#define PARSED(...)                                                                                \
	parsed(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *),                        \
	       (const char *const[]){__VA_ARGS__})

TEST(names_may_be_shortened_and_letters_bundled_as_argparse_has_it)
{
	struct agent_args args = PARSED("-co", "/tmp", "--profiling-freq", "13", "--no-rub",
					"--java-safemode", "--pids=1,2", "--pids", "3");

	ASSERT_TRUE(args.continuous);
	ASSERT_EQ(args.hz, 13);
	ASSERT_STREQ(args.ruby_mode, "disabled");
	ASSERT_STREQ(args.java_safemode, "all");
	ASSERT_EQ(args.pids.count, 3);
	options_deinit(&command_agent, &args);
	ASSERT_FAILS(PARSE("-o", "/tmp", "--no-py"), "more than one option");
	ASSERT_FAILS(PARSE("-o", "/tmp", "--jav-mode", "ap"), "did you mean --java-mode?");
}

/* How many of gProfiler's options begin with the first LENGTH characters of NAME. */
static size_t count_beginnings(const char *name, size_t length)
{
	size_t count = 0;

	for (size_t i = 0; agent_option_at(i); i++)
		count += !strncmp(agent_option_at(i)->name, name, length);
	return count;
}

TEST(options_of_our_own_take_no_beginning_from_gprofilers)
{
	for (size_t i = 0; agent_option_at(i); i++) {
		const char *name = agent_option_at(i)->name;
		for (size_t length = strlen(name); count_beginnings(name, length) == 1; length--) {
			char word[80];
			snprintf(word, sizeof(word), "--%.*s", (int)length, name);
			struct error *err = PARSE("-o", "/tmp", word);
			bool found = !err || (!strstr(error_text(err), "more than one option") &&
					      !strstr(error_text(err), "no such option"));
			if (!found)
				print_error("%s: %s\n", word, error_text(err));
			error_free(err);
			ASSERT_TRUE(found);
		}
	}
}

TEST(the_line_wins_over_the_environment_and_this_over_the_file)
{
	char path[] = "/tmp/cairn-test-config-XXXXXX";
	int fd = mkstemp(path);

	ASSERT_TRUE(fd >= 0);
	dprintf(fd,
		"no-perf\nprofiling-frequency = 1\nprofiling-duration = 1\ncontinuous\n"
		"app-id-args-filter = [\"a.*\", b]\npids = [4, 5]\noutput-dir = '/from file'\n");
	close(fd);
	setenv("GPROFILER_PROFILING_FREQUENCY", "2", 1);
	setenv("GPROFILER_PROFILING_DURATION", "2", 1);
	setenv("GPROFILER_CONTINUOUS", "no", 1);
	setenv("GPROFILER_TOKEN", "theirs", 1);
	setenv("CAIRN_TOKEN", "ours", 1);
	struct agent_args args = PARSED("-f", "3", "--perf-mode", "smart", "--config", path);
	ASSERT_EQ(args.hz, 3);
	ASSERT_EQ(args.duration_ns, 2000000000);
	ASSERT_FALSE(args.continuous);
	ASSERT_STREQ(args.token, "ours");
	ASSERT_STREQ(args.perf_mode, "smart");
	ASSERT_STREQ(args.directory, "/from file");
	ASSERT_EQ(args.pids.count, 2);
	ASSERT_EQ(args.app_id_filters.count, 2);
	ASSERT_STREQ(args.app_id_filters.items[0], "a.*");
	ASSERT_STREQ(agent_asked(&args, offsetof(struct agent_args, hz)), "--profiling-frequency");
	ASSERT_STREQ(agent_asked(&args, offsetof(struct agent_args, duration_ns)),
		     "GPROFILER_PROFILING_DURATION");
	ASSERT_TRUE(strstr(agent_asked(&args, offsetof(struct agent_args, directory)), ":7"));
	ASSERT_TRUE(agent_asked(&args, offsetof(struct agent_args, continuous)) == NULL);
	options_deinit(&command_agent, &args);
	clearenv();
	unlink(path);
}

TEST(a_wrong_file_is_refused_with_file_and_line)
{
	static const struct {
		const char *text, *said;
	} cases[] = {
		{"mode = cpu\nmodus = cpu\n", ":2: --modus: no such option; did you mean --mode?"},
		{"\n= 5\n", ":2: expected a line like name = value"},
		{"profiling-duration\n", ":1: profiling-duration: needs a value (TIME)"},
		{"mode = wall\n", ":1: mode = wall: allowed is cpu, allocation or none"},
		{"profiling-freq = 5\n", ":1: --profiling-freq: no such option"},
		{"continuous = perhaps\n", ":1: continuous = perhaps: a flag is"},
		{"config = x\n", ":1: --config: no such option"},
	};

	ASSERT_FAILS(PARSE("-o", "/tmp", "--config", "/nowhere"), "/nowhere");
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		char path[] = "/tmp/cairn-test-config-XXXXXX";
		int fd = mkstemp(path);
		ASSERT_TRUE(fd >= 0);
		dprintf(fd, "%s", cases[i].text);
		close(fd);
		struct error *err = PARSE("-o", "/tmp", "--config", path);
		unlink(path);
		ASSERT_FAILS(err, cases[i].said);
	}
}

TEST(gprofilers_special_variables_do_what_they_did)
{
	setenv("GPROFILER_DONT_SEND_LOGS", "0", 1);
	struct agent_args args = PARSED("-o", "/tmp");
	ASSERT_FALSE(args.send_logs);
	options_deinit(&command_agent, &args);
	setenv("GPROFILER_DONT_SEND_LOGS", "perhaps", 1);
	ASSERT_FAILS(PARSE("-o", "/tmp"), "GPROFILER_DONT_SEND_LOGS=perhaps: a flag is");
	clearenv();
	setenv("GPROFILER_NO_PYTHON", "0", 1);
	setenv("AWS_EXECUTION_ENV", "AWS_ECS_FARGATE", 1);
	setenv("GPROFILER_SERVICE", "not an option's", 1);
	args = PARSED("-o", "/tmp");
	ASSERT_STREQ(args.python_mode, "auto");
	ASSERT_STREQ(args.perf_mode, "disabled");
	options_deinit(&command_agent, &args);
	clearenv();
}

TEST(the_version_is_asked_for_without_anything_else)
{
	setenv("GPROFILER_MODE", "nonsense", 1);
	struct agent_args args = PARSED("-c", "--version", "--bogus");
	ASSERT_TRUE(args.version);
	options_deinit(&command_agent, &args);
	clearenv();
}

RUN_TESTS(UNIT_TEST(every_option_of_gprofiler_is_known_in_every_way_that_it_can_be_given),
	  UNIT_TEST(every_row_of_the_table_is_in_the_list_and_says_what_its_effect_needs),
	  UNIT_TEST(the_document_has_a_line_for_every_option),
	  UNIT_TEST(options_that_exclude_or_need_each_other_are_refused_in_gprofilers_order),
	  UNIT_TEST(names_may_be_shortened_and_letters_bundled_as_argparse_has_it),
	  UNIT_TEST(options_of_our_own_take_no_beginning_from_gprofilers),
	  UNIT_TEST(the_line_wins_over_the_environment_and_this_over_the_file),
	  UNIT_TEST(a_wrong_file_is_refused_with_file_and_line),
	  UNIT_TEST(gprofilers_special_variables_do_what_they_did),
	  UNIT_TEST(the_version_is_asked_for_without_anything_else))
