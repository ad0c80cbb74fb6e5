/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/python/dicts.h"

#include <string.h>

#include "runtimes/python/text.h"

/* Objects/setobject.c of 2.7 marks a slot that was left with this string. */
#define DUMMY_NAME "<dummy key>"

enum {
	NAME_MAX_BYTES = 64,
	SIEVE_BYTES = 128, /* a name with what a string has in front of it */
	HEAD_BYTES_2 = 24, /* of a str or unicode of 2.7 up to its length, without Py_TRACE_REFS */
	/* Entries fill at most two thirds of a table (dictobject.c, USABLE_FRACTION). */
	LOG2_SLOTS_MAX = 40,
};

/* What the entries of a table are like. STRINGS: those without hashes. */
static bool set_shape(const struct python_heap *heap, bool strings, struct python_entries *entries)
{
	const struct python_offsets *at = heap->offsets;

	entries->size = strings ? at->unicode_entry_size : at->entry_size;
	entries->key = strings ? at->unicode_entry_key : at->entry_key;
	entries->value = strings ? at->unicode_entry_value : at->entry_value;
	entries->hash = PYTHON_ABSENT;
	return entries->size >= 16 && entries->size <= PYTHON_ENTRY_SIZE_MAX &&
	       entries->key <= entries->size - 8 && entries->value <= entries->size - 8;
}

/* Bytes of one index of a table of SLOTS: dictobject.c, DK_IXSIZE, from 3.6 (bpo-27350) on. */
static uint64_t index_size(uint64_t slots)
{
	return slots <= 0xff ? 1 : slots <= 0xffff ? 2 : slots <= 0xffffffff ? 4 : 8;
}

/* Keys of 3.11 and later. */
static bool open_keys_by_kind(const struct python_heap *heap, uint64_t keys,
			      struct python_entries *entries)
{
	const struct python_offsets *at = heap->offsets;
	uint8_t log2_bytes, kind;
	uint64_t count;

	if (!python_heap_bytes(heap, keys, at->keys_log2_index_bytes, &log2_bytes, 1) ||
	    !python_heap_bytes(heap, keys, at->keys_kind, &kind, 1) ||
	    !python_heap_u64(heap, keys, at->keys_nentries, &count) ||
	    log2_bytes > LOG2_SLOTS_MAX || kind > 2 || count >> LOG2_SLOTS_MAX)
		return false;
	entries->table = keys + at->keys_indices + (1ull << log2_bytes);
	entries->slots = count;
	return set_shape(heap, kind != 0, entries);
}

static bool open_keys(const struct python_heap *heap, uint64_t keys, struct python_entries *entries)
{
	const struct python_offsets *at = heap->offsets;
	uint64_t slots, count;

	if (at->keys_kind != PYTHON_ABSENT)
		return open_keys_by_kind(heap, keys, entries);
	if (!python_heap_u64(heap, keys, at->keys_size, &slots) || !slots ||
	    slots >> LOG2_SLOTS_MAX)
		return false;
	if (at->keys_indices == PYTHON_ABSENT) {
		entries->table = keys + at->keys_entries;
		entries->slots = slots;
		return at->keys_entries != PYTHON_ABSENT && set_shape(heap, false, entries);
	}
	if (!python_heap_u64(heap, keys, at->keys_nentries, &count) || count > slots)
		return false;
	entries->table = keys + at->keys_indices + slots * index_size(slots);
	entries->slots = count;
	return set_shape(heap, false, entries);
}

bool python_keys_open(const struct python_heap *heap, uint64_t keys, uint64_t values,
		      struct python_entries *ret)
{
	struct python_entries entries = {.addr = keys, .values = values};

	if (!values || !open_keys(heap, keys, &entries))
		return false;
	entries.used = entries.slots;
	*ret = entries;
	return true;
}

bool python_dict_open(const struct python_heap *heap, uint64_t addr, struct python_entries *ret)
{
	const struct python_offsets *at = heap->offsets;
	struct python_entries entries = {.addr = addr};
	uint64_t keys, mask, values = 0;

	if (!python_heap_u64(heap, addr, at->dict_used, &entries.used) ||
	    entries.used >> LOG2_SLOTS_MAX)
		return false;
	if (at->dict_keys == PYTHON_ABSENT) {
		if (!python_heap_u64(heap, addr, at->dict_mask, &mask) || mask >> LOG2_SLOTS_MAX ||
		    !python_heap_u64(heap, addr, at->dict_table, &entries.table))
			return false;
		entries.slots = mask + 1;
		if (!set_shape(heap, false, &entries))
			return false;
		*ret = entries;
		return true;
	}
	if (!python_heap_u64(heap, addr, at->dict_keys, &keys) ||
	    !python_heap_u64(heap, addr, at->dict_values, &values) ||
	    !open_keys(heap, keys, &entries))
		return false;
	if (values)
		entries.values = values + at->values_items;
	*ret = entries;
	return true;
}

