/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/python/neighbours.h"

#include <string.h>

#include "abi/sample.h"
#include "base/str.h"

/* What the evaluator calls when its frame is not linked: _Py_CheckFunctionResult() and the like. */
enum { INNER_MAX = 2 };

/* Is it called python3.6m, python, ...? Such a program is the interpreter, or calls it. */
static bool is_interpreter_name(const char *name)
{
	static const char python[] = "python";

	if (!str_starts(name, python))
		return false;
	name += sizeof(python) - 1;
	name += strspn(name, "0123456789.");
	return !name[strspn(name, "dmt")];
}

bool python_starts_in(const char *path)
{
	static const char *const names[] = {"libc.so",  "libc-2.", "libpthread",
					    "ld-linux", "ld-musl", "libc.musl"};
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	if (is_interpreter_name(name))
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (str_starts(name, names[i]))
			return true;
	return false;
}

bool python_switches_stacks(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strstr(slash ? slash : path, "greenlet") != NULL;
}

/*
 * From the root to the first Python frame: nothing but the interpreter and what starts threads? The
 * root itself is where a program starts, which may be a small one of its own that calls a shared
 * library with all of the interpreter.
 */
static bool begins_as_interpreter(const struct python_neighbour *frame, size_t count)
{
	for (size_t i = count; i-- > 0 && !frame[i].python;)
		if (!frame[i].interpreter && !frame[i].start && i + 1 < count)
			return false;
	return true;
}

void python_hide_interpreter(struct python_neighbour *frame, size_t count)
{
	size_t innermost = count, i;

	for (i = 0; i < count; i++)
		frame[i].keep = true;
	for (i = 0; i < count && innermost == count; i++)
		if (frame[i].python)
			innermost = i;
	if (innermost == count)
		return;
	// The evaluator stands before the frames that it evaluates.
	for (i = innermost ? innermost - 1 : 0; i < count; i++)
		frame[i].keep = frame[i].python || !frame[i].interpreter;
	if (!begins_as_interpreter(frame, count))
		return;
	for (i = count; !frame[i - 1].python; i--)
		frame[i - 1].keep = false;
}

static bool evaluates(const struct python_process *process, uint64_t word)
{
	uint64_t pc = (word & ~SAMPLE_EXACT_PC) - !(word & SAMPLE_EXACT_PC);

	for (uint32_t i = 0; i < PYTHON_EVALS; i++)
		if (pc >= process->eval[i].start && pc < process->eval[i].end)
			return true;
	return false;
}

/* Has the innermost call of the evaluator no frame? */
static bool lacks_frame(const struct python_process *process, const uint64_t *words, size_t count)
{
	size_t calls = 0, frames = 0, inner = 0;

	for (size_t i = 0; i < count; i++) {
		if (!sample_is_runtime(words[i])) {
			calls += evaluates(process, words[i]);
			inner += !calls;
			continue;
		}
		// A word that says that there are no frames stays where it is.
		if (!(words[i] & ((1ull << SAMPLE_RUNTIME_SHIFT) - 1)))
			return false;
		frames++;
		i++;
	}
	return frames && calls == frames + 1 && inner <= INNER_MAX;
}

void python_deal_frames(const struct python_process *process, uint64_t *words, size_t count)
{
	uint64_t frame[2] = {0}; /* that looks for the next call outwards */
	size_t to = 0;

	if (!lacks_frame(process, words, count))
		return;
	for (size_t i = 0; i < count; i++) {
		uint64_t word = words[i];
		if (sample_is_runtime(word)) {
			uint64_t next[2] = {word, words[++i]};
			memcpy(&words[to], frame, frame[0] ? sizeof(frame) : 0);
			to += frame[0] ? 2 : 0;
			memcpy(frame, next, sizeof(frame));
			continue;
		}
		words[to++] = word;
		if (frame[0] && !sample_is_runtime(i + 1 < count ? words[i + 1] : 0) &&
		    evaluates(process, word)) {
			words[to++] = frame[0];
			words[to++] = frame[1];
			frame[0] = 0;
		}
	}
}
