/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Row storage. A module's rows are cut into extents, each inside one segment. A module that goes
 * is made invisible first and its words are reused only after a grace period, since a walk on
 * another CPU may still be reading them.
 */
#include "unwind/store.h"

#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/ranges.h"

enum {
	// A walk takes far less than a millisecond; a virtual CPU may be descheduled in its middle.
	GRACE_NS = 100 * 1000 * 1000,
	// Mapping tables that name a module are replaced by the next round of their owner.
	NUMBER_GRACE_MS = 3000,
	PAGES_MAX = 1 << 16, /* 4 GiB of text in one object */
};

struct extent {
	uint32_t word, words; /* word number over all segments */
};

struct module_state {
	bool taken;
	uint64_t free_at_ns; /* once it was taken: tables that name it may be read until then */
	uint64_t used_ns;
	struct extent *extents;
	size_t extent_count, extent_room;
};

struct store {
	struct store_options options;
	const struct unwind_segment *segment[STORE_SEGMENTS_MAX];
	unsigned segments;
	struct ranges free; /* words */
	struct module_state *modules;
	struct hash_index rule_index;
	uint32_t rules;
};

struct error *store_new(const struct store_options *options, struct store **ret)
{
	struct store *store = calloc(1, sizeof(*store));

	if (!store)
		return error_oom();
	store->options = *options;
	store->free.boundary_bits = UNWIND_SEGMENT_BITS;
	if (store->options.segments_max > STORE_SEGMENTS_MAX)
		store->options.segments_max = STORE_SEGMENTS_MAX;
	store->modules = calloc(STORE_MODULES_MAX, sizeof(*store->modules));
	if (!store->modules) {
		store_free(store);
		return error_oom();
	}
	*ret = store;
	return NULL;
}

void store_free(struct store *store)
{
	if (!store)
		return;
	for (size_t i = 0; store->modules && i < STORE_MODULES_MAX; i++)
		free(store->modules[i].extents);
	free(store->modules);
	ranges_deinit(&store->free);
	hash_index_deinit(&store->rule_index);
	free(store);
}

struct error *store_add_module(struct store *store, uint32_t *ret)
{
	uint64_t now_ns = clock_monotonic_ns();

	for (uint32_t i = UNWIND_MODULE_first; i < STORE_MODULES_MAX; i++) {
		if (store->modules[i].taken || store->modules[i].free_at_ns > now_ns)
			continue;
		store->modules[i].taken = true;
		*ret = i;
		return NULL;
	}
	return error_new("more than %d objects at a time", STORE_MODULES_MAX);
}

void store_remove_module(struct store *store, uint32_t module)
{
	store_unload(store, module);
	store->modules[module].taken = false;
	store->modules[module].free_at_ns = clock_monotonic_ns() + NUMBER_GRACE_MS * 1000000ull;
}

bool store_loaded(const struct store *store, uint32_t module)
{
	return store->options.modules[module].pages != 0;
}

void store_touch(struct store *store, uint32_t module, uint64_t now_ns)
{
	store->modules[module].used_ns = now_ns;
}

size_t store_segments(const struct store *store)
{
	return store->segments;
}

struct host_tables store_tables(const struct store *store)
{
	return (struct host_tables){
		.module = store->options.modules,
		.modules = STORE_MODULES_MAX,
		.segment = store->segment,
		.segments = store->segments,
		.rule = store->options.rules,
		.rules = store->rules,
	};
}

static struct error *add_segment(struct store *store)
{
	struct unwind_segment *segment;

	// It may be there since the last time, when there was no memory for the list.
	if (!store->segment[store->segments]) {
		TRY(store->options.segment(store->options.context, store->segments, &segment));
		store->segment[store->segments] = segment;
	}
	struct range all = {.start = store->segments << UNWIND_SEGMENT_BITS,
			    .count = UNWIND_SEGMENT_WORDS};
	TRY(ranges_add(&store->free, all));
	store->segments++;
	return NULL;
}

