/* SPDX-License-Identifier: Apache-2.0 */
/* Names and lines of real interpreters, as tests/targets/python-names.py tells them. */
#include "runtimes/python/code.h"

#include "base/str.h"
#include "runtimes/python/test-interpreters.h"
#include "runtimes/python/text.h"

enum { TEXT_MAX = 2048, PROGRAMS_TAG = 7 };

/* Memory that fails at one read, for tests of what happens then. */
struct failing {
	struct memory below;
	long reads, fails_at; /* reads so far; the one that fails, -1: none */
};

static int failing_read(void *context, uint64_t addr, void *to, size_t size)
{
	struct failing *failing = context;

	if (failing->reads++ == failing->fails_at)
		return -1;
	return memory_read(&failing->below, addr, to, size);
}

/* An interpreter that has told its first row. */
struct running {
	struct target target;
	struct process_memory *process;
	struct failing failing;
	struct memory memory; /* failing's */
	struct python_offsets at;
	uint64_t code_type;
	char *row;
	size_t room;
	long texts, codes, frames;
};

static void running_deinit(struct running *running)
{
	target_stop(&running->target);
	process_memory_close(running->process);
	free(running->row);
}

static char *next_word(char **at)
{
	char *word = strsep(at, " \n");

	ASSERT_TRUE(word);
	return word;
}

static uint64_t next_number(char **at)
{
	return strtoull(next_word(at), NULL, 10);
}

/* The text of a word in hex. */
static void next_text(char **at, char ret[static TEXT_MAX])
{
	const char *word = next_word(at);
	size_t length = *word == '-' ? 0 : strlen(word) / 2;

	ASSERT_TRUE(length < TEXT_MAX);
	for (size_t i = 0; i < length; i++) {
		char digits[] = {word[2 * i], word[2 * i + 1], 0};
		ret[i] = (char)strtoul(digits, NULL, 16);
	}
	ret[length] = 0;
}

/* False: it does not run, or nothing is known of its layout. */
static bool read_head(struct running *running)
{
	if (getline(&running->row, &running->room, running->target.told) <= 0)
		return false;
	char *at = running->row;
	ASSERT_STREQ(next_word(&at), "V");
	uint16_t version = (uint16_t)next_number(&at);
	uint8_t unicode_width = (uint8_t)next_number(&at);
	bool traced = next_number(&at) && version < 0x030d;
	enum python_build build = next_number(&at) ? PYTHON_BUILD_FREE
				  : traced         ? PYTHON_BUILD_TRACED
						   : PYTHON_BUILD_PLAIN;
	running->code_type = next_number(&at);
	bool known = python_offsets_find(version, build, &running->at);
	running->at.unicode_width = unicode_width;
	return known;
}

static bool running_start(const char *interpreter, struct running *ret)
{
	enum process_memory_look look;

	*ret = (struct running){.target = target_start(interpreter, "targets/python-names.py")};
	if (!read_head(ret))
		return false;
	ASSERT_OK(process_memory_open(ret->target.pid, &look, &ret->process));
	ASSERT_EQ(look, PROCESS_MEMORY_opened);
	ret->failing.below = process_memory_reader(ret->process);
	ret->failing.fails_at = -1;
	ret->memory = (struct memory){.read = failing_read, .context = &ret->failing};
	return true;
}

static void check_text(struct running *running, char *row)
{
	char expected[TEXT_MAX], found[TEXT_MAX], cut[16];
	uint64_t addr = next_number(&row);

	next_text(&row, expected);
	ASSERT_EQ(python_text_read(&running->memory, &running->at, addr, found, sizeof(found)),
		  PYTHON_TEXT_read);
	ASSERT_STREQ(found, expected);
	python_text_read(&running->memory, &running->at, addr, cut, sizeof(cut));
	if (strlen(expected) < sizeof(cut)) {
		ASSERT_STREQ(cut, expected);
	} else {
		size_t kept = strlen(cut) - strlen("\u2026");
		ASSERT_STREQ(cut + kept, "\u2026");
		ASSERT_EQ(memcmp(cut, expected, kept), 0);
	}
	running->texts++;
}

static void check_other(struct running *running, char *row)
{
	char found[TEXT_MAX] = "?";

	ASSERT_EQ(python_text_read(&running->memory, &running->at, next_number(&row), found,
				   sizeof(found)),
		  PYTHON_TEXT_not_a_string);
	ASSERT_STREQ(found, "");
}

/* Hold each unit of code against OFFSET:LINE. */
static void check_lines(const struct python_code *code, char *row)
{
	while (row && *row) {
		char *word = next_word(&row);
		long offset = strtol(word, &word, 10);
		uint32_t line = (uint32_t)strtoul(word + 1, NULL, 10);
		int32_t position = (int32_t)(offset / code->lasti_bytes);
		ASSERT_EQ(python_code_line(code, (uint32_t)position), line);
	}
}

/* Every outcome that one failing read may have: less is known, and nothing else happens. */
static void check_failures(struct running *running, const struct python_codes *from, uint64_t addr)
{
	enum python_code_outcome outcome;
	long reads = running->failing.reads;

	for (long i = 0; i < reads; i++) {
		_cleanup_(python_code_deinit) struct python_code code = PYTHON_CODE_INIT;
		running->failing.reads = 0;
		running->failing.fails_at = i;
		ASSERT_OK(python_code_read(from, addr, &outcome, &code));
		ASSERT_EQ(outcome, i ? PYTHON_CODE_read : PYTHON_CODE_unreadable);
		ASSERT_EQ(!code.block, outcome != PYTHON_CODE_read);
		if (code.lines == PYTHON_CODE_LINES_unreadable)
			ASSERT_EQ(python_code_line(&code, 2), code.first_line);
	}
	running->failing.fails_at = -1;
}

