/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/jitdump.h"

#include "symbolize/test-helpers.h"

/* A jitdump file being written, in either byte order. */
struct dump_writer {
	uint8_t data[8192];
	size_t size;
	bool big_endian;
};

static void put(struct dump_writer *w, unsigned width, uint64_t value)
{
	for (unsigned i = 0; i < width; i++)
		w->data[w->size++] = (uint8_t)(value >> 8 * (w->big_endian ? width - 1 - i : i));
}

static void put_text(struct dump_writer *w, const char *text)
{
	memcpy(w->data + w->size, text, strlen(text) + 1);
	w->size += strlen(text) + 1;
}

static void put_header(struct dump_writer *w, uint64_t flags)
{
	put(w, 4, 0x4a695444);
	put(w, 4, 1);
	put(w, 4, 40);
	put(w, 4, 62);
	put(w, 4, 0);
	put(w, 4, 42);
	put(w, 8, 1);
	put(w, 8, flags);
}

static void put_prefix(struct dump_writer *w, uint32_t id, size_t size, uint64_t time_ns)
{
	put(w, 4, id);
	put(w, 4, 16 + size);
	put(w, 8, time_ns);
}

static void put_load(struct dump_writer *w, uint64_t time_ns, uint64_t addr, uint64_t size,
		     const char *name)
{
	put_prefix(w, 0, 40 + strlen(name) + 1 + size, time_ns);
	put(w, 4, 42);
	put(w, 4, 42);
	put(w, 8, addr);
	put(w, 8, addr);
	put(w, 8, size);
	put(w, 8, 1);
	put_text(w, name);
	memset(w->data + w->size, 0xcc, size);
	w->size += size;
}

static void put_move(struct dump_writer *w, uint64_t time_ns, uint64_t from, uint64_t to,
		     uint64_t size)
{
	put_prefix(w, 1, 48, time_ns);
	put(w, 4, 42);
	put(w, 4, 42);
	put(w, 8, to);
	put(w, 8, from);
	put(w, 8, to);
	put(w, 8, size);
	put(w, 8, 1);
}

/* Two lines of one file, at ADDR and ADDR + 8. */
static void put_lines(struct dump_writer *w, uint64_t addr, const char *file)
{
	put_prefix(w, 2, 16 + 2 * 16 + strlen(file) + 1 + 2, 0);
	put(w, 8, addr);
	put(w, 8, 2);
	put(w, 8, addr);
	put(w, 4, 11);
	put(w, 4, 0);
	put_text(w, file);
	put(w, 8, addr + 8);
	put(w, 4, 12);
	put(w, 4, 0);
	put_text(w, "\xff");
}

static void put_sample(struct dump_writer *w, uint64_t flags)
{
	put_header(w, flags);
	put_load(w, 100, 0x1000, 0x40, "early");
	put_prefix(w, 4, 24 + 8, 110);
	for (int i = 0; i < 4; i++)
		put(w, 8, 8);
	put_lines(w, 0x1010, "lib/app.js");
	put_load(w, 200, 0x1010, 0x20, "late");
	put_load(w, 300, 0x3000, 0x10, "moves");
	put_move(w, 400, 0x3000, 0x4000, 0x10);
	put_prefix(w, 77, 8, 0); // a record of a kind to come
	put(w, 8, 0);
	put_load(w, 500, 0x5000, 0x10, "last");
}

static const char *name_at(const struct jitdump *dump, uint64_t pc, uint64_t time_ns)
{
	struct jitdump_found found;

	return jitdump_find(dump, pc, time_ns, &found) ? found.name : "none";
}

static void check_sample(const struct jitdump *dump)
{
	struct jitdump_found found;

	ASSERT_STREQ(name_at(dump, 0x1015, 150), "early");
	ASSERT_STREQ(name_at(dump, 0x1015, 99), "none");
	ASSERT_STREQ(name_at(dump, 0x1015, 200), "late");
	ASSERT_STREQ(name_at(dump, 0x1015, 0), "late");
	ASSERT_STREQ(name_at(dump, 0x1000, 250), "early");
	ASSERT_STREQ(name_at(dump, 0x1030, 250), "early");
	ASSERT_STREQ(name_at(dump, 0x1040, 250), "none");
	ASSERT_STREQ(name_at(dump, 0x3000, 399), "moves");
	ASSERT_STREQ(name_at(dump, 0x3000, 400), "none");
	ASSERT_STREQ(name_at(dump, 0x4000, 399), "none");
	ASSERT_STREQ(name_at(dump, 0x4000, 400), "moves");
	ASSERT_STREQ(name_at(dump, 0x5000, 0), "last");
	ASSERT_TRUE(jitdump_find(dump, 0x1012, 0, &found));
	ASSERT_STREQ(found.file, "lib/app.js");
	ASSERT_EQ(found.line, 11);
	ASSERT_EQ(found.start, 0x1010);
	ASSERT_TRUE(jitdump_find(dump, 0x1019, 0, &found));
	ASSERT_STREQ(found.file, "lib/app.js");
	ASSERT_EQ(found.line, 12);
	ASSERT_TRUE(jitdump_find(dump, 0x1001, 0, &found));
	ASSERT_TRUE(found.file == NULL && found.line == 0);
}

TEST(names_hold_from_their_load_on_in_both_byte_orders)
{
	for (int order = 0; order < 2; order++) {
		struct dump_writer w = {.big_endian = order};
		_cleanup_(jitdump_deinit) struct jitdump dump = JITDUMP_INIT;
		put_sample(&w, 0);
		_cleanup_close_ int fd = memory_file(w.data, w.size);
		ASSERT_OK(jitdump_update(&dump, fd, "jit-42.dump"));
		check_sample(&dump);
	}
}