bool python_set_open(const struct python_heap *heap, uint64_t addr, struct python_entries *ret)
{
	const struct python_offsets *at = heap->offsets;
	struct python_entries entries = {
		.addr = addr,
		.size = at->set_entry_size,
		.key = at->set_entry_key,
		.value = PYTHON_ABSENT,
		.hash = at->set_entry_hash,
	};
	uint64_t mask;

	if (!python_heap_u64(heap, addr, at->set_used, &entries.used) ||
	    !python_heap_u64(heap, addr, at->set_mask, &mask) || mask >> LOG2_SLOTS_MAX ||
	    entries.used > mask + 1 || !python_heap_u64(heap, addr, at->set_table, &entries.table))
		return false;
	entries.slots = mask + 1;
	if (entries.size < 16 || entries.size > PYTHON_ENTRY_SIZE_MAX ||
	    entries.key > entries.size - 8 || entries.hash > entries.size - 8)
		return false;
	*ret = entries;
	return true;
}

/* See that slot NEXT is among those held. */
static bool hold(const struct python_heap *heap, struct python_entries *entries)
{
	uint64_t count = entries->slots - entries->next;

	if (entries->held_at < entries->held)
		return true;
	if (count > PYTHON_ENTRIES_AT_ONCE)
		count = PYTHON_ENTRIES_AT_ONCE;
	// Up to 3.5 and in sets a table is mostly holes, so that reading ahead is cheap; a small
	// ordered table is read exactly.
	if (!python_heap_bytes(heap, entries->table + entries->next * entries->size, 0,
			       entries->entries, count * entries->size)) {
		entries->unreadable = true;
		return false;
	}
	entries->held = (uint32_t)count;
	entries->held_at = 0;
	return true;
}

static uint64_t word(const uint8_t *entry, uint32_t offset)
{
	uint64_t value = 0;

	if (offset != PYTHON_ABSENT)
		memcpy(&value, entry + offset, sizeof(value));
	return value;
}

/* Whether a slot of a set was left: since 3.5 (bpo-23290) its hash is -1. */
static bool is_dummy(const struct python_heap *heap, const struct python_entries *entries,
		     const uint8_t *entry)
{
	char text[sizeof(DUMMY_NAME) + 4];

	if (entries->hash == PYTHON_ABSENT)
		return false;
	if (heap->offsets->version >= 0x0300)
		return word(entry, entries->hash) == UINT64_MAX;
	return python_text_read(&heap->memory, heap->offsets, word(entry, entries->key), text,
				sizeof(text)) == PYTHON_TEXT_read &&
	       !strcmp(text, DUMMY_NAME);
}

bool python_entries_next(const struct python_heap *heap, struct python_entries *entries,
			 uint64_t *ret_key, uint64_t *ret_value)
{
	while (entries->next < entries->slots && entries->next < PYTHON_SLOTS_MAX &&
	       entries->found < entries->used) {
		if (!hold(heap, entries))
			return false;
		const uint8_t *entry = entries->entries + entries->held_at * entries->size;
		uint64_t key = word(entry, entries->key), value = word(entry, entries->value);
		uint64_t slot = entries->next++;
		entries->held_at++;
		if (entries->values &&
		    !python_heap_u64(heap, entries->values + slot * 8, 0, &value)) {
			entries->unreadable = true;
			return false;
		}
		bool set = entries->value == PYTHON_ABSENT;
		if (!key || (!set && !value) || (set && is_dummy(heap, entries, entry)))
			continue;
		entries->found++;
		*ret_key = key;
		*ret_value = value;
		return true;
	}
	return false;
}

/* Whether the object at ADDR is the string NAME. False: unreadable. */
static bool compare(struct python_heap *heap, uint64_t addr, const char *name, bool *ret)
{
	struct python_string string;
	size_t length = strlen(name);
	char text[NAME_MAX_BYTES];
	enum python_text outcome = python_string_find(&heap->memory, heap->offsets, addr, &string);

	*ret = false;
	if (outcome != PYTHON_TEXT_read)
		return outcome != PYTHON_TEXT_unreadable;
	if (length > sizeof(text) || string.length != length || string.width != 1)
		return true;
	if (!python_heap_bytes(heap, string.data, 0, text, length))
		return false;
	*ret = !memcmp(text, name, length);
	return true;
}

bool python_text_is(struct python_heap *heap, uint64_t addr, const char *name)
{
	bool same;

	return compare(heap, addr, name, &same) && same;
}

bool python_entries_same(const struct python_entries *a, const struct python_entries *b)
{
	return a->used == b->used && a->table == b->table && a->slots == b->slots &&
	       a->values == b->values;
}

/*
 * Which of the entries held may have the key NAME. sys.modules of a large program has thousands: to
 * look at them one by one takes some ten milliseconds.
 */
