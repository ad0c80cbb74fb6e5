/* SPDX-License-Identifier: Apache-2.0 */
/* Processes as JSON. Members are added in later versions, never renamed or taken away. */
#include <inttypes.h>

#include "cli/dump-print.h"
#include "formats/emit.h"

enum { SCHEMA = 1 };

static void put_text(struct emit *emit, const char *key, const char *text)
{
	if (text)
		emit_string(emit, key, text);
	else
		emit_null(emit, key);
}

static void put_number(struct emit *emit, const char *key, uint64_t number)
{
	if (number)
		emit_number(emit, key, number);
	else
		emit_null(emit, key);
}

/* JSON numbers are doubles to most readers, and kernel addresses are beyond their 53 bits. */
static void put_address(struct emit *emit, const char *key, uint64_t addr)
{
	char text[19];

	snprintf(text, sizeof(text), "0x%" PRIx64, addr);
	put_text(emit, key, addr ? text : NULL);
}

static const char *kind_name(enum frame_kind kind)
{
	static const char *const names[KIND_MAX] = {
#define KIND(name, id, help) [id] = #name,
#include "abi/kinds.def"
#undef KIND
	};

	return kind < KIND_MAX ? names[kind] : NULL;
}

static void put_locals(struct emit *emit, const struct target_frame *frame)
{
	emit_array(emit, "locals");
	for (size_t i = 0; i < frame->locals; i++) {
		emit_object(emit, NULL);
		emit_string(emit, "name", frame->local[i].name);
		emit_string(emit, "value", frame->local[i].value);
		emit_bool(emit, "argument", frame->local[i].argument);
		emit_object_end(emit);
	}
	emit_array_end(emit);
}

static void put_frame(struct emit *emit, const struct target_frame *frame)
{
	emit_object(emit, NULL);
	put_text(emit, "kind", kind_name(frame->kind));
	put_text(emit, "function", frame->function);
	put_text(emit, "file", frame->file);
	put_number(emit, "line", frame->line);
	put_number(emit, "first_line", frame->first_line);
	put_text(emit, "object", frame->object);
	put_address(emit, "pc", frame->pc);
	emit_bool(emit, "inlined", frame->inlined);
	if (frame->local)
		put_locals(emit, frame);
	emit_object_end(emit);
}

static void put_frames(struct emit *emit, const struct target_frames *frames)
{
	emit_array(emit, "frames");
	for (size_t i = 0; i < frames->count; i++)
		put_frame(emit, &frames->frame[i]);
	emit_array_end(emit);
}

static const char *end_name(enum walk_end end)
{
	static const char *const names[END_MAX] = {
#define END(name, id, whole, text) [id] = #name,
#include "abi/ends.def"
#undef END
	};

	return end < END_MAX ? names[end] : NULL;
}

static void put_thread(struct emit *emit, const struct dump_thread *thread)
{
	emit_object(emit, NULL);
	emit_number(emit, "tid", (uint64_t)thread->tid);
	put_text(emit, "name", thread->name);
	emit_bool(emit, "main", thread->main);
	put_text(emit, "python_name", thread->python_name);
	put_number(emit, "python_id", thread->python_id);
	put_text(emit, "state", dump_state_name(thread->state));
	put_text(emit, "waits_in", thread->waits_in);
	emit_number(emit, "stopped_us", (thread->stopped_ns + 999) / 1000);
	put_text(emit, "end", end_name(thread->end));
	put_frames(emit, &thread->frames);
	emit_object_end(emit);
}

static void put_task(struct emit *emit, const struct dump *dump, const struct dump_task *task)
{
	long waits = task->waits_for, by = task->awaited_by;

	emit_object(emit, NULL);
	put_address(emit, "id", task->addr);
	put_text(emit, "name", task->name);
	put_number(emit, "tid", (uint64_t)task->tid);
	put_text(emit, "state", dump_task_state_name(task->state));
	put_address(emit, "waits_for", waits < 0 ? 0 : dump->task[waits].addr);
	put_address(emit, "awaited_by", by < 0 ? 0 : dump->task[by].addr);
	put_frames(emit, &task->frames);
	emit_object_end(emit);
}

static void put_process(struct emit *emit, const struct dump *dump)
{
	emit_object(emit, "process");
	put_number(emit, "pid", (uint64_t)dump->pid);
	put_text(emit, "name", dump->name);
	put_text(emit, "command", dump->command);
	put_text(emit, "exe", dump->exe);
	put_text(emit, "python", dump->python);
	emit_object_end(emit);
	emit_array(emit, "threads");
	for (size_t i = 0; i < dump->count; i++)
		put_thread(emit, &dump->thread[i]);
	emit_array_end(emit);
	emit_array(emit, "tasks");
	for (size_t i = 0; i < dump->tasks; i++)
		put_task(emit, dump, &dump->task[i]);
	emit_array_end(emit);
	emit_array(emit, "notes");
	for (size_t i = 0; i < dump->notes; i++)
		emit_string(emit, NULL, dump->note[i]);
	emit_array_end(emit);
}

void dump_print_json(const struct dump *dump, const char *version, FILE *out)
{
	struct emit emit = emit_to(out, EMIT_ascii);

	emit_object(&emit, NULL);
	emit_number(&emit, "schema", SCHEMA);
	emit_string(&emit, "cairn", version);
	put_process(&emit, dump);
	emit_object_end(&emit);
	putc('\n', out);
}
