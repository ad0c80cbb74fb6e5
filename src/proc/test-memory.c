/* SPDX-License-Identifier: Apache-2.0 */
/* Windows, pages and several reads at once, over memory that has holes. */
#include "proc/memory.h"

#include "base/array.h"
#include "unit.h"

enum { HERE = 0x10000, PAGE = 4096, PAGES = 8 };

/* Pages from HERE on, some of which cannot be read; every byte is told by its address. */
struct holes {
	bool hole[PAGES];
	uint64_t end; /* 0: behind all pages */
	unsigned calls;
};

static uint8_t byte_at(uint64_t addr)
{
	return (uint8_t)(addr * 7 + (addr >> 8));
}

static int holes_read(void *context, uint64_t addr, void *to, size_t size)
{
	struct holes *holes = context;
	uint8_t *at = to;

	holes->calls++;
	if (holes->end && addr + size > holes->end)
		return -1;
	if (addr < HERE || addr - HERE > PAGES * PAGE || size > PAGES * PAGE - (addr - HERE))
		return -1;
	for (size_t i = 0; i < size; i++) {
		if (holes->hole[(addr + i - HERE) / PAGE])
			return -1;
		at[i] = byte_at(addr + i);
	}
	return 0;
}

static bool holds(const uint8_t *data, uint64_t addr, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (data[i] != byte_at(addr + i))
			return false;
	return true;
}

TEST(each_of_several_reads_says_whether_it_was_read)
{
	struct holes holes = {.hole = {[2] = true}};
	struct memory memory = {.read = holes_read, .context = &holes};
	uint8_t data[4][16];
	struct memory_item items[] = {
		{HERE, data[0], 16, false},
		{HERE + 2 * PAGE - 8, data[1], 16, true},
		{HERE + 3 * PAGE, data[2], 16, false},
		{HERE + 2 * PAGE, data[3], 0, false},
	};

	ASSERT_EQ(memory_read_many(&memory, items, ARRAY_COUNT(items)), 3);
	ASSERT_TRUE(items[0].read && !items[1].read && items[2].read && items[3].read);
	ASSERT_TRUE(holds(data[0], HERE, 16) && holds(data[2], HERE + 3 * PAGE, 16));
	ASSERT_EQ(memory_read_many(&memory, items, 0), 0);
}

TEST(a_window_answers_what_lies_inside_and_asks_for_the_rest)
{
	struct holes holes = {0};
	struct memory memory = {.read = holes_read, .context = &holes};
	_cleanup_(memory_window_deinit) struct memory_window window = MEMORY_WINDOW_INIT;
	uint8_t data[64];

	ASSERT_OK(memory_window_init(&window, &memory, 3 * PAGE));
	struct memory through = memory_window_memory(&window);
	ASSERT_OK(memory_read(&through, HERE, data, 8) ? error_new("unreadable") : NULL);
	ASSERT_EQ(holes.calls, 1);

	ASSERT_EQ(memory_window_fill(&window, HERE + 100, 100 * PAGE), 3 * PAGE);
	ASSERT_EQ(holes.calls, 2);
	const uint64_t first = HERE + 100, end = first + 3 * PAGE;
	ASSERT_EQ(memory_read(&through, first, data, 64), 0);
	ASSERT_EQ(memory_read(&through, end - 64, data, 64), 0);
	ASSERT_TRUE(holds(data, end - 64, 64));
	ASSERT_EQ(holes.calls, 2);
	ASSERT_EQ(memory_read(&through, first - 1, data, 64), 0);
	ASSERT_EQ(memory_read(&through, end - 63, data, 64), 0);
	ASSERT_TRUE(holds(data, end - 63, 64));
	ASSERT_EQ(holes.calls, 4);
	ASSERT_EQ(memory_read(&through, UINT64_MAX - 3, data, 64), -1);
	ASSERT_EQ(memory_read(&through, first, data, SIZE_MAX), -1);
}

