/* SPDX-License-Identifier: Apache-2.0 */
/* CPython in a process that is looked at: where it is, its threads, names and variables. */
#define LOG_DOMAIN "target"
#include <stdio.h>
#include <string.h>

#include "abi/runtimes.h"
#include "base/array.h"
#include "base/log.h"
#include "base/str.h"
#include "capture/target-state.h"
#include "runtimes/python/locals.h"
#include "runtimes/python/neighbours.h"
#include "runtimes/python/tasks.h"
#include "runtimes/python/values.h"

enum {
	CODES_MAX = 1 << 16,
	// struct _gil_runtime_state with two mutexes and two condition variables
	// (pycore_gil.h, 3.12); before, its locks are the only ones inside of _PyRuntime
	// (pycore_runtime.h; at 0x538 in 3.7.16, 0x4c8 in 3.8.18, 0x1a8 in 3.10.13, 0x1b0 in
	// 3.11.7): the others are PyThread_allocate_lock()'s.
	LOCK_BYTES = 256,
	RUNTIME_BYTES_37 = 0x5f0, /* 3.7, 3.8: with the pending calls in front of the lock */
	RUNTIME_BYTES = 0x290,
	VALUE_BYTES = 512,
	VALUE_MORE_BYTES = 4096,
};

struct code_entry {
	uint64_t addr;
	struct python_code code;
};

struct target_python {
	bool attached;
	uint32_t object; /* number of that which holds the evaluator */
	struct python_instance instance;
	char reason[PYTHON_REASON_MAX]; /* why it is not attached; "": there is none */
	struct python_threads threads;
	struct python_thread_names thread_names;
	struct code_entry *code; /* those read so far; strings of frames point into them */
	size_t codes, code_room;
	struct hash_index by_addr;
};

void target_python_free(struct target_python *python)
{
	if (!python)
		return;
	for (size_t i = 0; i < python->codes; i++)
		python_code_deinit(&python->code[i].code);
	free(python->code);
	hash_index_deinit(&python->by_addr);
	python_threads_deinit(&python->threads);
	python_thread_names_deinit(&python->thread_names);
	free(python);
}

/* --- attaching */

/* Does object NUMBER, mapped at BIAS, hold the interpreter? */
static bool try_object(struct target *target, uint32_t number, uint64_t bias)
{
	struct target_python *python = target->python;
	struct object *object = objects_object(target->sets.objects, number);
	struct python_object found;

	if (!object || !python_object_find(object, &found))
		return false;
	enum python_attach outcome = python_attach(&found, bias, target->options.memory,
						   &python->instance, python->reason);
	python->object = number;
	python->attached = outcome == PYTHON_ATTACH_ok;
	if (python->attached)
		python->reason[0] = 0;
	else
		log_debug("not attached object=%s reason=\"%s\"",
			  objects_path(target->sets.objects, number), python->reason);
	return python->attached;
}

static struct error *read_names(struct target *target)
{
	struct target_python *python = target->python;
	// Some 40 small reads for each thread, most of them on the same pages.
	const struct memory pages = memory_pages_memory(&target->pages), *memory = &pages;
	uint64_t last = 0, modules;

	for (size_t i = 0; i < python->threads.count; i++) {
		uint64_t interpreter = python->threads.thread[i].interpreter;
		enum python_thread_names_outcome outcome;
		// Threads of one interpreter stand together.
		if (interpreter == last)
			continue;
		last = interpreter;
		if (memory_read_u64(memory, interpreter + python->instance.at.interpreter_modules,
				    &modules))
			continue;
		TRY(python_thread_names_read(memory, &python->instance.at, modules, &outcome,
					     &python->thread_names));
	}
	return NULL;
}

struct error *target_find_python(struct target *target)
{
	const struct map_set *set = target->set;
	uint32_t last = OBJECT_NONE;

