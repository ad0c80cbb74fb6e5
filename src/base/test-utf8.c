/* SPDX-License-Identifier: Apache-2.0 */
/* Well-formed and ill-formed sequences, the latter as in the Unicode Standard, section 3.9. */
#include "base/utf8.h"

#include "unit.h"

TEST(every_code_point_survives_being_written_and_read)
{
	char text[4];

	for (uint32_t code = 0; code <= 0x10ffff; code++) {
		if (code >= 0xd800 && code <= 0xdfff)
			continue;
		struct bytes b = bytes_over(text, utf8_encode(code, text), "text");
		ASSERT_EQ(utf8_next(&b), code);
		ASSERT_EQ(bytes_left(&b), 0);
	}
}

TEST(what_is_no_utf8_is_replaced_part_by_part)
{
	enum { BAD = UTF8_BAD };
	static const struct {
		const char *text;
		uint32_t codes[9]; /* up to a 0 */
	} rows[] = {
		{"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41",
		 {BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, 'A'}},
		{"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41",
		 {BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, 'A'}},
		{"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42",
		 {BAD, BAD, BAD, BAD, BAD, 'A', BAD, BAD, 'B'}},
		{"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", {BAD, BAD, BAD, BAD, 'A'}},
		{"\xe2\x82\xac\xe2\x82", {0x20ac, BAD}},
		{"\xf0\x9f\x94\xa5\xf0\x9f\x94", {0x1f525, BAD}},
		{"\xc3", {BAD}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bytes b = bytes_over(rows[i].text, strlen(rows[i].text), "text");
		for (size_t at = 0; at < 9 && rows[i].codes[at]; at++)
			ASSERT_EQ(utf8_next(&b), rows[i].codes[at]);
		ASSERT_EQ(bytes_left(&b), 0);
	}
}

RUN_TESTS(UNIT_TEST(every_code_point_survives_being_written_and_read),
	  UNIT_TEST(what_is_no_utf8_is_replaced_part_by_part))
