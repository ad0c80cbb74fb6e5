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
#include "cli/task-tree.h"

enum {
	INDENT = 4,
	DEPTH_MAX = 16,      /* tasks below tasks are not indented further */
	ALIKE_NAMES_MAX = 8, /* names of tasks that are told together */
};

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
	unsigned indent; /* of what belongs to a frame's owner */
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
			fprintf(to->out, "%*s%s:\n", to->indent + INDENT, "",
				arguments ? "Arguments" : "Locals");
		any = true;
		fprintf(to->out, "%*s", to->indent + 2 * INDENT, "");
		put(to, TONE_name, frame->local[i].name);
		fputs(" = ", to->out);
		put(to, TONE_plain, frame->local[i].value);
		putc('\n', to->out);
	}
}

static void put_frame(const struct printer *to, const struct target_frame *frame)
{
	fprintf(to->out, "%*s", to->indent, "");
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

static bool frames_equal(const struct target_frames *a, const struct target_frames *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!frame_equal(&a->frame[i], &b->frame[i]))
			return false;
	return true;
}

static uint64_t frames_hash(const struct target_frames *frames, uint64_t hash)
{
	for (size_t i = 0; i < frames->count; i++) {
		const struct target_frame *frame = &frames->frame[i];
		const char *function = frame->function;
		hash = hash_bytes(function, strlen(function), hash + frame->pc + frame->line);
	}
	return hash;
}

/* Are the two alike but for who they are and which file or lock it is that they wait for? */
static bool thread_equal(const struct dump_thread *a, const struct dump_thread *b)
{
	return a->state == b->state && a->end == b->end && !a->tasks && !b->tasks &&
	       frames_equal(&a->frames, &b->frames);
}

/* Threads or tasks that are alike: of each the next one, 0 behind the last; and whether it is the
 * first. */
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

static struct error *groups_init(struct groups *groups, size_t count)
{
	TRY(ARRAY_NEW(groups->next, count + 1));
	TRY(ARRAY_NEW(groups->last, count + 1));
	return array_new(&groups->first, count + 1, sizeof(*groups->first));
}

/* Put ITEM where those are that EQUAL finds; KEY is the item's. */
static struct error *groups_add(struct groups *groups, uint32_t item, uint64_t hash,
				hash_equal_fn *equal, const void *key)
{
	uint32_t first = item;

	if (hash_find(&groups->index, hash, equal, key, &first)) {
		groups->next[groups->last[first]] = item;
	} else {
		TRY(hash_add(&groups->index, hash, item));
		groups->first[item] = true;
	}
	groups->last[first] = item;
	return NULL;
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
	TRY(groups_init(groups, dump->count));
	for (uint32_t i = 0; i < dump->count; i++) {
		struct thread_key key = {dump, &dump->thread[i]};
		uint64_t hash = frames_hash(&dump->thread[i].frames, dump->thread[i].state);
		TRY(groups_add(groups, i, hash, key_equal, &key));
	}
	return NULL;
}

/* --- tasks */

struct task_key {
	const struct dump *dump;
	const struct task_tree *tree;
	uint32_t number;
};

/* Tasks of one parent that nothing is below. */
static bool task_equal(const void *context, uint32_t item)
{
	const struct task_key *key = context;
	const struct dump_task *a = &key->dump->task[item], *b = &key->dump->task[key->number];
	const struct task_node *one = &key->tree->node[item];
	const struct task_node *other = &key->tree->node[key->number];

	return a->tid == b->tid && a->state == b->state && a->waits_for == b->waits_for &&
	       one->parent == other->parent && one->child < 0 && other->child < 0 &&
	       frames_equal(&a->frames, &b->frames);
}

static struct error *find_alike(const struct dump *dump, const struct task_tree *tree,
				struct groups *groups)
{
	TRY(groups_init(groups, dump->tasks));
	for (uint32_t i = 0; i < dump->tasks; i++) {
		struct task_key key = {dump, tree, i};
		uint64_t hash = hash_u64((uint64_t)tree->node[i].parent);
		hash = frames_hash(&dump->task[i].frames, hash);
		TRY(groups_add(groups, i, hash, task_equal, &key));
	}
	return NULL;
}

