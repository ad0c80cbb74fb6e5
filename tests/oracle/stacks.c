/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of all threads of a process by the host walker, with names: stacks PID. The threads
 * are stopped one after the other, and go on afterwards.
 *
 * Lines, fields separated by tabs:
 *   thread TID END
 *   frame PC OBJECT NAMED FUNCTION
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/str.h"
#include "machine.h"
#include "proc/process.h"

static struct error *print_frames(struct machine *machine, const struct host_walk *walk,
				  const uint64_t *frames)
{
	for (unsigned i = 0; i < walk->walk.frames; i++) {
		uint64_t pc = frames[i] & ~SAMPLE_EXACT_PC;
		struct machine_place place;
		TRY(machine_place(machine, pc, !(frames[i] & SAMPLE_EXACT_PC), &place));
		printf("frame\t%" PRIx64 "\t%s\t%d\t%s\n", pc, place.object, place.named,
		       place.function);
	}
	return NULL;
}

/* A thread that is stopped. */
static struct error *print_thread(struct machine *machine, pid_t tid)
{
	static uint64_t frames[SAMPLE_USER_FRAMES];
	struct user_regs_struct regs;
	struct host_walk walk;

	if (ptrace(PTRACE_GETREGS, tid, 0, &regs))
		return error_errno("registers of %d", tid);
	TRY(machine_walk(machine, &regs, SAMPLE_USER_FRAMES, frames, &walk));
	printf("thread\t%d\t%s\n", tid, walk_end_text(walk.walk.end));
	return print_frames(machine, &walk, frames);
}

static struct error *stop_and_print(struct machine *machine, pid_t tid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, tid, 0, 0))
		// Gone since the list was made, or a zombie.
		return errno == ESRCH || errno == EPERM ? NULL : error_errno("seize %d", tid);
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0))
		return error_errno("interrupt %d", tid);
	if (waitpid(tid, &status, __WALL) != tid)
		return error_errno("wait for %d", tid);
	if (!WIFSTOPPED(status))
		return NULL;
	struct error *err = print_thread(machine, tid);
	// A thread that goes away by itself needs no detaching.
	ptrace(PTRACE_DETACH, tid, 0, 0);
	return err;
}

static struct error *run(pid_t pid)
{
	_cleanup_(pids_deinit) struct pids tids = PIDS_INIT;
	struct machine *machine;

	TRY(process_list_threads(pid, &tids));
	TRY(machine_new(pid, &machine));
	struct error *err = NULL;
	for (size_t i = 0; !err && i < tids.count; i++)
		err = stop_and_print(machine, tids.pid[i]);
	machine_free(machine);
	return err;
}

int main(int count, char **arguments)
{
	uint64_t pid;

	if (count != 2 || !str_parse_u64(arguments[1], 1, PIDS_MAX, &pid)) {
		fprintf(stderr, "stacks PID\n");
		return 2;
	}
	struct error *err = run((pid_t)pid);
	if (err)
		fprintf(stderr, "%s\n", error_text(err));
	bool failed = err != NULL;
	error_free(err);
	return failed;
}
