/* SPDX-License-Identifier: Apache-2.0 */
/* Processes as text. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "cli/dump-print.h"

/* What a text is, which decides on its colour. */
enum tone {
	TONE_plain,
	TONE_thread,
	TONE_state,
	TONE_function,
	TONE_machine, /* a function that is not of an interpreted program */
	TONE_place,
	TONE_cut,
	TONE_name, /* of a variable */
};

struct printer {
	FILE *out;
	bool color;
};

static void set_tone(const struct printer *to, enum tone tone)
{
	static const char *const codes[] = {
		[TONE_plain] = "0",       [TONE_thread] = "1;32", [TONE_state] = "33",
		[TONE_function] = "1;36", [TONE_machine] = "36",  [TONE_place] = "2",
		[TONE_cut] = "31",        [TONE_name] = "35",
	};

	if (to->color)
		fprintf(to->out, "\033[%sm", codes[tone]);
}

/* Could CODE move the cursor, change what stands before it, or not be seen at all? */
static bool is_active(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
	       (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
	       (code >= 0xfff9 && code <= 0xfffb) || (code >= 0xe0000 && code < 0xe1000);
}

static void put(const struct printer *to, enum tone tone, const char *text)
{
	struct bytes b = bytes_over(text, strlen(text), "text");
	char encoded[4];

	if (tone != TONE_plain)
		set_tone(to, tone);
	while (bytes_left(&b)) {
		uint32_t code = utf8_next(&b);
		if (is_active(code))
			fprintf(to->out, "\\u{%" PRIx32 "}", code);
		else
			fwrite(encoded, 1, utf8_encode(code, encoded), to->out);
	}
	if (tone != TONE_plain)
		set_tone(to, TONE_plain);
}

/* --- frames */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void put_place(const struct printer *to, const struct target_frame *frame)
{
	if (!frame->file && (!frame->object || frame->function[0] == '('))
		return; // a function without a name is called by its place already
	fputs(" (", to->out);
	put(to, TONE_place, frame->file ? frame->file : last_part(frame->object));
	if (frame->line) {
		set_tone(to, TONE_place);
		fprintf(to->out, ":%" PRIu32, frame->line);
		set_tone(to, TONE_plain);
	}
	putc(')', to->out);
}

static enum tone tone_of(enum frame_kind kind)
{
	if (kind == KIND_cut)
		return TONE_cut;
	// What a programmer wrote in an interpreted language stands out.
	if (kind == KIND_native || kind == KIND_kernel || kind == KIND_jit)
		return TONE_machine;
	return TONE_function;
}

static void put_locals(const struct printer *to, const struct target_frame *frame, bool arguments)
{
	bool any = false;

	for (size_t i = 0; i < frame->locals; i++) {
		if (frame->local[i].argument != arguments)
			continue;
		if (!any)
			fprintf(to->out, "        %s:\n", arguments ? "Arguments" : "Locals");
		any = true;
		fputs("            ", to->out);
		put(to, TONE_name, frame->local[i].name);
		fputs(" = ", to->out);
		put(to, TONE_plain, frame->local[i].value);
		putc('\n', to->out);
	}
}

static void put_frame(const struct printer *to, const struct target_frame *frame)
{
	fputs("    ", to->out);
	put(to, tone_of(frame->kind), frame->function[0] ? frame->function : "[no name]");
	put_place(to, frame);
	if (frame->kind == KIND_kernel)
		fputs(" [kernel]", to->out);
	if (frame->inlined)
		fputs(" [inlined]", to->out);
	putc('\n', to->out);
	put_locals(to, frame, true);
	put_locals(to, frame, false);
}

/* --- threads */

static void put_thread(const struct printer *to, const struct dump_thread *thread)
{
	set_tone(to, TONE_thread);
	fprintf(to->out, "Thread %d", thread->tid);
	set_tone(to, TONE_plain);
	if (thread->name) {
		fputs(" \"", to->out);
		put(to, TONE_thread, thread->name);
		putc('"', to->out);
	}
	if (thread->main)
		fputs(" (main)", to->out);
	if (thread->python_name) {
		fputs(", Python \"", to->out);
		put(to, TONE_thread, thread->python_name);
		putc('"', to->out);
	}
	if (thread->python_id)
		fprintf(to->out, "%s 0x%" PRIx64, thread->python_name ? "" : ", Python",
			thread->python_id);
	if (thread->state != DUMP_unknown) {
		fputs(": ", to->out);
		put(to, TONE_state, dump_state_name(thread->state));
	}
	if (thread->waits_in) {
		fputs(thread->state != DUMP_unknown ? ", in " : ": in ", to->out);
		put(to, TONE_plain, thread->waits_in);
	}
	if (thread->stopped_ns)
		fprintf(to->out, " (stopped for %" PRIu64 " us)",
			(thread->stopped_ns + 999) / 1000);
	putc('\n', to->out);
}

static bool text_equal(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool frame_equal(const struct target_frame *a, const struct target_frame *b)
{
	// Variables differ from thread to thread; who asked for them wants to see them.
	return a->kind == b->kind && a->inlined == b->inlined && a->line == b->line &&
	       a->pc == b->pc && !a->local && !b->local && text_equal(a->function, b->function) &&
	       text_equal(a->file, b->file) && text_equal(a->object, b->object);
}

/* Are the two alike but for who they are and which file or lock it is that they wait for? */
static bool thread_equal(const struct dump_thread *a, const struct dump_thread *b)
{
	if (a->state != b->state || a->end != b->end || a->frames.count != b->frames.count)
		return false;
	for (size_t i = 0; i < a->frames.count; i++)
		if (!frame_equal(&a->frames.frame[i], &b->frames.frame[i]))
			return false;
	return true;
}

static uint64_t thread_hash(const struct dump_thread *thread)
{
	uint64_t hash = thread->state;

	for (size_t i = 0; i < thread->frames.count; i++) {
		const struct target_frame *frame = &thread->frames.frame[i];
		const char *function = frame->function;
		hash = hash_bytes(function, strlen(function), hash + frame->pc + frame->line);
	}
	return hash;
}

/* Threads that are alike: of each the next one, 0 behind the last; and whether it is the first. */
struct groups {
	uint32_t *next, *last;
	bool *first;
	struct hash_index index; /* of the first ones */
};

static void groups_deinit(struct groups *groups)
{
	free(groups->next);
	free(groups->last);
	free(groups->first);
	hash_index_deinit(&groups->index);
}

struct thread_key {
	const struct dump *dump;
	const struct dump_thread *thread;
};

static bool key_equal(const void *context, uint32_t item)
{
	const struct thread_key *key = context;

	return thread_equal(&key->dump->thread[item], key->thread);
}

static struct error *find_groups(const struct dump *dump, struct groups *groups)
{
	TRY(ARRAY_NEW(groups->next, dump->count + 1));
	TRY(ARRAY_NEW(groups->last, dump->count + 1));
	TRY(ARRAY_NEW(groups->first, dump->count + 1));
	for (uint32_t i = 0; i < dump->count; i++) {
		struct thread_key key = {dump, &dump->thread[i]};
		uint64_t hash = thread_hash(&dump->thread[i]);
		uint32_t first = i;
		if (hash_find(&groups->index, hash, key_equal, &key, &first)) {
			groups->next[groups->last[first]] = i;
		} else {
			groups->first[i] = true;
			TRY(hash_add(&groups->index, hash, i));
		}
		groups->last[first] = i;
	}
	return NULL;
}

/* Thread FIRST with all that are like it, and the stack once. */
static void put_group(const struct printer *to, const struct dump *dump,
		      const struct groups *groups, uint32_t first)
{
	const struct target_frames *frames = &dump->thread[first].frames;
	uint32_t i = first, count = 0;

	do {
		put_thread(to, &dump->thread[i]);
		count++;
		i = groups->next[i];
	} while (i);
	if (count > 1)
		fprintf(to->out, "  %" PRIu32 " threads with this stack:\n", count);
	if (!frames->count)
		fputs("    (no frames)\n", to->out);
	for (size_t k = 0; k < frames->count; k++)
		put_frame(to, &frames->frame[k]);
	putc('\n', to->out);
}

static void put_process(const struct printer *to, const struct dump *dump)
{
	if (dump->pid)
		fprintf(to->out, "Process %d", dump->pid);
	else
		fputs("Process", to->out);
	if (dump->command || dump->name) {
		fputs(": ", to->out);
		put(to, TONE_plain, dump->command ? dump->command : dump->name);
	}
	putc('\n', to->out);
	if (dump->python) {
		fputs("Python ", to->out);
		put(to, TONE_plain, dump->python);
		fputs(dump->exe ? ", " : "\n", to->out);
	}
	if (dump->exe) {
		put(to, TONE_plain, dump->exe);
		putc('\n', to->out);
	}
	putc('\n', to->out);
}

struct error *dump_print_text(const struct dump *dump, const struct dump_style *style, FILE *out)
{
	struct printer to = {out, style->color};
	_cleanup_(groups_deinit) struct groups groups = {0};

	TRY(find_groups(dump, &groups));
	put_process(&to, dump);
	for (uint32_t i = 0; i < dump->count; i++)
		if (groups.first[i])
			put_group(&to, dump, &groups, i);
	for (size_t i = 0; i < dump->notes; i++) {
		fputs("Note: ", out);
		put(&to, TONE_plain, dump->note[i]);
		putc('\n', out);
	}
	if (dump->notes)
		putc('\n', out);
	return NULL;
}
