/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/python/version.h"

#include <stdio.h>

#include "runtimes/python/dicts.h"
#include "runtimes/python/numbers.h"

enum { READS_MAX = 1 << 14 };

/* PY_VERSION_HEX of the first interpreter; 0: it cannot be read, or is another version's. */
static uint32_t read_hex(const struct python_instance *instance, const struct memory *memory)
{
	const struct python_offsets *at = &instance->at;
	uint64_t interpreter, dict, value, hex;
	struct python_heap heap;
	struct python_type type;

	python_heap_init(&heap, memory, at, READS_MAX);
	if (!python_heap_u64(&heap, instance->process.interpreters, 0, &interpreter) ||
	    !python_heap_u64(&heap, interpreter, at->interpreter_sysdict, &dict) ||
	    python_dict_find(&heap, dict, "hexversion", &value) != PYTHON_FIND_found ||
	    !python_heap_type(&heap, value, &type) ||
	    !python_int_u64(&heap, value, type.kind, &hex) || hex >> 16 != at->version)
		return 0;
	return (uint32_t)hex;
}

void python_version_text(const struct python_instance *instance, const struct memory *memory,
			 char ret[static PYTHON_VERSION_TEXT_MAX])
{
	// Include/patchlevel.h: PY_RELEASE_LEVEL_ALPHA is 0xa, ..., _FINAL 0xf.
	static const char *const levels[16] = {[0xa] = "a", [0xb] = "b", [0xc] = "rc"};
	unsigned major = instance->at.version >> 8, minor = instance->at.version & 0xff;
	uint32_t hex = instance->version_hex;

	if (!hex)
		hex = read_hex(instance, memory);
	const char *level = levels[hex >> 4 & 0xf];
	if (!hex)
		snprintf(ret, PYTHON_VERSION_TEXT_MAX, "%u.%u", major, minor);
	else if (level)
		snprintf(ret, PYTHON_VERSION_TEXT_MAX, "%u.%u.%u%s%u", major, minor,
			 hex >> 8 & 0xff, level, hex & 0xf);
	else
		snprintf(ret, PYTHON_VERSION_TEXT_MAX, "%u.%u.%u", major, minor, hex >> 8 & 0xff);
}