static void check_code(struct running *running, char *row)
{
	_cleanup_(python_code_deinit) struct python_code code = PYTHON_CODE_INIT;
	struct python_codes from = {&running->memory, &running->at, running->code_type};
	enum python_code_outcome outcome;
	char expected[TEXT_MAX];
	uint64_t addr = next_number(&row);

	running->failing.reads = 0;
	ASSERT_OK(python_code_read(&from, addr | PROGRAMS_TAG, &outcome, &code));
	ASSERT_EQ(outcome, PYTHON_CODE_read);
	ASSERT_EQ(code.first_line, next_number(&row));
	ASSERT_EQ(code.flags, next_number(&row));
	ASSERT_EQ(code.argcount, next_number(&row));
	ASSERT_EQ(code.kwonly, next_number(&row));
	ASSERT_EQ(code.nlocals, next_number(&row));
	next_text(&row, expected);
	ASSERT_STREQ(code.function, expected);
	next_text(&row, expected);
	ASSERT_STREQ(code.name, expected);
	next_text(&row, expected);
	ASSERT_STREQ(code.file, expected);
	check_lines(&code, row);
	check_failures(running, &from, addr);
	from.type++;
	ASSERT_OK(python_code_read(&from, addr, &outcome, &code));
	ASSERT_EQ(outcome, PYTHON_CODE_no_code);
	running->codes++;
}

static uint64_t word_at(struct running *running, uint64_t addr)
{
	uint64_t word;

	ASSERT_EQ(memory_read_u64(&running->memory, addr, &word), 0);
	return word;
}

/* Where the instructions of CODE begin that the frame at FRAME runs. */
static uint64_t instructions(struct running *running, uint64_t code, uint64_t frame)
{
	const struct python_offsets *at = &running->at;
	uint32_t copy = 0;

	if (at->frame_tlbc_index != PYTHON_ABSENT)
		memory_read_u32(&running->memory, frame + at->frame_tlbc_index, &copy);
	if (!copy)
		return code + at->code_bytes;
	// {size, copies[]}
	return word_at(running, word_at(running, code + at->code_tlbc) + 8 * (1 + copy));
}

/* The position of the frame that the frame object at ADDR stands for. */
static uint32_t position_of(struct running *running, uint64_t addr, uint64_t code)
{
	const struct python_offsets *at = &running->at;
	uint32_t lasti;

	if (at->version < 0x030b) {
		ASSERT_EQ(memory_read_u32(&running->memory, addr + at->frame_ip, &lasti), 0);
		return lasti;
	}
	uint64_t frame = word_at(running, addr + at->frame_object_frame);
	ASSERT_EQ(word_at(running, frame + at->frame_code) & ~(uint64_t)PROGRAMS_TAG, code);
	return (uint32_t)(word_at(running, frame + at->frame_ip) -
			  instructions(running, code, frame));
}

static void check_frame(struct running *running, char *row)
{
	_cleanup_(python_code_deinit) struct python_code code = PYTHON_CODE_INIT;
	struct python_codes from = {&running->memory, &running->at, 0};
	enum python_code_outcome outcome;
	uint64_t addr = next_number(&row), line = next_number(&row), object = next_number(&row);

	ASSERT_OK(python_code_read(&from, object, &outcome, &code));
	ASSERT_EQ(outcome, PYTHON_CODE_read);
	ASSERT_EQ(python_code_line(&code, position_of(running, addr, object)), line);
	running->frames++;
}

static void check_rows(struct running *running)
{
	while (getline(&running->row, &running->room, running->target.told) > 0) {
		char *row = running->row + 2;
		if (running->row[0] == 'T')
			check_text(running, row);
		else if (running->row[0] == 'N')
			check_other(running, row);
		else if (running->row[0] == 'C')
			check_code(running, row);
		else if (running->row[0] == 'F')
			check_frame(running, row);
		else
			break;
	}
	ASSERT_STREQ(running->row, "E\n");
}

TEST(each_interpreter_s_own_word_on_texts_codes_and_lines_is_met)
{
	_cleanup_(interpreters_deinit) struct interpreters found = interpreters_find();

	bool debian = false;
	for (size_t i = 0; i < found.count; i++) {
		_cleanup_(running_deinit) struct running running = {0};
		if (!running_start(found.path[i], &running)) {
			print_message("skipped: %s does not run, or is of an unknown version\n",
				      found.path[i]);
			continue;
		}
		check_rows(&running);
		print_message("%s: %ld texts, %ld code objects, %ld frames\n", found.path[i],
			      running.texts, running.codes, running.frames);
		debian = debian || str_starts(found.path[i], "/usr/bin/");
		ASSERT_TRUE(running.texts >= 12 && running.codes > 20 && running.frames >= 12);
	}
	ASSERT_TRUE(debian);
}

RUN_TESTS(UNIT_TEST(each_interpreter_s_own_word_on_texts_codes_and_lines_is_met))
