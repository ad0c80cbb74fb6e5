/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/python/neighbours.h"

#include <string.h>

#include "abi/sample.h"
#include "base/str.h"

bool python_starts_in(const char *path)
{
	static const char *const names[] = {"libc.so",  "libc-2.", "libpthread",
					    "ld-linux", "ld-musl", "libc.musl"};
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (str_starts(name, names[i]))
			return true;
	return false;
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

void python_deal_frames(const struct python_process *process, uint64_t *words, size_t count)
{
	size_t calls = 0, frames = 0, i, to;

	for (i = 0; i < count; i++) {
		if (!sample_is_runtime(words[i])) {
			calls += evaluates(process, words[i]);
			continue;
		}
		// A word that says that there are no frames stays where it is.
		if (!(words[i] & ((1ull << SAMPLE_RUNTIME_SHIFT) - 1)))
			return;
		frames++;
		i++;
	}
	if (!frames || calls <= frames)
		return;
	// From the root: each frame moves outwards to the last call that has none, past the machine
	// frames between.
	for (size_t left = calls - frames; left; left--) {
		uint64_t frame[2] = {0};
		for (i = 0, to = 0; i < count; i++) {
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
}