void store_unload(struct store *store, uint32_t module)
{
	struct module_state *state = &store->modules[module];
	uint64_t free_at_ns = clock_monotonic_ns() + GRACE_NS;

	__atomic_store_n(&store->options.modules[module].pages, 0, __ATOMIC_RELEASE);
	for (size_t i = 0; i < state->extent_count; i++) {
		struct extent extent = state->extents[i];
		struct range range = {extent.word, extent.words, free_at_ns};
		// Without memory for the list the words stay unused until the process ends.
		error_free(ranges_add(&store->free, range));
	}
	free(state->extents);
	state->extents = NULL;
	state->extent_count = state->extent_room = 0;
}

/* Evict the module that was not used for the longest time, but not KEEP. False: there is none. */
static bool evict_one(struct store *store, uint32_t keep)
{
	uint32_t oldest = 0;

	for (uint32_t i = UNWIND_MODULE_first; i < STORE_MODULES_MAX; i++)
		if (i != keep && store_loaded(store, i) &&
		    (!oldest || store->modules[i].used_ns < store->modules[oldest].used_ns))
			oldest = i;
	if (!oldest)
		return false;
	store_unload(store, oldest);
	counter_add(store->options.counters, COUNTER_objects_evicted, 1);
	return true;
}

/* WORDS for MODULE, from what is free, a new segment, or by eviction. */
static struct error *allocate(struct store *store, uint32_t module, uint32_t words, uint32_t *ret)
{
	struct module_state *state = &store->modules[module];

	if (words > UNWIND_SEGMENT_WORDS)
		return error_new("%u words of unwind rows in one piece", words);
	TRY(ARRAY_RESERVE(state->extents, state->extent_room, state->extent_count, 1, PAGES_MAX + 1,
			  "pieces of unwind rows in one object"));
	while (!ranges_take(&store->free, words, clock_monotonic_ns(), ret)) {
		if (store->segments < store->options.segments_max) {
			TRY(add_segment(store));
			continue;
		}
		if (!evict_one(store, module))
			return error_new("unwind rows exceed the budget of %u MiB",
					 store->options.segments_max);
		// What was evicted may still be read by a walk: wait rather than reuse it now.
		usleep(GRACE_NS / 1000 + 1000);
	}
	state->extents[state->extent_count++] = (struct extent){.word = *ret, .words = words};
	return NULL;
}

static uint32_t *word_at(const struct store *store, uint32_t number)
{
	const struct unwind_segment *segment = store->segment[number >> UNWIND_SEGMENT_BITS];

	// The segment is ours to write; the walkers' view of it is const.
	return (uint32_t *)(uintptr_t)&segment->word[number & (UNWIND_SEGMENT_WORDS - 1)];
}

struct rule_key {
	const struct store *store;
	const struct unwind_rule *rule;
};

static bool rule_equal(const void *context, uint32_t item)
{
	const struct rule_key *key = context;

	return !memcmp(&key->store->options.rules[item], key->rule, sizeof(*key->rule));
}

/* The number of RULE in the table of all rules; a rule that finds it full becomes "no rows". */
static struct error *intern_rule(struct store *store, const struct unwind_rule *rule, uint16_t *ret)
{
	uint64_t hash = hash_bytes(rule, sizeof(*rule), 0);
	struct rule_key key = {store, rule};
	uint32_t number;

	if (!hash_find(&store->rule_index, hash, rule_equal, &key, &number)) {
		if (store->rules == UNWIND_RULES_MAX) {
			counter_add(store->options.counters, COUNTER_rules_full, 1);
			*ret = 0;
			return NULL;
		}
		number = store->rules;
		TRY(hash_add(&store->rule_index, hash, number));
		store->options.rules[number] = *rule;
		store->rules++;
	}
	*ret = (uint16_t)number;
	return NULL;
}

/* Numbers, in the table of all rules, of the rules of ROWS. The caller frees RET. */
static struct error *intern_rules(struct store *store, const struct rows *rows, uint16_t **ret)
{
	static const struct unwind_rule gap = {.cfa = UNWIND_CFA_none};
	uint16_t number;

	TRY(intern_rule(store, &gap, &number)); // the first call makes it number 0
	_cleanup_free_ uint16_t *numbers = calloc(rows->rule_count + 1, sizeof(*numbers));
	if (!numbers)
		return error_oom();
	for (size_t i = 0; i < rows->rule_count; i++)
		TRY(intern_rule(store, &rows->rules[i], &numbers[i]));
	*ret = take(numbers);
	return NULL;
}