	TRY(ARRAY_NEW(target->python, 1));
	for (size_t i = 0; i < set->count; i++) {
		const struct process_map *map = &set->map[i];
		if (map->object == OBJECT_NONE || map->object == last)
			continue;
		last = map->object;
		if (try_object(target, map->object, map->bias))
			break;
	}
	if (!target->python->attached)
		return NULL;
	TRY(python_threads(&target->python->instance, target->options.memory,
			   &target->python->threads));
	return read_names(target);
}

bool target_python_version(const struct target *target, char ret[static PYTHON_VERSION_TEXT_MAX])
{
	if (!target->python->attached)
		return false;
	python_version_text(&target->python->instance, target->options.memory, ret);
	return true;
}

const char *target_python_refused(const struct target *target)
{
	const struct target_python *python = target->python;

	return !python->attached && python->reason[0] ? python->reason : NULL;
}

/* --- threads */

static bool is_thread(const struct python_thread *thread, const struct target_thread *who)
{
	if (who->fs_base)
		return thread->thread_id == who->fs_base;
	return python_thread_is(thread, who->ns_tid);
}

bool target_python_thread(const struct target *target, const struct target_thread *who,
			  struct target_python_thread *ret)
{
	const struct target_python *python = target->python;

	if (!python->attached || (!who->fs_base && !who->ns_tid))
		return false;
	for (size_t i = 0; i < python->threads.count; i++) {
		const struct python_thread *thread = &python->threads.thread[i];
		if (!is_thread(thread, who))
			continue;
		ret->id = thread->thread_id;
		ret->state = thread->state;
		ret->interpreter = thread->interpreter;
		ret->name = python_thread_name_find(&python->thread_names, thread->thread_id);
		return true;
	}
	return false;
}

bool target_python_holds_lock(const struct target *target,
			      const struct target_python_thread *thread)
{
	return python_holder(&target->python->instance, target->options.memory,
			     thread->interpreter) == thread->state;
}

bool target_python_is_lock(const struct target *target, uint64_t addr)
{
	const struct target_python *python = target->python;
	const struct python_offsets *at = &python->instance.at;
	uint64_t gil, last = 0;

	if (!python->attached)
		return false;
	for (size_t i = 0; i < python->threads.count && at->interpreter_gil != PYTHON_ABSENT; i++) {
		uint64_t interpreter = python->threads.thread[i].interpreter;
		// Threads of one interpreter stand together.
		if (interpreter == last)
			continue;
		last = interpreter;
		if (!memory_read_u64(target->options.memory, interpreter + at->interpreter_gil,
				     &gil) &&
		    addr - gil < LOCK_BYTES)
			return true;
	}
	return at->interpreter_gil == PYTHON_ABSENT && python->instance.runtime &&
	       addr - python->instance.runtime <
		       (at->version < 0x0309 ? (uint64_t)RUNTIME_BYTES_37 : RUNTIME_BYTES);
}

void target_python_walk(const struct target *target, struct host_walk *walk,
			struct host_tables *tables)
{
	const struct target_python *python = target->python;

	if (!python->attached)
		return;
	tables->python = &python->instance.process;
	tables->layout = &python->instance.layout;
	walk->walk.python.process = 1;
	// A thread inside of a sub-interpreter has a state in each; the innermost comes first.
	for (size_t i = 0; i < python->threads.count && !walk->thread_state; i++)
		if (python->threads.thread[i].thread_id == walk->walk.fs_base)
			walk->thread_state = python->threads.thread[i].state;
}

/* How many words are of the stack that runs: a greenlet's ends where its library began it. */
static size_t own_words(const struct target *target, const struct target_stack *stack)
{
	for (size_t i = 0; i < stack->words; i += target_frame_words(stack->word[i])) {
		uint64_t word = stack->word[i];
		if (target_frame_words(word) == 2)
			continue;
		uint64_t pc = (word & ~SAMPLE_EXACT_PC) - !(word & SAMPLE_EXACT_PC);
		struct code code = map_set_code(target->set, pc);
		if (code.kind == CODE_object &&
		    python_switches_stacks(objects_path(target->sets.objects, code.object)))
			return i;
	}
	return stack->words;
}

