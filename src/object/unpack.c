/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop over three libraries. lz4 is left to the user: systemd-coredump has written zstd since
 * its version 246 (2020), so that a library more would serve few.
 */
#include "object/unpack.h"

#include <errno.h>
#include <lzma.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/cleanup.h"

enum {
	IN_BYTES = 128 << 10,
	OUT_BYTES = 256 << 10,
	HOLE = 4096,
	XZ_MEMORY = 256 << 20, /* `xz -9` takes 65 MiB */
	ZLIB_GZIP = 15 + 16,   /* the largest window; expect a gzip header */
};

enum step {
	STEP_more, /* wants input, or room */
	STEP_end,  /* a stream is complete; another one may follow */
	STEP_damaged,
};

struct unpacker {
	enum unpack_kind kind;
	z_stream zlib;
	lzma_stream xz;
	ZSTD_DStream *zstd;
	uint8_t in[IN_BYTES], out[OUT_BYTES];
	size_t in_at, in_size, out_size;
	uint64_t in_offset; /* in the input file, behind in[] */
	bool in_ended;      /* the input file has */
};

enum unpack_kind unpack_kind(int fd)
{
	static const struct {
		enum unpack_kind kind;
		uint8_t length, magic[6];
	} kinds[] = {
		{UNPACK_zlib, 2, {0x1f, 0x8b}},
		{UNPACK_zstd, 4, {0x28, 0xb5, 0x2f, 0xfd}},
		{UNPACK_xz, 6, {0xfd, '7', 'z', 'X', 'Z', 0}},
		{UNPACK_lz4, 4, {0x04, 0x22, 0x4d, 0x18}},
	};
	uint8_t head[6] = {0};

	ssize_t got = pread(fd, head, sizeof(head), 0);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (got >= kinds[i].length && !memcmp(head, kinds[i].magic, kinds[i].length))
			return kinds[i].kind;
	return UNPACK_plain;
}

static struct error *unpacker_init(struct unpacker *u, enum unpack_kind kind)
{
	bool ready = false;

	u->kind = kind;
	switch (kind) {
	case UNPACK_zlib:
		ready = inflateInit2(&u->zlib, ZLIB_GZIP) == Z_OK;
		break;
	case UNPACK_zstd:
		u->zstd = ZSTD_createDStream();
		ready = u->zstd != NULL;
		break;
	case UNPACK_xz:
		u->xz = (lzma_stream)LZMA_STREAM_INIT;
		ready = lzma_stream_decoder(&u->xz, XZ_MEMORY, LZMA_CONCATENATED) == LZMA_OK;
		break;
	case UNPACK_plain:
	case UNPACK_lz4:
		break;
	}
	return ready ? NULL : error_oom();
}

static void unpacker_free(struct unpacker **at)
{
	struct unpacker *u = *at;

	if (!u)
		return;
	if (u->kind == UNPACK_zlib)
		inflateEnd(&u->zlib);
	if (u->kind == UNPACK_xz)
		lzma_end(&u->xz);
	ZSTD_freeDStream(u->zstd);
	free(u);
}

/* Each step takes input from in[in_at..in_size] and adds to out[out_size..]. */

static enum step step_zlib(struct unpacker *u)
{
	u->zlib.next_in = u->in + u->in_at;
	u->zlib.avail_in = (uInt)(u->in_size - u->in_at);
	u->zlib.next_out = u->out + u->out_size;
	u->zlib.avail_out = (uInt)(OUT_BYTES - u->out_size);
	int code = inflate(&u->zlib, Z_NO_FLUSH);
	u->in_at = u->in_size - u->zlib.avail_in;
	u->out_size = OUT_BYTES - u->zlib.avail_out;
	if (code == Z_STREAM_END)
		return inflateReset(&u->zlib) == Z_OK ? STEP_end : STEP_damaged;
	return code == Z_OK || code == Z_BUF_ERROR ? STEP_more : STEP_damaged;
}

static enum step step_zstd(struct unpacker *u)
{
	ZSTD_inBuffer in = {.src = u->in, .size = u->in_size, .pos = u->in_at};
	ZSTD_outBuffer out = {.dst = u->out, .size = OUT_BYTES, .pos = u->out_size};

