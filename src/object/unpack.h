/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacking a compressed file into another one. The input is hostile. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum unpack_kind {
	UNPACK_plain, /* not compressed, or by something that is not known here */
	UNPACK_zlib,  /* gzip */
	UNPACK_zstd,
	UNPACK_xz,
	UNPACK_lz4, /* recognised, not read */
};

/* By the first bytes of FD. */
enum unpack_kind unpack_kind(int fd);

struct unpacked {
	uint64_t size;         /* bytes */
	const char *shortened; /* why they are not all; NULL: they are. A static string */
};

/*
 * Unpack FD, which is of KIND, into TO, an empty file, up to MAX bytes. Blocks of zeros become
 * holes. A stream that is damaged, cut, or longer than MAX gives what comes before. A failure is
 * one of reading or writing.
 */
struct error *unpack(int fd, enum unpack_kind kind, int to, uint64_t max, struct unpacked *ret);