void target_python_deal(const struct target *target, struct target_stack *stack)
{
	const struct python_instance *instance = &target->python->instance;

	if (target->python->attached && instance->layout.frames == PYTHON_FRAMES_objects &&
	    walk_end_whole(stack->end))
		python_deal_frames(&instance->process, stack->word, own_words(target, stack));
}

bool target_runs_python(const struct target *target)
{
	return target->python->attached;
}

bool target_in_interpreter(const struct target *target, uint32_t object)
{
	return target->python->attached && object == target->python->object;
}

/* --- frames */

struct code_key {
	const struct target_python *python;
	uint64_t addr;
};

static bool code_equal(const void *context, uint32_t item)
{
	const struct code_key *key = context;

	return key->python->code[item].addr == key->addr;
}

/* The code object at ADDR; NULL: there is none any more. */
static struct error *find_code(struct target *target, uint64_t addr, const struct python_code **ret)
{
	struct target_python *python = target->python;
	struct python_codes from = {target->options.memory, &python->instance.at,
				    python->instance.code_type};
	struct code_key key = {python, addr};
	struct code_entry entry = {.addr = addr};
	enum python_code_outcome outcome;
	uint32_t number;

	*ret = NULL;
	if (hash_find(&python->by_addr, hash_u64(addr), code_equal, &key, &number)) {
		*ret = &python->code[number].code;
		return NULL;
	}
	// More are no program's.
	if (python->codes == CODES_MAX)
		return NULL;
	TRY(ARRAY_RESERVE(python->code, python->code_room, python->codes, 1, CODES_MAX,
			  "functions in one process"));
	TRY(python_code_read(&from, addr, &outcome, &entry.code));
	if (outcome != PYTHON_CODE_read)
		return NULL;
	struct error *err = hash_add(&python->by_addr, hash_u64(addr), (uint32_t)python->codes);
	if (err) {
		python_code_deinit(&entry.code);
		return err;
	}
	python->code[python->codes] = entry;
	*ret = &python->code[python->codes++].code;
	return NULL;
}

static const char *lost_text(uint32_t lost)
{
	if (lost == PYTHON_LOST_state)
		return "[cut: no state of this thread in CPython's lists]";
	return "[cut: frames of CPython not readable]";
}

struct error *target_name_python(struct target *target, const uint64_t word[2],
				 struct target_frame *ret)
{
	uint64_t addr = word[0] & ((1ull << SAMPLE_RUNTIME_SHIFT) - 1);
	uint32_t cookie = (uint32_t)(word[1] >> 32), position = (uint32_t)word[1];
	const struct python_code *code;

	if (!addr) {
		*ret = (struct target_frame){.kind = KIND_cut, .function = lost_text(position)};
		return NULL;
	}
	*ret = (struct target_frame){.kind = KIND_python, .function = "[function gone]"};
	TRY(find_code(target, addr, &code));
	if (!code || (cookie != PYTHON_COOKIE_NONE && cookie != code->cookie))
		return NULL;
	ret->function = code->function;
	ret->file = code->file;
	ret->first_line = code->first_line;
	ret->line = python_code_line(code, position);
	return NULL;
}

/* --- variables */

struct collector {
	struct target *target;
	struct target_stack *stack;
	struct python_values values;
	size_t word; /* whose frame's */
	size_t size; /* of each value's text */
	char *text;  /* so many bytes; owned */
	struct error *err;
};

