/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go programs for tests, built when the first test asks for them by every toolchain found: those
 * that CAIRN_GO names (paths of go commands, separated by colons) or else `go` in PATH,
 * /usr/local/go and /usr/lib/go-*. They are gone when the test ends.
 */
#pragma once

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"

#include "unit.h"

enum { GO_PROGRAMS_MAX = 64, GO_TOOLCHAINS_MAX = 16 };

struct go_program {
	char *label; /* "/usr/local/go pie" */
	char *path;
	bool symbols; /* not stripped */
	bool c;       /* has C code */
	int plain; /* number of the program that differs from this one in symbols only; -1: none */
};

struct go_programs {
	char dir[32];
	struct go_program program[GO_PROGRAMS_MAX];
	int count;
};

static const char go_source[] =
	"package main\n"
	"\n"
	"import (\n"
	"\t\"os\"\n"
	"\t\"sort\"\n"
	"\t\"strings\"\n"
	"\t\"time\"\n"
	")\n"
	"\n"
	"type shape interface{ area(scale int) int }\n"
	"type square struct{ side int }\n"
	"\n"
	"func (s *square) area(scale int) int { return s.side * s.side * scale }\n"
	"\n"
	"func inner(x int) int  { return x ^ 0x55 + 1 }\n"
	"func middle(x int) int { return inner(x)*3 + x }\n"
	"func outer(x int) int  { return middle(x) + inner(x>>3) }\n"
	"\n"
	"//go:noinline\n"
	"func sum(a []int, s shape) (total int) {\n"
	"\tdefer func() { total++ }()\n"
	"\tfor _, v := range a {\n"
	"\t\ttotal += outer(v) + s.area(v)\n"
	"\t}\n"
	"\treturn total\n"
	"}\n"
	"\n"
	"//go:noinline\n"
	"func deep(n int) int {\n"
	"\tvar room [64]int\n"
	"\tif n == 0 {\n"
	"\t\treturn int(time.Now().UnixNano() & 1)\n"
	"\t}\n"
	"\troom[n%64] = deep(n - 1)\n"
	"\treturn room[n%64] + room[(n+1)%64]\n"
	"}\n"
	"\n"
	"//go:noinline\n"
	"func work(n int) int {\n"
	"\tnames := strings.Split(strings.Repeat(\"c,a,b,\", n), \",\")\n"
	"\tsort.Strings(names)\n"
	"\ttable := map[string]int{}\n"
	"\tfor i, name := range names {\n"
	"\t\ttable[name] += i\n"
	"\t}\n"
	"\tdone := make(chan int)\n"
	"\tgo func() { done <- deep(n) }()\n"
	"\treturn sum([]int{n, len(names), table[\"a\"]}, &square{n}) + <-done\n"
	"}\n"
	"\n"
	"func main() {\n"
	"\tprintln(work(len(os.Args) + 30))\n"
	"}\n";

/* The same with a call to C that calls back. */
static const char go_c_source[] = "package main\n"
				  "\n"
				  "/*\n"
				  "extern int called(int);\n"
				  "static int call(int n) { return called(n) + 1; }\n"
				  "*/\n"
				  "import \"C\"\n"
				  "\n"
				  "//export called\n"
				  "func called(n C.int) C.int { return C.int(sum([]int{int(n)}, "
				  "&square{2})) }\n"
				  "\n"
				  "func init() { println(C.call(3)) }\n";

static void go_write(const char *dir, const char *name, const char *text)
{
	_cleanup_free_ char *path = NULL;

	ASSERT_OK(str_format(&path, "%s/%s", dir, name));
	_cleanup_fclose_ FILE *file = fopen(path, "we");
	ASSERT_TRUE(file != NULL);
	ASSERT_TRUE(fputs(text, file) >= 0);
}

/* Build one program; false: this toolchain cannot build this kind. */
static bool go_build(struct go_programs *programs, const char *go, const char *kind,
		     const char *options)
{
	struct go_program *program = &programs->program[programs->count];
	_cleanup_free_ char *command = NULL;
	char root[PATH_MAX];

	ASSERT_TRUE(programs->count < GO_PROGRAMS_MAX);
	// A toolchain that was moved does not know its root.
	if (!realpath(go, root))
		return false;
	for (int i = 0; i < 2; i++)
		*strrchr(root, '/') = 0;
	ASSERT_OK(str_format(&program->label, "%s %s", root, kind));
	ASSERT_OK(str_format(&program->path, "%s/program-%d", programs->dir, programs->count));
	ASSERT_OK(str_format(&command,
			     "cd %s/%s && env -u GOFLAGS GOENV=off GO111MODULE=on GOTOOLCHAIN=local"
			     " GOPROXY=off GOROOT='%s' CGO_ENABLED=%d '%s' build -o ../program-%d"
			     " %s . >build.log 2>&1",
			     programs->dir, strstr(kind, "C") ? "c" : "plain", root,
			     strstr(kind, "C") != NULL, go, programs->count, options));
	if (system(command) != 0) {
		print_message("%s: not built\n", program->label);
		free(program->label);
		free(program->path);
		*program = (struct go_program){0};
		return false;
	}
	program->symbols = true;
	program->plain = -1;
	programs->count++;
	return true;
}

