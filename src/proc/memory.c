/* SPDX-License-Identifier: Apache-2.0 */
/* Several reads at once, windows and pages: what all kinds of memory have in common. */
#include "proc/memory.h"

#include <string.h>

#include "base/array.h"

enum {
	PAGE = 4096,
	PAGES_AT_ONCE = 64,
	PAGES_KEPT = 64, /* a stack of 20 Python functions is on some 12 */
};

struct memory_page {
	bool held;
	uint64_t addr;
	uint8_t data[PAGE];
};

size_t memory_read_many(const struct memory *memory, struct memory_item *items, size_t count)
{
	size_t read = 0;

	if (memory->read_many)
		memory->read_many(memory->context, items, count);
	for (size_t i = 0; i < count; i++) {
		struct memory_item *item = &items[i];
		if (!memory->read_many)
			item->read = !memory_read(memory, item->addr, item->to, item->size);
		read += item->read;
	}
	return read;
}

struct error *memory_window_init(struct memory_window *window, const struct memory *from,
				 size_t room)
{
	if (room > MEMORY_WINDOW_MAX)
		room = MEMORY_WINDOW_MAX;
	uint8_t *data = malloc(room ? room : 1);
	if (!data)
		return error_oom();
	*window = (struct memory_window){.from = *from, .data = data, .room = room};
	return NULL;
}

void memory_window_deinit(struct memory_window *window)
{
	free(window->data);
	*window = (struct memory_window)MEMORY_WINDOW_INIT;
}

/* Bytes from ADDR to the end of its page, or SIZE if that is less. */
static size_t up_to_page_end(uint64_t addr, size_t size)
{
	size_t rest = PAGE - (size_t)(addr & (PAGE - 1));

	return rest < size ? rest : size;
}

/* Read SIZE bytes at ADDR page by page. Returns how many there are before the first bad one. */
static size_t read_pages(const struct memory *from, uint64_t addr, uint8_t *to, size_t size)
{
	struct memory_item items[PAGES_AT_ONCE];
	size_t done = 0, count, read;

	do {
		size_t asked = 0;
		for (count = 0; count < PAGES_AT_ONCE && done + asked < size; count++) {
			uint64_t at = addr + done + asked;
			size_t piece = up_to_page_end(at, size - done - asked);
			items[count] = (struct memory_item){
				.addr = at, .to = to + done + asked, .size = (uint32_t)piece};
			asked += piece;
		}
		memory_read_many(from, items, count);
		for (read = 0; read < count && items[read].read; read++)
			done += items[read].size;
	} while (count && read == count && done < size);
	return done;
}

size_t memory_window_fill(struct memory_window *window, uint64_t addr, size_t size)
{
	window->size = 0;
	if (size > window->room)
		size = window->room;
	if (size > UINT64_MAX - addr)
		size = UINT64_MAX - addr;
	if (!size)
		return 0;

	bool whole = !memory_read(&window->from, addr, window->data, size);
	window->start = addr;
	window->size = whole ? size : read_pages(&window->from, addr, window->data, size);
	return window->size;
}

/* The place of ADDR in the copy; NULL: not all SIZE bytes from there on are in it. */
static const uint8_t *in_window(const struct memory_window *window, uint64_t addr, size_t size)
{
	uint64_t skip = addr - window->start;

	if (addr < window->start || skip > window->size || size > window->size - skip)
		return NULL;
	return window->data + skip;
}

static int window_read(void *context, uint64_t addr, void *to, size_t size)
{
	const struct memory_window *window = context;
	const uint8_t *held = in_window(window, addr, size);

	if (!held)
		return memory_read(&window->from, addr, to, size);
	memcpy(to, held, size);
	return 0;
}

struct memory memory_window_memory(struct memory_window *window)
{
	return (struct memory){.read = window_read, .context = window};
}

/* --- pages */

struct error *memory_pages_init(struct memory_pages *pages, const struct memory *from)
{
	struct memory_page *page;

	TRY(ARRAY_NEW(page, PAGES_KEPT));
	*pages = (struct memory_pages){.from = *from, .page = page};
	return NULL;
}

void memory_pages_deinit(struct memory_pages *pages)
{
	free(pages->page);
	*pages = (struct memory_pages)MEMORY_PAGES_INIT;
}

void memory_pages_forget(struct memory_pages *pages)
{
	for (size_t i = 0; i < PAGES_KEPT; i++)
		pages->page[i].held = false;
}

/* The copy of the page at ADDR; NULL: it cannot be read as a whole. */
static const struct memory_page *hold_page(struct memory_pages *pages, uint64_t addr)
{
	struct memory_page *page = &pages->page[addr / PAGE % PAGES_KEPT];

	if (page->held && page->addr == addr)
		return page;
	page->addr = addr;
	page->held = !memory_read(&pages->from, addr, page->data, PAGE);
	return page->held ? page : NULL;
}

static int pages_read(void *context, uint64_t addr, void *to, size_t size)
{
	struct memory_pages *pages = context;
	uint8_t *at = to;

	// What is large is read once and is not read again.
	if (size > PAGE || size > UINT64_MAX - addr)
		return memory_read(&pages->from, addr, to, size);
	while (size) {
		size_t piece = up_to_page_end(addr, size), skip = addr & (PAGE - 1);
		const struct memory_page *page = hold_page(pages, addr - skip);
		// A core file may hold a part of a page.
		if (!page && memory_read(&pages->from, addr, at, piece))
			return -1;
		if (page)
			memcpy(at, page->data + skip, piece);
		at += piece;
		addr += piece;
		size -= piece;
	}
	return 0;
}

struct memory memory_pages_memory(struct memory_pages *pages)
{
	return (struct memory){.read = pages_read, .context = pages};
}
