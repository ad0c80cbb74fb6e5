/* SPDX-License-Identifier: Apache-2.0 */
/* Every rule with its examples; gProfiler's own are marked, and their texts are its own. */
#include "identity/application.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "unit.h"

#define PYTHON "/usr/bin/python3.11"

enum { WORDS = 12 };

struct row {
	const char *exe;
	const char *word[WORDS];
	const char *expected; /* NULL: none */
};

static const struct application_options plain;

/* What is found for WORDs, as the caller's to free; NULL: nothing. */
static char *named(const struct application_options *options, const struct row *row,
		   const char *cwd)
{
	const char *words[WORDS];
	struct program program = {.exe = row->exe, .cwd = cwd, .word = words};
	char *text = NULL;

	while (program.words < WORDS && row->word[program.words]) {
		words[program.words] = row->word[program.words];
		program.words++;
	}
	ASSERT_OK(application_name(options, &program, &text));
	return text;
}

static void check(const struct row *row, const char *cwd)
{
	_cleanup_free_ char *text = named(&plain, row, cwd);

	if (!row->expected != !text || (text && strcmp(text, row->expected) != 0)) {
		print_error("%s %s: \"%s\", not \"%s\"\n", row->word[0],
			    row->word[1] ? row->word[1] : "", text ? text : "(none)",
			    row->expected ? row->expected : "(none)");
		fail();
	}
}

#define CHECK_ALL(rows, cwd)                                                                       \
	for (size_t i = 0; i < sizeof(rows) / sizeof((rows)[0]); i++)                              \
	check(&(rows)[i], cwd)

TEST(the_examples_of_gprofiler_have_its_texts)
{
	static const struct row rows[] = {
		{PYTHON,
		 {"gunicorn: worker [my.wsgi:app]"},
		 "gunicorn: my.wsgi:app (/my/dir/my/wsgi.py)"},
		{PYTHON,
		 {"gunicorn: master [my.wsgi:app]"},
		 "gunicorn: my.wsgi:app (/my/dir/my/wsgi.py)"},
		{PYTHON,
		 {"gunicorn", "-a", "5", "-b", "0.0.0.0:80", "my.wsgi:app"},
		 "gunicorn: my.wsgi:app (/my/dir/my/wsgi.py)"},
		{PYTHON,
		 {"python", "/path/to/gunicorn", "a", "b", "/path/to/my/wsgi:app"},
		 "gunicorn: /path/to/my/wsgi:app (/path/to/my/wsgi.py)"},
		{PYTHON,
		 {"gunicorn", "-a", "5", "-b", "0.0.0.0:80"},
		 "gunicorn: unknown app name (unknown app name)"},
		{PYTHON,
		 {"uvicorn", "a", "--factory", "my.asgi:app"},
		 "uvicorn: my.asgi:app (/my/dir/my/asgi.py)"},
		{PYTHON,
		 {"uvicorn", "-a", "5", "-b", "0.0.0.0:80"},
		 "uvicorn: unknown app name (unknown app name)"},
		{"/usr/bin/uwsgi",
		 {"uwsgi", "a", "b", "-w", "my.wsgi"},
		 "uwsgi: my.wsgi (/my/dir/my/wsgi.py)"},
		{"/usr/bin/uwsgi",
		 {"uwsgi", "--wsgi-file", "my.py"},
		 "uwsgi: my.py (/my/dir/my.py)"},
		{"/usr/bin/uwsgi", {"uwsgi", "--wsgi-file=my.py"}, "uwsgi: my.py (/my/dir/my.py)"},
		{"/usr/bin/uwsgi", {"uwsgi", "--ini", "my.ini"}, "uwsgi: my.ini"},
		{"/usr/bin/uwsgi",
		 {"uwsgi", "a", "b", "my.ini", "my2.ini"},
		 "uwsgi: ini file / wsgi module not found"},
		{PYTHON, {"celery", "a", "b", "--app=app3"}, "celery: app3 (/my/dir/app3.py)"},
		{PYTHON, {"celery", "a", "b", "-A", "app3"}, "celery: app3 (/my/dir/app3.py)"},
		{PYTHON, {"celery", "-Aapp3", "worker"}, "celery: app3 (/my/dir/app3.py)"},
		{PYTHON,
		 {"python", "-m", "celery", "--app", "app3"},
		 "celery: app3 (/my/dir/app3.py)"},
		{PYTHON, {"python", "/bin/celery", "-A", "app3"}, "celery: app3 (/my/dir/app3.py)"},
		{PYTHON, {"celery", "a", "b", "-Q", "qqq,www"}, "celery queue: qqq,www (/my/dir)"},
		{PYTHON, {"celery", "a", "-Qqqq"}, "celery queue: qqq (/my/dir)"},
		{PYTHON, {"celery", "a", "--queues=q"}, "celery queue: q (/my/dir)"},
		{PYTHON, {"celery", "a", "b"}, NULL},
		{PYTHON, {"python", "-m", "pyspark.daemon"}, "pyspark"},
		{PYTHON, {"python2.7", "-m", "myapp.x.y"}, "python: -m myapp.x.y"},
		{PYTHON, {"python2.7", "mod.py"}, "python: mod.py (/my/dir/mod.py)"},
		{PYTHON,
		 {"python2.7", "/path/to/mod.py"},
		 "python: /path/to/mod.py (/path/to/mod.py)"},
		{"/usr/bin/node",
		 {"node", "--myflag", "myapp/myapp.js"},
		 "nodejs: myapp/myapp.js (/my/dir/myapp/myapp.js)"},
		{"/usr/bin/node",
		 {"node", "-r", "myrequire.js", "--myflag", "myapp.js"},
		 "nodejs: myapp.js (/my/dir/myapp.js)"},
		{"/usr/bin/node",
		 {"node", "--require", "r.js", "--require=q.js", "myapp.js"},
		 "nodejs: myapp.js (/my/dir/myapp.js)"},
		{"/usr/bin/ruby3.1",
		 {"ruby", "-rmyrequire.rb", "--myflag", "myapp.rb"},
		 "ruby: myapp.rb (/my/dir/myapp.rb)"},
		{"/usr/bin/ruby3.1",
		 {"ruby", "-r", "x.rb", "myapp.rb"},
		 "ruby: myapp.rb (/my/dir/myapp.rb)"},
		{"/opt/jdk/bin/java", {"java", "-jar", "Fibonacci.jar"}, "java: Fibonacci.jar"},
		{"/opt/jdk/bin/java",
		 {"/opt/jdk/bin/java", "-server", "-Xmx1g",
		  "org.apache.spark.deploy.yarn.ApplicationMaster", "--class", "X"},
		 "java: org.apache.spark.deploy.yarn.ApplicationMaster"},
	};

	CHECK_ALL(rows, "/my/dir");
}

