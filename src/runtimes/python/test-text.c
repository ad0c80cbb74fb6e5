/* SPDX-License-Identifier: Apache-2.0 */
/* Strings as no interpreter makes them; test-code.c has those of real ones. */
#include "runtimes/python/text.h"

#include "base/array.h"
#include "unit.h"

enum { BASE = 0x10000, STRING = 0x100, TYPE = 0x200, DATA = 0x300, IMAGE = 0x1000 };
enum { UNICODE = 1 << 28, BYTES = 1 << 27 };

/* Memory that is IMAGE bytes at BASE, and how many of its reads succeed. */
struct image {
	uint8_t data[IMAGE];
	struct python_offsets at;
	struct memory memory;
	long reads, reads_max;
	size_t longest; /* read there was */
};

static int image_read(void *context, uint64_t addr, void *to, size_t size)
{
	struct image *image = context;

	image->longest = size > image->longest ? size : image->longest;
	if (image->reads++ >= image->reads_max)
		return -1;
	if (addr < BASE || addr - BASE > IMAGE || size > IMAGE - (addr - BASE))
		return -1;
	memcpy(to, image->data + (addr - BASE), size);
	return 0;
}

static void put(struct image *image, uint32_t at, uint32_t offset, uint64_t value)
{
	ASSERT_TRUE(offset != PYTHON_ABSENT);
	memcpy(image->data + at + offset, &value, sizeof(value));
}

/* A string of VERSION whose type has FLAGS. */
static void image_init(struct image *image, uint16_t version, uint64_t flags)
{
	*image = (struct image){.reads_max = INT32_MAX};
	image->memory = (struct memory){.read = image_read, .context = image};
	ASSERT_TRUE(python_offsets_find(version, PYTHON_BUILD_PLAIN, &image->at));
	image->at.unicode_width = version < 0x0300 ? 2 : 0;
	put(image, STRING, image->at.object_type, BASE + TYPE);
	put(image, TYPE, image->at.type_flags, flags);
}

/* A compact string of 3 and later. */
static void make_compact(struct image *image, uint32_t kind, uint64_t length, const void *data,
			 size_t size)
{
	const struct python_offsets *at = &image->at;

	image_init(image, 0x030c, UNICODE);
	uint32_t state = kind << at->unicode_kind_bit | 1u << at->unicode_compact_bit;
	put(image, STRING, at->unicode_state, state);
	put(image, STRING, at->unicode_length, length);
	memcpy(image->data + STRING + at->unicode_compact_data, data, size);
}

static enum python_text read_text(struct image *image, char *ret, size_t size)
{
	return python_text_read(&image->memory, &image->at, BASE + STRING, ret, size);
}

TEST(a_length_that_lies_costs_as_much_as_the_room)
{
	static const uint64_t lengths[] = {100 << 20, 1ull << 62, INT64_MAX};
	char text[64], ascii[128];
	struct image image;

	memset(ascii, 'a', sizeof(ascii));
	for (size_t i = 0; i < ARRAY_COUNT(lengths); i++) {
		make_compact(&image, 1, lengths[i], ascii, sizeof(ascii));
		ASSERT_EQ(read_text(&image, text, sizeof(text)), PYTHON_TEXT_read);
		ASSERT_TRUE(image.longest <= sizeof(text));
		ASSERT_EQ(strlen(text), sizeof(text) - 1);
		ASSERT_STREQ(text + sizeof(text) - 4, "\u2026");
	}
	make_compact(&image, 1, 1ull << 63, ascii, sizeof(ascii));
	ASSERT_EQ(read_text(&image, text, sizeof(text)), PYTHON_TEXT_not_a_string);
}

TEST(a_cut_text_ends_between_characters)
{
	static const struct {
		const char *text;
		size_t size;
		const char *shown;
	} cases[] = {
		{"abc", 4, "abc"},
		{"abcd", 4, "\u2026"},
		{"abcde", 5, "a\u2026"},
		{"a\xc3\xa9xyz", 5, "a\u2026"},
		{"a\xc3\xa9xyz", 6, "a\u2026"},
		{"a\xc3\xa9xyz", 7, "a\xc3\xa9xyz"},
		{"a\xf0\x9d\x92\xb3xyz", 8, "a\u2026"},
		{"\xff\xff", 8, "\\xff\u2026"},
		{"\xff\xff", 9, "\\xff\\xff"},
		{"\xe2\x82", 16, "\\xe2\\x82"},
		{"\xef\xbf\xbd", 16, "\xef\xbf\xbd"},
		{"\xed\xa0\x80", 32, "\\xed\\xa0\\x80"},
	};

	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct image image;
		char text[64];
		memset(text, '#', sizeof(text));
		image_init(&image, 0x0207, BYTES);
		put(&image, STRING, image.at.bytes_size, strlen(cases[i].text));
		memcpy(image.data + STRING + image.at.bytes_data, cases[i].text,
		       strlen(cases[i].text));
		ASSERT_EQ(read_text(&image, text, cases[i].size), PYTHON_TEXT_read);
		ASSERT_STREQ(text, cases[i].shown);
		ASSERT_EQ(text[cases[i].size], '#');
	}
}