static void go_build_all(struct go_programs *programs, const char *go)
{
	int plain = programs->count;

	if (!go_build(programs, go, "plain", ""))
		return;
	if (go_build(programs, go, "stripped", "-ldflags='-s -w'")) {
		programs->program[programs->count - 1].symbols = false;
		programs->program[programs->count - 1].plain = plain;
	}
	go_build(programs, go, "pie", "-buildmode=pie");
	if (system("command -v gcc >/dev/null") == 0 &&
	    go_build(programs, go, "C pie", "-buildmode=pie"))
		programs->program[programs->count - 1].c = true;
	if (system("command -v clang >/dev/null && command -v ld.lld >/dev/null") == 0 &&
	    go_build(programs, go, "C pie by lld",
		     "-buildmode=pie -ldflags='-extld=clang -extldflags=-fuse-ld=lld'"))
		programs->program[programs->count - 1].c = true;
}

/* Every go command there is, each once. */
static size_t go_find_all(char found[GO_TOOLCHAINS_MAX][PATH_MAX])
{
	_cleanup_free_ char *list = NULL;
	const char *path = getenv("PATH");
	glob_t more = {0};
	size_t count = 0;

	ASSERT_OK(str_copy(&list, getenv("CAIRN_GO") ? getenv("CAIRN_GO") : ""));
	if (!*list) {
		_cleanup_(strbuf_deinit) struct strbuf all = STRBUF_INIT;
		_cleanup_free_ char *dirs = NULL;

		ASSERT_OK(str_copy(&dirs, path ? path : ""));
		char *rest = dirs;
		for (char *dir; (dir = strsep(&rest, ":"));)
			ASSERT_OK(strbuf_addf(&all, "%s/go:", dir));
		ASSERT_OK(strbuf_addf(&all, "/usr/local/go/bin/go"));
		glob("/usr/lib/go-*/bin/go", 0, NULL, &more);
		for (size_t i = 0; i < more.gl_pathc; i++)
			ASSERT_OK(strbuf_addf(&all, ":%s", more.gl_pathv[i]));
		globfree(&more);
		free(list);
		list = take(all.text);
	}
	char *rest = list;
	for (char *go; count < GO_TOOLCHAINS_MAX && (go = strsep(&rest, ":"));) {
		size_t known = 0;
		if (access(go, X_OK) || !realpath(go, found[count]))
			continue;
		while (strcmp(found[known], found[count]) != 0)
			known++;
		count += known == count;
	}
	return count;
}

static struct go_programs go_all;

static void go_remove_all(void)
{
	_cleanup_free_ char *command = NULL;

	for (int i = 0; i < go_all.count; i++) {
		free(go_all.program[i].label);
		free(go_all.program[i].path);
	}
	error_free(str_format(&command, "rm -rf %s", go_all.dir));
	if (command && system(command) != 0)
		print_message("%s: not removed\n", go_all.dir);
}

/* The programs, built at the first call. None: there is no Go. */
static const struct go_programs *go_programs(void)
{
	static char found[GO_TOOLCHAINS_MAX][PATH_MAX];
	_cleanup_free_ char *plain = NULL, *c = NULL;

	if (*go_all.dir)
		return &go_all;
	snprintf(go_all.dir, sizeof(go_all.dir), "/tmp/cairn-go-XXXXXX");
	ASSERT_TRUE(mkdtemp(go_all.dir) != NULL);
	atexit(go_remove_all);
	ASSERT_OK(str_format(&plain, "mkdir %s/plain %s/c", go_all.dir, go_all.dir));
	ASSERT_EQ(system(plain), 0);
	for (int i = 0; i < 2; i++) {
		_cleanup_free_ char *dir = NULL;
		ASSERT_OK(str_format(&dir, "%s/%s", go_all.dir, i ? "c" : "plain"));
		go_write(dir, "go.mod", "module program\n\ngo 1.16\n");
		go_write(dir, "main.go", go_source);
		if (i)
			go_write(dir, "c.go", go_c_source);
	}
	size_t count = go_find_all(found);
	for (size_t i = 0; i < count; i++)
		go_build_all(&go_all, found[i]);
	return &go_all;
}