TEST(python_is_understood_behind_any_option)
{
	static const struct row rows[] = {
		{PYTHON, {"python3", "-u", "x.py"}, "python: x.py (/my/dir/x.py)"},
		{PYTHON, {"python3", "-mfoo"}, "python: -m foo"},
		{PYTHON, {"python3", "-um", "foo"}, "python: -m foo"},
		{PYTHON, {"python3", "-W", "ignore", "-Xdev", "x"}, "python: x (/my/dir/x)"},
		{PYTHON, {"python3", "./x.py", "-m", "y"}, "python: ./x.py (/my/dir/x.py)"},
		{PYTHON, {"python3", "-c", "import x", "x.py"}, NULL},
		{PYTHON, {"python3", "-m"}, NULL},
		{PYTHON, {"python3", "-"}, NULL},
		{PYTHON, {"python3"}, NULL},
		{"/usr/bin/pypy3", {"pypy3", "x.py"}, "python: x.py (/my/dir/x.py)"},
		{"/usr/bin/python3.11 (deleted)",
		 {"python3", "x.py"},
		 "python: x.py (/my/dir/x.py)"},
		{PYTHON, {"python3", "-m", "gunicorn", "a:b"}, "gunicorn: a:b (/my/dir/a.py)"},
		{PYTHON,
		 {"python3", "-m", "gunicorn.app.wsgiapp", "a:b"},
		 "gunicorn: a:b (/my/dir/a.py)"},
		{PYTHON,
		 {"gunicorn", "--bind=0.0.0.0:80", "m:app"},
		 "gunicorn: m:app (/my/dir/m.py)"},
		{PYTHON, {"gunicorn", "--reload", "m:app"}, "gunicorn: m:app (/my/dir/m.py)"},
		{PYTHON, {"gunicorn", "-w4", "my.wsgi"}, "gunicorn: my.wsgi (/my/dir/my/wsgi.py)"},
		{PYTHON, {"python", "-u", "/v/bin/uvicorn", "a:b"}, "uvicorn: a:b (/my/dir/a.py)"},
		{PYTHON,
		 {"python", "/v/bin/hypercorn", "-w", "2", "a:b"},
		 "hypercorn: a:b (/my/dir/a.py)"},
		{PYTHON, {"flask", "--app", "hello", "run"}, "flask: hello (/my/dir/hello.py)"},
		{PYTHON, {"python", "-m", "flask", "run"}, "flask: app (/my/dir/app.py)"},
		{PYTHON, {"streamlit", "run", "a.py"}, "streamlit: a.py (/my/dir/a.py)"},
		{PYTHON, {"python", "/v/bin/poetry", "run", "-q", "web"}, "poetry: run web"},
		{"/usr/bin/uv", {"uv", "run", "web.py"}, "uv: run web.py"},
		{PYTHON,
		 {"[celeryd: celery@h:MainProcess] -active- (worker -A shop)"},
		 "celery: shop (/my/dir/shop.py)"},
		{"/usr/bin/uwsgi-core", {"uwsgi", "--module", "a:b"}, "uwsgi: a:b (/my/dir/a.py)"},
		{"/usr/bin/uwsgi", {"uwsgi", "--yaml=x.yml"}, "uwsgi: x.yml"},
	};

	CHECK_ALL(rows, "/my/dir");
}

