/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of uploads, made once and finished for each attempt. Where they wait is spool.c. */
#include "agent/parcel.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/str.h"
#include "formats/emit.h"

enum {
	CHUNK_BYTES = 32768,
	GZIP_HEAD_BYTES = 10,
	RAW_DEFLATE = -15, /* windowBits without a header */
	ID_BYTES = 16,
};

static const char magic[8] = "CAIRNPC1";

void parcel_deinit(struct parcel *parcel)
{
	free(parcel->service);
	free(parcel->data);
	*parcel = (struct parcel)PARCEL_INIT;
}

/* Text on its way into a parcel. */
struct packer {
	z_stream zlib;
	struct strbuf data;
	uint32_t crc;
	uint64_t bytes;
	bool failed;
};

/* Compress TEXT; FLUSH is zlib's. */
static struct error *pack_text(struct packer *p, const char *text, size_t length, int flush)
{
	unsigned char chunk[CHUNK_BYTES];

	p->zlib.next_in = (unsigned char *)text;
	p->zlib.avail_in = (unsigned)length;
	do {
		p->zlib.next_out = chunk;
		p->zlib.avail_out = sizeof(chunk);
		if (deflate(&p->zlib, flush) == Z_STREAM_ERROR)
			return error_new("zlib does not compress");
		size_t made = sizeof(chunk) - p->zlib.avail_out;
		if (made > PARCEL_DATA_MAX - p->data.length)
			return error_new("a session is larger than %d bytes when compressed",
					 PARCEL_DATA_MAX);
		TRY(strbuf_add(&p->data, (char *)chunk, made));
	} while (!p->zlib.avail_out);
	p->crc = (uint32_t)crc32(p->crc, (const unsigned char *)text, (unsigned)length);
	p->bytes += length;
	return NULL;
}

/* stdio's: what is written to the stream is packed. Its buffer is small, so LENGTH fits zlib. */
static ssize_t pack_write(void *to, const char *text, size_t length)
{
	struct packer *p = to;
	struct error *err = pack_text(p, text, length, Z_NO_FLUSH);

	p->failed = p->failed || err;
	error_free(err); // parcel_make() says that it did not work
	return p->failed ? 0 : (ssize_t)length;
}

static void emit_percent(struct emit *emit, const char *key, int64_t thousandths)
{
	if (thousandths < 0)
		emit_null(emit, key);
	else
		emit_thousandths(emit, key, (uint64_t)thousandths);
}

static void emit_time(struct emit *emit, const char *key, uint64_t ns)
{
	char time[20];

	clock_format_utc(ns, time);
	emit_string(emit, key, time);
}

/* The members in gProfiler's order. The object stays open for gpid. */
static void emit_body(FILE *stream, const struct parcel_facts *facts, const char *col, size_t size)
{
	struct emit emit = emit_to(stream, EMIT_ascii);

	emit_object(&emit, NULL);
	emit_time(&emit, "start_time", facts->start_ns);
	emit_time(&emit, "end_time", facts->end_ns);
	emit_string(&emit, "hostname", facts->host);
	emit_text(&emit, "profile", col, size);
	emit_percent(&emit, "cpu_avg", facts->cpu_thousandths);
	emit_percent(&emit, "mem_avg", facts->memory_thousandths);
	emit_time(&emit, "spawn_time", facts->spawn_ns);
}

static struct error *pack_body(struct packer *p, const struct parcel_facts *facts, const char *col,
			       size_t size)
{
	FILE *stream = fopencookie(p, "w", (cookie_io_functions_t){.write = pack_write});

	if (!stream)
		return error_oom();
	emit_body(stream, facts, col, size);
	bool lost = ferror(stream);
	if (fclose(stream) || lost || p->failed)
		return error_new("a session cannot be compressed: it is too large, or memory is "
				 "short");
	return pack_text(p, "", 0, Z_FULL_FLUSH);
}

static struct error *make_id(char ret[PARCEL_ID_LENGTH + 1])
{
	uint8_t id[ID_BYTES];

	if (getrandom(id, sizeof(id), 0) != sizeof(id))
		return error_errno("random bytes");
	str_hex(id, sizeof(id), ret);
	return NULL;
}

static void packer_deinit(struct packer *p)
{
	deflateEnd(&p->zlib);
	strbuf_deinit(&p->data);
}

struct error *parcel_make(const struct parcel_facts *facts, const char *col, size_t size,
			  struct parcel *ret)
{
	_cleanup_(packer_deinit) struct packer p = {.data = STRBUF_INIT};
	_cleanup_(parcel_deinit) struct parcel parcel = PARCEL_INIT;

	TRY(make_id(parcel.id));
	TRY(str_copy(&parcel.service, facts->service));
	if (deflateInit2(&p.zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, RAW_DEFLATE, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return error_oom();
	TRY(pack_body(&p, facts, col, size));
	parcel.text_crc = p.crc;
	parcel.text_bytes = p.bytes;
	parcel.data_size = p.data.length;
	parcel.data = take(p.data.text);
	*ret = take_struct(parcel);
	return NULL;
}

static struct error *add_number(struct strbuf *to, uint64_t value, size_t width)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < width; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
	return strbuf_add(to, (char *)bytes, width);
}

static uint32_t crc_of(const char *data, size_t size)
{
	return (uint32_t)crc32_z(0, (const unsigned char *)data, size);
}

static struct error *add_id(struct strbuf *to, const char *id)
{
	char byte[3] = "";