/* Where writing has got to. */
struct page_cursor {
	uint64_t addr;  /* of the page */
	size_t next;    /* first row at or after addr */
	uint32_t entry; /* word number of the page's two words */
};

/* Write the rows of the page under the cursor. The row before the first one holds at its start. */
static struct error *write_page(struct store *store, uint32_t module, const struct rows *rows,
				const uint16_t *numbers, struct page_cursor *cursor)
{
	uint64_t end = cursor->addr + (1u << UNWIND_PAGE_BITS);
	size_t from = cursor->next, to = from;
	uint32_t first;

	while (to < rows->count && rows->row[to].addr < end)
		to++;
	bool carried = from == to || rows->row[from].addr != cursor->addr;
	uint32_t count = (uint32_t)(to - from) + carried;
	TRY(allocate(store, module, count, &first));

	uint32_t *word = word_at(store, first);
	if (carried)
		*word++ = from ? numbers[rows->row[from - 1].rule] : 0;
	for (size_t i = from; i < to; i++)
		*word++ = (uint32_t)(rows->row[i].addr & 0xffff) << 16 | numbers[rows->row[i].rule];
	word_at(store, cursor->entry)[0] = first;
	word_at(store, cursor->entry)[1] = count;
	cursor->next = to;
	cursor->addr = end;
	cursor->entry += 2;
	return NULL;
}

static struct error *load_pages(struct store *store, uint32_t module, const struct rows *rows,
				const uint16_t *numbers)
{
	uint64_t start = rows->text_start & ~(uint64_t)((1u << UNWIND_PAGE_BITS) - 1);
	uint64_t pages = ((rows->text_end - start) >> UNWIND_PAGE_BITS) + 1;
	struct page_cursor cursor = {.addr = start};
	uint32_t table;

	if (rows->text_end < rows->text_start || pages > PAGES_MAX)
		return error_new("text of 0x%llx bytes",
				 (unsigned long long)(rows->text_end - start));
	TRY(allocate(store, module, 2 * (uint32_t)pages, &table));
	cursor.entry = table;
	for (uint64_t i = 0; i < pages; i++)
		TRY(write_page(store, module, rows, numbers, &cursor));

	struct unwind_module *to = &store->options.modules[module];
	to->page_table = table;
	to->start = start;
	__atomic_store_n(&to->pages, (uint32_t)pages, __ATOMIC_RELEASE);
	return NULL;
}

/* Words that are free, or will be when their grace period is over. */
static uint64_t free_words(const struct store *store)
{
	uint64_t words = 0;

	for (size_t i = 0; i < store->free.count; i++)
		words += store->free.range[i].count;
	return words;
}

/* Evict for WORDS at once: each eviction on its own would wait for its grace period. */
static struct error *make_room(struct store *store, uint32_t module, uint64_t words)
{
	uint64_t unused = (uint64_t)(store->options.segments_max - store->segments)
			  << UNWIND_SEGMENT_BITS;
	bool evicted = false;

	if (words > (uint64_t)store->options.segments_max << UNWIND_SEGMENT_BITS)
		return error_new("unwind rows exceed the budget of %u MiB",
				 store->options.segments_max);
	while (free_words(store) + unused < words && evict_one(store, module))
		evicted = true;
	if (evicted)
		usleep(GRACE_NS / 1000 + 1000);
	return NULL;
}

struct error *store_load(struct store *store, uint32_t module, const struct rows *rows)
{
	_cleanup_free_ uint16_t *numbers = NULL;
	uint64_t pages = ((rows->text_end - rows->text_start) >> UNWIND_PAGE_BITS) + 2;

	store_unload(store, module);
	TRY(make_room(store, module, rows->count + 3 * pages));
	TRY(intern_rules(store, rows, &numbers));
	struct error *err = load_pages(store, module, rows, numbers);
	if (err) {
		store_unload(store, module);
		return err;
	}
	counter_add(store->options.counters, COUNTER_rows, rows->count);
	store_touch(store, module, clock_monotonic_ns());
	return NULL;
}