TEST(other_languages_are_understood_too)
{
	static const struct row rows[] = {
		{"/usr/bin/node", {"node", "a.mjs"}, "nodejs: a.mjs (/my/dir/a.mjs)"},
		{"/usr/bin/node", {"node", "server"}, "nodejs: server (/my/dir/server)"},
		{"/usr/bin/node", {"node", "server", "x.js"}, "nodejs: server (/my/dir/server)"},
		{"/usr/bin/node",
		 {"node", "--unknown", "v", "a.js"},
		 "nodejs: a.js (/my/dir/a.js)"},
		{"/usr/bin/node", {"node", "-e", "1", "a.js"}, NULL},
		{"/usr/bin/node", {"node /srv/a.js"}, "nodejs: /srv/a.js (/srv/a.js)"},
		{"/usr/bin/ruby", {"ruby", "bin/rails", "server"}, "rails: server (/my/dir)"},
		{"/usr/bin/ruby",
		 {"puma 6.4.0 (tcp://0.0.0.0:3000) [shop]"},
		 "puma: shop (/my/dir)"},
		{"/usr/bin/ruby", {"puma: cluster worker 0: 7 [shop]"}, "puma: shop (/my/dir)"},
		{"/usr/bin/ruby", {"sidekiq 7.2.0 shop [0 of 5 busy]"}, "sidekiq: shop (/my/dir)"},
		{"/usr/bin/ruby",
		 {"ruby", "/gems/bin/sidekiq", "-C", "x.yml"},
		 "sidekiq: dir (/my/dir)"},
		{"/usr/bin/ruby", {"unicorn worker[0] -c c.rb"}, "unicorn: dir (/my/dir)"},
		{"/usr/bin/ruby", {"ruby", "script"}, "ruby: script (/my/dir/script)"},
		{"/usr/bin/ruby", {"ruby", "-e", "sleep", "a.rb"}, NULL},
		{"/j/java", {"java", "-cp", "a:b", "Main", "-jar", "x"}, "java: Main"},
		{"/j/java", {"java", "--add-opens", "a/b=c", "-m", "mod/Main"}, "java: mod/Main"},
		{"/j/java", {"java", "-version"}, NULL},
		{"/j/java", {"java", "-jar"}, NULL},
		{"/j/java",
		 {"java", "-Dspring.application.name=shop", "-jar", "a.jar"},
		 "java: a.jar, spring: shop"},
		{"/j/java",
		 {"java", "-jar", "a.jar", "--spring.application.name=shop"},
		 "java: a.jar, spring: shop"},
		{"/j/java",
		 {"java", "worker.org.gradle.process.internal.worker.GradleWorkerMain",
		  "'Gradle Test Executor 1'"},
		 "java: worker.org.gradle.process.internal.worker.GradleWorkerMain, "
		 "gradle: Gradle Test Executor 1"},
		{"/usr/bin/dotnet", {"dotnet", "exec", "a.dll"}, "dotnet: a.dll (/my/dir/a.dll)"},
		{"/usr/bin/dotnet", {"dotnet", "build"}, NULL},
		{"/usr/bin/php8.2", {"php", "-d", "a=b", "x.php"}, "php: x.php (/my/dir/x.php)"},
		{"/usr/bin/php8.2",
		 {"php", "artisan", "queue:work"},
		 "artisan: queue:work (/my/dir)"},
		{"/usr/sbin/php-fpm8.2", {"php-fpm: pool www"}, "php-fpm: www"},
		{"/bin/bash", {"bash", "x.py"}, NULL},
		{"/bin/node-exporter", {"node-exporter", "x.js"}, NULL},
		{"", {"-bash"}, NULL},
		{"/bin/x", {""}, NULL},
		{PYTHON, {"", "", ""}, NULL},
	};

	CHECK_ALL(rows, "/my/dir");
}

