/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each kind of thing is an array and an index from its hash to its place there. What is known
 * already is found without allocating, which is the case of nearly every sample.
 */
#include "profile/profile.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/hash.h"

enum {
	STRINGS_BYTES = 256 << 20,
	FRAMES_MAX = 4 << 20,
	STACKS_MAX = 16 << 20,
	SAMPLES_MAX = 16 << 20,
	PROCESSES_MAX = 1 << 20,
	STRINGS_MAX = 32 << 20, /* each takes at least 8 bytes of the arena */
};

struct text {
	const char *text; /* in the arena */
	uint32_t length;
};

struct stack {
	stack_id parent;
	frame_id frame;
};

struct profile {
	struct profile_limits limits;
	struct session_facts facts;
	struct arena arena;

	struct text *strings;
	size_t string_count, string_room;
	struct hash_index string_index;

	struct frame *frames;
	size_t frame_count, frame_room;
	struct hash_index frame_index;

	struct stack *stacks;
	size_t stack_count, stack_room;
	struct hash_index stack_index;

	struct process *processes;
	size_t process_count, process_room;
	struct hash_index process_index;

	struct profile_sample *samples;
	size_t sample_count, sample_room;
	struct hash_index sample_index;
};

/* What is looked for, and where. */
struct wanted {
	const struct profile *profile;
	const void *item;
};

static uint32_t limit_or(uint32_t limit, uint32_t fallback)
{
	return limit ? limit : fallback;
}

/* The empty string and the empty stack are there from the start and have the id 0. */
static struct error *add_empty(struct profile *profile)
{
	TRY(ARRAY_RESERVE(profile->strings, profile->string_room, 0, 1, STRINGS_MAX, "strings"));
	profile->strings[profile->string_count++] = (struct text){.text = ""};
	TRY(ARRAY_RESERVE(profile->stacks, profile->stack_room, 0, 1, STACKS_MAX, "stacks"));
	profile->stacks[profile->stack_count++] = (struct stack){0};
	return NULL;
}

struct error *profile_new(const struct profile_limits *limits, struct profile **ret)
{
	_cleanup_profile_ struct profile *profile = calloc(1, sizeof(*profile));
	static const struct profile_limits defaults;

	if (!profile)
		return error_oom();
	if (!limits)
		limits = &defaults;
	profile->limits = (struct profile_limits){
		.strings_bytes = limits->strings_bytes ? limits->strings_bytes : STRINGS_BYTES,
		.frames = limit_or(limits->frames, FRAMES_MAX),
		.stacks = limit_or(limits->stacks, STACKS_MAX),
		.samples = limit_or(limits->samples, SAMPLES_MAX),
		.processes = limit_or(limits->processes, PROCESSES_MAX),
	};
	profile->arena.max_bytes = profile->limits.strings_bytes;
	TRY(add_empty(profile));
	*ret = take(profile);
	return NULL;
}

void profile_free(struct profile *profile)
{
	if (!profile)
		return;
	hash_index_deinit(&profile->string_index);
	hash_index_deinit(&profile->frame_index);
	hash_index_deinit(&profile->stack_index);
	hash_index_deinit(&profile->process_index);
	hash_index_deinit(&profile->sample_index);
	free(profile->strings);
	free(profile->frames);
	free(profile->stacks);
	free(profile->processes);
	free(profile->samples);
	arena_deinit(&profile->arena);
	free(profile);
}

struct session_facts *profile_facts(struct profile *profile)
{
	return &profile->facts;
}

const struct session_facts *profile_facts_const(const struct profile *profile)
{
	return &profile->facts;
}

static bool string_equal(const void *context, uint32_t item)
{
	const struct wanted *wanted = context;
	const struct text *have = &wanted->profile->strings[item], *want = wanted->item;

	return have->length == want->length && !memcmp(have->text, want->text, want->length);
}

