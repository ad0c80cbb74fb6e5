/* SPDX-License-Identifier: Apache-2.0 */
/* What tests read of an interpreter that tells its objects in rows (tests/targets/python-*.py). */
#pragma once

#include "base/str.h"
#include "runtimes/python/test-interpreters.h"

enum { ROW_TEXT_MAX = 8192 };

/* Memory that fails at one read and is counted, for tests of what happens then. */
struct failing {
	struct memory below;
	long reads, fails_at; /* reads so far; the one that fails, -1: none */
};

static inline int failing_read(void *context, uint64_t addr, void *to, size_t size)
{
	struct failing *failing = context;

	if (failing->reads++ == failing->fails_at)
		return -1;
	return memory_read(&failing->below, addr, to, size);
}

/* An interpreter that has told its first row. */
struct telling {
	struct target target;
	struct process_memory *process;
	struct failing failing;
	struct memory memory; /* failing's */
	struct python_offsets at;
	uint64_t code_type;
	char *row;
	size_t room;
};

static inline void telling_deinit(struct telling *telling)
{
	target_stop(&telling->target);
	process_memory_close(telling->process);
	free(telling->row);
}

static inline char *row_word(char **at)
{
	char *word = strsep(at, " \n");

	ASSERT_TRUE(word);
	return word;
}

static inline uint64_t row_number(char **at)
{
	return strtoull(row_word(at), NULL, 10);
}

/* The text of a word in hex. */
static inline void row_text(char **at, char ret[static ROW_TEXT_MAX])
{
	const char *word = row_word(at);
	size_t length = *word == '-' ? 0 : strlen(word) / 2;

	ASSERT_TRUE(length < ROW_TEXT_MAX);
	for (size_t i = 0; i < length; i++) {
		char digits[] = {word[2 * i], word[2 * i + 1], 0};
		ret[i] = (char)strtoul(digits, NULL, 16);
	}
	ret[length] = 0;
}

/* The next row, in TELLING->row; what follows its letter is returned. */
static inline char *telling_row(struct telling *telling)
{
	ASSERT_TRUE(getline(&telling->row, &telling->room, telling->target.told) > 1);
	return telling->row + 2;
}

/* Run PROGRAM, a file below tests/. False: it is of a version of which nothing is known. */
static inline bool telling_start(const char *interpreter, const char *program, struct telling *ret)
{
	enum process_memory_look look;

	*ret = (struct telling){.target = target_start(interpreter, program)};
	if (getline(&ret->row, &ret->room, ret->target.told) < 2)
		return false;
	char *at = ret->row;
	ASSERT_STREQ(row_word(&at), "V");
	uint16_t version = (uint16_t)row_number(&at);
	uint8_t unicode_width = (uint8_t)row_number(&at);
	bool traced = row_number(&at) && version < 0x030d;
	enum python_build build = row_number(&at) ? PYTHON_BUILD_FREE
				  : traced        ? PYTHON_BUILD_TRACED
						  : PYTHON_BUILD_PLAIN;
	ret->code_type = row_number(&at);
	if (!python_offsets_find(version, build, &ret->at))
		return false;
	ret->at.unicode_width = unicode_width;
	ASSERT_OK(process_memory_open(ret->target.pid, &look, &ret->process));
	ASSERT_EQ(look, PROCESS_MEMORY_opened);
	ret->failing.below = process_memory_reader(ret->process);
	ret->failing.fails_at = -1;
	ret->memory = (struct memory){.read = failing_read, .context = &ret->failing};
	return true;
}
