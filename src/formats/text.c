/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile is first turned into one whose frames and processes are nothing but the texts that
 * will be written. Interning then adds up all that reads the same, and no line has to be kept.
 */
#include "formats/text.h"

#include <inttypes.h>

#include "base/array.h"
#include "base/bytes.h"
#include "formats/order.h"
#include "base/utf8.h"

static bool ends_line(uint32_t code)
{
	// What str.splitlines() of Python takes for the end of a line, and the tab.
	return (code >= '\t' && code <= '\r') || (code >= 0x1c && code <= 0x1e) || code == 0x85 ||
	       code == 0x2028 || code == 0x2029;
}

static bool is_control(uint32_t code)
{
	if (code < 0x20 || (code >= 0x7f && code <= 0x9f))
		return true;
	// The direction controls, which make a name read as another one.
	return code == 0x061c || code == 0x200e || code == 0x200f ||
	       (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

static uint32_t shown_as(uint32_t code)
{
	if (code == ';')
		return '|';
	if (ends_line(code))
		return ' ';
	return is_control(code) ? '?' : code;
}

static bool is_plain(uint8_t byte)
{
	return byte >= 0x20 && byte < 0x7f && byte != ';';
}

struct error *text_add_name(struct strbuf *buf, const char *name, size_t length)
{
	struct bytes b = bytes_over(name, length, "name");
	char encoded[4];

	while (bytes_left(&b)) {
		const uint8_t *plain = b.at;
		while (b.at < b.end && is_plain(*b.at))
			b.at++;
		TRY(strbuf_add(buf, (const char *)plain, (size_t)(b.at - plain)));
		if (b.at == b.end)
			break;
		size_t size = utf8_encode(shown_as(utf8_next(&b)), encoded);
		TRY(strbuf_add(buf, encoded, size));
	}
	return NULL;
}

/* From one profile to the one that holds its texts, with the ids of the second by those of the
 * first. */
struct texts {
	const struct profile *from; /* borrowed */
	const struct text_form *form;
	struct profile *into;
	struct strbuf buf;
	frame_id *frames;
	stack_id *stacks;
	uint32_t *processes;
};

static void texts_deinit(struct texts *texts)
{
	profile_free(texts->into);
	strbuf_deinit(&texts->buf);
	free(texts->frames);
	free(texts->stacks);
	free(texts->processes);
}

static const char *suffix_of(const struct text_form *form, const struct frame *frame)
{
	if (frame->kind == KIND_kernel)
		return "_[k]";
	if (frame->inlined && form->mark_inlined)
		return "_[i]";
	if (frame->kind == KIND_jit && form->mark_jit)
		return "_[j]";
	if (frame->kind == KIND_python)
		return "_[p]";
	return "";
}

/* Put NAME of the first profile into buf. */
static struct error *make_name(struct texts *texts, string_id name)
{
	size_t length;
	const char *text = profile_text(texts->from, name, &length);

	texts->buf.length = 0;
	TRY(text_add_name(&texts->buf, text, length));
	return length ? NULL : strbuf_addf(&texts->buf, "[unknown]");
}

/* Behind the name of a Python frame: " (FILE:LINE [PACKAGE==VERSION])". */
static struct error *add_python_place(struct texts *texts, const struct frame *from)
{
	size_t length;
	const char *text = profile_text(texts->from, from->file, &length);
	bool current = texts->form->current_lines && from->line;

	if (!from->file)
		return NULL;
	TRY(strbuf_addf(&texts->buf, " ("));
	TRY(text_add_name(&texts->buf, text, length));
	TRY(strbuf_addf(&texts->buf, ":%u", current ? from->line : (uint32_t)from->offset));
	if (from->object && texts->form->packages) {
		text = profile_text(texts->from, from->object, &length);
		TRY(strbuf_addf(&texts->buf, " ["));
		TRY(text_add_name(&texts->buf, text, length));
		TRY(strbuf_addf(&texts->buf, "]"));
	}
	return strbuf_addf(&texts->buf, ")");
}

/* Behind the name of a native function: " (OBJECT)". A name in brackets says it already. */
static struct error *add_object(struct texts *texts, const struct frame *from)
{
	bool native = from->kind == KIND_native || from->kind == KIND_go;
	size_t length;

	if (!texts->form->objects || !native || !from->object || texts->buf.text[0] == '(')
		return NULL;
	const char *text = profile_text(texts->from, from->object, &length);
	TRY(strbuf_addf(&texts->buf, " ("));
	TRY(text_add_name(&texts->buf, text, length));
	return strbuf_addf(&texts->buf, ")");
}

static struct error *intern_frame(struct texts *texts, const struct frame *from, string_id *ret)
{
	TRY(make_name(texts, from->function));
	if (from->kind == KIND_python)
		TRY(add_python_place(texts, from));
	TRY(add_object(texts, from));
	TRY(strbuf_addf(&texts->buf, "%s", suffix_of(texts->form, from)));
	return profile_string(texts->into, texts->buf.text, texts->buf.length, ret);
}

/* The name of a process or container, which may begin a line. */
static struct error *intern_first(struct texts *texts, string_id name, string_id *ret)
{
	TRY(make_name(texts, name));
	if (texts->buf.text[0] == '#')
		texts->buf.text[0] = '?';
	return profile_string(texts->into, texts->buf.text, texts->buf.length, ret);
}

static struct error *intern_frames(struct texts *texts)
{
	size_t count = profile_frames(texts->from);

	TRY(ARRAY_NEW(texts->frames, count));
	for (frame_id id = 0; id < count; id++) {
		struct frame frame = {.kind = KIND_none};
		TRY(intern_frame(texts, profile_frame_at(texts->from, id), &frame.function));
		TRY(profile_frame(texts->into, &frame, &texts->frames[id]));
	}
	return NULL;
}

static struct error *intern_stacks(struct texts *texts)
{
	size_t count = profile_stacks(texts->from);

	TRY(ARRAY_NEW(texts->stacks, count));
	for (stack_id id = STACK_EMPTY + 1; id < count; id++)
		TRY(profile_stack(texts->into, texts->stacks[profile_stack_parent(texts->from, id)],
				  texts->frames[profile_stack_frame(texts->from, id)],
				  &texts->stacks[id]));
	return NULL;
}

static struct error *intern_processes(struct texts *texts)
{
	size_t count = profile_processes(texts->from);

	TRY(ARRAY_NEW(texts->processes, count));
	for (uint32_t i = 0; i < count; i++) {
		const struct process *from = profile_process_at(texts->from, i);
		struct process process = {0};
		TRY(intern_first(texts, from->name, &process.name));
		if (texts->form->containers && from->container)
			TRY(intern_first(texts, from->container, &process.container));
		if (texts->form->applications && from->application)
			TRY(intern_first(texts, from->application, &process.application));
		TRY(profile_process(texts->into, &process, &texts->processes[i]));
	}
	return NULL;
}

static struct error *add_samples(struct texts *texts)
{
	for (size_t i = 0; i < profile_samples(texts->from); i++) {
		const struct profile_sample *from = profile_sample_at(texts->from, i);
		struct profile_sample sample = {
			.stack = texts->stacks[from->stack],
			.process = texts->processes[from->process],
			.value = from->value,
		};
		TRY(profile_add(texts->into, &sample));
	}
	return NULL;
}

static struct error *make_texts(struct texts *texts)
{
	// Never more of anything than the first profile has, except for bytes of text, which grow
	// by suffixes and by replacement characters.
	static const struct profile_limits limits = {
		.strings_bytes = SIZE_MAX / 4,
		.frames = UINT32_MAX - 1,
		.stacks = UINT32_MAX - 1,
		.samples = UINT32_MAX - 1,
		.processes = UINT32_MAX - 1,
	};

	TRY(profile_new(&limits, &texts->into));
	TRY(intern_frames(texts));
	TRY(intern_stacks(texts));
	TRY(intern_processes(texts));
	return add_samples(texts);
}

static void put_text(const struct profile *profile, string_id id, FILE *stream)
{
	size_t length;
	const char *text = profile_text(profile, id, &length);

	fwrite_unlocked(text, 1, length, stream);
}

/* The frames of a stack, leaf first, as they are found. */
struct path {
	string_id *function;
	size_t count, room;
};

static void path_deinit(struct path *path)
{
	free(path->function);
}

static struct error *find_path(const struct profile *profile, stack_id stack, struct path *path)
{
	path->count = 0;
	for (; stack != STACK_EMPTY; stack = profile_stack_parent(profile, stack)) {
		frame_id frame = profile_stack_frame(profile, stack);
		TRY(ARRAY_RESERVE(path->function, path->room, path->count, 1, UINT32_MAX,
				  "frames in a stack"));
		path->function[path->count++] = profile_frame_at(profile, frame)->function;
	}
	return NULL;
}

static void put_line(const struct texts *texts, const struct profile_sample *sample,
		     const struct path *path, FILE *stream)
{
	const struct process *process = profile_process_at(texts->into, sample->process);

	fputs_unlocked(texts->form->before, stream);
	if (texts->form->containers) {
		put_text(texts->into, process->container, stream);
		putc_unlocked(';', stream);
	}
	put_text(texts->into, process->name, stream);
	if (process->application) {
		putc_unlocked(';', stream);
		put_text(texts->into, process->application, stream);
	}
	for (size_t i = path->count; i-- > 0;) {
		putc_unlocked(';', stream);
		put_text(texts->into, path->function[i], stream);
	}
	fprintf(stream, " %" PRIu64 "%s", sample->value, texts->form->after);
}

struct error *text_write(const struct profile *profile, const struct text_form *form, FILE *stream)
{
	_cleanup_(texts_deinit) struct texts texts = {.from = profile, .form = form};
	_cleanup_(path_deinit) struct path path = {0};
	_cleanup_free_ uint32_t *order = NULL;

	TRY(make_texts(&texts));
	TRY(order_samples(texts.into, &order));
	for (size_t i = 0; i < profile_samples(texts.into); i++) {
		const struct profile_sample *sample = profile_sample_at(texts.into, order[i]);
		TRY(find_path(texts.into, sample->stack, &path));
		put_line(&texts, sample, &path, stream);
	}
	return NULL;
}
