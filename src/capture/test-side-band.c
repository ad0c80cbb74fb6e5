/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/side-band.h"

#include <linux/perf_event.h>
#include <stdlib.h>

#include "base/array.h"
#include "unit.h"

/* A record being put together. */
struct record {
	_Alignas(8) uint8_t data[512];
	size_t size;
};

static void put(struct record *record, const void *data, size_t size)
{
	memcpy(record->data + record->size, data, size);
	record->size += size;
}

static void put_u32(struct record *record, uint32_t value)
{
	put(record, &value, sizeof(value));
}

static void put_u64(struct record *record, uint64_t value)
{
	put(record, &value, sizeof(value));
}

/* A NUL-terminated text, padded to 8 bytes as the kernel does. */
static void put_text(struct record *record, const char *text)
{
	size_t size = (strlen(text) + 8) & ~(size_t)7;
	char padded[256] = {0};

	memcpy(padded, text, strlen(text));
	put(record, padded, size);
}

static struct record begin(void)
{
	return (struct record){.size = sizeof(struct perf_event_header)};
}

/* Append the sample id and write the header. */
static const struct perf_event_header *end(struct record *record, uint32_t type, uint16_t misc,
					   uint64_t time_ns)
{
	struct perf_event_header header = {.type = type, .misc = misc};

	put_u64(record, 0); // pid, tid
	put_u64(record, time_ns);
	put_u64(record, 0); // cpu
	header.size = (uint16_t)record->size;
	memcpy(record->data, &header, sizeof(header));
	return (const struct perf_event_header *)(const void *)record->data;
}

static struct error *enter_exec(struct side_band *side, uint32_t pid, const char *name,
				uint64_t time_ns)
{
	struct record record = begin();

	put_u32(&record, pid);
	put_u32(&record, pid);
	put_text(&record, name);
	return side_band_enter(side,
			       end(&record, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, time_ns));
}

static void put_map_start(struct record *record)
{
	put_u32(record, 7);
	put_u32(record, 8);
	put_u64(record, 0x1000);
	put_u64(record, 0x2000);
	put_u64(record, 0x4000);
}

TEST(events_come_in_the_order_of_time_and_not_before_they_may)
{
	static const uint64_t times[] = {30, 10, 20, 50};
	struct counters counters = {0};
	struct side_band *side;

	ASSERT_OK(side_band_new(1 << 20, &counters, &side));
	for (size_t i = 0; i < ARRAY_COUNT(times); i++)
		ASSERT_OK(enter_exec(side, (uint32_t)times[i], "x", times[i]));
	for (uint64_t want = 10; want <= 30; want += 10)
		ASSERT_EQ(side_band_next(side, 40)->time_ns, want);
	ASSERT_TRUE(side_band_next(side, 40) == NULL);
	ASSERT_OK(side_band_forget(side));
	// What was left keeps its text, and younger events join it in order.
	ASSERT_OK(enter_exec(side, 45, "later", 45));
	ASSERT_STREQ(side_band_next(side, 100)->text, "later");
	ASSERT_STREQ(side_band_next(side, 100)->text, "x");
	side_band_free(side);
}

TEST(a_mapping_names_its_file_by_build_id_or_by_inode)
{
	struct counters counters = {0};
	struct side_band *side;
	struct record record = begin();

	ASSERT_OK(side_band_new(1 << 20, &counters, &side));
	put_map_start(&record);
	put_u32(&record, 20); // size of the build id, and padding
	for (uint32_t i = 0; i < 5; i++)
		put_u32(&record, 0x01010101 * (i + 1));
	put_u64(&record, 0);
	put_text(&record, "/usr/lib/libc.so.6");
	ASSERT_OK(side_band_enter(
		side, end(&record, PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID, 1)));
	const struct side_event *event = side_band_next(side, 1);
	ASSERT_EQ(event->kind, SIDE_map);
	ASSERT_EQ(event->pid, 7);
	ASSERT_EQ(event->start, 0x1000);
	ASSERT_EQ(event->end, 0x3000);
	ASSERT_EQ(event->offset, 0x4000);
	ASSERT_EQ(event->build_id.length, 20);
	ASSERT_EQ(event->build_id.data[19], 5);
	ASSERT_STREQ(event->text, "/usr/lib/libc.so.6");

	record = begin();
	put_map_start(&record);
	put_u64(&record, 8); // device
	put_u64(&record, 4711);
	put_u64(&record, 0); // generation
	put_u64(&record, 0); // protection, flags
	put_text(&record, "//anon");
	ASSERT_OK(side_band_enter(side, end(&record, PERF_RECORD_MMAP2, 0, 2)));
	event = side_band_next(side, 2);
	ASSERT_EQ(event->inode, 4711);
	ASSERT_EQ(event->build_id.length, 0);
	side_band_free(side);
}

TEST(a_rename_without_exec_and_foreign_records_are_skipped)
{
	struct counters counters = {0};
	struct side_band *side;
	struct record record = begin();

	ASSERT_OK(side_band_new(1 << 20, &counters, &side));
	put_u64(&record, 7);
	put_text(&record, "renamed");
	ASSERT_OK(side_band_enter(side, end(&record, PERF_RECORD_COMM, 0, 1)));
	record = begin();
	ASSERT_OK(side_band_enter(side, end(&record, PERF_RECORD_THROTTLE, 0, 1)));
	ASSERT_TRUE(side_band_next(side, UINT64_MAX) == NULL);
	side_band_free(side);
}

TEST(lost_records_are_counted_by_the_number_the_kernel_gives)
{
	struct counters counters = {0};
	struct side_band *side;
	struct record record = begin();

	ASSERT_OK(side_band_new(1 << 20, &counters, &side));
	put_u64(&record, 1);
	put_u64(&record, 42);
	ASSERT_OK(side_band_enter(side, end(&record, PERF_RECORD_LOST, 0, 1)));
	ASSERT_EQ(counters.value[COUNTER_side_band_lost], 42);
	side_band_free(side);
}

TEST(a_record_cut_short_fails_and_says_where)
{
	struct counters counters = {0};
	struct side_band *side;
	struct record whole = begin();

	ASSERT_OK(side_band_new(1 << 20, &counters, &side));
	put_map_start(&whole);
	put_u64(&whole, 0);
	put_u64(&whole, 0);
	put_u64(&whole, 0);
	put_u64(&whole, 0);
	put_text(&whole, "/a");
	for (size_t size = sizeof(struct perf_event_header); size < whole.size; size += 8) {
		struct record cut = whole;
		cut.size = size;
		// The sample id takes the place of what is missing; a path of zeros is a path.
		struct error *err = side_band_enter(side, end(&cut, PERF_RECORD_MMAP2, 0, 1));
		if (size < whole.size - 24)
			ASSERT_TRUE(err && strstr(error_text(err), "side-band record: offset"));
		error_free(err);
	}
	side_band_free(side);
}

RUN_TESTS(UNIT_TEST(events_come_in_the_order_of_time_and_not_before_they_may),
	  UNIT_TEST(a_mapping_names_its_file_by_build_id_or_by_inode),
	  UNIT_TEST(a_rename_without_exec_and_foreign_records_are_skipped),
	  UNIT_TEST(lost_records_are_counted_by_the_number_the_kernel_gives),
	  UNIT_TEST(a_record_cut_short_fails_and_says_where))
