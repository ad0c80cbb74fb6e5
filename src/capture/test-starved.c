/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a live process and at a core, with memory running out at any moment. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/dump-core.h"
#include "capture/dump-process.h"
#include "starved.h"
#include "unit.h"

/* A process takes some 700, and each try compiles rows of large programs. */
enum { SOME = 60, ALL = 1000 };

static const struct dump_options options = {.native = true, .stop_limit_ms = 1000, .locals = 1};

static struct error *look_at_process(void *context)
{
	const pid_t *pid = context;
	_cleanup_(dump_deinit) struct dump dump = DUMP_INIT;

	return dump_process(*pid, &options, &dump);
}

/* A program in Debian's interpreter that waits; its first line has been read. */
static pid_t start_python(FILE **ret)
{
	static const char program[] =
		"import threading, time\n"
		"def wait(n):\n"
		"    if n: wait(n - 1)\n"
		"    time.sleep(1000)\n"
		"threading.Thread(target=wait, args=(3,), daemon=True).start()\n"
		"time.sleep(0.2)\n"
		"print('ready', flush=True)\n"
		"wait(2)\n";
	int out[2];

	ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], STDOUT_FILENO);
		execl("/usr/bin/python3", "python3", "-c", program, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	*ret = fdopen(out[0], "r");
	return pid;
}

TEST(a_process_is_looked_at_or_memory_ran_out)
{
	_cleanup_fclose_ FILE *told = NULL;
	char line[64];

	if (access("/usr/bin/python3", X_OK))
		SKIP("no /usr/bin/python3");
	pid_t pid = start_python(&told);
	ASSERT_TRUE(pid > 0 && fgets(line, sizeof(line), told));
	starved_try(look_at_process, &pid, SOME);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static struct error *look_at_core(void *context)
{
	const struct dump_core_source source = {.path = context};
	_cleanup_(dump_deinit) struct dump dump = DUMP_INIT;

	return dump_core(&source, &options, &dump);
}

TEST(a_core_is_looked_at_or_memory_ran_out)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/corpus/core/usual", getenv("CAIRN_TESTS"));
	starved_try(look_at_core, path, ALL);
}

RUN_TESTS(UNIT_TEST(a_core_is_looked_at_or_memory_ran_out),
	  UNIT_TEST(a_process_is_looked_at_or_memory_ran_out))
