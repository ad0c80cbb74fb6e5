/* SPDX-License-Identifier: Apache-2.0 */
/* What was seen of a process: filling it. Who looks is dump-process.c and dump-core.c. */
#include "capture/dump.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"

const char *dump_state_name(enum dump_state state)
{
	static const char *const names[DUMP_STATES] = {
		[DUMP_unknown] = "unknown",
		[DUMP_running] = "running",
		[DUMP_waiting] = "waiting",
		[DUMP_idle] = "idle",
		[DUMP_gil_holder] = "gil-holder",
		[DUMP_gil_waiter] = "gil-waiter",
		[DUMP_disk] = "disk",
		[DUMP_stopped] = "stopped",
		[DUMP_ended] = "ended",
		[DUMP_signalled] = "signalled",
	};

	return state < DUMP_STATES ? names[state] : names[DUMP_unknown];
}

const char *dump_task_state_name(enum dump_task_state state)
{
	static const char *const names[DUMP_TASK_STATES] = {
		[DUMP_TASK_waiting] = "waiting",
		[DUMP_TASK_ready] = "ready",
		[DUMP_TASK_running] = "running",
	};

	return names[state];
}

void dump_deinit(struct dump *dump)
{
	for (size_t i = 0; i < dump->count; i++)
		target_frames_deinit(&dump->thread[i].frames);
	free(dump->thread);
	for (size_t i = 0; i < dump->tasks; i++)
		target_frames_deinit(&dump->task[i].frames);
	free(dump->task);
	free(dump->note);
	arena_deinit(&dump->texts);
	target_close(dump->target);
	*dump = (struct dump)DUMP_INIT;
}

struct error *dump_add_thread(struct dump *dump, const struct dump_thread *thread,
			      struct dump_thread **ret)
{
	TRY(ARRAY_RESERVE(dump->thread, dump->room, dump->count, 1, DUMP_THREADS_MAX,
			  "threads in one process"));
	dump->thread[dump->count] = *thread;
	*ret = &dump->thread[dump->count++];
	return NULL;
}

struct error *dump_text(struct dump *dump, const char *text, const char **ret)
{
	return arena_copy(&dump->texts, text, strlen(text), ret);
}

struct error *dump_note(struct dump *dump, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (size_t i = 0; i < dump->notes; i++)
		if (!strcmp(dump->note[i], text))
			return NULL;
	// The first ones say what there is to say.
	if (dump->notes == DUMP_NOTES_MAX)
		return NULL;
	TRY(ARRAY_RESERVE(dump->note, dump->note_room, dump->notes, 1, DUMP_NOTES_MAX, "notes"));
	TRY(dump_text(dump, text, &dump->note[dump->notes]));
	dump->notes++;
	return NULL;
}

struct error *dump_note_variables(struct dump *dump, pid_t tid, const struct target_stack *stack)
{
	if (stack->variables < TARGET_VARIABLES_MAX)
		return NULL;
	return dump_note(dump,
			 "of thread %d the first %d variables are shown, and none further out", tid,
			 TARGET_VARIABLES_MAX);
}

struct error *dump_describe_python(struct dump *dump)
{
	const char *refused = target_python_refused(dump->target);
	char version[PYTHON_VERSION_TEXT_MAX];

	if (refused)
		return dump_note(dump, "no frames of Python: %s", refused);
	return target_python_version(dump->target, version)
		       ? dump_text(dump, version, &dump->python)
		       : NULL;
}
