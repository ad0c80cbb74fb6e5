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
#include "base/str.h"
#include "capture/owners.h"
#include "capture/thread-labels.h"
#include "runtimes/python/attach.h"
#include "runtimes/python/neighbours.h"
#include "runtimes/python/thread-names.h"

enum {
	USER_WORDS = 2 * SAMPLE_USER_FRAMES,
};

struct stacks {
	struct stacks_options options;
	struct thread_labels *labels; /* owned; NULL: threads are not told apart */
	struct owners *owners;        /* owned */
	struct profile *profile;
	struct stack_totals totals;
	/* Frames of the present sample, leaf first, as abi/sample.h has them. */
	uint64_t user[USER_WORDS];
	size_t user_words;
	uint32_t begin[USER_WORDS]; /* the first word of each */
	struct python_neighbour neighbour[USER_WORDS];
};

struct error *stacks_new(const struct stacks_options *options, struct stacks **ret)
{
	struct stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return error_oom();
	stacks->options = *options;
	struct owners_options owners = {options->walks.processes, options->containers};
	struct error *err = profile_new(NULL, &stacks->profile);
	if (!err)
		err = owners_new(&owners, &stacks->owners);
	if (!err && options->by_thread)
		err = thread_labels_new(&stacks->labels);
	if (err) {
		stacks_free(stacks);
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
	thread_labels_free(stacks->labels);
	owners_free(stacks->owners);
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
	owners_clear(stacks->owners);
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

/* Walk on from where the BPF side stopped. The end is the new one. */
static struct error *finish_walk(struct stacks *stacks, const struct sample *sample,
				 struct process_state *process, enum walk_end *ret)
{
	const uint64_t *data = (const uint64_t *)(sample + 1);
	const uint64_t *kept = data + sample->kernel_frames + sample->user_words;
	struct copy copy = {.sample = sample, .bytes = (const char *)(kept + sample->kept_words)};
	struct host_begin begin = {
		.process = process,
		.at = sample->state,
		.flags = (sample->flags & SAMPLE_leaf ? WALK_leaf : 0) |
			 (sample->flags & SAMPLE_call ? WALK_call : 0),
		.memory = {.read = read_copy, .context = &copy},
	};
	struct host_stack stack = {.word = stacks->user, .words = stacks->user_words};

	if (sample->kept_words && stacks->options.pythons) {
		begin.image = pythons_find(stacks->options.pythons, sample->python);
		begin.state = (const struct python_kept_state *)kept;
		begin.kept = (const struct python_kept *)(begin.state + 1);
		begin.kepts = sample->kept_words / PYTHON_KEPT_WORDS - 1;
	}
	TRY(host_walks_run(&stacks->options.walks, &begin, &stack));
	stacks->user_words = stack.words;
	*ret = stack.end;
	if (*ret == END_unreadable && copy.beyond) {
		*ret = END_copy_ended;
		counter_add(stacks->options.walks.counters, COUNTER_copies_cut, 1);
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
		counter_add(stacks->options.walks.counters, COUNTER_unknown_process, 1);
	if (end == END_unknown_pc)
		counter_add(stacks->options.walks.counters, COUNTER_unknown_pc, 1);
	if (!process)
		return NULL;
	if (end == END_unknown_process)
		TRY(processes_missed(stacks->options.walks.processes, process, sample->time_ns));
	return finish_walk(stacks, sample, process, ret);
}

/* --- stacks of numbers */

/* A stack being built, root first. */
struct builder {
	struct stacks *stacks;
	const struct sample *sample;
	const struct process_state *process; /* NULL: not known */
	uint32_t process_number;             /* in the profile */
	struct python_image *python;         /* NULL: it does not run CPython */
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
		objects_use(stacks->options.walks.objects, code.object, builder->sample->time_ns);
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

static struct error *push_python(struct builder *builder, const uint64_t *words)
{
	const struct stacks *stacks = builder->stacks;
	struct python_word word = {builder->sample->pid, words[0], words[1]};
	struct frame frame;

	TRY(pythons_frame(stacks->options.pythons, builder->python, &word, stacks->profile,
			  &frame));
	return push_frame(builder, &frame);
}

/*
 * Which of the machine frames stand beside Python frames that say the same? RET_KEEP is by frame,
 * leaf first.
 */
static void choose_frames(struct builder *builder, size_t count)
{
	struct stacks *stacks = builder->stacks;
	uint32_t interpreter = python_image_object(builder->python);

	for (size_t i = 0; i < count; i++) {
		uint64_t word = stacks->user[stacks->begin[i]];
		struct python_neighbour *frame = &stacks->neighbour[i];
		*frame = (struct python_neighbour){.keep = true};
		if (frame_words(word) == 2) {
			frame->python = true;
			continue;
		}
		uint64_t pc = (word & ~SAMPLE_EXACT_PC) - !(word & SAMPLE_EXACT_PC);
		struct code code = process_code(builder->process, pc);
		frame->interpreter = code.kind == CODE_object && code.object == interpreter;
		frame->start =
			code.kind == CODE_object &&
			python_starts_in(objects_path(stacks->options.walks.objects, code.object));
	}
	python_hide_interpreter(stacks->neighbour, count);
}

static struct error *push_user(struct builder *builder)
{
	struct stacks *stacks = builder->stacks;
	size_t count = find_frames(stacks);
	bool all = !builder->python || !builder->process || stacks->options.native;

	if (!all)
		choose_frames(builder, count);
	for (size_t i = count; i-- > 0;) {
		const uint64_t *words = &stacks->user[stacks->begin[i]];
		if (frame_words(*words) == 2 && builder->python)
			TRY(push_python(builder, words));
		else if (frame_words(*words) == 1 && (all || stacks->neighbour[i].keep))
			TRY(push_machine(builder, *words));
	}
	return NULL;
}

/* At the root: whose stack it is. */
static struct error *push_thread(struct builder *builder)
{
	const struct sample *sample = builder->sample;
	struct frame frame = {.kind = KIND_thread};
	const char *name = NULL;

	if (!builder->stacks->options.by_thread)
		return NULL;
	if (builder->python) {
		struct thread_label_of of = {sample->pid, sample->tid,
					     python_image_instance(builder->python)};
		TRY(thread_labels_find(builder->stacks->labels, &of, &name));
	}
	_cleanup_free_ char *text = NULL;
	TRY(str_format(&text, "thread %u: %.*s", sample->tid,
		       name ? PYTHON_THREAD_NAME_MAX : SAMPLE_COMM,
		       name ? name : sample->thread_comm));
	TRY(profile_string(builder->stacks->profile, text, strlen(text), &frame.function));
	return push_frame(builder, &frame);
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

/* How many words are of the stack that runs: a greenlet's ends where its library began it. */
static size_t own_words(const struct builder *builder)
{
	const struct stacks *stacks = builder->stacks;
	const struct objects *objects = stacks->options.walks.objects;

	for (size_t i = 0; i < stacks->user_words; i += frame_words(stacks->user[i])) {
		uint64_t word = stacks->user[i];
		if (frame_words(word) == 2)
			continue;
		uint64_t pc = (word & ~SAMPLE_EXACT_PC) - !(word & SAMPLE_EXACT_PC);
		struct code code = process_code(builder->process, pc);
		if (code.kind == CODE_object &&
		    python_switches_stacks(objects_path(objects, code.object)))
			return i;
	}
	return stacks->user_words;
}

/* Python frames of a whole stack beside the calls of the evaluator that run them. */
static void deal_frames(const struct builder *builder)
{
	const struct python_instance *instance;

	if (!builder->python || !builder->process)
		return;
	instance = python_image_instance(builder->python);
	if (instance->layout.frames == PYTHON_FRAMES_objects)
		python_deal_frames(&instance->process, builder->stacks->user, own_words(builder));
}

/* The stack of BUILDER's sample, whose user part is in stacks->user. */
static struct error *build_stack(struct builder *builder, enum walk_end end)
{
	TRY(push_thread(builder));
	if (!walk_end_whole(end)) {
		struct frame cut = {.kind = KIND_cut, .offset = end};
		TRY(push_frame(builder, &cut));
	} else {
		deal_frames(builder);
	}
	TRY(push_user(builder));
	return push_kernel(builder);
}

static struct error *add_stack(struct stacks *stacks, const struct sample *sample,
			       const struct process_state *process, enum walk_end end)
{
	struct profile_sample to = {.value = 1};

	TRY(owners_find(stacks->owners, stacks->profile, sample, &to.process));
	struct builder builder = {
		.stacks = stacks,
		.sample = sample,
		.process = process,
		.process_number = to.process,
		.python = stacks->options.pythons
				  ? pythons_find(stacks->options.pythons, sample->python)
				  : NULL,
		.stack = STACK_EMPTY,
	};
	TRY(build_stack(&builder, end));
	to.stack = builder.stack;
	return profile_add(stacks->profile, &to);
}

/* A maximum of the profile: the sample is counted, and told at the end. */
static void turn_away(struct stacks *stacks, struct error *err)
{
	if (!err)
		return;
	log_debug("%s", error_text(err));
	error_free(err);
	profile_turn_away(stacks->profile, 1);
}

static void count_end(struct stacks *stacks, enum walk_end end)
{
	stacks->totals.samples++;
	stacks->totals.by_end[end < END_MAX ? end : END_none]++;
}

struct error *stacks_add(struct stacks *stacks, const struct sample *sample)
{
	struct process_state *process = NULL;
	enum walk_end end;

	if (sample->user_words || !walk_end_whole(sample->end))
		TRY(processes_get(stacks->options.walks.processes, sample->pid, sample->time_ns,
				  &process));
	TRY(walk_user(stacks, sample, process, &end));
	// Sent for what its walk lacked; that is loaded now.
	if (stacks->options.only_gil && !(sample->flags & SAMPLE_gil))
		return NULL;
	count_end(stacks, end);
	turn_away(stacks, add_stack(stacks, sample, process, end));
	return NULL;
}

/* --- threads that are looked at */

typedef struct error *walk_fn(const struct host_walks *walks, const struct host_begin *begin,
			      struct host_stack *stack);

static struct error *walk_thread(struct stacks *stacks, const struct stacks_from *from,
				 walk_fn *walk, struct host_stack *ret)
{
	const struct thread_registers *registers = from->registers;
	struct host_stack stack = {.word = stacks->user, .end = END_unknown_process};
	bool all = registers->known == REGISTERS_all;
	struct process_state *process;

	TRY(processes_get(stacks->options.walks.processes, from->pid, clock_monotonic_ns(),
			  &process));
	struct host_begin begin = {
		.process = process,
		.at = registers->at,
		.flags = (all ? WALK_leaf : 0) | (stacks->options.only_gil ? WALK_ask_gil : 0),
		.image = process ? process_python(process) : NULL,
		.fs_base = registers->fs_base,
		.thread_state = from->thread_state,
		.memory = *from->memory,
	};
	if (!all)
		begin.at.fp = WALK_FP_LOST;
	if (registers->compat)
		stack.end = END_compat;
	else if (process)
		TRY(walk(&stacks->options.walks, &begin, &stack));
	*ret = stack;
	return NULL;
}

struct error *stacks_walk(struct stacks *stacks, const struct stacks_from *from,
			  struct host_stack *ret)
{
	return walk_thread(stacks, from, host_walks_run, ret);
}

struct error *stacks_walk_stopped(struct stacks *stacks, const struct stacks_from *from,
				  struct host_stack *ret)
{
	return walk_thread(stacks, from, host_walks_once, ret);
}

struct error *stacks_prepare(struct stacks *stacks, uint32_t pid, const struct host_stack *stack,
			     bool *ret_again)
{
	struct process_state *process;

	TRY(processes_get(stacks->options.walks.processes, pid, clock_monotonic_ns(), &process));
	*ret_again = false;
	return process ? host_walks_prepare(&stacks->options.walks, process, stack, ret_again)
		       : NULL;
}

/* What a thread's stack is in a sample. */
struct thread_sample {
	struct sample head;
	uint64_t kernel[SAMPLE_KERNEL_FRAMES];
};

struct error *stacks_keep(struct stacks *stacks, const struct stacks_thread *thread,
			  struct stacks_kept *ret)
{
	struct thread_sample sample = {.head = thread->head};
	struct stacks_kept kept = {.sample = {.value = 1}, .end = thread->stack.end};
	struct builder builder = {.stacks = stacks, .sample = &sample.head, .stack = STACK_EMPTY};
	struct process_state *process;

	TRY(processes_get(stacks->options.walks.processes, sample.head.pid, sample.head.time_ns,
			  &process));
	builder.process = process;
	builder.python = process ? process_python(process) : NULL;
	if (stacks->options.kernel)
		sample.head.kernel_frames = (__u16)thread->kernel->count;
	memcpy(sample.kernel, thread->kernel->pc, sample.head.kernel_frames * sizeof(uint64_t));
	stacks->user_words = thread->stack.words;
	memcpy(stacks->user, thread->stack.word, thread->stack.words * sizeof(uint64_t));
	struct error *err =
		owners_find(stacks->owners, stacks->profile, &sample.head, &kept.sample.process);
	builder.process_number = kept.sample.process;
	if (!err)
		err = build_stack(&builder, kept.end);
	kept.sample.stack = builder.stack;
	if (err)
		kept.sample.value = 0;
	error_free(err); // a maximum of the profile, told when the stack is to be added
	*ret = kept;
	return NULL;
}

void stacks_repeat(struct stacks *stacks, const struct stacks_kept *kept)
{
	count_end(stacks, kept->end);
	if (kept->sample.value)
		turn_away(stacks, profile_add(stacks->profile, &kept->sample));
	else
		profile_turn_away(stacks->profile, 1);
}
