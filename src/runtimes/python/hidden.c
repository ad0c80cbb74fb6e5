// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python/hidden.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "object/object.h"
#include "object/symbols.h"

enum {
	CODE_MIN = 1 << 20, /* an interpreter has 2 MB and more */
	STRINGS_MAX =
		1 << 20, /* of what is exported and imported; who exports more hides nothing */
	SEARCHED_MAX = 64 << 20, /* of a segment */
	WINDOW = 64 << 10,
	TEXT_MAX = 16, /* longest thing that is looked for, with what follows it */
	WORD = 8,
};

static const char section_name[] = ".PyRuntime";
/* Py_GetVersion() and import have it (Python/sysmodule.c, _PySys_ImplCacheTag; 3.3 and later). */
static const char cache_tag[] = "cpython-3";
/* At the begin of _PyRuntime, 3.13 and later (pycore_debug_offsets.h). */
static const char cookie[] = "xdebugpy";

/* A place in an object's file where something is looked for. */
struct finding {
	uint64_t addr;
	uint8_t bytes[TEXT_MAX]; /* what is there */
};

typedef bool is_found_fn(const struct finding *found);

/* Look for the SIZE bytes at WHAT in one window at ADDR. */
static bool find_in_window(const uint8_t *window, size_t bytes, const char *what,
			   is_found_fn *is_found, struct finding *ret)
{
	size_t size = strlen(what);
	const uint8_t *at = window, *end = window + bytes;
	uint64_t addr = ret->addr;

	while ((at = memmem(at, (size_t)(end - at), what, size))) {
		struct finding found = {.addr = addr + (uint64_t)(at - window)};
		size_t left = (size_t)(end - at);
		// What is cut off here is whole in the next window.
		if (left < TEXT_MAX && bytes == WINDOW)
			return false;
		memcpy(found.bytes, at, left < TEXT_MAX ? left : TEXT_MAX);
		if (is_found(&found)) {
			*ret = found;
			return true;
		}
		at++;
	}
	return false;
}

/* Look for WHAT in the segments that the file holds, those that are WRITABLE or all. */
static bool find_bytes(struct object *object, bool writable, const char *what,
		       is_found_fn *is_found, struct finding *ret)
{
	_cleanup_free_ uint8_t *window = malloc(WINDOW);
	size_t count;
	const struct object_segment *segments = object_segments(object, &count);

	for (size_t i = 0; window && i < count; i++) {
		uint64_t size = segments[i].file_size;
		if (writable && !segments[i].writable)
			continue;
		if (size > SEARCHED_MAX)
			size = SEARCHED_MAX;
		// Windows overlap by what a finding may take.
		for (uint64_t at = 0; at < size; at += WINDOW - TEXT_MAX) {
			size_t bytes = size - at < WINDOW ? size - at : WINDOW;
			ret->addr = segments[i].addr + at;
			if (!object_read(object, ret->addr, window, bytes))
				break;
			if (find_in_window(window, bytes, what, is_found, ret))
				return true;
		}
	}
	return false;
}

/* Is it a version, and the end of the text? RET may be NULL. */
static bool parse_tag(const struct finding *found, uint16_t *ret)
{
	const uint8_t *digit = found->bytes + sizeof(cache_tag) - 1;
	unsigned minor = 0, digits = 0;

	for (; digits < 2 && *digit >= '0' && *digit <= '9'; digits++)
		minor = 10 * minor + *digit++ - '0';
	if (!digits || *digit)
		return false;
	if (ret)
		*ret = (uint16_t)(0x0300 | minor);
	return true;
}

static bool is_tag(const struct finding *found)
{
	return parse_tag(found, NULL);
}

static bool is_cookie(const struct finding *found)
{
	return !(found->addr % WORD);
}

static uint64_t code_size(const struct object *object)
{
	size_t count;
	const struct object_segment *segments = object_segments(object, &count);
	uint64_t size = 0;

	for (size_t i = 0; i < count; i++)
		if (segments[i].executable && segments[i].file_size > size)
			size = segments[i].file_size;
	return size;
}

/*
 * Does it import what next to nobody but Python does? The module posix, which is in every
 * interpreter, has os.ctermid(). What is linked statically may have anything inside.
 */
static bool imports_like_python(struct object *object)
{
	static const char name[] = "\0ctermid";
	struct object_exports exports;

	if (!object_exports_open(object, &exports))
		return true;
	if (exports.strings_size > STRINGS_MAX)
		return false;
	_cleanup_free_ char *strings = malloc(exports.strings_size + 1);
	return strings && object_read(object, exports.strings, strings, exports.strings_size) &&
	       memmem(strings, exports.strings_size, name, sizeof(name));
}

static const struct object_section *runtime_section(const struct object *object)
{
	size_t count;
	const struct object_section *sections = object_sections(object, &count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(sections[i].name, section_name) && sections[i].addr)
			return &sections[i];
	return NULL;
}

static struct python_range writable_range(const struct object *object)
{
	struct python_range range = {0};
	size_t count;
	const struct object_segment *segments = object_segments(object, &count);

	for (size_t i = 0; i < count; i++) {
		uint64_t start = segments[i].addr, size = segments[i].mem_size;
		if (!segments[i].writable || !size || size > UINT64_MAX - start)
			continue;
		if (!range.end || start < range.start)
			range.start = start;
		if (start + size > range.end)
			range.end = start + size;
	}
	return range;
}

bool python_hidden_find(struct object *object, struct python_hidden *ret)
{
	const struct object_section *section = runtime_section(object);
	struct python_hidden hidden = {.data = writable_range(object)};
	struct finding found;

	if (!section &&
	    (code_size(object) < CODE_MIN || object_is_go(object) || !imports_like_python(object)))
		return false;
	if (!find_bytes(object, false, cache_tag, is_tag, &found) ||
	    !parse_tag(&found, &hidden.version))
		return false;
	if (section)
		hidden.runtime = section->addr;
	else if (hidden.version >= 0x030d && find_bytes(object, true, cookie, is_cookie, &found))
		hidden.runtime = found.addr;
	*ret = hidden;
	return true;
}