static void put_task_name(const struct printer *to, const struct dump_task *task)
{
	if (!task->name) {
		set_tone(to, TONE_thread);
		fprintf(to->out, "0x%" PRIx64, task->addr);
		set_tone(to, TONE_plain);
		return;
	}
	putc('"', to->out);
	put(to, TONE_thread, task->name);
	putc('"', to->out);
}

/* Task FIRST with all that are like it: who they are, and what they wait for. */
static void put_task_head(const struct printer *to, const struct dump *dump,
			  const struct task_node *node, const struct groups *groups, uint32_t first)
{
	const struct dump_task *task = &dump->task[first];
	uint32_t count = 1;

	for (uint32_t i = groups->next[first]; i; i = groups->next[i])
		count++;
	fputs(node->parent < 0 ? "" : "awaits ", to->out);
	if (count > 1)
		fprintf(to->out, "%" PRIu32 " tasks with this stack: ", count);
	else
		fputs("task ", to->out);
	uint32_t shown = count > ALIKE_NAMES_MAX + 1 ? ALIKE_NAMES_MAX : count;
	for (uint32_t i = first, k = 0; k < shown; i = groups->next[i], k++) {
		fputs(k ? ", " : "", to->out);
		put_task_name(to, &dump->task[i]);
	}
	if (shown < count)
		fprintf(to->out, ", … %" PRIu32 " more", count - shown);
	fputs(": ", to->out);
	put(to, TONE_state, dump_task_state_name(task->state));
	if (task->waits_for >= 0) {
		fputs(" for task ", to->out);
		put_task_name(to, &dump->task[task->waits_for]);
	}
	fputs(node->in_circle ? ", which waits for this one in the end\n" : "\n", to->out);
}

/* The tasks of thread TID; 0: those of which it is not known. */
static struct error *put_tasks(struct printer to, const struct dump *dump, pid_t tid)
{
	_cleanup_(task_tree_deinit) struct task_tree tree = {0};
	_cleanup_(groups_deinit) struct groups alike = {0};
	unsigned depth = 0;

	TRY(task_tree_build(dump, tid, &tree));
	TRY(find_alike(dump, &tree, &alike));
	for (long i = tree.first; i >= 0; i = task_tree_next(&tree, i, &depth)) {
		const struct target_frames *frames = &dump->task[i].frames;
		if (!alike.first[i])
			continue;
		to.indent = INDENT * (1 + (depth < DEPTH_MAX ? depth : DEPTH_MAX));
		fprintf(to.out, "%*s", to.indent, "");
		put_task_head(&to, dump, &tree.node[i], &alike, (uint32_t)i);
		to.indent += INDENT;
		for (size_t k = 0; k < frames->count; k++)
			put_frame(&to, &frames->frame[k]);
	}
	return NULL;
}

static struct error *put_strays(const struct printer *to, const struct dump *dump)
{
	size_t strays = 0;

	for (size_t i = 0; i < dump->tasks; i++)
		strays += !dump->task[i].tid;
	if (!strays)
		return NULL;
	fprintf(to->out, "%zu task%s of asyncio whose event loop no thread is known to run:\n",
		strays, strays == 1 ? "" : "s");
	TRY(put_tasks(*to, dump, 0));
	putc('\n', to->out);
	return NULL;
}

/* --- processes */

/* Thread FIRST with all that are like it, and the stack once. */
static struct error *put_group(const struct printer *to, const struct dump *dump,
			       const struct groups *groups, uint32_t first)
{
	const struct target_frames *frames = &dump->thread[first].frames;
	size_t tasks = dump->thread[first].tasks;
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
	if (tasks) {
		fprintf(to->out, "  %zu task%s of asyncio:\n", tasks, tasks == 1 ? "" : "s");
		TRY(put_tasks(*to, dump, dump->thread[first].tid));
	}
	putc('\n', to->out);
	return NULL;
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
	struct printer to = {out, style->color, INDENT};
	_cleanup_(groups_deinit) struct groups groups = {0};

	TRY(find_groups(dump, &groups));
	put_process(&to, dump);
	for (uint32_t i = 0; i < dump->count; i++)
		if (groups.first[i])
			TRY(put_group(&to, dump, &groups, i));
	TRY(put_strays(&to, dump));
	for (size_t i = 0; i < dump->notes; i++) {
		fputs("Note: ", out);
		put(&to, TONE_plain, dump->note[i]);
		putc('\n', out);
	}
	if (dump->notes)
		putc('\n', out);
	return NULL;
}
