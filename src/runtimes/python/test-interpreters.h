/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of this folder share: the interpreters of this machine, and programs in them. */
#pragma once

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "proc/process-memory.h"
#include "runtimes/python/layout.h"
#include "unit.h"

enum { INTERPRETERS_MAX = 64 };

/* Paths of interpreters, each once. tests/e2e/pythons.py looks in the same places. */
struct interpreters {
	char *path[INTERPRETERS_MAX];
	size_t count;
};

static inline void interpreters_deinit(struct interpreters *found)
{
	for (size_t i = 0; i < found->count; i++)
		free(found->path[i]);
}

/* Is it there under this name or, as a hard link, another one? */
static inline bool interpreters_has(const struct interpreters *found, const char *path)
{
	struct stat one, other;

	if (stat(path, &one))
		return true;
	for (size_t i = 0; i < found->count; i++)
		if (!stat(found->path[i], &other) && one.st_dev == other.st_dev &&
		    one.st_ino == other.st_ino)
			return true;
	return false;
}

/* Is PATH python3.14, python3.14t, ... and no python3.14-config? */
static inline bool is_interpreter(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	size_t digits = strspn(name + strlen("python"), "0123456789.");
	const char *rest = name + strlen("python") + digits;

	return !rest[strspn(rest, "dt")] && !access(path, X_OK);
}

static inline struct interpreters interpreters_find(void)
{
	struct interpreters found = {0};
	char mine[PATH_MAX];
	const char *home = getenv("HOME");
	const char *places[] = {"/usr/bin/python[23].*", mine, "/opt/pythons/*/bin/python[23].*"};

	snprintf(mine, sizeof(mine), "%s/.pyenv/versions/*/bin/python[23].*", home ? home : "");
	for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
		glob_t paths = {0};
		glob(places[i], 0, NULL, &paths);
		for (size_t k = 0; k < paths.gl_pathc; k++) {
			char *path = is_interpreter(paths.gl_pathv[k])
					     ? realpath(paths.gl_pathv[k], NULL)
					     : NULL;
			if (path && found.count < INTERPRETERS_MAX &&
			    !interpreters_has(&found, path))
				found.path[found.count++] = path;
			else
				free(path);
		}
		globfree(&paths);
	}
	return found;
}

/* A program that runs in an interpreter, ends with the test, and waits for the end of its input
 * when it has told what it has to tell. */
struct target {
	pid_t pid;
	FILE *told;
	int hold; /* its input; -1 once closed */
};

static inline void target_stop(struct target *target)
{
	if (target->hold >= 0)
		close(target->hold);
	if (target->told)
		fclose(target->told);
	if (target->pid > 0) {
		kill(target->pid, SIGKILL);
		waitpid(target->pid, NULL, 0);
	}
}

/* Run PROGRAM, a file below tests/, in INTERPRETER. */
static inline struct target target_start(const char *interpreter, const char *program)
{
	char path[PATH_MAX];
	int in[2], out[2];

	snprintf(path, sizeof(path), "%s/%s", getenv("CAIRN_TESTS"), program);
	ASSERT_EQ(pipe2(in, O_CLOEXEC), 0);
	ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
		execl(interpreter, interpreter, path, (char *)NULL);
		_exit(127);
	}
	ASSERT_TRUE(pid > 0);
	close(in[0]);
	close(out[1]);
	return (struct target){.pid = pid, .told = fdopen(out[0], "r"), .hold = in[1]};
}
