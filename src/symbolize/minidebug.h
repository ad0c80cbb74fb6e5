/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MiniDebugInfo: Fedora and its relatives strip programs but leave an ELF file in xz form in their
 * .gnu_debugdata, whose .symtab has the functions that .dynsym lacks.
 */
#pragma once

#include "base/error.h"
#include "object/object.h"

enum {
	MINIDEBUG_BYTES = 64 << 20,  /* unpacked; the largest seen are below 10 MiB */
	MINIDEBUG_MEMORY = 80 << 20, /* for unpacking: xz -9 asks for 65 MiB */
};

struct minidebug {
	struct object *object; /* NULL: there is none */
	void *data;            /* what object reads from */
};

#define MINIDEBUG_INIT                                                                             \
	{                                                                                          \
		0                                                                                  \
	}

/* Unpack what OBJECT carries. No such section leaves RET empty; a damaged one is a failure. */
struct error *minidebug_open(struct object *object, struct minidebug *ret);
void minidebug_deinit(struct minidebug *mini);