	for (size_t i = 0; i < ID_BYTES; i++) {
		memcpy(byte, id + 2 * i, 2);
		TRY(add_number(to, strtoul(byte, NULL, 16), 1));
	}
	return NULL;
}

struct error *parcel_pack(const struct parcel *parcel, char **ret, size_t *ret_size)
{
	_cleanup_(strbuf_deinit) struct strbuf packed = STRBUF_INIT;
	size_t service_length = strlen(parcel->service);

	TRY(strbuf_add(&packed, magic, sizeof(magic)));
	TRY(add_number(&packed, parcel->text_crc, 4));
	TRY(add_number(&packed, service_length, 4));
	TRY(add_number(&packed, parcel->text_bytes, 8));
	TRY(add_number(&packed, parcel->data_size, 8));
	TRY(add_id(&packed, parcel->id));
	TRY(strbuf_add(&packed, parcel->service, service_length));
	TRY(strbuf_add(&packed, parcel->data, parcel->data_size));
	TRY(add_number(&packed, crc_of(packed.text, packed.length), 4));
	*ret_size = packed.length;
	*ret = take(packed.text);
	return NULL;
}

/* The service's name goes into a header of a request: no line may end in it. */
static struct error *read_service(struct bytes *b, uint32_t length, char **ret)
{
	struct bytes name;

	if (length > PARCEL_SERVICE_MAX)
		return bytes_error(b, "the name of the service has %u bytes", length);
	TRY(bytes_cut(b, length, &name));
	for (const uint8_t *at = name.at; at < name.end; at++)
		if (*at < 0x20 || *at == 0x7f)
			return bytes_error(b, "the name of the service holds control characters");
	char *copy = strndup((const char *)name.at, length);
	if (!copy)
		return error_oom();
	*ret = copy;
	return NULL;
}

static struct error *read_data(struct bytes *b, uint64_t size, struct parcel *parcel)
{
	struct bytes data;

	if (!size || size > PARCEL_DATA_MAX)
		return bytes_error(b, "the data has %ju bytes", (uintmax_t)size);
	TRY(bytes_cut(b, size, &data));
	parcel->data = malloc(size);
	if (!parcel->data)
		return error_oom();
	memcpy(parcel->data, data.at, size);
	parcel->data_size = size;
	return NULL;
}

struct error *parcel_unpack(const void *data, size_t size, struct parcel *ret)
{
	_cleanup_(parcel_deinit) struct parcel parcel = PARCEL_INIT;
	struct bytes b = bytes_over(data, size, "waiting session"), id;
	uint32_t service_length, crc;
	uint64_t data_size;

	if (size < sizeof(magic) || memcmp(data, magic, sizeof(magic)) != 0)
		return bytes_error(&b, "is no waiting session");
	TRY(bytes_skip(&b, sizeof(magic)));
	TRY(bytes_u32(&b, &parcel.text_crc));
	TRY(bytes_u32(&b, &service_length));
	TRY(bytes_u64(&b, &parcel.text_bytes));
	TRY(bytes_u64(&b, &data_size));
	TRY(bytes_cut(&b, ID_BYTES, &id));
	str_hex(id.at, ID_BYTES, parcel.id);
	TRY(read_service(&b, service_length, &parcel.service));
	TRY(read_data(&b, data_size, &parcel));
	TRY(bytes_u32(&b, &crc));
	if (bytes_left(&b) || crc != crc_of(data, size - 4))
		return bytes_error(&b, "is damaged");
	*ret = take_struct(parcel);
	return NULL;
}

/*
 * A deflate stream of its own may follow one that was flushed in full: it refers to nothing before
 * it. (RFC 1951 3.2.3: a block ends the stream only if its first bit says so.)
 */
static struct error *add_tail(struct strbuf *to, const char *tail, size_t length)
{
	z_stream zlib = {0};
	unsigned char room[1024];

	if (deflateInit2(&zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, RAW_DEFLATE, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return error_oom();
	zlib.next_in = (unsigned char *)tail;
	zlib.avail_in = (unsigned)length;
	zlib.next_out = room;
	zlib.avail_out = sizeof(room);
	int end = deflate(&zlib, Z_FINISH);
	deflateEnd(&zlib);
	if (end != Z_STREAM_END)
		return error_new("the end of a session cannot be compressed");
	return strbuf_add(to, (char *)room, sizeof(room) - zlib.avail_out);
}

struct error *parcel_body(const struct parcel *parcel, const char *gpid, char **ret,
			  size_t *ret_size)
{
	// RFC 1952 2.3: magic, deflate, no flags, no time, no hint, Unix.
	static const char head[GZIP_HEAD_BYTES] = {0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
	_cleanup_(strbuf_deinit) struct strbuf body = STRBUF_INIT;
	_cleanup_free_ char *tail = NULL;

	TRY(str_format(&tail, ",\"gpid\":%s}", gpid));
	size_t length = strlen(tail);
	TRY(strbuf_add(&body, head, sizeof(head)));
	TRY(strbuf_add(&body, parcel->data, parcel->data_size));
	TRY(add_tail(&body, tail, length));
	TRY(add_number(&body,
		       crc32_combine(parcel->text_crc, crc_of(tail, length), (z_off_t)length), 4));
	TRY(add_number(&body, (uint32_t)(parcel->text_bytes + length), 4));
	*ret_size = body.length;
	*ret = take(body.text);
	return NULL;
}
