/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame graph in one file: the viewer's page with the profile in it as JSON, version 1 of the
 * layout that ui/README.md describes. The profile goes out column by column as it is, so that the
 * size of a profile costs no memory here.
 */
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "formats/emit.h"
#include "formats/format.h"
#include "formats/viewer.h"

/* The viewer keeps numbers of lines and processes in signed 32-bit columns and refuses others. */
enum { COLUMN_MAX = 0x7ffffffe };

static const char *const kind_names[KIND_MAX] = {
#define KIND(name, id, help) [id] = #name,
#include "abi/kinds.def"
#undef KIND
};

static void emit_time(struct emit *emit, const char *key, uint64_t realtime_ns)
{
	char time[21];

	if (!realtime_ns)
		return;
	clock_format_utc(realtime_ns, time);
	memcpy(time + 19, "Z", 2);
	emit_string(emit, key, time);
}

static void emit_known(struct emit *emit, const char *key, uint64_t value)
{
	if (value)
		emit_number(emit, key, value);
}

static void emit_cuts(struct emit *emit, const struct session_facts *facts)
{
	if (!facts->cut_count)
		return;
	emit_array(emit, "cut");
	for (size_t i = 0; i < facts->cut_count; i++) {
		emit_object(emit, NULL);
		emit_string(emit, "reason", facts->cuts[i].reason);
		emit_number(emit, "samples", facts->cuts[i].samples);
		emit_object_end(emit);
	}
	emit_array_end(emit);
}

static void emit_notes(struct emit *emit, const struct profile *profile)
{
	const struct session_facts *facts = profile_facts_const(profile);

	if (!facts->note_count)
		return;
	emit_array(emit, "notes");
	for (size_t i = 0; i < facts->note_count; i++)
		format_emit_known(emit, NULL, profile, facts->notes[i]);
	emit_array_end(emit);
}

static void emit_session(struct emit *emit, const struct profile *profile)
{
	const struct session_facts *facts = profile_facts_const(profile);

	emit_object(emit, "session");
	format_emit_known(emit, "title", profile, facts->title);
	format_emit_known(emit, "host", profile, facts->host);
	emit_time(emit, "start", facts->start_realtime_ns);
	emit_time(emit, "end", facts->end_realtime_ns);
	if (facts->start_realtime_ns && facts->end_realtime_ns > facts->start_realtime_ns)
		emit_thousandths(emit, "duration_s",
				 (facts->end_realtime_ns - facts->start_realtime_ns) / 1000000);
	emit_known(emit, "rate_hz", facts->rate_hz);
	format_emit_known(emit, "event", profile, facts->event);
	emit_known(emit, "cpus", facts->cpus);
	format_emit_known(emit, "kernel", profile, facts->kernel);
	format_emit_known(emit, "version", profile, facts->version);
	format_emit_known(emit, "command", profile, facts->command);
	emit_known(emit, "samples", facts->samples);
	emit_known(emit, "lost", facts->lost);
	emit_cuts(emit, facts);
	emit_notes(emit, profile);
	emit_object_end(emit);
}

static void emit_kinds(struct emit *emit)
{
	size_t count = KIND_MAX;

	while (!kind_names[count - 1])
		count--;
	emit_array(emit, "kinds");
	for (size_t i = 0; i < count; i++)
		emit_string(emit, NULL, kind_names[i] ? kind_names[i] : "unknown");
	emit_array_end(emit);
}

static void emit_strings(struct emit *emit, const struct profile *profile)
{
	emit_array(emit, "strings");
	for (string_id id = 0; id < profile_strings(profile); id++) {
		size_t length;
		const char *text = profile_text(profile, id, &length);
		emit_text(emit, NULL, text, length);
	}
	emit_array_end(emit);
}

/* A column of the table of frames. */
typedef int64_t column_fn(const struct frame *frame);

/* An optional text: -1 for none. */
static int64_t optional(string_id id)
{
	return id ? (int64_t)id : -1;
}

static int64_t frame_name(const struct frame *frame)
{
	return frame->function;
}

static int64_t frame_kind(const struct frame *frame)
{
	return frame->kind;
}

