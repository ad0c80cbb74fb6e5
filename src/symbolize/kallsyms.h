/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel text by name, from /proc/kallsyms: the kernel itself, modules, BPF programs and ftrace's
 * trampolines. Lines are "ADDRESS TYPE NAME", with "\t[MODULE]" behind for what is not the kernel
 * proper; only types t, T, w and W are code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

enum {
	KALLSYMS_MAX = 4 << 20,          /* symbols */
	KALLSYMS_NAME_BYTES = 128 << 20, /* of all names together */
	// Symbols have no size there. One that nothing follows (the last of a module) ends here;
	// the largest function of a distribution kernel has some 60 KiB.
	KALLSYMS_FUNCTION_MAX = 256 << 10,
};

struct kallsyms_entry {
	uint64_t addr;
	uint32_t name; /* offset in names; KALLSYMS_HOLE: no code from here on */
};

struct kallsyms {
	struct kallsyms_entry *entry; /* sorted by addr, which are distinct */
	size_t count, room;
	struct strbuf names;
};

#define KALLSYMS_INIT                                                                              \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Read FD (borrowed) from its beginning. Where the kernel hides addresses (kptr_restrict, missing
 * CAP_SYSLOG) they are all zero: RET is then empty, which is no failure.
 */
struct error *kallsyms_read(int fd, struct kallsyms *ret);
void kallsyms_deinit(struct kallsyms *symbols);

/* The name of the function that holds PC, borrowed; NULL: it lies in none. */
const char *kallsyms_find(const struct kallsyms *symbols, uint64_t pc, uint64_t *ret_start);
