/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of struct object, for the files of this folder that fill it. Others see object.h.
 *
 * Files are read with pread() and never mapped: a target may truncate its own program while we look
 * at it, and touching a mapping behind the new end would be a SIGBUS in here.
 */
#pragma once

#include "object/object.h"

/* Bytes that were read, decompressed or borrowed for a reader. */
struct object_load {
	struct object_load *next;
	uint64_t offset, size; /* what was asked for, in the file */
	bool unpacked;         /* bytes are what the packed ones there hold */
	char *label;           /* "libc.so.6: .eh_frame", for messages; owned */
	uint8_t *owned;        /* NULL: the bytes are the caller's memory */
	struct bytes bytes;
};

struct object_range {
	uint64_t offset, addr, size;
};

enum { OBJECT_NOTES_MAX = 16 };

struct object {
	char *name;
	int fd;                /* -1: from memory */
	const uint8_t *memory; /* borrowed; NULL: from the descriptor */
	uint64_t size;

	bool is_64, big_endian;
	uint16_t machine;
	uint64_t entry;
	uint64_t section_table, program_table;
	uint32_t section_count, section_names_index, program_count;
	uint16_t section_entry_size, program_entry_size;

	struct object_segment *segments; /* PT_LOAD in file order */
	size_t segment_count, segment_room;
	struct object_range frame_header; /* PT_GNU_EH_FRAME; size 0: none */
	struct object_range dynamic;      /* PT_DYNAMIC; size 0: none */
	struct object_range notes[OBJECT_NOTES_MAX];
	size_t note_count;

	struct object_section *sections;
	char *section_names; /* owned; sections[].name points into it */
	size_t section_names_size;

	struct object_id id;
	struct object_load *loads;
	struct Elf *elf;
	bool go_known, go;
};

/* SIZE bytes of the file at OFFSET, all or a failure. */
struct error *image_read(const struct object *object, uint64_t offset, void *data, size_t size);

/* Fill the section table. A damaged one leaves the object without sections. */
struct error *image_read_sections(struct object *object);

/* Compute object->id. */
struct error *image_identify(struct object *object);

/* Bytes [OFFSET, OFFSET + SIZE) of the file, kept until object_release(). */
struct error *image_load(struct object *object, uint64_t offset, uint64_t size, const char *what,
			 struct bytes *ret);
void image_release(struct object *object);