static int64_t frame_file(const struct frame *frame)
{
	return optional(frame->file);
}

static int64_t frame_line(const struct frame *frame)
{
	return frame->line <= COLUMN_MAX ? frame->line : 0;
}

static int64_t frame_object(const struct frame *frame)
{
	return optional(frame->object);
}

static int64_t frame_inlined(const struct frame *frame)
{
	return frame->inlined;
}

static void emit_frames(struct emit *emit, const struct profile *profile)
{
	static const struct {
		const char *key;
		column_fn *value;
	} columns[] = {
		{"name", frame_name}, {"kind", frame_kind},     {"file", frame_file},
		{"line", frame_line}, {"object", frame_object}, {"inlined", frame_inlined},
	};

	emit_object(emit, "frames");
	for (size_t i = 0; i < ARRAY_COUNT(columns); i++) {
		emit_array(emit, columns[i].key);
		for (frame_id id = 0; id < profile_frames(profile); id++)
			emit_signed(emit, NULL, columns[i].value(profile_frame_at(profile, id)));
		emit_array_end(emit);
	}
	emit_object_end(emit);
}

/* The empty stack is none of the viewer's: its stacks count from our stack 1. */
static int64_t stack_index(stack_id id)
{
	return (int64_t)id - 1;
}

static void emit_stacks(struct emit *emit, const struct profile *profile)
{
	emit_object(emit, "stacks");
	emit_array(emit, "parent");
	for (stack_id id = 1; id < profile_stacks(profile); id++)
		emit_signed(emit, NULL, stack_index(profile_stack_parent(profile, id)));
	emit_array_end(emit);
	emit_array(emit, "frame");
	for (stack_id id = 1; id < profile_stacks(profile); id++)
		emit_number(emit, NULL, profile_stack_frame(profile, id));
	emit_array_end(emit);
	emit_object_end(emit);
}

static void emit_processes(struct emit *emit, const struct profile *profile)
{
	emit_object(emit, "processes");
	emit_array(emit, "pid");
	for (uint32_t i = 0; i < profile_processes(profile); i++) {
		uint32_t pid = profile_process_at(profile, i)->pid;
		emit_signed(emit, NULL, pid <= COLUMN_MAX ? (int64_t)pid : -1);
	}
	emit_array_end(emit);
	emit_array(emit, "name");
	for (uint32_t i = 0; i < profile_processes(profile); i++)
		emit_number(emit, NULL, profile_process_at(profile, i)->name);
	emit_array_end(emit);
	emit_object_end(emit);
}

static void emit_samples(struct emit *emit, const struct profile *profile)
{
	size_t count = profile_samples(profile);

	emit_object(emit, "samples");
	emit_array(emit, "stack");
	for (size_t i = 0; i < count; i++)
		emit_signed(emit, NULL, stack_index(profile_sample_at(profile, i)->stack));
	emit_array_end(emit);
	emit_array(emit, "process");
	for (size_t i = 0; i < count; i++)
		emit_number(emit, NULL, profile_sample_at(profile, i)->process);
	emit_array_end(emit);
	emit_array(emit, "value");
	for (size_t i = 0; i < count; i++)
		emit_number(emit, NULL, profile_sample_at(profile, i)->value);
	emit_array_end(emit);
	emit_object_end(emit);
}

struct error *html_write(const struct profile *profile, FILE *stream)
{
	struct emit emit = emit_to(stream, EMIT_html);

	fwrite(viewer_before, 1, viewer_before_size, stream);
	emit_object(&emit, NULL);
	emit_number(&emit, "version", 1);
	emit_session(&emit, profile);
	emit_object(&emit, "value");
	emit_string(&emit, "name", "samples");
	emit_string(&emit, "unit", "count");
	emit_object_end(&emit);
	emit_kinds(&emit);
	emit_strings(&emit, profile);
	emit_frames(&emit, profile);
	emit_stacks(&emit, profile);
	emit_processes(&emit, profile);
	emit_samples(&emit, profile);
	emit_object_end(&emit);
	fwrite(viewer_after, 1, viewer_after_size, stream);
	return format_finish(stream);
}
