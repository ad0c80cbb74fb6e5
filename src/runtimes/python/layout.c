// SPDX-License-Identifier: Apache-2.0
/* Looking up how a version of CPython lays out its objects. */
#include "runtimes/python/layout.h"

#include <stddef.h>
#include <string.h>

#include "base/array.h"

/* Of a member in the largest structure there is, _PyRuntime (3.12: 460 kB). */
enum { OFFSET_MAX = 4 << 20 };

enum { ANY = PYTHON_BUILDS, PLAIN = PYTHON_BUILD_PLAIN };
enum { TRACED = PYTHON_BUILD_TRACED, FREE = PYTHON_BUILD_FREE };

struct layout_row {
	uint16_t member; /* position in struct python_offsets */
	uint16_t first, last;
	uint16_t build;
	uint32_t value;
};

static const struct layout_row offsets[] = {
#define OFFSET(field, first, last, build, value)                                                   \
	{offsetof(struct python_offsets, field), first, last, build, value},
#define CARRIED(field, first, last, build, at)
#include "runtimes/python/layouts.def"
#undef OFFSET
#undef CARRIED
};

static const struct layout_row carried[] = {
#define OFFSET(field, first, last, build, value)
#define CARRIED(field, first, last, build, at)                                                     \
	{offsetof(struct python_offsets, field), first, last, build, at},
#include "runtimes/python/layouts.def"
#undef OFFSET
#undef CARRIED
};

static bool holds(const struct layout_row *row, const struct python_offsets *of)
{
	return row->first <= of->version && of->version <= row->last &&
	       (row->build == ANY || row->build == of->build);
}

static uint32_t *member(struct python_offsets *of, const struct layout_row *row)
{
	return (uint32_t *)((char *)of + row->member);
}

bool python_offsets_find(uint16_t version, enum python_build build, struct python_offsets *ret)
{
	struct python_offsets found;

	memset(&found, 0xff, sizeof(found));
	found.version = version;
	found.build = build;
	found.unicode_width = 0;
	for (size_t i = 0; i < ARRAY_COUNT(offsets); i++)
		if (holds(&offsets[i], &found))
			*member(&found, &offsets[i]) = offsets[i].value;
	// Rows for any build say nothing of a build that the version does not have.
	if (found.object_type == PYTHON_ABSENT || found.code_name == PYTHON_ABSENT)
		return false;
	*ret = found;
	return true;
}

enum python_table python_offsets_read(const struct memory *memory, uint64_t addr,
				      struct python_offsets *ret)
{
	struct {
		char cookie[8];
		uint64_t version, free_threaded;
	} head;

	if (memory_read(memory, addr, &head, sizeof(head)))
		return PYTHON_TABLE_unreadable;
	if (memcmp(head.cookie, "xdebugpy", sizeof(head.cookie)))
		return PYTHON_TABLE_none;
	// PY_VERSION_HEX: major, minor, micro, level and serial.
	uint64_t version = head.version >> 16;
	struct python_offsets found;
	if (version < 0x030d || version > UINT16_MAX || head.free_threaded > 1 ||
	    !python_offsets_find(
		    version, head.free_threaded ? PYTHON_BUILD_FREE : PYTHON_BUILD_PLAIN, &found))
		return PYTHON_TABLE_version;
	for (size_t i = 0; i < ARRAY_COUNT(carried); i++) {
		uint64_t value;
		if (!holds(&carried[i], &found))
			continue;
		if (memory_read_u64(memory, addr + carried[i].value, &value))
			return PYTHON_TABLE_unreadable;
		if (value > OFFSET_MAX)
			return PYTHON_TABLE_odd;
		*member(&found, &carried[i]) = (uint32_t)value;
	}
	*ret = found;
	return PYTHON_TABLE_ok;
}

/* FRAME_OWNED_BY_CSTACK in 3.12 and 3.13, FRAME_OWNED_BY_INTERPRETER in 3.14 (pycore_frame.h,
 * pycore_interpframe_structs.h). */
enum { OWNER_SHIM = 3 };

static enum python_frames frames_of(uint16_t version)
{
	if (version < 0x030b)
		return PYTHON_FRAMES_objects;
	return version == 0x030b ? PYTHON_FRAMES_entry : PYTHON_FRAMES_shim;
}

struct python_layout python_offsets_layout(const struct python_offsets *at)
{
	// The interpreter's own table has a zero where its build has no such member.
	bool copies = at->frame_tlbc_index && at->frame_tlbc_index != PYTHON_ABSENT;

	return (struct python_layout){
		.version = at->version,
		.frames = frames_of(at->version),
		.shim = OWNER_SHIM,
		.interpreter_next = at->interpreter_next,
		.interpreter_threads = at->interpreter_threads,
		.interpreter_gil = at->interpreter_gil,
		.gil_holder = at->gil_holder,
		.gil_locked = at->gil_locked,
		.thread_next = at->thread_next,
		.thread_interpreter = at->thread_interpreter,
		.thread_id = at->thread_id,
		.thread_frame = at->thread_frame,
		.cframe_frame = at->cframe_frame,
		.cframe_previous = at->cframe_previous,
		.frame_code = at->frame_code,
		.frame_previous = at->frame_previous,
		.frame_ip = at->frame_ip,
		.frame_owner = at->frame_owner,
		.frame_tlbc_index = copies ? at->frame_tlbc_index : PYTHON_ABSENT,
		.code_first_line = at->code_first_line,
		.code_name = at->code_name,
		.code_bytes = at->code_bytes,
		.code_tlbc = at->code_tlbc,
	};
}
