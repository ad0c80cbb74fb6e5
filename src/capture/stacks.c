/* SPDX-License-Identifier: Apache-2.0 */
/* From samples to stacks of numbers. Names are given in capture/naming.c. */
#define LOG_DOMAIN "stacks"
#include "capture/stacks.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"

enum {
	// A walk meets at most this many objects whose rows must be loaded, and re-reads of maps.
	WALK_ROUNDS = 64,
	// Processes that are told apart in one profile; more are added up by name, as pid 0.
	PROCESSES_APART = 8192,
	USER_WORDS = 2 * SAMPLE_USER_FRAMES,
};

struct stacks {
	struct stacks_options options;
	struct profile *profile;
	struct stack_totals totals;
	/* Frames of the present sample, leaf first, as abi/sample.h has them. */
	uint64_t user[USER_WORDS];
	size_t user_words;
	uint32_t begin[USER_WORDS]; /* the first word of each */
};

struct error *stacks_new(const struct stacks_options *options, struct stacks **ret)
{
	struct stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return error_oom();
	stacks->options = *options;
	struct error *err = profile_new(NULL, &stacks->profile);
	if (err) {
		free(stacks);
		return err;
	}
	*ret = stacks;
	return NULL;
}

void stacks_free(struct stacks *stacks)
{
	if (!stacks)
		return;
	profile_free(stacks->profile);
	free(stacks);
}

const struct stack_totals *stacks_totals(const struct stacks *stacks)
{
	return &stacks->totals;
}

struct error *stacks_take(struct stacks *stacks, struct profile **ret,
			  struct stack_totals *ret_totals)
{
	struct profile *next;

	TRY(profile_new(NULL, &next));
	*ret = stacks->profile;
	*ret_totals = stacks->totals;
	stacks->profile = next;
	stacks->totals = (struct stack_totals){0};
	return NULL;
}

/* --- finishing a walk */

/* What a host walk can read: the copy that came with the sample, and the process's code. */
struct copy {
	const struct sample *sample;
	const char *bytes;
	bool beyond; /* something above the copy was asked for */
};