struct sieve {
	uint64_t slots; /* that have been looked at */
	bool passes[PYTHON_ENTRIES_AT_ONCE];
};

/*
 * Is STRING, the begin of an object, a string in ASCII that is not NAME? Of 2.7 it is enough to
 * know how long it would be.
 */
static bool is_other(const struct python_offsets *at, const uint8_t *string, const char *name)
{
	uint64_t length;
	uint32_t state;

	memcpy(&length, string + at->unicode_length, sizeof(length));
	if (at->version < 0x0300)
		return length != strlen(name);
	memcpy(&state, string + at->unicode_state, sizeof(state));
	return state >> at->unicode_compact_bit & state >> at->unicode_ascii_bit & 1 &&
	       (length != strlen(name) ||
		memcmp(string + at->unicode_ascii_data, name, strlen(name)) != 0);
}

static bool can_sieve(const struct python_offsets *at, size_t size)
{
	if (at->version < 0x0300)
		return at->unicode_length == at->bytes_size && at->bytes_size + 8 <= size;
	return size <= SIEVE_BYTES && at->unicode_ascii_data >= sizeof(uint64_t) &&
	       at->unicode_state <= at->unicode_ascii_data - sizeof(uint32_t) &&
	       at->unicode_length <= at->unicode_ascii_data - sizeof(uint64_t) &&
	       at->unicode_compact_bit < 32 && at->unicode_ascii_bit < 32;
}

/* What cannot be told passes. */
static void sieve_keys(const struct python_heap *heap, const struct python_entries *entries,
		       const char *name, struct sieve *sieve)
{
	const struct python_offsets *at = heap->offsets;
	uint8_t string[PYTHON_ENTRIES_AT_ONCE][SIEVE_BYTES];
	struct memory_item item[PYTHON_ENTRIES_AT_ONCE];
	size_t size = at->version < 0x0300 ? HEAD_BYTES_2 : at->unicode_ascii_data + strlen(name);
	uint32_t entry[PYTHON_ENTRIES_AT_ONCE];
	bool can = can_sieve(at, size);
	size_t count = 0;

	for (uint32_t i = 0; i < entries->held; i++) {
		uint64_t key = word(entries->entries + i * entries->size, entries->key);
		sieve->passes[i] = true;
		if (!can || !key)
			continue;
		item[count] = (struct memory_item){key, string[count], (uint32_t)size};
		entry[count++] = i;
	}
	memory_read_many(&heap->memory, item, count);
	for (size_t i = 0; i < count; i++)
		sieve->passes[entry[i]] = !item[i].read || !is_other(at, string[i], name);
}

enum python_find python_dict_find(struct python_heap *heap, uint64_t addr, const char *name,
				  uint64_t *ret)
{
	struct python_entries entries, after;
	struct sieve sieve = {0};
	uint64_t key, value;
	bool same, unreadable = false;

	if (!python_dict_open(heap, addr, &entries))
		return PYTHON_FIND_unreadable;
	while (python_entries_next(heap, &entries, &key, &value)) {
		if (entries.next > sieve.slots) {
			sieve_keys(heap, &entries, name, &sieve);
			sieve.slots = entries.next - entries.held_at + entries.held;
		}
		if (!sieve.passes[entries.held_at - 1])
			continue;
		unreadable |= !compare(heap, key, name, &same);
		if (same) {
			*ret = value;
			return PYTHON_FIND_found;
		}
	}
	if (!python_dict_open(heap, addr, &after))
		return PYTHON_FIND_unreadable;
	if (!python_entries_same(&entries, &after))
		return PYTHON_FIND_changed;
	return unreadable || entries.unreadable ? PYTHON_FIND_unreadable : PYTHON_FIND_missing;
}

enum python_find python_module_find_dict(struct python_heap *heap, uint64_t modules,
					 const char *module, uint64_t *ret)
{
	struct python_type type;
	uint64_t object, dict;
	enum python_find found = python_dict_find(heap, modules, module, &object);

	if (found != PYTHON_FIND_found)
		return found;
	// A program may put anything into sys.modules.
	if (!python_heap_type(heap, object, &type))
		return PYTHON_FIND_unreadable;
	if (type.kind != PYTHON_KIND_module)
		return PYTHON_FIND_missing;
	if (!python_heap_u64(heap, object, heap->offsets->module_dict, &dict))
		return PYTHON_FIND_unreadable;
	if (!dict)
		return PYTHON_FIND_missing;
	*ret = dict;
	return PYTHON_FIND_found;
}

enum python_find python_module_find(struct python_heap *heap, uint64_t modules, const char *module,
				    const char *name, uint64_t *ret)
{
	uint64_t dict;
	enum python_find found = python_module_find_dict(heap, modules, module, &dict);

	return found == PYTHON_FIND_found ? python_dict_find(heap, dict, name, ret) : found;
}
