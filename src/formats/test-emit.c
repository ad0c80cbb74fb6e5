/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text, character by character. */
#include "formats/emit.h"

#include <stdlib.h>

#include "unit.h"

struct page {
	char *text;
	size_t size;
	FILE *stream;
	struct emit emit;
};

static void page_open(struct page *page, enum emit_mode mode)
{
	page->stream = open_memstream(&page->text, &page->size);
	ASSERT_TRUE(page->stream != NULL);
	page->emit = emit_to(page->stream, mode);
}

static void page_check(struct page *page, const char *expected)
{
	ASSERT_EQ(fclose(page->stream), 0);
	ASSERT_STREQ(page->text, expected);
	free(page->text);
}

TEST(members_and_items_are_separated_on_every_level)
{
	struct page page;

	page_open(&page, EMIT_utf8);
	emit_object(&page.emit, NULL);
	emit_number(&page.emit, "a", 0);
	emit_array(&page.emit, "b");
	emit_array(&page.emit, NULL);
	emit_array_end(&page.emit);
	emit_object(&page.emit, NULL);
	emit_null(&page.emit, "c");
	emit_object_end(&page.emit);
	emit_bool(&page.emit, NULL, true);
	emit_array_end(&page.emit);
	emit_bool(&page.emit, "d", false);
	emit_object(&page.emit, "e");
	emit_object_end(&page.emit);
	emit_object_end(&page.emit);
	page_check(&page, "{\"a\":0,\"b\":[[],{\"c\":null},true],\"d\":false,\"e\":{}}");
}

TEST(numbers_are_written_whole)
{
	struct page page;

	page_open(&page, EMIT_utf8);
	emit_array(&page.emit, NULL);
	emit_number(&page.emit, NULL, UINT64_MAX);
	emit_signed(&page.emit, NULL, INT64_MIN);
	emit_signed(&page.emit, NULL, -1);
	emit_signed(&page.emit, NULL, INT64_MAX);
	emit_thousandths(&page.emit, NULL, 10007);
	emit_thousandths(&page.emit, NULL, 0);
	emit_array_end(&page.emit);
	page_check(&page, "[18446744073709551615,-9223372036854775808,-1,9223372036854775807,"
			  "10.007,0.000]");
}

/* What Python 3's json.dumps() writes for the same code points. */
TEST(in_ascii_everything_else_is_escaped_as_python_does)
{
	static const char text[] = "\"\\/\b\f\n\r\t\x01\x7f \xc3\xa9\xe2\x80\xa8\xf0\x9f\x94\xa5<";
	struct page page;

	page_open(&page, EMIT_ascii);
	emit_string(&page.emit, NULL, text);
	page_check(&page, "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u007f "
			  "\\u00e9\\u2028\\ud83d\\udd25<\"");
}

TEST(in_html_no_text_can_end_the_element)
{
	static const char text[] = "</script><!--\xe2\x80\xa8\xe2\x80\xa9\xc3\xa9\x7f";
	struct page page;

	page_open(&page, EMIT_html);
	emit_object(&page.emit, NULL);
	emit_string(&page.emit, "<", text);
	emit_object_end(&page.emit);
	page_check(&page, "{\"\\u003c\":\"\\u003c/script>\\u003c!--\\u2028\\u2029\xc3\xa9\x7f\"}");
}

TEST(a_zero_byte_and_broken_text_are_written_as_characters)
{
	struct page page;

	page_open(&page, EMIT_utf8);
	emit_array(&page.emit, NULL);
	emit_text(&page.emit, NULL, "a\0b\xff\xe2\x82", 6);
	emit_text(&page.emit, NULL, "", 0);
	emit_array_end(&page.emit);
	page_check(&page, "[\"a\\u0000b\xef\xbf\xbd\xef\xbf\xbd\",\"\"]");
}

RUN_TESTS(UNIT_TEST(members_and_items_are_separated_on_every_level),
	  UNIT_TEST(numbers_are_written_whole),
	  UNIT_TEST(in_ascii_everything_else_is_escaped_as_python_does),
	  UNIT_TEST(in_html_no_text_can_end_the_element),
	  UNIT_TEST(a_zero_byte_and_broken_text_are_written_as_characters))
