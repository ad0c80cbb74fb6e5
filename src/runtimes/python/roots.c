// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python/roots.h"

enum {
	WORD = 8,
	SEARCHED_MAX = 16 << 20, /* bytes of data */
	READS_MAX = 1 << 18,
};

/* Go to the next page, leaving out what is not readable. False: that was all. */
static bool next_page(struct python_roots *roots)
{
	struct python_range *data = &roots->data;

	data->start = (data->start + WORD - 1) & ~(uint64_t)(WORD - 1);
	while (data->start < data->end && data->end - data->start >= WORD) {
		uint64_t addr = data->start, left = data->end - addr;
		uint64_t size = sizeof(roots->word) - addr % sizeof(roots->word);
		if (size > left)
			size = left & ~(uint64_t)(WORD - 1);
		data->start += size;
		if (memory_read(roots->memory, addr, roots->word, size))
			continue;
		roots->words_addr = addr;
		roots->words = size / WORD;
		roots->next = 0;
		return true;
	}
	return false;
}

static bool read_word(struct python_roots *roots, uint64_t addr, uint64_t *ret)
{
	return roots->reads++ < READS_MAX && !memory_read_u64(roots->memory, addr, ret);
}

/* On the heap: up to 3.10 interpreters and threads all are. */
static bool is_heap(const struct python_roots *roots, uint64_t addr)
{
	return addr >= 1 << 16 && addr < 1ull << 47 && !(addr % WORD) &&
	       (addr < roots->object.start || addr >= roots->object.end);
}

/* Has what is at ADDR a first thread that belongs to it? */
static bool is_interpreter(struct python_roots *roots, uint64_t addr)
{
	const struct python_offsets *at = roots->at;
	uint64_t next, thread, owner, ident;

	return is_heap(roots, addr) && read_word(roots, addr + at->interpreter_threads, &thread) &&
	       is_heap(roots, thread) && thread != addr &&
	       read_word(roots, thread + at->thread_interpreter, &owner) && owner == addr &&
	       read_word(roots, addr + at->interpreter_next, &next) &&
	       (!next || is_heap(roots, next)) &&
	       read_word(roots, thread + at->thread_id, &ident) && is_heap(roots, ident);
}

bool python_roots_next(struct python_roots *roots, uint64_t *ret)
{
	if (roots->data.end > roots->data.start + SEARCHED_MAX)
		roots->data.end = roots->data.start + SEARCHED_MAX;
	while (roots->reads < READS_MAX) {
		if (roots->next == roots->words && !next_page(roots))
			return false;
		size_t i = roots->next++;
		if (is_interpreter(roots, roots->word[i])) {
			*ret = roots->words_addr + i * WORD;
			return true;
		}
	}
	return false;
}
