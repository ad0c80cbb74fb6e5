/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session as it waits to be sent: the body of gProfiler's upload request, compressed, without its
 * last member. That member, `gpid`, is what the server answered to the session before, and is known
 * when this one is sent and not earlier.
 *
 * In a file, little-endian:
 *
 *     "CAIRNPC1"                    8
 *     CRC-32 of the text            4   of what is compressed, for the end of the gzip stream
 *     length of the service's name  4
 *     length of the text            8
 *     length of the data            8
 *     id                           16   random; the same whenever this session is sent
 *     service's name, data              the data is raw deflate, flushed to a byte, without an end
 *     CRC-32 of all before          4
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
	PARCEL_DATA_MAX = 64 << 20,
	PARCEL_SERVICE_MAX = 1024,
	PARCEL_ID_LENGTH = 32,
};

struct parcel {
	char id[PARCEL_ID_LENGTH + 1];
	char *service;
	uint32_t text_crc;
	uint64_t text_bytes;
	char *data;
	size_t data_size;
};

#define PARCEL_INIT                                                                                \
	{                                                                                          \
		0                                                                                  \
	}

void parcel_deinit(struct parcel *parcel);

/* What goes with a session's text. Times are of the wall clock. */
struct parcel_facts {
	const char *service, *host;                  /* borrowed */
	uint64_t start_ns, end_ns;                   /* of the session */
	uint64_t spawn_ns;                           /* when the agent began */
	int64_t cpu_thousandths, memory_thousandths; /* of a percent; negative: not known */
};

/* COL is the session's .col text with its header. */
struct error *parcel_make(const struct parcel_facts *facts, const char *col, size_t size,
			  struct parcel *ret);

/* As it stands in a file. The caller frees RET. */
struct error *parcel_pack(const struct parcel *parcel, char **ret, size_t *ret_size);
/* A failure if DATA is no whole parcel. */
struct error *parcel_unpack(const void *data, size_t size, struct parcel *ret);

/* The request's body, in gzip. GPID is a JSON value. The caller frees RET. */
struct error *parcel_body(const struct parcel *parcel, const char *gpid, char **ret,
			  size_t *ret_size);
