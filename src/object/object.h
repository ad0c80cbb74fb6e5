/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF object: a program, a library, the vdso, a core's module. Opened from a descriptor or from
 * bytes, never from a path, so that this layer can live in a process without a file system.
 * Everything in the file is hostile.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"

enum { OBJECT_BUILD_ID_MAX = 20 };

/*
 * Who an object is: its build id, or, without one, a hash of its content. Two files with the same
 * identity have the same text at the same addresses.
 */
struct object_id {
	uint8_t length; /* of data; build ids are cut to 20 bytes, longer ones hashed */
	uint8_t hashed; /* 1: content hash, 0: build id */
	uint8_t data[OBJECT_BUILD_ID_MAX];
};

bool object_id_equal(const struct object_id *a, const struct object_id *b);
uint64_t object_id_hash(const struct object_id *id);

struct object_segment {
	uint64_t addr, offset, file_size, mem_size;
	bool executable, writable;
};

struct object;

/*
 * Open the ELF file behind FD, which is consumed (closed by object_free(), and on failure by the
 * caller as ever: a failed call leaves it with the caller). NAME is for messages and is copied.
 */
struct error *object_open(int fd, const char *name, struct object **ret);

/* The same over bytes in memory (the vdso, a MiniDebugInfo image). DATA is borrowed and must
 * outlive the object. */
struct error *object_open_memory(const void *data, size_t size, const char *name,
				 struct object **ret);

void object_free(struct object *object);

/*
 * Give back the memory of sections and segments that were read. Every struct bytes handed out
 * before is invalid; what is asked for again is read again. An object at rest is a descriptor, its
 * headers and its identity.
 */
void object_release(struct object *object);

static inline void cleanup_object(struct object **object)
{
	object_free(*object);
}
#define _cleanup_object_ _cleanup_(cleanup_object)

const char *object_name(const struct object *object);
const struct object_id *object_id(const struct object *object);
const struct object_segment *object_segments(const struct object *object, size_t *ret_count);

/* The address at which the loader starts it; 0: none. */
uint64_t object_entry(const struct object *object);

/* x86-64 or whatever else e_machine says; 64-bit or not. */
unsigned object_machine(const struct object *object);
bool object_is_64(const struct object *object);
/* Made by Go's toolchain: it has a pclntab, found by section name or by its magic. */
bool object_is_go(struct object *object);

/*
 * Object address of file offset OFFSET, by the program headers (an executable segment is
 * preferred). False: no segment holds it. A mapping of OFFSET at address START has bias = START -
 * that address.
 */
bool object_addr_of_offset(const struct object *object, uint64_t offset, uint64_t *ret);

/* A row of the section table, as the file claims it. */
struct object_section {
	const char *name; /* owned by the object; "" when damaged */
	uint64_t addr, offset, size;
	uint32_t type, link;
	uint64_t flags;
};

enum {
	OBJECT_SECTIONS_MAX = 1 << 16,
	OBJECT_SEGMENTS_MAX = 1 << 12,
	OBJECT_LOAD_MAX = 256 << 20, /* of one section, decompressed, or of one segment */
};

/* All sections; none when the file has no section table or a damaged one. */
const struct object_section *object_sections(const struct object *object, size_t *ret_count);

/*
 * Bytes of a section, decompressed if it is compressed (gABI zlib and zstd; .zdebug_frame is found
 * as .debug_frame). Owned by the object until object_release(). False: there is none, or it is
 * damaged. A NOBITS section (in a separate debug file) is none. RET_ADDR may be NULL.
 */
bool object_section(struct object *object, const char *name, struct bytes *ret, uint64_t *ret_addr);

/*
 * Bytes the file holds for object addresses from ADDR to the end of their segment. False: ADDR is
 * in no segment, or the file has no bytes there. Owned by the object until object_release(): all
 * of it is read, so for a few bytes object_read() is the one to call.
 */
bool object_at(struct object *object, uint64_t addr, struct bytes *ret);

/* Copy SIZE bytes at object address ADDR. False: the file does not hold all of them. */
bool object_read(struct object *object, uint64_t addr, void *ret, size_t size);

/* The frame header (.eh_frame_hdr) that the program headers name. False: there is none. */
bool object_frame_header(const struct object *object, uint64_t *ret_addr, uint64_t *ret_size);

/*
 * libelf's handle on the same file, for libdw; NULL when libelf rejects it. Borrowed, valid until
 * object_free(). libelf reads through the descriptor and never maps the file, so that one truncated
 * meanwhile is an error and not a signal; what it has read it keeps.
 */
struct Elf *object_elf(struct object *object);
