/* SPDX-License-Identifier: Apache-2.0 */
/* From the words of a walk to frames with names. */
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/str.h"
#include "capture/target-state.h"
#include "runtimes/python/neighbours.h"

enum { FRAMES_MAX = 8 * TARGET_DEPTH };

void target_frames_deinit(struct target_frames *frames)
{
	free(frames->frame);
	*frames = (struct target_frames)TARGET_FRAMES_INIT;
}

struct error *target_frames_add(struct target_frames *frames, const struct target_frame *frame)
{
	TRY(ARRAY_RESERVE(frames->frame, frames->room, frames->count, 1, FRAMES_MAX,
			  "frames in one stack"));
	frames->frame[frames->count++] = *frame;
	return NULL;
}

struct error *target_text(struct target *target, const char *text, const char **ret)
{
	return names_add(&target->names, text, strlen(text), ret);
}

static struct error *add_symbol(struct target_frames *frames, const struct symbol *symbol,
				const char *object, uint64_t pc)
{
	struct target_frame frame = {
		.kind = symbol->kind,
		.inlined = symbol->inlined,
		.function = symbol->function,
		.file = symbol->file,
		.line = symbol->line,
		.object = object,
		.pc = pc,
	};

	return target_frames_add(frames, &frame);
}

/* A frame of a stack before it has names. */
struct place {
	size_t word;
	uint64_t pc;
	bool call, plain;
	struct code code;
};

static struct error *name_machine(struct target *target, const struct place *at,
				  struct target_frames *frames)
{
	struct symbol symbol[SYMBOLS_MAX] = {{.kind = KIND_native, .function = "[unknown code]"}};
	struct objects *objects = target->sets.objects;
	struct namer_place place = {at->code.object, at->code.addr + at->call, at->call, at->plain};
	const char *object = NULL;
	size_t count = 1;

	if (at->code.kind == CODE_object) {
		// It must not go away with the mapping: names refer to it.
		objects_use(objects, at->code.object, clock_monotonic_ns());
		object = objects_path(objects, at->code.object);
		TRY(namer_object(target->namer, &place, symbol, &count));
	} else if (at->code.kind == CODE_jit) {
		TRY(namer_jit(target->namer, target->options.owner.pid, at->pc - at->call, symbol));
	}
	for (size_t i = 0; i < count; i++)
		TRY(add_symbol(frames, &symbol[i], object, at->pc));
	return NULL;
}

/* The first variable of STACK that belongs to the frame at WORD or to one further out. */
static size_t find_variables(const struct target_stack *stack, size_t word)
{
	size_t low = 0, high = stack->variables;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (stack->variable[middle].word < word)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The variables that STACK has of the frame at WORD. */
static struct error *add_locals(struct target *target, const struct target_stack *stack,
				size_t word, struct target_frame *frame)
{
	size_t first = find_variables(stack, word), count = 0;
	struct target_local *local;

	while (first + count < stack->variables && stack->variable[first + count].word == word)
		count++;
	if (!count)
		return NULL;
	TRY(arena_alloc(&target->locals, count * sizeof(*local), &local));
	for (size_t i = 0; i < count; i++)
		local[i] = stack->variable[first + i].local;
	frame->local = local;
	frame->locals = count;
	return NULL;
}

static struct error *name_python(struct target *target, const struct target_stack *stack,
				 size_t word, struct target_frames *frames)
{
	struct target_frame frame;

	TRY(target_name_python(target, stack->word + word, &frame));
	TRY(add_locals(target, stack, word, &frame));
	return target_frames_add(frames, &frame);
}

/* Where each frame of STACK is, and what it is beside frames of Python. */
static size_t find_places(const struct target *target, const struct target_stack *stack,
			  bool native, struct place *place, struct python_neighbour *neighbour)
{
	size_t count = 0;

	for (size_t i = 0; i < stack->words; i += target_frame_words(stack->word[i])) {
		uint64_t word = stack->word[i];
		struct place at = {.word = i,
				   .pc = word & ~SAMPLE_EXACT_PC,
				   .call = !(word & SAMPLE_EXACT_PC)};
		struct python_neighbour is = {.python = target_frame_words(word) == 2};
		if (!is.python)
			at.code = map_set_code(target->set, at.pc - at.call);
		if (at.code.kind == CODE_object) {
			const char *path = objects_path(target->sets.objects, at.code.object);
			is.interpreter = target_in_interpreter(target, at.code.object);
			is.start = python_starts_in(path);
			// Who looks at a Python program does not read the C code below it, unless
			// he asks for it: debug information of an interpreter and a C library is 40
			// MB to read.
			at.plain = !native && target_runs_python(target) &&
				   (is.interpreter || is.start);
		}
		place[count] = at;
		neighbour[count++] = is;
	}
	return count;
}

struct error *target_name(struct target *target, const struct target_stack *stack, bool native,
			  struct target_frames *ret)
{
	_cleanup_free_ struct python_neighbour *neighbour = NULL;
	_cleanup_free_ struct place *place = NULL;
	_cleanup_free_ char *text = NULL;
	struct target_frame cut = {.kind = KIND_cut};

	TRY(ARRAY_NEW(place, stack->words + 1));
	TRY(ARRAY_NEW(neighbour, stack->words + 1));
	size_t count = find_places(target, stack, native, place, neighbour);
	if (!native)
		python_hide_interpreter(neighbour, count);
	for (size_t i = 0; i < count; i++) {
		if (neighbour[i].python)
			TRY(name_python(target, stack, place[i].word, ret));
		else if (native || neighbour[i].keep)
			TRY(name_machine(target, &place[i], ret));
	}
	if (walk_end_whole(stack->end))
		return NULL;
	TRY(str_format(&text, "[cut: %s]", walk_end_text(stack->end)));
	TRY(target_text(target, text, &cut.function));
	return target_frames_add(ret, &cut);
}