	size_t code = ZSTD_decompressStream(u->zstd, &out, &in);
	u->in_at = in.pos;
	u->out_size = out.pos;
	if (ZSTD_isError(code))
		return STEP_damaged;
	return code ? STEP_more : STEP_end;
}

static enum step step_xz(struct unpacker *u)
{
	u->xz.next_in = u->in + u->in_at;
	u->xz.avail_in = u->in_size - u->in_at;
	u->xz.next_out = u->out + u->out_size;
	u->xz.avail_out = OUT_BYTES - u->out_size;
	lzma_ret code = lzma_code(&u->xz, u->in_ended ? LZMA_FINISH : LZMA_RUN);
	u->in_at = u->in_size - u->xz.avail_in;
	u->out_size = OUT_BYTES - u->xz.avail_out;
	if (code == LZMA_STREAM_END)
		return STEP_end;
	return code == LZMA_OK || code == LZMA_BUF_ERROR ? STEP_more : STEP_damaged;
}

static enum step step(struct unpacker *u)
{
	switch (u->kind) {
	case UNPACK_zlib:
		return step_zlib(u);
	case UNPACK_zstd:
		return step_zstd(u);
	case UNPACK_xz:
		return step_xz(u);
	case UNPACK_plain:
	case UNPACK_lz4:
		break;
	}
	return STEP_damaged;
}

static struct error *fill(struct unpacker *u, int fd)
{
	if (u->in_at < u->in_size || u->in_ended)
		return NULL;
	ssize_t got;
	do
		got = pread(fd, u->in, IN_BYTES, (off_t)u->in_offset);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return error_errno("read the compressed core");
	u->in_at = 0;
	u->in_size = (size_t)got;
	u->in_ended = got == 0;
	u->in_offset += (uint64_t)got;
	return NULL;
}

static bool all_zero(const uint8_t *data, size_t size)
{
	return !size || (!data[0] && !memcmp(data, data + 1, size - 1));
}

static struct error *write_all(int to, const uint8_t *data, size_t size, uint64_t offset)
{
	while (size) {
		ssize_t put = pwrite(to, data, size, (off_t)offset);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return error_errno("write the unpacked core");
		data += put;
		offset += (uint64_t)put;
		size -= (size_t)put;
	}
	return NULL;
}

/* Write SIZE bytes at OFFSET, but for blocks of zeros. */
static struct error *write_blocks(int to, const uint8_t *data, size_t size, uint64_t offset)
{
	size_t start = 0;

	for (size_t at = 0; at < size; at += HOLE) {
		size_t block = size - at < HOLE ? size - at : HOLE;
		if (!all_zero(data + at, block))
			continue;
		TRY(write_all(to, data + start, at - start, offset + start));
		start = at + block;
	}
	return write_all(to, data + start, size - start, offset + start);
}

/* Move what has been unpacked to the file. True: MAX is reached. */
static struct error *drain(struct unpacker *u, int to, uint64_t max, struct unpacked *done,
			   bool *ret_full)
{
	size_t size = u->out_size;

	*ret_full = size > max - done->size;
	if (*ret_full)
		size = (size_t)(max - done->size);
	TRY(write_blocks(to, u->out, size, done->size));
	done->size += size;
	u->out_size = 0;
	return NULL;
}

struct error *unpack(int fd, enum unpack_kind kind, int to, uint64_t max, struct unpacked *ret)
{
	_cleanup_(unpacker_free) struct unpacker *u = calloc(1, sizeof(*u));
	struct unpacked done = {0};
	bool full = false, complete = false;

	if (!u)
		return error_oom();
	TRY(unpacker_init(u, kind));
	while (!done.shortened && !full) {
		TRY(fill(u, fd));
		if (u->in_ended && complete)
			break;
		size_t in_before = u->in_at;
		enum step last = step(u);
		bool moved = u->in_at > in_before || u->out_size > 0;
		complete = last == STEP_end;
		if (last == STEP_damaged)
			done.shortened = "the compressed file is damaged";
		else if (u->in_ended && !moved && !complete)
			done.shortened = "the compressed file ends too early";
		TRY(drain(u, to, max, &done, &full));
	}
	if (full)
		done.shortened = "the limit for unpacked cores is reached";
	if (ftruncate(to, (off_t)done.size) < 0)
		return error_errno("size the unpacked core");
	*ret = done;
	return NULL;
}