TEST(characters_that_are_none_are_escaped)
{
	static const uint32_t codes[] = {'a', 0x110000, 0xffffffff, 0xdfff, 0x10ffff};
	static const uint32_t kinds[] = {0, 3, 5, 6, 7};
	struct image image;
	char text[64];

	make_compact(&image, 4, ARRAY_COUNT(codes), codes, sizeof(codes));
	ASSERT_EQ(read_text(&image, text, sizeof(text)), PYTHON_TEXT_read);
	ASSERT_STREQ(text, "a\\U00110000\\Uffffffff\\udfff\xf4\x8f\xbf\xbf");
	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
		make_compact(&image, kinds[i], 1, codes, sizeof(codes));
		ASSERT_EQ(read_text(&image, text, sizeof(text)), PYTHON_TEXT_not_a_string);
	}
}

TEST(half_a_pair_stays_half_a_pair)
{
	static const uint16_t units[] = {0xd835, 0xdcb3, 0xdcb3, 0xd835, 'a', 0xd835};
	struct image image;
	char text[64];

	image_init(&image, 0x0207, UNICODE);
	put(&image, STRING, image.at.unicode_length, ARRAY_COUNT(units));
	put(&image, STRING, image.at.unicode_data, BASE + DATA);
	memcpy(image.data + DATA, units, sizeof(units));
	ASSERT_EQ(read_text(&image, text, sizeof(text)), PYTHON_TEXT_read);
	ASSERT_STREQ(text, "\xf0\x9d\x92\xb3\\udcb3\\ud835a\\ud835");
	image.at.unicode_width = 0;
	ASSERT_EQ(read_text(&image, text, sizeof(text)), PYTHON_TEXT_not_a_string);
}

/* Three reads find a string, and one reads it; whichever fails first, there is no text. */
static void check_failures(struct image *image)
{
	char text[64] = "?";
	long needed = 0;

	for (enum python_text outcome = PYTHON_TEXT_unreadable; outcome; needed++) {
		ASSERT_TRUE(needed < 10);
		image->reads = 0;
		image->reads_max = needed;
		outcome = read_text(image, text, sizeof(text));
		ASSERT_TRUE(outcome == PYTHON_TEXT_unreadable || outcome == PYTHON_TEXT_read);
		ASSERT_EQ(!*text, outcome != PYTHON_TEXT_read);
	}
	ASSERT_TRUE(needed > 4);
}

TEST(whichever_read_fails_the_text_is_unreadable)
{
	static const uint16_t versions[] = {0x0207, 0x0306, 0x030b, 0x030c, 0x030e};
	struct image image;

	for (size_t i = 0; i < ARRAY_COUNT(versions); i++) {
		// Not compact, and of kind 0 where there is one: what takes most reads.
		image_init(&image, versions[i], UNICODE);
		bool wide = image.at.unicode_wstr != PYTHON_ABSENT;
		put(&image, STRING, image.at.unicode_length, 4);
		if (image.at.unicode_state != PYTHON_ABSENT)
			put(&image, STRING, image.at.unicode_state,
			    wide ? 0 : 1u << image.at.unicode_kind_bit);
		put(&image, STRING, wide ? image.at.unicode_wstr : image.at.unicode_data,
		    BASE + DATA);
		if (wide)
			put(&image, STRING, image.at.unicode_wstr_length, 4);
		memset(image.data + DATA, 'a', 4);
		check_failures(&image);
	}
}

TEST(a_layout_without_the_members_gives_no_text)
{
	struct image image;
	char text[64];

	make_compact(&image, 1, 4, "abcd", 4);
	ASSERT_EQ(read_text(&image, text, sizeof(text)), PYTHON_TEXT_read);
	image.at.unicode_kind_bit = PYTHON_ABSENT;
	ASSERT_EQ(read_text(&image, text, sizeof(text)), PYTHON_TEXT_not_a_string);
	image.at.unicode_state = PYTHON_ABSENT;
	ASSERT_EQ(read_text(&image, text, sizeof(text)), PYTHON_TEXT_unreadable);
	image.at.object_type = PYTHON_ABSENT;
	ASSERT_EQ(read_text(&image, text, sizeof(text)), PYTHON_TEXT_unreadable);
}

RUN_TESTS(UNIT_TEST(a_length_that_lies_costs_as_much_as_the_room),
	  UNIT_TEST(a_cut_text_ends_between_characters),
	  UNIT_TEST(characters_that_are_none_are_escaped), UNIT_TEST(half_a_pair_stays_half_a_pair),
	  UNIT_TEST(whichever_read_fails_the_text_is_unreadable),
	  UNIT_TEST(a_layout_without_the_members_gives_no_text))
