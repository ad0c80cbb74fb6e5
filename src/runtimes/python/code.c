/* SPDX-License-Identifier: Apache-2.0 */
/* What is fixed in a code object is read at once, so that it is of one moment. */
#include "runtimes/python/code.h"

#include <stdlib.h>
#include <string.h>

#include "runtimes/python/lines.h"
#include "runtimes/python/text.h"

enum {
	OBJECT_MAX = 512,     /* up to what is read of a code object: 160 in 3.14 */
	TAG = 7,              /* lowest bits of a pointer that are none of its address */
	FLAG_BYTES = 1 << 27, /* Py_TPFLAGS_BYTES_SUBCLASS, and ..._STRING_SUBCLASS of 2.7 */
	FUNCTION_MAX = 1024,
	NAME_MAX_BYTES = 512,
	FILE_MAX = 4096 + 64,
	/* Of 53,171 code objects of Debian's packages half have 66 bytes or less, and the longest,
	 * a module that is one dictionary, has 74,482. */
	TABLE_MAX = 1 << 20,
};

/* The fixed part of an object. */
struct object_view {
	uint8_t data[OBJECT_MAX];
	size_t size;
};

static uint64_t word_of(const struct object_view *view, uint32_t offset)
{
	uint64_t value = 0;

	if (offset <= view->size - sizeof(value))
		memcpy(&value, view->data + offset, sizeof(value));
	return value;
}

static uint32_t int_of(const struct object_view *view, uint32_t offset)
{
	uint32_t value = 0;

	if (offset <= view->size - sizeof(value))
		memcpy(&value, view->data + offset, sizeof(value));
	return value;
}

/* How many bytes from its begin hold all that is read of it. */
static size_t needed(const struct python_offsets *at)
{
	const uint32_t offsets[] = {
		at->object_type, at->code_name,       at->code_qualname, at->code_filename,
		at->code_lines,  at->code_argcount,   at->code_kwonly,   at->code_nlocals,
		at->code_flags,  at->code_first_line,
	};
	size_t size = 0;

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		bool absent = offsets[i] == PYTHON_ABSENT;
		size_t end = absent ? 0 : (size_t)offsets[i] + sizeof(uint64_t);
		size = end > size ? end : size;
	}
	return size;
}

void python_code_deinit(struct python_code *code)
{
	if (!code)
		return;
	free(code->block);
	*code = (struct python_code)PYTHON_CODE_INIT;
}

struct texts {
	char function[FUNCTION_MAX], name[NAME_MAX_BYTES], file[FILE_MAX];
};

/* Read the texts. False: none of them is one, so this was no code object. */
static bool read_texts(const struct python_codes *from, const struct object_view *view,
		       struct texts *texts)
{
	const struct memory *memory = from->memory;
	const struct python_offsets *at = from->at;
	enum python_text name, file;

	name = python_text_read(memory, at, word_of(view, at->code_name), texts->name,
				sizeof(texts->name));
	file = python_text_read(memory, at, word_of(view, at->code_filename), texts->file,
				sizeof(texts->file));
	texts->function[0] = 0;
	if (at->code_qualname != PYTHON_ABSENT)
		python_text_read(memory, at, word_of(view, at->code_qualname), texts->function,
				 sizeof(texts->function));
	if (!texts->function[0])
		memcpy(texts->function, texts->name, sizeof(texts->name));
	return name == PYTHON_TEXT_read || file == PYTHON_TEXT_read;
}

/* The table of lines, before it is read. */
struct table {
	uint64_t addr;
	uint32_t size;
	enum python_code_lines lines;
};

static struct table find_table(const struct python_codes *from, uint64_t bytes)
{
	struct table unreadable = {.lines = PYTHON_CODE_LINES_unreadable};
	const struct python_offsets *at = from->at;
	uint64_t type, flags, size;

	if (memory_read_u64(from->memory, bytes + at->object_type, &type) ||
	    memory_read_u64(from->memory, type + at->type_flags, &flags) || !(flags & FLAG_BYTES) ||
	    memory_read_u64(from->memory, bytes + at->bytes_size, &size))
		return unreadable;
	if (size > TABLE_MAX)
		return (struct table){.lines = PYTHON_CODE_LINES_too_long};
	return (struct table){.addr = bytes + at->bytes_data, .size = (uint32_t)size};
}

/* Copy TEXT with its NUL to TO, and return what is behind it. */
static char *place(char *to, const char *text, const char **ret)
{
	*ret = to;
	return stpcpy(to, text) + 1;
}

/* Give CODE its texts and its table in one block. */
static struct error *fill_block(const struct python_codes *from, const struct texts *texts,
				struct table table, struct python_code *code)
{
	size_t size = strlen(texts->function) + strlen(texts->name) + strlen(texts->file) + 3;
	char *block = malloc(size + table.size);

	if (!block)
		return error_oom();
	char *end = place(block, texts->function, &code->function);
	end = place(end, texts->name, &code->name);
	end = place(end, texts->file, &code->file);
	if (table.size && memory_read(from->memory, table.addr, end, table.size))
		table = (struct table){.lines = PYTHON_CODE_LINES_unreadable};
	code->lines = table.lines;
	code->table = table.size ? (const uint8_t *)end : NULL;
	code->table_size = table.size;
	code->block = block;
	code->block_size = size + table.size;
	return NULL;
}

struct error *python_code_read(const struct python_codes *from, uint64_t addr,
			       enum python_code_outcome *ret_outcome, struct python_code *ret)
{
	const struct python_offsets *at = from->at;
	struct object_view view = {.size = needed(at)};
	struct texts texts;

	addr &= ~(uint64_t)TAG;
	*ret_outcome = PYTHON_CODE_no_code;
	if (view.size < sizeof(uint64_t) || view.size > sizeof(view.data))
		return NULL;
	*ret_outcome = PYTHON_CODE_unreadable;
	if (memory_read(from->memory, addr, view.data, view.size))
		return NULL;
	*ret_outcome = PYTHON_CODE_no_code;
	if (from->type && word_of(&view, at->object_type) != from->type)
		return NULL;
	if (!read_texts(from, &view, &texts) && !from->type)
		return NULL;
	struct python_code code = {
		.first_line = int_of(&view, at->code_first_line),
		.flags = int_of(&view, at->code_flags),
		.argcount = int_of(&view, at->code_argcount),
		.kwonly = int_of(&view, at->code_kwonly),
		.nlocals = int_of(&view, at->code_nlocals),
		.version = at->version,
		.lasti_bytes = at->version == 0x030a ? 2 : 1,
	};
	code.cookie = python_cookie(code.first_line, word_of(&view, at->code_name));
	TRY(fill_block(from, &texts, find_table(from, word_of(&view, at->code_lines)), &code));
	*ret = code;
	*ret_outcome = PYTHON_CODE_read;
	return NULL;
}

uint32_t python_code_line(const struct python_code *code, uint32_t position)
{
	struct python_lines lines = {
		.table = code->table,
		.size = code->table_size,
		.first_line = code->first_line,
		.version = code->version,
	};
	uint32_t line = 0;

	if (code->lines != PYTHON_CODE_LINES_read)
		return code->first_line;
	// f_lasti is -1 before the first instruction; from 3.11 on the pointer may stand a unit
	// in front of it.
	int64_t offset = (int64_t)(int32_t)position * code->lasti_bytes;
	switch (python_lines_find(&lines, offset, &line)) {
	case PYTHON_LINE_found:
	case PYTHON_LINE_none:
		return line;
	case PYTHON_LINE_odd:
		break;
	}
	return code->first_line;
}