struct error *profile_string(struct profile *profile, const char *text, size_t length,
			     string_id *ret)
{
	struct text want = {text, (uint32_t)length};
	struct wanted wanted = {profile, &want};

	if (!length) {
		*ret = 0;
		return NULL;
	}
	if (length > profile->limits.strings_bytes || length > UINT32_MAX)
		return error_new("a profile holds at most %zu bytes of text",
				 profile->limits.strings_bytes);
	uint64_t hash = hash_bytes(text, length, 0);
	if (hash_find(&profile->string_index, hash, string_equal, &wanted, ret))
		return NULL;

	uint32_t id = (uint32_t)profile->string_count;
	TRY(ARRAY_RESERVE(profile->strings, profile->string_room, id, 1, STRINGS_MAX, "strings"));
	TRY(arena_copy(&profile->arena, text, length, &want.text));
	TRY(hash_add(&profile->string_index, hash, id));
	profile->strings[profile->string_count++] = want;
	*ret = id;
	return NULL;
}

static bool frame_equal(const void *context, uint32_t item)
{
	const struct wanted *wanted = context;
	const struct frame *have = &wanted->profile->frames[item], *want = wanted->item;

	return have->function == want->function && have->kind == want->kind &&
	       have->inlined == want->inlined && have->file == want->file &&
	       have->line == want->line && have->object == want->object &&
	       have->offset == want->offset;
}

static uint64_t frame_hash(const struct frame *frame)
{
	uint64_t hash = hash_u64((uint64_t)frame->function << 32 | frame->object);

	hash = hash_u64(hash ^ ((uint64_t)frame->file << 32 | frame->line));
	return hash_u64(hash ^ frame->offset ^ (uint64_t)frame->kind << 56 ^
			(uint64_t)frame->inlined << 63);
}

struct error *profile_frame(struct profile *profile, const struct frame *frame, frame_id *ret)
{
	struct wanted wanted = {profile, frame};
	uint64_t hash = frame_hash(frame);

	assert(frame->function < profile->string_count && frame->file < profile->string_count &&
	       frame->object < profile->string_count && frame->kind < KIND_MAX);
	if (hash_find(&profile->frame_index, hash, frame_equal, &wanted, ret))
		return NULL;
	uint32_t id = (uint32_t)profile->frame_count;
	TRY(ARRAY_RESERVE(profile->frames, profile->frame_room, id, 1, profile->limits.frames,
			  "frames in a profile"));
	TRY(hash_add(&profile->frame_index, hash, id));
	profile->frames[profile->frame_count++] = *frame;
	*ret = id;
	return NULL;
}

static bool stack_equal(const void *context, uint32_t item)
{
	const struct wanted *wanted = context;
	const struct stack *have = &wanted->profile->stacks[item], *want = wanted->item;

	return have->parent == want->parent && have->frame == want->frame;
}

struct error *profile_stack(struct profile *profile, stack_id parent, frame_id frame, stack_id *ret)
{
	struct stack want = {parent, frame};
	struct wanted wanted = {profile, &want};
	uint64_t hash = hash_u64((uint64_t)parent << 32 | frame);

	assert(parent < profile->stack_count && frame < profile->frame_count);
	if (hash_find(&profile->stack_index, hash, stack_equal, &wanted, ret))
		return NULL;
	uint32_t id = (uint32_t)profile->stack_count;
	TRY(ARRAY_RESERVE(profile->stacks, profile->stack_room, id, 1, profile->limits.stacks,
			  "stacks in a profile"));
	TRY(hash_add(&profile->stack_index, hash, id));
	profile->stacks[profile->stack_count++] = want;
	*ret = id;
	return NULL;
}

static bool process_equal(const void *context, uint32_t item)
{
	const struct wanted *wanted = context;
	const struct process *have = &wanted->profile->processes[item], *want = wanted->item;

	return have->pid == want->pid && have->name == want->name &&
	       have->container == want->container && have->application == want->application;
}

