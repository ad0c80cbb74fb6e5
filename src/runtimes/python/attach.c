// SPDX-License-Identifier: Apache-2.0
/* Whether the memory of a process is what the version of its interpreter says. */
#include "runtimes/python/attach.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "runtimes/python/roots.h"

enum {
	/* A process that runs on tears what is read; it seldom does so several times on end. */
	TRIES = 4,
	FRAMES_TRIED = 16,
	SHIMS_MAX = 4, /* frames without code at the top of a thread's frames */
	/* Members of one thread state, frame or code object that are read lie within this. */
	OBJECT_MAX = 4096,
	RUNTIME_SEARCHED_MAX = 4096,
	ROOTS_TRIED = 256,
	WORD = 8,
};

/* What a check found. */
enum verdict {
	VERDICT_right,
	VERDICT_unreadable,
	VERDICT_early, /* nothing there yet, or not any more */
	VERDICT_wrong,
};

struct attempt {
	const struct python_object *object;
	const struct memory *memory;
	struct python_instance instance;
	const char *phase; /* of its life; NULL: neither begin nor end */
	bool has_frames;   /* one that runs a code object was seen */
	char *reason;
};

static enum verdict say(struct attempt *a, enum verdict verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static enum verdict say(struct attempt *a, enum verdict verdict, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(a->reason, PYTHON_REASON_MAX, format, args);
	va_end(args);
	return verdict;
}

static enum verdict unreadable(struct attempt *a, const char *what, uint64_t addr)
{
	return say(a, VERDICT_unreadable, "%s at 0x%llx cannot be read", what,
		   (unsigned long long)addr);
}

static int word(const struct attempt *a, uint64_t addr, uint64_t *ret)
{
	return memory_read_u64(a->memory, addr, ret);
}

/* The type at ADDR is that of code objects, as this version and build lay it out. */
static enum verdict check_code_type(struct attempt *a, uint64_t addr)
{
	const struct python_offsets *at = &a->instance.at;
	uint64_t type, types, name, size;
	char text[5];

	if (word(a, addr + at->type_name, &name) || word(a, addr + at->type_basicsize, &size) ||
	    word(a, addr + at->object_type, &type))
		return unreadable(a, "the type of code objects", addr);
	// The type of a type is `type`, the type of which is itself.
	if (memory_read(a->memory, name, text, sizeof(text)) ||
	    memcmp(text, "code", sizeof(text)) != 0 || word(a, type + at->object_type, &types) ||
	    types != type || size != at->code_basicsize)
		return say(a, VERDICT_wrong,
			   "type objects are not laid out as in Python %d.%d: it was patched, or "
			   "built in a way that is not known",
			   at->version >> 8, at->version & 0xff);
	a->instance.code_type = addr;
	return VERDICT_right;
}

/* Is CODE, which a frame names, a code object? */
static bool is_code(struct attempt *a, uint64_t code)
{
	uint64_t type;

	if (!code || word(a, code + a->instance.at.object_type, &type))
		return false;
	// A program that names PyCode_Type may have a copy of it, which its libpython then uses
	// (R_X86_64_COPY).
	return type == a->instance.code_type || check_code_type(a, type) == VERDICT_right;
}

/* Innermost frame of the thread state at STATE. Non-zero: unreadable. */
static int innermost(struct attempt *a, uint64_t state, uint64_t *ret)
{
	const struct python_offsets *at = &a->instance.at;
	uint64_t frame;

	if (word(a, state + at->thread_frame, &frame))
		return -1;
	if (frame && at->cframe_frame != PYTHON_ABSENT && word(a, frame + at->cframe_frame, &frame))
		return -1;
	*ret = frame;
	return 0;
}

/* Do the frames from FRAME on begin with one that runs a code object? */
static bool frame_has_code(struct attempt *a, uint64_t frame)
{
	enum { TAGS = 7 };
	uint64_t code;

	for (int i = 0; frame && i < SHIMS_MAX; i++) {
		if (word(a, frame + a->instance.at.frame_code, &code))
			return false;
		if (is_code(a, code & ~(uint64_t)TAGS))
			return true;
		if (word(a, frame + a->instance.at.frame_previous, &frame))
			return false;
	}
	return false;
}

/*
 * Has the thread state at STATE a frame of a code object, FRAME or the innermost one of the
 * evaluator further out? In 3.11 and 3.12 the former may be what an earlier call left
 * (runtimes/python/walk.h).
 */
static bool runs_code(struct attempt *a, uint64_t state, uint64_t frame)
{
	const struct python_offsets *at = &a->instance.at;
	uint64_t cframe;

	if (frame_has_code(a, frame))
		return true;
	return at->cframe_frame != PYTHON_ABSENT && !word(a, state + at->thread_frame, &cframe) &&
	       cframe && !word(a, cframe + at->cframe_previous, &cframe) && cframe &&
	       !word(a, cframe + at->cframe_frame, &frame) && frame_has_code(a, frame);
}

/* Some thread of the interpreter at INTERPRETER runs a code object, if any has a frame. */
static enum verdict check_frames(struct attempt *a, uint64_t interpreter)
{
	uint64_t state, frame, seen = 0;

	if (word(a, interpreter + a->instance.at.interpreter_threads, &state))
		return unreadable(a, "an interpreter", interpreter);
	for (int i = 0; state && i < FRAMES_TRIED; i++) {
		if (innermost(a, state, &frame))
			return unreadable(a, "a thread state", state);
		a->has_frames = frame && runs_code(a, state, frame);
		if (a->has_frames)
			return VERDICT_right;
		if (frame)
			seen = frame;
		if (word(a, state + a->instance.at.thread_next, &state))
			return unreadable(a, "a thread state", state);
	}
	if (seen)
		return say(a, VERDICT_wrong, "the frame at 0x%llx has no code object",
			   (unsigned long long)seen);
	if (!a->instance.code_type)
		return say(a, VERDICT_early, "no thread runs Python code yet");
	return VERDICT_right;
}

/* An interpreter's first thread state belongs to it. */
static enum verdict check_interpreter(struct attempt *a, uint64_t interpreter)
{
	uint64_t state, owner;

	if (interpreter % WORD || word(a, interpreter + a->instance.at.interpreter_threads, &state))
		return unreadable(a, "an interpreter", interpreter);
	// One that is being made has none; so has one that is being taken down.
	if (!state)
		return VERDICT_right;
	if (word(a, state + a->instance.at.thread_interpreter, &owner))
		return unreadable(a, "a thread state", state);
	if (owner != interpreter)
		return say(a, VERDICT_wrong,
			   "the first thread state of the interpreter at 0x%llx belongs to another",
			   (unsigned long long)interpreter);
	return VERDICT_right;
}

static enum verdict check_lists(struct attempt *a)
{
	uint64_t interpreter, first = 0;
	enum verdict verdict;
	int count = 0;

	if (word(a, a->instance.process.interpreters, &interpreter))
		return unreadable(a, "the list of interpreters", a->instance.process.interpreters);
	if (!interpreter)
		return say(a, VERDICT_early, "there is no interpreter yet, or not any more");
	while (interpreter && count++ < PYTHON_INTERPRETERS_MAX) {
		verdict = check_interpreter(a, interpreter);
		if (verdict != VERDICT_right)
			return verdict;
		// The newest is first; the main one, which is first in age, runs the most.
		first = interpreter;
		if (word(a, interpreter + a->instance.at.interpreter_next, &interpreter))
			return unreadable(a, "an interpreter", interpreter);
	}
	if (interpreter)
		return say(a, VERDICT_wrong, "the list of interpreters has no end");
	return check_frames(a, first);
}

/* 3.12 and later: every interpreter names its lock. */
static enum verdict check_lock(struct attempt *a)
{
	const struct python_offsets *at = &a->instance.at;
	uint64_t interpreter, gil;
	uint32_t locked;

	if (at->interpreter_gil == PYTHON_ABSENT)
		return VERDICT_right;
	if (word(a, a->instance.process.interpreters, &interpreter) || !interpreter ||
	    word(a, interpreter + at->interpreter_gil, &gil))
		return unreadable(a, "the list of interpreters", a->instance.process.interpreters);
	if (!gil)
		return say(a, VERDICT_early, "the interpreter has no lock yet");
	if (memory_read_u32(a->memory, gil + at->gil_locked, &locked))
		return unreadable(a, "the interpreter's lock", gil);
	if (locked + 1 > 2)
		return say(a, VERDICT_wrong, "the interpreter's lock is neither free nor taken");
	return VERDICT_right;
}

/* Does WORD, in _PyRuntime of 3.7 to 3.11, name the interpreter of the GILState functions, and what
 * is before it a thread state or nothing? */
static bool is_gilstate(struct attempt *a, uint64_t addr, uint64_t interpreter)
{
	const struct python_offsets *at = &a->instance.at;
	uint64_t named, holder, owner;

	if (word(a, addr, &named) || named != interpreter ||
	    word(a, addr - (at->runtime_gilstate_main - at->runtime_holder), &holder))
		return false;
	return !holder ||
	       (!word(a, holder + at->thread_interpreter, &owner) && !(owner % WORD) && owner);
}

/*
 * Where _PyRuntime says who holds the lock. It moved between patches of 3.7 (1440 to 1480 bytes
 * from the begin), while its neighbour there stayed the neighbour: the main interpreter, which is
 * last in the list.
 */
static uint64_t find_holder(struct attempt *a, uint64_t runtime)
{
	const struct python_offsets *at = &a->instance.at;
	uint64_t link = a->instance.process.interpreters, interpreter = 0, next;
	uint64_t expected = runtime + at->runtime_gilstate_main;
	uint64_t distance = at->runtime_gilstate_main - at->runtime_holder;

	for (int i = 0; i < PYTHON_INTERPRETERS_MAX && !word(a, link, &next) && next; i++) {
		interpreter = next;
		link = interpreter + at->interpreter_next;
	}
	if (!interpreter)
		return 0;
	if (is_gilstate(a, expected, interpreter))
		return expected - distance;
	// Behind the head of the list stand the main interpreter and its lock.
	uint64_t from = a->instance.process.interpreters + 2ull * WORD + distance;
	for (uint64_t addr = from; addr < runtime + RUNTIME_SEARCHED_MAX; addr += WORD)
		if (is_gilstate(a, addr, interpreter))
			return addr - distance;
	return 0;
}

/* Members that are read together lie together. */
static bool is_compact(const struct python_offsets *at)
{
	const uint32_t members[] = {
		at->thread_next, at->thread_interpreter, at->thread_id,   at->thread_frame,
		at->frame_code,  at->frame_previous,     at->frame_ip,    at->frame_fast,
		at->code_name,   at->code_filename,      at->object_type, at->code_first_line,
	};

	for (size_t i = 0; i < ARRAY_COUNT(members); i++)
		if (members[i] > OBJECT_MAX)
			return false;
	return true;
}

static enum verdict read_offsets(struct attempt *a, uint64_t runtime)
{
	switch (python_offsets_read(a->memory, runtime, &a->instance.at)) {
	case PYTHON_TABLE_ok:
		break;
	case PYTHON_TABLE_unreadable:
		return unreadable(a, "_PyRuntime", runtime);
	case PYTHON_TABLE_none:
		return say(a, VERDICT_wrong, "_PyRuntime does not begin with a table of offsets");
	case PYTHON_TABLE_version:
		return say(a, VERDICT_wrong, "its table of offsets is of a version not known here");
	case PYTHON_TABLE_odd:
		return say(a, VERDICT_wrong, "its table of offsets makes no sense");
	}
	if (!is_compact(&a->instance.at))
		return say(a, VERDICT_wrong, "its table of offsets makes no sense");
	return VERDICT_right;
}

/* Fill the offsets: told by the interpreter, or by its version, whichever build fits. */
static enum verdict choose_offsets(struct attempt *a)
{
	const struct python_object *object = a->object;
	uint64_t code_type = object->code_type ? object->code_type + a->instance.bias : 0;
	enum verdict verdict = VERDICT_wrong;

	if (object->version >= 0x030d) {
		verdict = read_offsets(a, object->runtime + a->instance.bias);
		if (verdict != VERDICT_right || !code_type)
			return verdict;
		return check_code_type(a, code_type);
	}
	for (int build = 0; build < PYTHON_BUILDS; build++) {
		if (!python_offsets_find(object->version, build, &a->instance.at))
			continue;
		verdict = code_type ? check_code_type(a, code_type) : VERDICT_right;
		if (verdict != VERDICT_wrong)
			return verdict;
	}
	if (!a->instance.at.version)
		return say(a, VERDICT_wrong, "Python %d.%d is not known here", object->version >> 8,
			   object->version & 0xff);
	return verdict;
}

/* Has Py_Initialize() come to its end, and Py_Finalize() not begun? */
static enum verdict check_life(struct attempt *a)
{
	const struct python_offsets *at = &a->instance.at;
	uint64_t runtime = a->instance.runtime, finalizing;
	uint32_t initialized;

	if (at->runtime_initialized == PYTHON_ABSENT)
		return VERDICT_right;
	if (memory_read_u32(a->memory, runtime + at->runtime_initialized, &initialized) ||
	    word(a, runtime + at->runtime_finalizing, &finalizing))
		return unreadable(a, "_PyRuntime", runtime);
	a->phase = finalizing ? "ending" : initialized ? NULL : "starting";
	return VERDICT_right;
}

static void set_process(struct attempt *a)
{
	struct python_process *process = &a->instance.process;
	const struct python_object *object = a->object;
	uint64_t bias = a->instance.bias;

	a->instance.runtime = object->runtime ? object->runtime + bias : 0;
	process->interpreters = object->interpreters
					? object->interpreters + bias
					: a->instance.runtime + a->instance.at.runtime_interpreters;
	process->holder = object->holder ? object->holder + bias : 0;
	for (uint32_t i = 0; i < object->evals && i < PYTHON_EVALS; i++) {
		process->eval[i].start = object->eval[i].start + bias;
		process->eval[i].end = object->eval[i].end + bias;
		process->evals = i + 1;
	}
}

/* Everything behind the layout, in the process as set_process() left it. */
static enum verdict check_process(struct attempt *a)
{
	enum verdict verdict = check_life(a);

	if (verdict == VERDICT_right)
		verdict = check_lists(a);
	if (verdict == VERDICT_right)
		verdict = check_lock(a);
	// What runs while it starts and ends (site, objects that are finalised) has frames as ever;
	// without any there is nothing that shows that the rest can be relied on.
	if (a->phase && (verdict == VERDICT_wrong || (verdict == VERDICT_right && !a->has_frames)))
		return say(a, VERDICT_early, "the interpreter is %s", a->phase);
	if (verdict == VERDICT_right && a->instance.at.runtime_holder != PYTHON_ABSENT)
		a->instance.process.holder = find_holder(a, a->instance.runtime);
	return verdict;
}

/* Search the data of an object that does not say where the interpreters are. */
static enum verdict search_process(struct attempt *a)
{
	const struct python_offsets *at = &a->instance.at;
	const struct python_range data = {a->object->data.start + a->instance.bias,
					  a->object->data.end + a->instance.bias};
	struct python_roots roots = {.memory = a->memory, .at = at, .object = data, .data = data};
	uint64_t link, before = at->runtime_interpreters;

	// Interpreters of 3.11 and later are no objects of their own any more.
	if (at->version > 0x030a)
		return say(a, VERDICT_wrong, "nothing in the file says where its _PyRuntime is");
	for (int i = 0; i < ROOTS_TRIED && python_roots_next(&roots, &link); i++) {
		a->instance.process.interpreters = link;
		a->instance.runtime = before == PYTHON_ABSENT ? 0 : link - before;
		if (check_process(a) == VERDICT_right && a->has_frames)
			return VERDICT_right;
	}
	return say(a, VERDICT_early, "there is no interpreter in its data yet, or not any more");
}

static enum verdict try_attach(struct attempt *a)
{
	enum verdict verdict;
	uint64_t head;

	if (a->object->pypy)
		return say(a, VERDICT_wrong, "this is PyPy, of which only machine code is shown");
	verdict = choose_offsets(a);
	if (a->instance.at.version)
		set_process(a);
	if (verdict == VERDICT_right && !a->object->evals)
		return say(a, VERDICT_wrong, "nothing in the file says where its evaluator is");
	if (verdict == VERDICT_right && a->object->data.end)
		return search_process(a);
	// Before the dynamic loader has relocated the object, its type objects are not right.
	if (verdict == VERDICT_wrong && a->instance.at.version &&
	    !word(a, a->instance.process.interpreters, &head) && !head)
		return say(a, VERDICT_early, "there is no interpreter yet");
	return verdict == VERDICT_right ? check_process(a) : verdict;
}

void python_move(struct python_instance *instance, uint64_t bias)
{
	uint64_t distance = bias - instance->bias;
	struct python_process *process = &instance->process;

	instance->bias = bias;
	instance->runtime += instance->runtime ? distance : 0;
	process->interpreters += distance;
	process->holder += process->holder ? distance : 0;
	instance->code_type += instance->code_type ? distance : 0;
	for (uint32_t i = 0; i < process->evals; i++) {
		process->eval[i].start += distance;
		process->eval[i].end += distance;
	}
}

enum python_attach python_attach(const struct python_object *object, uint64_t bias,
				 const struct memory *memory, struct python_instance *ret,
				 char *ret_reason)
{
	static const enum python_attach outcomes[] = {
		[VERDICT_right] = PYTHON_ATTACH_ok,
		[VERDICT_unreadable] = PYTHON_ATTACH_unreadable,
		[VERDICT_early] = PYTHON_ATTACH_later,
		[VERDICT_wrong] = PYTHON_ATTACH_refused,
	};
	enum verdict verdict = VERDICT_wrong;

	for (int i = 0; i < TRIES && (verdict == VERDICT_wrong || verdict == VERDICT_unreadable);
	     i++) {
		struct attempt a = {
			.object = object,
			.memory = memory,
			.instance = {.bias = bias, .version_hex = object->version_hex},
			.reason = ret_reason,
		};
		verdict = try_attach(&a);
		if (verdict != VERDICT_right)
			continue;
		a.instance.layout = python_offsets_layout(&a.instance.at);
		*ret = a.instance;
		ret_reason[0] = '\0';
	}
	return outcomes[verdict];
}
