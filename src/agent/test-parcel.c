/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/parcel.h"

#include <stdlib.h>
#include <zlib.h>

#include "unit.h"

static const struct parcel_facts facts = {
	.service = "shop",
	.host = "node-7",
	.start_ns = 1767323045000000000,
	.end_ns = 1767323105000000000,
	.spawn_ns = 1767323000000000000,
	.cpu_thousandths = 37500,
	.memory_thousandths = -1,
};

static const char col[] = "# {\"metadata\":{}}\n;app;ma\"in\xc3\xa9 3";

/* What a server sees: the text in the gzip stream, which must end where BODY ends. */
static void unzip(const char *body, size_t size, char *ret, size_t room)
{
	z_stream zlib = {.next_in = (unsigned char *)body, .avail_in = (unsigned)size};

	ASSERT_EQ(inflateInit2(&zlib, 16 + MAX_WBITS), Z_OK);
	zlib.next_out = (unsigned char *)ret;
	zlib.avail_out = (unsigned)room - 1;
	ASSERT_EQ(inflate(&zlib, Z_FINISH), Z_STREAM_END); // checks CRC and length as well
	ASSERT_EQ(zlib.avail_in, 0);
	ret[room - 1 - zlib.avail_out] = 0;
	inflateEnd(&zlib);
}

TEST(a_body_is_one_gzip_stream_with_what_is_known_last_at_its_end)
{
	_cleanup_(parcel_deinit) struct parcel parcel = PARCEL_INIT;
	_cleanup_free_ char *body = NULL;
	char text[1024];
	size_t size;

	ASSERT_OK(parcel_make(&facts, col, sizeof(col) - 1, &parcel));
	ASSERT_EQ(strlen(parcel.id), PARCEL_ID_LENGTH);
	ASSERT_OK(parcel_body(&parcel, "4711", &body, &size));
	unzip(body, size, text, sizeof(text));
	ASSERT_STREQ(text, "{\"start_time\":\"2026-01-02T03:04:05\","
			   "\"end_time\":\"2026-01-02T03:05:05\",\"hostname\":\"node-7\","
			   "\"profile\":\"# {\\\"metadata\\\":{}}\\n;app;ma\\\"in\\u00e9 3\","
			   "\"cpu_avg\":37.500,\"mem_avg\":null,"
			   "\"spawn_time\":\"2026-01-02T03:03:20\",\"gpid\":4711}");
}

TEST(a_parcel_is_the_same_after_a_file)
{
	_cleanup_(parcel_deinit) struct parcel parcel = PARCEL_INIT, again = PARCEL_INIT;
	_cleanup_free_ char *packed = NULL;
	size_t size;

	ASSERT_OK(parcel_make(&facts, col, sizeof(col) - 1, &parcel));
	ASSERT_OK(parcel_pack(&parcel, &packed, &size));
	ASSERT_OK(parcel_unpack(packed, size, &again));
	ASSERT_STREQ(again.id, parcel.id);
	ASSERT_STREQ(again.service, "shop");
	ASSERT_EQ(again.text_crc, parcel.text_crc);
	ASSERT_EQ(again.text_bytes, parcel.text_bytes);
	ASSERT_EQ(again.data_size, parcel.data_size);
	ASSERT_EQ(memcmp(again.data, parcel.data, parcel.data_size), 0);
}

TEST(every_cut_and_every_changed_byte_is_noticed)
{
	_cleanup_(parcel_deinit) struct parcel parcel = PARCEL_INIT, again = PARCEL_INIT;
	_cleanup_free_ char *packed = NULL;
	size_t size;

	ASSERT_OK(parcel_make(&facts, col, sizeof(col) - 1, &parcel));
	ASSERT_OK(parcel_pack(&parcel, &packed, &size));
	for (size_t i = 0; i < size; i++) {
		ASSERT_FAILS(parcel_unpack(packed, i, &again), "waiting session");
		packed[i] ^= 0x11;
		ASSERT_FAILS(parcel_unpack(packed, size, &again), "waiting session");
		packed[i] ^= 0x11;
	}
}

TEST(two_parcels_of_one_text_have_ids_of_their_own)
{
	_cleanup_(parcel_deinit) struct parcel parcel = PARCEL_INIT, other = PARCEL_INIT;

	ASSERT_OK(parcel_make(&facts, col, sizeof(col) - 1, &parcel));
	ASSERT_OK(parcel_make(&facts, col, sizeof(col) - 1, &other));
	ASSERT_TRUE(strcmp(parcel.id, other.id) != 0);
}

TEST(a_text_of_many_chunks_is_whole)
{
	enum { SIZE = 3 << 20 };
	_cleanup_(parcel_deinit) struct parcel parcel = PARCEL_INIT;
	_cleanup_free_ char *text = malloc(SIZE), *body = NULL, *read = malloc(SIZE + 1024);
	uint32_t random = 7;
	size_t size;

	for (size_t i = 0; i < SIZE; i++) {
		random = random * 1664525 + 1013904223;
		text[i] = (char)('a' + (random >> 24) % 26); // no escapes, and hard to compress
	}
	ASSERT_OK(parcel_make(&facts, text, SIZE, &parcel));
	ASSERT_OK(parcel_body(&parcel, "\"\"", &body, &size));
	unzip(body, size, read, SIZE + 1024);
	char *at = strstr(read, "\"profile\":\"");
	ASSERT_TRUE(at != NULL);
	ASSERT_EQ(memcmp(at + 11, text, SIZE), 0);
}

RUN_TESTS(UNIT_TEST(a_body_is_one_gzip_stream_with_what_is_known_last_at_its_end),
	  UNIT_TEST(a_parcel_is_the_same_after_a_file),
	  UNIT_TEST(every_cut_and_every_changed_byte_is_noticed),
	  UNIT_TEST(two_parcels_of_one_text_have_ids_of_their_own),
	  UNIT_TEST(a_text_of_many_chunks_is_whole))
