/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lib/threading.py of all versions: _active maps identifiers to Thread objects, whose name is
 * _name (Python 3) or __name, which is mangled (2.7).
 */
#include "runtimes/python/thread-names.h"

#include <stdlib.h>

#include "base/array.h"
#include "runtimes/python/dicts.h"
#include "runtimes/python/heap.h"
#include "runtimes/python/instances.h"
#include "runtimes/python/numbers.h"
#include "runtimes/python/text.h"

void python_thread_names_deinit(struct python_thread_names *names)
{
	if (!names)
		return;
	free(names->names);
	*names = (struct python_thread_names){0};
}

/* False: unreadable, or no thread. */
static bool read_name(struct python_heap *heap, uint64_t key, uint64_t thread,
		      struct python_thread_name *ret)
{
	const char *attribute = heap->offsets->version < 0x0300 ? "_Thread__name" : "_name";
	struct python_thread_name name;
	struct python_type type;
	uint64_t text;

	if (!python_heap_type(heap, key, &type) ||
	    !python_int_u64(heap, key, type.kind, &name.id) ||
	    python_attribute_find(heap, thread, attribute, &text) != PYTHON_FIND_found ||
	    python_text_read(&heap->memory, heap->offsets, text, name.name, sizeof(name.name)) !=
		    PYTHON_TEXT_read)
		return false;
	*ret = name;
	return true;
}

static enum python_thread_names_outcome outcome_of(enum python_find found)
{
	switch (found) {
	case PYTHON_FIND_found:
		return PYTHON_THREAD_NAMES_read;
	case PYTHON_FIND_missing:
		return PYTHON_THREAD_NAMES_none;
	case PYTHON_FIND_changed:
		return PYTHON_THREAD_NAMES_changed;
	case PYTHON_FIND_unreadable:
		return PYTHON_THREAD_NAMES_unreadable;
	}
	return PYTHON_THREAD_NAMES_unreadable;
}

static struct error *read_active(struct python_heap *heap, uint64_t active,
				 enum python_thread_names_outcome *ret_outcome,
				 struct python_thread_names *ret)
{
	struct python_entries entries, after;
	struct python_thread_name name;
	uint64_t key, thread;
	bool whole = true;

	*ret_outcome = PYTHON_THREAD_NAMES_unreadable;
	if (!python_dict_open(heap, active, &entries))
		return NULL;
	while (ret->count < PYTHON_THREAD_NAMES_MAX &&
	       python_entries_next(heap, &entries, &key, &thread)) {
		if (!read_name(heap, key, thread, &name)) {
			whole = false;
			continue;
		}
		TRY(ARRAY_RESERVE(ret->names, ret->room, ret->count, 1, PYTHON_THREAD_NAMES_MAX,
				  "names of Python threads"));
		ret->names[ret->count++] = name;
	}
	if (!python_dict_open(heap, active, &after))
		return NULL;
	if (!python_entries_same(&entries, &after))
		*ret_outcome = PYTHON_THREAD_NAMES_changed;
	else if (whole && !entries.unreadable)
		*ret_outcome = PYTHON_THREAD_NAMES_read;
	return NULL;
}

struct error *python_thread_names_read(const struct memory *memory, const struct python_offsets *at,
				       uint64_t modules,
				       enum python_thread_names_outcome *ret_outcome,
				       struct python_thread_names *ret)
{
	struct python_heap heap;
	struct python_type type;
	uint64_t active;

	python_heap_init(&heap, memory, at, PYTHON_THREAD_NAMES_READS - ret->reads);
	enum python_find found =
		python_module_find(&heap, modules, "threading", "_active", &active);
	*ret_outcome = outcome_of(found);
	struct error *err = NULL;
	if (found == PYTHON_FIND_found) {
		bool dict = python_heap_type(&heap, active, &type) && type.kind == PYTHON_KIND_dict;
		*ret_outcome = PYTHON_THREAD_NAMES_unreadable;
		err = dict ? read_active(&heap, active, ret_outcome, ret) : NULL;
	}
	ret->reads = PYTHON_THREAD_NAMES_READS - heap.reads_left;
	return err;
}

const char *python_thread_name_find(const struct python_thread_names *names, uint64_t id)
{
	for (size_t i = 0; i < names->count; i++)
		if (names->names[i].id == id)
			return names->names[i].name;
	return NULL;
}