TEST(filters_choose_arguments_of_the_jvm)
{
	_cleanup_(application_options_deinit) struct application_options options =
		APPLICATION_OPTIONS_INIT;
	static const struct row row = {"/j/java",
				       {"java", "-Dapp.name=shop", "-Dapplename=x", "-cp",
					"-Dapp.name=no", "-Xmx12g", "X", "-Dapp.name=late"},
				       NULL};

	ASSERT_OK(application_add_filter(&options, "-Dapp\\.name"));
	_cleanup_free_ char *one = named(&options, &row, "/");
	ASSERT_STREQ(one, "java: X (-Dapp.name=shop)");
	ASSERT_OK(application_add_filter(&options, "^-Xmx(?:\\d+)g$"));
	_cleanup_free_ char *two = named(&options, &row, "/");
	ASSERT_STREQ(two, "java: X (-Dapp.name=shop -Xmx12g)");
	ASSERT_FAILS(application_add_filter(&options, "("), "\"(\"");
	ASSERT_FAILS(application_add_filter(&options, "(?=a)"), "not known");
	ASSERT_FAILS(application_add_filter(&options, ""), "empty");
}

/* A directory of this test's own. */
static char directory[64];

static int make_directory(void **state)
{
	(void)snprintf(directory, sizeof(directory), "/tmp/cairn-application-XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	_cleanup_free_ char *command = NULL;

	ASSERT_OK(str_format(&command, "rm -r %s", directory));
	return system(command);
}

static void make_file(const char *name, const char *text)
{
	_cleanup_free_ char *path = NULL;

	ASSERT_OK(str_format(&path, "%s/%s", directory, name));
	_cleanup_fclose_ FILE *file = fopen(path, "we");
	ASSERT_TRUE(file != NULL);
	ASSERT_TRUE(fputs(text, file) >= 0);
}

static void make_sub_directory(const char *name)
{
	_cleanup_free_ char *path = NULL;

	ASSERT_OK(str_format(&path, "%s/%s", directory, name));
	ASSERT_EQ(mkdir(path, 0755), 0);
}

/* That ROW gives FORMAT with the directory in it. */
static void check_in_directory(const struct application_options *options, const struct row *row)
{
	_cleanup_free_ char *text = named(options, row, directory);
	_cleanup_free_ char *expected = NULL;
	const char *at = strchr(row->expected, '@');

	ASSERT_OK(str_format(&expected, "%.*s%s%s", (int)(at ? at - row->expected : 0),
			     row->expected, at ? directory : "", at ? at + 1 : row->expected));
	ASSERT_TRUE(text != NULL);
	ASSERT_STREQ(text, expected);
}

TEST(files_of_the_application_are_read)
{
	static const struct row rows[] = {
		{"/usr/bin/uwsgi",
		 {"uwsgi", "--ini=my.ini", "my2.ini"},
		 "uwsgi: my.ini (@/mymod.py)"},
		{"/usr/bin/uwsgi", {"uwsgi", "my.ini"}, "uwsgi: my.ini (@/mymod.py)"},
		{"/usr/bin/uwsgi", {"uwsgi", "--ini", "my.ini:two"}, "uwsgi: my.ini:two (@/b.py)"},
		{"/usr/bin/uwsgi", {"uwsgi", "--ini", "none.ini"}, "uwsgi: none.ini"},
		{PYTHON,
		 {"python", "-m", "gunicorn", "pack:app"},
		 "gunicorn: pack:app (@/pack/__init__.py)"},
		{PYTHON, {"python", "link"}, "python: link (@/pack/__init__.py)"},
		{PYTHON, {"flask", "run"}, "flask: wsgi (@/wsgi.py)"},
	};
	_cleanup_free_ char *link = NULL;

	make_file("my.ini", "[other]\nmodule = no\n\n[uwsgi]\n; module = x\nmodule = mymod\n"
			    "[two]\nmodule=b:app\n");
	make_sub_directory("pack");
	make_file("pack/__init__.py", "");
	make_file("wsgi.py", "");
	ASSERT_OK(str_format(&link, "%s/link", directory));
	ASSERT_EQ(symlink("pack/__init__.py", link), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_in_directory(&plain, &rows[i]);
}

TEST(an_executor_of_spark_has_the_name_of_its_application)
{
	static const struct application_options spark = {.spark = true};
	static const struct row found = {
		"/j/java",
		{"java", "org.apache.spark.executor.CoarseGrainedExecutorBackend"},
		"java: org.apache.spark.executor.CoarseGrainedExecutorBackend, "
		"spark: nightly-etl"};
	static const struct row missing = {
		"/j/java",
		{"java", "org.apache.spark.executor.X"},
		"java: org.apache.spark.executor.X, spark: app name not found"};
	static const struct row other = {"/j/java", {"java", "X"}, "java: X"};

	check_in_directory(&spark, &missing);
	make_sub_directory("__spark_conf__");
	make_file("__spark_conf__/__spark_conf__.properties",
		  "# made by Spark\nspark.app.id=7\nspark.app.name=nightly-etl\n");
	check_in_directory(&spark, &found);
	check_in_directory(&spark, &other);
}

TEST(a_text_is_not_longer_than_it_may_be)
{
	_cleanup_free_ char *name = calloc(1, 2 * APPLICATION_TEXT_MAX);

	ASSERT_TRUE(name != NULL);
	for (size_t i = 0; i < 2 * APPLICATION_TEXT_MAX - 3; i += 2)
		memcpy(name + i, "\xc3\xa9", 2);
	struct row row = {PYTHON, {"python", "-m", name}, NULL};
	_cleanup_free_ char *text = named(&plain, &row, "/");
	ASSERT_TRUE(strlen(text) <= APPLICATION_TEXT_MAX);
	ASSERT_STREQ(text + strlen(text) - 5, "\xc3\xa9...");
}

/* Start the program ARGV[0] calls itself, as ARGV, with a variable and in the directory. */
static pid_t start(const char *program, char *const *argv)
{
	int ready[2];
	char byte;

	ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (!pid) {
		if (!chdir(directory))
			execve(program, argv, (char *[]){"SPRING_APPLICATION_NAME=shop", NULL});
		_exit(1);
	}
	close(ready[1]);
	ASSERT_EQ(read(ready[0], &byte, 1), 0); // closed by its exec
	close(ready[0]);
	return pid;
}

static void check_process(const char *program, char *const *argv, const char *expected)
{
	_cleanup_free_ char *text = NULL;
	pid_t pid = start(program, argv);

	ASSERT_OK(application_find(&plain, pid, &text));
	ASSERT_EQ(kill(pid, SIGKILL), 0);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	ASSERT_STREQ(text ? text : "none", expected);
}

/* A copy of sleep under NAME: a process that runs what is called so. */
static void make_program(const char *name, char **ret)
{
	_cleanup_free_ char *command = NULL;

	ASSERT_OK(str_format(ret, "%s/%s", directory, name));
	ASSERT_OK(str_format(&command, "cp /bin/sleep %s", *ret));
	ASSERT_EQ(system(command), 0);
}

TEST(a_process_is_looked_at_from_outside)
{
	_cleanup_free_ char *large = malloc(100001);
	_cleanup_free_ char *java = NULL;
	_cleanup_free_ char *python = NULL;

	ASSERT_TRUE(large != NULL);
	memset(large, 'a', 100000);
	large[100000] = 0;
	make_program("java", &java);
	make_program("python3", &python);
	check_process("/bin/sleep", (char *[]){"sleep", "9", NULL}, "none");
	// What runs decides, not what it calls itself; and class paths are long.
	check_process("/bin/sleep", (char *[]){"java", "9", NULL}, "none");
	check_process(java, (char *[]){"sleep", "9", NULL}, "appid: java: 9, spring: shop");
	check_process(java, (char *[]){"java", "9", large, large, large, large, large, NULL},
		      "appid: java: 9, spring: shop");
	check_process(python, (char *[]){"pyth\xff\n", "9", NULL}, "none");
}

TEST(go_programs_say_what_they_were_built_of)
{
	static const struct row row = {"/usr/local/go/bin/go", {"go"}, "go: cmd/go"};

	if (access(row.exe, R_OK))
		SKIP("needs a Go toolchain in /usr/local/go");
	check(&row, "/");
}

RUN_TESTS(UNIT_TEST(the_examples_of_gprofiler_have_its_texts),
	  UNIT_TEST(python_is_understood_behind_any_option),
	  UNIT_TEST(other_languages_are_understood_too),
	  UNIT_TEST(go_programs_say_what_they_were_built_of),
	  UNIT_TEST(filters_choose_arguments_of_the_jvm),
	  cmocka_unit_test_setup_teardown(files_of_the_application_are_read, make_directory,
					  remove_directory),
	  cmocka_unit_test_setup_teardown(an_executor_of_spark_has_the_name_of_its_application,
					  make_directory, remove_directory),
	  UNIT_TEST(a_text_is_not_longer_than_it_may_be),
	  cmocka_unit_test_setup_teardown(a_process_is_looked_at_from_outside, make_directory,
					  remove_directory))
