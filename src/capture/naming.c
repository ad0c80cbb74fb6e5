/* SPDX-License-Identifier: Apache-2.0 */
/* From numbers to names. How an address gets its name is symbolize/'s business. */
#include "capture/naming.h"

#include <string.h>

#include "abi/ends.h"
#include "base/array.h"
#include "base/str.h"
#include "capture/namer.h"
#include "capture/stacks.h"
#include "unwind/env-host.h"

enum { NAMES_MAX = 64 << 20, FRAMES_PER_PULSE = 256 };

/* The frames that one frame of numbers becomes, outermost first, in naming.names. */
struct named {
	size_t first, count;
};

struct naming {
	const struct profile *numbers;
	struct objects *objects;
	struct profile *profile;
	struct namer *namer;
	uint32_t object;     /* whose symbols are open; OBJECT_NONE: none's */
	struct named *named; /* by frame of numbers */
	frame_id *names;
	size_t name_count, name_room;
};

static void naming_deinit(struct naming *naming)
{
	namer_free(naming->namer);
	free(naming->named);
	free(naming->names);
	profile_free(naming->profile);
}

static struct error *start(struct naming *naming, const struct naming_options *options)
{
	struct namer_options how = {
		.lines = options->lines,
		.debuginfod = options->debuginfod,
		.objects = naming->objects,
	};
	size_t frames = profile_frames(naming->numbers);

	TRY(namer_new(&how, &naming->namer));
	naming->named = calloc(frames + 1, sizeof(*naming->named));
	if (!naming->named)
		return error_oom();
	return profile_new(NULL, &naming->profile);
}

static struct error *add_name(struct naming *naming, const struct frame *frame)
{
	frame_id id;

	TRY(profile_frame(naming->profile, frame, &id));
	TRY(ARRAY_RESERVE(naming->names, naming->name_room, naming->name_count, 1, NAMES_MAX,
			  "names"));
	naming->names[naming->name_count++] = id;
	return NULL;
}

static struct error *text_id(struct naming *naming, const char *text, string_id *ret)
{
	if (!text) {
		*ret = 0;
		return NULL;
	}
	return profile_string(naming->profile, text, strlen(text), ret);
}

/* One symbol as a frame of PATH (NULL: no object). */
static struct error *add_symbol(struct naming *naming, const struct symbol *symbol,
				const char *path)
{
	struct frame frame = {
		.kind = symbol->kind,
		.inlined = symbol->inlined,
		.line = symbol->line,
		.offset = symbol->start,
	};

	TRY(text_id(naming, symbol->function, &frame.function));
	TRY(text_id(naming, symbol->file, &frame.file));
	TRY(text_id(naming, path, &frame.object));
	return add_name(naming, &frame);
}

static struct error *add_text(struct naming *naming, enum frame_kind kind, const char *text)
{
	struct symbol symbol = {.kind = kind, .function = text};

	return add_symbol(naming, &symbol, NULL);
}

static struct error *name_native(struct naming *naming, const struct frame *number)
{
	struct namer_place place = {
		.object = stacks_frame_number(number),
		.addr = number->offset,
		.call = stacks_frame_call(number),
	};
	bool is_code = objects_is_code(naming->objects, place.object);
	const char *path = is_code ? objects_path(naming->objects, place.object) : NULL;
	struct symbol symbols[SYMBOLS_MAX];
	size_t count;

	// The tables of one object at a time.
	if (naming->object != place.object)
		namer_trim(naming->namer);
	naming->object = place.object;
	TRY(namer_object(naming->namer, &place, symbols, &count));
	while (count-- > 0)
		TRY(add_symbol(naming, &symbols[count], path));
	return NULL;
}

static struct error *name_jit(struct naming *naming, const struct frame *number)
{
	const struct process *process =
		profile_process_at(naming->numbers, stacks_frame_number(number));
	struct symbol symbol;

	if (number->inlined)
		return add_text(naming, KIND_native, "[unknown code]");
	TRY(namer_jit(naming->namer, process->pid, number->offset - stacks_frame_call(number),
		      &symbol));
	return add_symbol(naming, &symbol, NULL);
}

static struct error *name_kernel(struct naming *naming, const struct frame *number)
{
	struct symbol symbol;

	TRY(namer_kernel(naming->namer, number->offset - stacks_frame_call(number), &symbol));
	return add_symbol(naming, &symbol, NULL);
}

static struct error *name_cut(struct naming *naming, const struct frame *number)
{
	_cleanup_free_ char *text = NULL;

	TRY(str_format(&text, "[cut: %s]", walk_end_text((enum walk_end)number->offset)));
	return add_text(naming, KIND_cut, text);
}