static bool add_local(void *context, const struct python_local *local)
{
	struct collector *to = context;
	struct target_stack *stack = to->stack;
	struct target_variable variable = {
		.word = to->word,
		.local = {.argument = local->kind == PYTHON_LOCAL_argument},
	};

	if (stack->variables == TARGET_VARIABLES_MAX)
		return false;
	python_value_print(&to->values, local->value, to->text, to->size);
	to->err = ARRAY_RESERVE(stack->variable, stack->variable_room, stack->variables, 1,
				TARGET_VARIABLES_MAX, "variables in one stack");
	if (!to->err)
		to->err = target_text(to->target, local->name, &variable.local.name);
	if (!to->err)
		to->err = target_text(to->target, to->text, &variable.local.value);
	if (to->err)
		return false;
	stack->variable[stack->variables++] = variable;
	return true;
}

struct error *target_read_variables(struct target *target, unsigned level,
				    struct target_stack *stack)
{
	struct collector to = {
		.target = target,
		.stack = stack,
		.size = level > 1 ? VALUE_MORE_BYTES : VALUE_BYTES,
	};

	stack->variables = 0;
	if (!target->python->attached || !level)
		return NULL;
	to.values = (struct python_values){
		.memory = target->options.memory,
		.offsets = &target->python->instance.at,
		.limits = level > 1 ? &python_value_more : &python_value_line,
	};
	_cleanup_free_ char *text = calloc(1, to.size);
	if (!text)
		return error_oom();
	to.text = text;
	for (size_t i = 0; i < stack->words && !to.err && stack->variables < TARGET_VARIABLES_MAX;
	     i += target_frame_words(stack->word[i])) {
		struct python_frame frame = {
			.addr = stack->place[i],
			.code = stack->word[i] & ((1ull << SAMPLE_RUNTIME_SHIFT) - 1),
		};
		to.word = i;
		if (target_frame_words(stack->word[i]) == 2 && frame.code)
			python_locals(&to.values, &frame, level > 2, add_local, &to);
	}
	return to.err;
}

/* --- tasks of asyncio */

struct error *target_read_tasks(const struct target *target, enum python_tasks_outcome *ret_outcome,
				struct python_tasks *ret)
{
	const struct target_python *python = target->python;
	const struct python_thread *thread = python->threads.thread;
	uint32_t reads_left = PYTHON_TASKS_READS;
	struct python_tasks_from from = {
		.memory = target->options.memory,
		.offsets = &python->instance.at,
		.reads_left = &reads_left,
	};
	enum python_tasks_outcome outcome, worst = PYTHON_TASKS_none;

	for (size_t i = 0; i < python->threads.count; i += from.threads_count) {
		from.threads = &thread[i];
		from.threads_count = 1;
		// Threads of one interpreter stand together.
		while (i + from.threads_count < python->threads.count &&
		       thread[i + from.threads_count].interpreter == thread[i].interpreter)
			from.threads_count++;
		if (memory_read_u64(from.memory,
				    thread[i].interpreter + from.offsets->interpreter_modules,
				    &from.modules))
			continue;
		TRY(python_tasks_read(&from, &outcome, ret));
		worst = outcome > worst ? outcome : worst;
	}
	*ret_outcome = worst;
	return NULL;
}

struct error *target_name_task(struct target *target, const struct python_task *task,
			       unsigned level, struct target_frames *ret)
{
	_cleanup_(target_stack_deinit) struct target_stack stack = {.end = END_root};
	const struct python_awaits *awaits = &task->stack;
	struct target_frame cut = {.kind = KIND_cut,
				   .function = "[cut: what it awaits is not readable]"};

	TRY(ARRAY_NEW(stack.word, 2 * awaits->count + 1));
	TRY(ARRAY_NEW(stack.place, 2 * awaits->count + 1));
	for (size_t i = awaits->count; i-- > 0;) {
		const struct python_await *frame = &awaits->frame[i];
		stack.place[stack.words] = frame->frame;
		stack.word[stack.words++] = sample_runtime_word(RUNTIME_python, frame->code);
		stack.word[stack.words++] = frame->position;
	}
	if (!awaits->whole)
		TRY(target_frames_add(ret, &cut));
	TRY(target_read_variables(target, level, &stack));
	return target_name(target, &stack, true, ret);
}