static int read_copy(void *context, uint64_t addr, void *to, size_t size)
{
	struct copy *copy = context;
	const struct sample *sample = copy->sample;
	uint64_t start = sample->state.sp - SAMPLE_RED_ZONE, offset = addr - start;

	if (addr >= start && offset < sample->copy_hole)
		return -1;
	if (addr >= start && offset <= sample->copy_bytes && size <= sample->copy_bytes - offset) {
		memcpy(to, copy->bytes + offset, size);
		return 0;
	}
	if (addr >= start && offset < 2ull * SAMPLE_COPY_BYTES) {
		copy->beyond = !(sample->flags & SAMPLE_copy_whole);
		return -1;
	}
	// Code does not change under a walk; other memory of a running process does, and is not
	// read.
	if (addr != sample->state.pc)
		return -1;
	struct iovec local = {to, size}, remote = {(void *)(uintptr_t)addr, size};
	return process_vm_readv((pid_t)sample->pid, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0
											       : -1;
}

/* Words of the frame that begins with WORD. */
static size_t frame_words(uint64_t word)
{
	return word & SAMPLE_RUNTIME && !(word & SAMPLE_EXACT_PC) ? 2 : 1;
}

static uint32_t count_frames(const struct stacks *stacks)
{
	uint32_t count = 0;

	for (size_t i = 0; i < stacks->user_words; i += frame_words(stacks->user[i]))
		count++;
	return count;
}

static void start_walk(struct stacks *stacks, struct host_walk *walk, const struct sample *sample)
{
	walk->walk.at = sample->state;
	walk->walk.flags = (sample->flags & SAMPLE_leaf ? WALK_leaf : 0) |
			   (sample->flags & SAMPLE_call ? WALK_call : 0);
	walk->walk.depth = stacks->options.depth;
	walk->walk.words = (uint32_t)stacks->user_words;
	walk->walk.frames = count_frames(stacks);
	walk->words = stacks->user;
}

/* Do what the walk's end asks for. *RET: it is worth going on. */
static struct error *prepare_round(struct stacks *stacks, struct host_walk *walk,
				   struct process_state *process, bool *ret)
{
	const struct stacks_options *with = &stacks->options;
	const struct walk *at = &walk->walk;
	uint32_t object = objects_of_module(with->objects, at->in.module);

	*ret = false;
	if (at->end == END_not_loaded && object != OBJECT_NONE) {
		TRY(objects_load(with->objects, object));
		*ret = true;
	} else if (at->end == END_unknown_pc) {
		TRY(processes_refresh(with->processes, process, clock_monotonic_ns(), ret));
	}
	return NULL;
}

/* Walk on from where the BPF side stopped. The end is the new one. */
static struct error *finish_walk(struct stacks *stacks, const struct sample *sample,
				 struct process_state *process, enum walk_end *ret)
{
	const uint64_t *data = (const uint64_t *)(sample + 1);
	struct copy copy = {
		.sample = sample,
		.bytes = (const char *)(data + sample->kernel_frames + sample->user_words)};
	struct host_walk walk = {.memory = {read_copy, &copy}};
	const struct unwind_mapping *table;
	size_t count;
	bool again = true;

	counter_add(stacks->options.counters, COUNTER_host_walks, 1);
	start_walk(stacks, &walk, sample);
	for (int round = 0; again && round < WALK_ROUNDS; round++) {
		// The frame where a walk stopped was pushed; the walk that goes on pushes it again.
		if (walk.walk.frames) {
			walk.walk.frames--;
			walk.walk.words--;
		}
		struct host_tables tables = store_tables(stacks->options.store);
		TRY(process_table(stacks->options.processes, process, &table, &count));
		tables.mapping = table;
		tables.mappings = count;
		walk.tables = &tables;
		walk.walk.mappings = (uint32_t)count;
		walk.walk.in = (struct unwind_mapping){0};
		host_walk_native(&walk);
		TRY(prepare_round(stacks, &walk, process, &again));
	}
	stacks->user_words = walk.walk.words;
	*ret = walk.walk.end;
	if (*ret == END_unreadable && copy.beyond) {
		*ret = END_copy_ended;
		counter_add(stacks->options.counters, COUNTER_copies_cut, 1);
	}
	return NULL;
}

/* The user part of SAMPLE into stacks->user, walked as far as can be. */
static struct error *walk_user(struct stacks *stacks, const struct sample *sample,
			       struct process_state *process, enum walk_end *ret)
{
	const uint64_t *data = (const uint64_t *)(sample + 1);
	enum walk_end end = sample->end;

	stacks->user_words = sample->user_words;
	if (stacks->user_words > USER_WORDS)
		stacks->user_words = USER_WORDS;
	memcpy(stacks->user, data + sample->kernel_frames, stacks->user_words * sizeof(*data));
	*ret = end;
	if (!walk_end_unknown(end))
		return NULL;
	if (end == END_unknown_process)
		counter_add(stacks->options.counters, COUNTER_unknown_process, 1);
	if (end == END_unknown_pc)
		counter_add(stacks->options.counters, COUNTER_unknown_pc, 1);
	if (!process)
		return NULL;
	if (end == END_unknown_process)
		TRY(processes_missed(stacks->options.processes, process, sample->time_ns));
	return finish_walk(stacks, sample, process, ret);
}

/* --- stacks of numbers */

/* A stack being built, root first. */
struct builder {
	struct stacks *stacks;
	const struct sample *sample;
	const struct process_state *process; /* NULL: not known */
	uint32_t process_number;             /* in the profile */
	stack_id stack;
};

static struct error *push_frame(struct builder *builder, const struct frame *frame)
{
	struct profile *profile = builder->stacks->profile;
	frame_id id;

	TRY(profile_frame(profile, frame, &id));
	return profile_stack(profile, builder->stack, id, &builder->stack);
}

/* The machine frame of WORD. */
static struct error *push_machine(struct builder *builder, uint64_t word)
{
	const struct stacks *stacks = builder->stacks;
	uint64_t pc = word & ~SAMPLE_EXACT_PC;
	bool call = !(word & SAMPLE_EXACT_PC);
	struct code code = {.kind = CODE_none};

	if (builder->process)
		code = process_code(builder->process, pc - call);
	struct frame frame = {
		.kind = KIND_jit,
		.offset = pc,
		.line = builder->process_number << 1 | call,
		.inlined = code.kind == CODE_none,
	};
	if (code.kind == CODE_object) {
		frame.kind = KIND_native;
		frame.offset = code.addr + call;
		frame.line = code.object << 1 | call;
		objects_use(stacks->options.objects, code.object, builder->sample->time_ns);
	}
	return push_frame(builder, &frame);
}

/* Where each frame of the present sample begins, leaf first, into stacks->begin. */
static size_t find_frames(struct stacks *stacks)
{
	size_t count = 0;

	for (size_t i = 0; i < stacks->user_words; i += frame_words(stacks->user[i]))
		stacks->begin[count++] = (uint32_t)i;
	return count;
}

static struct error *push_user(struct builder *builder)
{
	struct stacks *stacks = builder->stacks;

	for (size_t i = find_frames(stacks); i-- > 0;)
		TRY(push_machine(builder, stacks->user[stacks->begin[i]]));
	return NULL;
}

static struct error *push_kernel(struct builder *builder)
{
	const struct sample *sample = builder->sample;
	const uint64_t *data = (const uint64_t *)(sample + 1);

	for (size_t i = sample->kernel_frames; i-- > 0;) {
		struct frame frame = {.kind = KIND_kernel, .offset = data[i], .line = i > 0};
		TRY(push_frame(builder, &frame));
	}
	return NULL;
}

/* Whose sample it is. Beyond a maximum processes are not told apart any more, but none is lost. */
static struct error *find_owner(struct stacks *stacks, const struct sample *sample, uint32_t *ret)
{
	struct process process = {.pid = sample->pid};
	size_t length = strnlen(sample->comm, sizeof(sample->comm));

	if (profile_processes(stacks->profile) >= PROCESSES_APART)
		process.pid = 0;
	TRY(profile_string(stacks->profile, sample->comm, length, &process.name));
	return profile_process(stacks->profile, &process, ret);
}

static struct error *add_stack(struct stacks *stacks, const struct sample *sample,
			       const struct process_state *process, enum walk_end end)
{
	struct profile_sample to = {.value = 1};

	TRY(find_owner(stacks, sample, &to.process));
	struct builder builder = {
		.stacks = stacks,
		.sample = sample,
		.process = process,
		.process_number = to.process,
		.stack = STACK_EMPTY,
	};
	if (!walk_end_whole(end)) {
		struct frame cut = {.kind = KIND_cut, .offset = end};
		TRY(push_frame(&builder, &cut));
	}
	TRY(push_user(&builder));
	TRY(push_kernel(&builder));
	to.stack = builder.stack;
	return profile_add(stacks->profile, &to);
}

struct error *stacks_add(struct stacks *stacks, const struct sample *sample)
{
	struct process_state *process = NULL;
	enum walk_end end;

	if (sample->user_words || !walk_end_whole(sample->end))
		TRY(processes_get(stacks->options.processes, sample->pid, sample->time_ns,
				  &process));
	TRY(walk_user(stacks, sample, process, &end));
	stacks->totals.samples++;
	stacks->totals.by_end[end < END_MAX ? end : END_none]++;
	struct error *err = add_stack(stacks, sample, process, end);
	if (err) {
		log_debug("%s", error_text(err));
		// A maximum of the profile: the sample is counted, and told at the end.
		error_free(err);
		profile_turn_away(stacks->profile, 1);
	}
	return NULL;
}