TEST(times_of_another_clock_are_ignored)
{
	struct dump_writer w = {0};
	_cleanup_(jitdump_deinit) struct jitdump dump = JITDUMP_INIT;

	put_sample(&w, 1);
	_cleanup_close_ int fd = memory_file(w.data, w.size);
	ASSERT_OK(jitdump_update(&dump, fd, "jit-42.dump"));
	ASSERT_STREQ(name_at(&dump, 0x1015, 1), "late");
	ASSERT_STREQ(name_at(&dump, 0x3000, 1), "none");
	ASSERT_STREQ(name_at(&dump, 0x4000, 1), "moves");
}

TEST(a_growing_file_gives_the_same_names_in_pieces)
{
	struct dump_writer w = {0};

	put_sample(&w, 0);
	for (size_t step = 1; step < 200; step += 13) {
		_cleanup_(jitdump_deinit) struct jitdump dump = JITDUMP_INIT;
		_cleanup_close_ int fd = memory_file(w.data, 40);
		for (size_t at = 40; at < w.size; at += step) {
			size_t size = w.size - at < step ? w.size - at : step;
			ASSERT_EQ(write(fd, w.data + at, size), size);
			ASSERT_OK(jitdump_update(&dump, fd, "jit-42.dump"));
		}
		check_sample(&dump);
		ASSERT_EQ(dump.count, 5);
	}
}

TEST(nothing_is_read_behind_the_close_record)
{
	struct dump_writer w = {0};
	_cleanup_(jitdump_deinit) struct jitdump dump = JITDUMP_INIT;

	put_header(&w, 0);
	put_load(&w, 1, 0x1000, 16, "a");
	put_prefix(&w, 3, 0, 2);
	put_load(&w, 3, 0x2000, 16, "b");
	_cleanup_close_ int fd = memory_file(w.data, w.size);
	ASSERT_OK(jitdump_update(&dump, fd, "jit-42.dump"));
	ASSERT_STREQ(name_at(&dump, 0x1000, 0), "a");
	ASSERT_STREQ(name_at(&dump, 0x2000, 0), "none");
}

TEST(damage_is_told_with_its_offset_and_what_stands_before_stays)
{
	struct dump_writer w = {0};
	_cleanup_(jitdump_deinit) struct jitdump dump = JITDUMP_INIT;
	_cleanup_(jitdump_deinit) struct jitdump other = JITDUMP_INIT;

	put_header(&w, 0);
	put_load(&w, 1, 0x1000, 16, "a");
	put(&w, 4, 0);
	put(&w, 4, 15);
	put(&w, 8, 0);
	_cleanup_close_ int fd = memory_file(w.data, w.size);
	ASSERT_FAILS(jitdump_update(&dump, fd, "jit-42.dump"),
		     "jit-42.dump: offset 0x72: record of 15 bytes");
	ASSERT_STREQ(name_at(&dump, 0x1000, 0), "a");
	_cleanup_close_ int text = memory_file("ELF or whatever, but not that", 29);
	ASSERT_FAILS(jitdump_update(&other, text, "x"), "x: not a jitdump file");
}

TEST(a_place_loaded_very_often_gives_its_latest_name)
{
	_cleanup_(jitdump_deinit) struct jitdump dump = JITDUMP_INIT;
	_cleanup_close_ int fd = memory_file("", 0);
	struct dump_writer head = {0};

	put_header(&head, 0);
	ASSERT_EQ(write(fd, head.data, head.size), head.size);
	for (uint64_t i = 1; i <= 3000; i++) {
		struct dump_writer w = {0};
		char name[16];
		snprintf(name, sizeof(name), "n%d", (int)i);
		put_load(&w, i * 10, 0x1000 + i % 7, 0x100, name);
		ASSERT_EQ(write(fd, w.data, w.size), w.size);
	}
	ASSERT_OK(jitdump_update(&dump, fd, "jit-42.dump"));
	ASSERT_STREQ(name_at(&dump, 0x1050, 0), "n3000");
	ASSERT_STREQ(name_at(&dump, 0x1050, 12345), "n1234");
	ASSERT_STREQ(name_at(&dump, 0x1105, 0), "n2995"); // only those at 0x1006 reach it
}

TEST(every_truncation_and_many_bit_flips_are_survived)
{
	struct dump_writer w = {0};
	uint64_t seed = 3;

	put_sample(&w, 0);
	for (size_t round = 0; round < w.size + 3000; round++) {
		_cleanup_(jitdump_deinit) struct jitdump dump = JITDUMP_INIT;
		struct dump_writer damaged = w;
		if (round < w.size)
			damaged.size = round;
		for (int i = 0; round >= w.size && i < 4; i++)
			damaged.data[next_random(&seed) % w.size] ^=
				(uint8_t)(1 << next_random(&seed) % 8);
		_cleanup_close_ int fd = memory_file(damaged.data, damaged.size);
		error_free(jitdump_update(&dump, fd, "x")); // may fail, must not crash
		name_at(&dump, 0x1015, 0);
		name_at(&dump, 0x5000, 450);
	}
}

RUN_TESTS(UNIT_TEST(names_hold_from_their_load_on_in_both_byte_orders),
	  UNIT_TEST(times_of_another_clock_are_ignored),
	  UNIT_TEST(a_growing_file_gives_the_same_names_in_pieces),
	  UNIT_TEST(nothing_is_read_behind_the_close_record),
	  UNIT_TEST(damage_is_told_with_its_offset_and_what_stands_before_stays),
	  UNIT_TEST(a_place_loaded_very_often_gives_its_latest_name),
	  UNIT_TEST(every_truncation_and_many_bit_flips_are_survived))
