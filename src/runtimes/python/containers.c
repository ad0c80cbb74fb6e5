/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/python/containers.h"

#include <inttypes.h>

#include "runtimes/python/dicts.h"

enum {
	WORDS_AT_ONCE = 16,
	/* No container has more items: there is no memory for them. */
	ITEMS_MAX_LOG2 = 44,
};

/* What stands around the items of each kind. */
struct brackets {
	const char *open, *close, *empty;
};

static struct brackets brackets_of(enum python_kind kind, bool python2)
{
	if (kind == PYTHON_KIND_tuple)
		return (struct brackets){"(", ")", "()"};
	if (kind == PYTHON_KIND_list)
		return (struct brackets){"[", "]", "[]"};
	if (kind == PYTHON_KIND_set)
		return python2 ? (struct brackets){"set([", "])", "set([])"}
			       : (struct brackets){"{", "}", "set()"};
	if (kind == PYTHON_KIND_frozenset)
		return python2 ? (struct brackets){"frozenset([", "])", "frozenset([])"}
			       : (struct brackets){"frozenset({", "})", "frozenset()"};
	return (struct brackets){"{", "}", "{}"};
}

static void add_rest(struct python_print *print, uint64_t shown, uint64_t count)
{
	if (shown < count)
		python_out_addf(&print->out, "%s" ELLIPSIS " %" PRIu64 " more", shown ? ", " : "",
				count - shown);
}

/* COUNT objects whose addresses are at ITEMS. */
static bool print_items(struct python_print *print, uint64_t items, uint64_t count)
{
	uint64_t words[WORDS_AT_ONCE];
	uint64_t shown = count < print->limits.items ? count : print->limits.items;

	for (uint64_t i = 0; i < shown && !print->out.full; i++) {
		uint64_t left = shown - i;
		if (i % WORDS_AT_ONCE == 0 &&
		    !python_heap_bytes(&print->heap, items + i * 8, 0, words,
				       (left < WORDS_AT_ONCE ? left : WORDS_AT_ONCE) * 8))
			return false;
		python_out_add(&print->out, i ? ", " : "");
		python_print_value(print, words[i % WORDS_AT_ONCE]);
	}
	add_rest(print, shown, count);
	return true;
}

/* Where the items of a tuple or list are, and how many. */
static bool find_items(const struct python_print *print, uint64_t addr, enum python_kind kind,
		       uint64_t *ret_items, uint64_t *ret_count)
{
	const struct python_offsets *at = print->heap.offsets;
	uint64_t items = addr + at->tuple_items, count;
	bool list = kind == PYTHON_KIND_list;

	if (!python_heap_u64(&print->heap, addr, list ? at->list_size : at->tuple_size, &count) ||
	    count >> ITEMS_MAX_LOG2 ||
	    (list && !python_heap_u64(&print->heap, addr, at->list_items, &items)))
		return false;
	*ret_items = items;
	*ret_count = count;
	return true;
}

bool python_tuple_items_print(struct python_print *print, uint64_t addr, uint64_t *ret_count)
{
	uint64_t items, count;

	if (!find_items(print, addr, PYTHON_KIND_tuple, &items, &count))
		return false;
	*ret_count = count;
	return print_items(print, items, count);
}

static bool print_entries(struct python_print *print, struct python_entries *entries, bool dict)
{
	uint64_t key, value, shown = 0;

	while (shown < print->limits.items && !print->out.full &&
	       python_entries_next(&print->heap, entries, &key, &value)) {
		python_out_add(&print->out, shown++ ? ", " : "");
		python_print_value(print, key);
		if (dict) {
			python_out_add(&print->out, ": ");
			python_print_value(print, value);
		}
	}
	if (!entries->unreadable)
		add_rest(print, shown, entries->used);
	return !entries->unreadable;
}

struct contents {
	enum python_kind kind;
	uint64_t items, count; /* of a tuple or list */
	struct python_entries entries;
};

static bool open_contents(const struct python_print *print, uint64_t addr, enum python_kind kind,
			  struct contents *ret)
{
	ret->kind = kind;
	if (kind == PYTHON_KIND_tuple || kind == PYTHON_KIND_list)
		return find_items(print, addr, kind, &ret->items, &ret->count);
	bool open = kind == PYTHON_KIND_dict ? python_dict_open(&print->heap, addr, &ret->entries)
					     : python_set_open(&print->heap, addr, &ret->entries);
	if (open)
		ret->count = ret->entries.used;
	return open;
}

static void print_contents(struct python_print *print, uint64_t addr, struct contents *contents)
{
	struct brackets brackets =
		brackets_of(contents->kind, print->heap.offsets->version < 0x0300);
	bool whole = true;

	if (!contents->count) {
		python_out_add(&print->out, brackets.empty);
		return;
	}
	python_out_add(&print->out, brackets.open);
	if (python_print_enter(print, addr, ELLIPSIS)) {
		if (contents->kind == PYTHON_KIND_tuple || contents->kind == PYTHON_KIND_list)
			whole = print_items(print, contents->items, contents->count);
		else
			whole = print_entries(print, &contents->entries,
					      contents->kind == PYTHON_KIND_dict);
		if (contents->kind == PYTHON_KIND_tuple && contents->count == 1)
			python_out_add(&print->out, ",");
		python_print_leave(print);
	}
	python_out_add(&print->out, whole ? "" : " <unreadable>");
	python_out_add(&print->out, brackets.close);
}

void python_container_print(struct python_print *print, uint64_t addr, enum python_kind kind)
{
	struct contents contents = {.items = 0};

	if (open_contents(print, addr, kind, &contents))
		print_contents(print, addr, &contents);
	else
		python_print_unreadable(print, addr);
}

void python_members_print(struct python_print *print, uint64_t addr, const char *name,
			  unsigned count)
{
	python_out_addf(&print->out, "%s(", name);
	if (python_print_enter(print, addr, ELLIPSIS)) {
		for (unsigned i = 0; i < count; i++) {
			uint64_t member = 0;

			python_out_add(&print->out, i ? ", " : "");
			if (python_heap_u64(&print->heap, addr,
					    print->heap.offsets->object_header + i * 8, &member))
				python_print_value(print, member);
			else
				python_print_unreadable(print, addr);
		}
		python_print_leave(print);
	}
	python_out_add(&print->out, ")");
}