struct error *profile_process(struct profile *profile, const struct process *process, uint32_t *ret)
{
	struct wanted wanted = {profile, process};
	uint64_t hash = hash_u64((uint64_t)process->pid << 32 | process->name);

	assert(process->name < profile->string_count && process->container < profile->string_count);
	assert(process->application < profile->string_count);
	hash = hash_u64(hash ^ ((uint64_t)process->application << 32 | process->container));
	if (hash_find(&profile->process_index, hash, process_equal, &wanted, ret))
		return NULL;
	uint32_t id = (uint32_t)profile->process_count;
	TRY(ARRAY_RESERVE(profile->processes, profile->process_room, id, 1,
			  profile->limits.processes, "processes in a profile"));
	TRY(hash_add(&profile->process_index, hash, id));
	profile->processes[profile->process_count++] = *process;
	*ret = id;
	return NULL;
}

static bool sample_equal(const void *context, uint32_t item)
{
	const struct wanted *wanted = context;
	const struct profile_sample *have = &wanted->profile->samples[item], *want = wanted->item;

	return have->stack == want->stack && have->process == want->process &&
	       have->tid == want->tid;
}

struct error *profile_add(struct profile *profile, const struct profile_sample *sample)
{
	struct wanted wanted = {profile, sample};
	uint64_t hash = hash_u64((uint64_t)sample->process << 32 | sample->stack);
	uint32_t at = (uint32_t)profile->sample_count;

	assert(sample->stack < profile->stack_count && sample->process < profile->process_count);
	if (!sample->value)
		return error_new("a sample without weight");
	hash = hash_u64(hash ^ sample->tid);
	if (hash_find(&profile->sample_index, hash, sample_equal, &wanted, &at)) {
		if (profile->samples[at].value > UINT64_MAX - sample->value)
			return error_new("the weights of a sample add up to more than 64 bits");
		profile->samples[at].value += sample->value;
		return NULL;
	}
	TRY(ARRAY_RESERVE(profile->samples, profile->sample_room, at, 1, profile->limits.samples,
			  "samples in a profile"));
	TRY(hash_add(&profile->sample_index, hash, at));
	profile->samples[profile->sample_count++] = *sample;
	return NULL;
}

void profile_turn_away(struct profile *profile, uint64_t value)
{
	counter_add(&profile->facts.counters, COUNTER_profile_full, value);
}

const char *profile_text(const struct profile *profile, string_id id, size_t *ret_length)
{
	assert(id < profile->string_count);
	if (ret_length)
		*ret_length = profile->strings[id].length;
	return profile->strings[id].text;
}

const struct frame *profile_frame_at(const struct profile *profile, frame_id id)
{
	assert(id < profile->frame_count);
	return &profile->frames[id];
}

stack_id profile_stack_parent(const struct profile *profile, stack_id id)
{
	assert(id != STACK_EMPTY && id < profile->stack_count);
	return profile->stacks[id].parent;
}

frame_id profile_stack_frame(const struct profile *profile, stack_id id)
{
	assert(id != STACK_EMPTY && id < profile->stack_count);
	return profile->stacks[id].frame;
}

const struct process *profile_process_at(const struct profile *profile, uint32_t index)
{
	assert(index < profile->process_count);
	return &profile->processes[index];
}

const struct profile_sample *profile_sample_at(const struct profile *profile, size_t index)
{
	assert(index < profile->sample_count);
	return &profile->samples[index];
}

size_t profile_strings(const struct profile *profile)
{
	return profile->string_count;
}

size_t profile_frames(const struct profile *profile)
{
	return profile->frame_count;
}

size_t profile_stacks(const struct profile *profile)
{
	return profile->stack_count;
}

size_t profile_processes(const struct profile *profile)
{
	return profile->process_count;
}

size_t profile_samples(const struct profile *profile)
{
	return profile->sample_count;
}