/* A frame that came with its names. */
static struct error *copy_frame(struct naming *naming, const struct frame *from)
{
	struct frame frame = *from;

	TRY(text_id(naming, profile_text(naming->numbers, from->function, NULL), &frame.function));
	TRY(text_id(naming, profile_text(naming->numbers, from->file, NULL), &frame.file));
	TRY(text_id(naming, profile_text(naming->numbers, from->object, NULL), &frame.object));
	return add_name(naming, &frame);
}

static struct error *name_frame(struct naming *naming, frame_id id)
{
	const struct frame *number = profile_frame_at(naming->numbers, id);
	struct named *named = &naming->named[id];

	named->first = naming->name_count;
	if (number->kind == KIND_native)
		TRY(name_native(naming, number));
	else if (number->kind == KIND_jit)
		TRY(name_jit(naming, number));
	else if (number->kind == KIND_kernel)
		TRY(name_kernel(naming, number));
	else if (number->kind == KIND_python || number->kind == KIND_thread)
		TRY(copy_frame(naming, number));
	else
		TRY(name_cut(naming, number));
	named->count = naming->name_count - named->first;
	return NULL;
}

/* A frame to name, and whose turn it is: 0 for what is in no object. */
struct turn {
	uint32_t object;
	frame_id id;
};

static int by_object(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* Name every frame, one object after the other. */
static struct error *name_frames(struct naming *naming, const struct naming_options *options)
{
	size_t count = profile_frames(naming->numbers);
	_cleanup_free_ struct turn *turns = NULL;

	TRY(ARRAY_NEW(turns, count));
	for (frame_id i = 0; i < count; i++) {
		const struct frame *number = profile_frame_at(naming->numbers, i);
		turns[i].id = i;
		if (number->kind == KIND_native)
			turns[i].object = stacks_frame_number(number);
	}
	qsort(turns, count, sizeof(*turns), by_object);
	for (size_t i = 0; i < count; i++) {
		TRY(name_frame(naming, turns[i].id));
		bool due = i % FRAMES_PER_PULSE == 0 || turns[i].object != turns[i - 1].object;
		if (due && options->pulse)
			TRY(options->pulse(options->context));
	}
	return NULL;
}

/* Stacks of numbers to stacks of names; RET is by stack of numbers, the caller frees it. */
static struct error *name_stacks(struct naming *naming, stack_id **ret)
{
	size_t count = profile_stacks(naming->numbers);
	_cleanup_free_ stack_id *stacks = calloc(count, sizeof(*stacks));

	if (!stacks)
		return error_oom();
	stacks[STACK_EMPTY] = STACK_EMPTY;
	for (stack_id i = STACK_EMPTY + 1; i < count; i++) {
		const struct named *named = &naming->named[profile_stack_frame(naming->numbers, i)];
		stack_id stack = stacks[profile_stack_parent(naming->numbers, i)];
		for (size_t k = 0; k < named->count; k++)
			TRY(profile_stack(naming->profile, stack, naming->names[named->first + k],
					  &stack));
		stacks[i] = stack;
	}
	*ret = take(stacks);
	return NULL;
}

/* The processes of NUMBERS, in the same order, so that their indexes hold. */
static struct error *copy_processes(struct naming *naming)
{
	uint32_t index;

	for (uint32_t i = 0; i < profile_processes(naming->numbers); i++) {
		struct process process = *profile_process_at(naming->numbers, i);
		TRY(text_id(naming, profile_text(naming->numbers, process.name, NULL),
			    &process.name));
		TRY(text_id(naming, profile_text(naming->numbers, process.container, NULL),
			    &process.container));
		TRY(text_id(naming, profile_text(naming->numbers, process.application, NULL),
			    &process.application));
		TRY(profile_process(naming->profile, &process, &index));
	}
	return NULL;
}

struct error *naming_run(const struct naming_options *options, const struct profile *numbers,
			 struct objects *objects, struct profile **ret)
{
	_cleanup_(naming_deinit) struct naming naming = {.numbers = numbers, .objects = objects};
	_cleanup_free_ stack_id *stacks = NULL;

	TRY(start(&naming, options));
	TRY(name_frames(&naming, options));
	TRY(name_stacks(&naming, &stacks));
	TRY(copy_processes(&naming));
	for (size_t i = 0; i < profile_samples(numbers); i++) {
		struct profile_sample sample = *profile_sample_at(numbers, i);
		sample.stack = stacks[sample.stack];
		TRY(profile_add(naming.profile, &sample));
	}
	*ret = take(naming.profile);
	return NULL;
}