TEST(a_window_ends_at_the_first_page_that_cannot_be_read)
{
	struct holes holes = {.hole = {[3] = true}};
	struct memory memory = {.read = holes_read, .context = &holes};
	_cleanup_(memory_window_deinit) struct memory_window window = MEMORY_WINDOW_INIT;
	uint8_t data[16];

	ASSERT_OK(memory_window_init(&window, &memory, PAGES * PAGE));
	ASSERT_EQ(memory_window_fill(&window, HERE + 16, PAGES * PAGE), 3 * PAGE - 16);
	ASSERT_TRUE(holds(window.data, HERE + 16, 3 * PAGE - 16));
	struct memory through = memory_window_memory(&window);
	ASSERT_EQ(memory_read(&through, HERE + 3 * PAGE - 8, data, 16), -1);
	ASSERT_EQ(memory_read(&through, HERE + 4 * PAGE, data, 16), 0);

	ASSERT_EQ(memory_window_fill(&window, HERE + 3 * PAGE, PAGE), 0);
	unsigned calls = holes.calls;
	ASSERT_EQ(memory_read(&through, HERE + 16, data, 16), 0);
	ASSERT_EQ(holes.calls, calls + 1);
	ASSERT_EQ(memory_window_fill(&window, UINT64_MAX - 5, PAGE), 0);
	ASSERT_EQ(memory_window_fill(&window, HERE, 0), 0);
}

TEST(a_page_is_read_once_until_it_is_forgotten)
{
	struct holes holes = {.hole = {[3] = true}};
	struct memory memory = {.read = holes_read, .context = &holes};
	_cleanup_(memory_pages_deinit) struct memory_pages pages = MEMORY_PAGES_INIT;
	uint8_t data[2 * PAGE];

	ASSERT_OK(memory_pages_init(&pages, &memory));
	struct memory through = memory_pages_memory(&pages);
	for (uint64_t addr = HERE + 5; addr < HERE + 2 * PAGE - 16; addr += 100) {
		ASSERT_EQ(memory_read(&through, addr, data, 16), 0);
		ASSERT_TRUE(holds(data, addr, 16));
	}
	ASSERT_EQ(holes.calls, 2);
	memory_pages_forget(&pages);
	ASSERT_EQ(memory_read(&through, HERE + PAGE - 8, data, 16), 0);
	ASSERT_TRUE(holds(data, HERE + PAGE - 8, 16));
	ASSERT_EQ(holes.calls, 4);

	// More than a page is not kept, and what runs into a hole is not there.
	ASSERT_EQ(memory_read(&through, HERE, data, 2 * PAGE), 0);
	ASSERT_TRUE(holds(data, HERE, 2 * PAGE));
	ASSERT_EQ(memory_read(&through, HERE + 3 * PAGE - 8, data, 16), -1);
	ASSERT_EQ(memory_read(&through, HERE + 3 * PAGE, data, 16), -1);
	ASSERT_EQ(memory_read(&through, HERE + 4 * PAGE - 8, data, 16), -1);
	ASSERT_EQ(memory_read(&through, HERE + 4 * PAGE, data, PAGE), 0);
	ASSERT_EQ(memory_read(&through, UINT64_MAX - 3, data, 16), -1);
	ASSERT_EQ(memory_read(&through, HERE, data, 0), 0);
}

TEST(a_part_of_a_page_is_read_where_there_is_no_more)
{
	struct holes holes = {0};
	struct memory memory = {.read = holes_read, .context = &holes};
	_cleanup_(memory_pages_deinit) struct memory_pages pages = MEMORY_PAGES_INIT;
	const uint64_t end = HERE + PAGES * PAGE;
	uint8_t data[16];

	holes.end = end - 100;
	ASSERT_OK(memory_pages_init(&pages, &memory));
	struct memory through = memory_pages_memory(&pages);
	ASSERT_EQ(memory_read(&through, end - PAGE, data, 16), 0);
	ASSERT_TRUE(holds(data, end - PAGE, 16));
	ASSERT_EQ(memory_read(&through, end - 116, data, 16), 0);
	ASSERT_EQ(memory_read(&through, end - 115, data, 16), -1);
}

RUN_TESTS(UNIT_TEST(each_of_several_reads_says_whether_it_was_read),
	  UNIT_TEST(a_window_answers_what_lies_inside_and_asks_for_the_rest),
	  UNIT_TEST(a_window_ends_at_the_first_page_that_cannot_be_read),
	  UNIT_TEST(a_page_is_read_once_until_it_is_forgotten),
	  UNIT_TEST(a_part_of_a_page_is_read_where_there_is_no_more))
