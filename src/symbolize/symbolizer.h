/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address to names, once per distinct frame, after sampling. This layer opens no path itself:
 * whoever makes a symbolizer passes in a way to open files (in the target's root, then in the
 * host's), so that it can live without a file system.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/kinds.h"
#include "base/error.h"
#include "object/object.h"
#include "object/rows.h"

/*
 * Open PATH for reading; -1 when there is none. PID is the process whose root is meant, 0 for the
 * host's. The opener follows no link out of the target's root.
 */
typedef int symbolizer_open_fn(void *context, uint32_t pid, const char *path);

struct symbolizer_options {
	symbolizer_open_fn *open; /* NULL: no separate debug files, no perf maps */
	void *context;
	bool lines;      /* DWARF lines and inlined calls */
	bool debuginfod; /* ask the servers of DEBUGINFOD_URLS; off unless the user asked */
};

/* One name of a frame. Strings are owned by the symbolizer (or its object) and live as long as it
 * does. */
struct symbol {
	enum frame_kind kind;
	bool inlined;         /* this call was inlined into the next entry */
	const char *function; /* as shown, demangled; never NULL */
	const char *file;     /* NULL: unknown */
	uint32_t line;        /* 0: unknown */
	uint64_t start;       /* object address where the function begins; 0: unknown */
	bool named;           /* a name was found */
	bool identified;      /* a name, or at least where the function begins */
};

enum {
	SYMBOLS_MAX = 64
}; /* inlined calls in one frame; what is beyond is dropped from the inside */

struct symbolizer;
struct symbol_object; /* symbols of one object: opened once, however many processes map it */

struct error *symbolizer_new(const struct symbolizer_options *options, struct symbolizer **ret);
void symbolizer_free(struct symbolizer *symbolizer);

/*
 * The symbols of OBJECT (borrowed; must outlive the symbolizer). PATH is what the process calls the
 * file: shown for frames without a name, and searched beside for a .gnu_debuglink. ROWS (borrowed,
 * may be NULL) tells where functions begin when there is no symbol. Tables are read at the first
 * symbolize_object(), not here. PID: whose root to look in.
 */
struct error *symbolizer_object(struct symbolizer *symbolizer, struct object *object,
				const struct rows *rows, const char *path, uint32_t pid,
				struct symbol_object **ret);

/*
 * Names at object address ADDR, innermost (inlined) first. RETURN_ADDRESS: ADDR is behind a call,
 * so ADDR - 1 is looked up. Always at least one: "(path+0xSTART)" when only the function's start is
 * known, "(path)" when not even that.
 */
struct error *symbolize_object(struct symbol_object *object, uint64_t addr, bool return_address,
			       struct symbol ret[SYMBOLS_MAX], size_t *ret_count);

/* Kernel text, modules and BPF programs, from /proc/kallsyms (or a file like it) behind FD,
 * borrowed. NULL file name unless known. */
struct error *symbolizer_load_kernel(struct symbolizer *symbolizer, int fd);
/* One name; "[unknown kernel]" style text when kallsyms hid the addresses. */
struct error *symbolize_kernel(struct symbolizer *symbolizer, uint64_t pc, struct symbol *ret);

/*
 * Code without an object: perf map (/tmp/perf-PID.map, PID as the process itself knows it: NS_PID)
 * and jitdump files of process PID. Maps are read again when they have grown. RET as above with
 * KIND_jit; "[jit]" when there is no name.
 */
struct error *symbolize_jit(struct symbolizer *symbolizer, uint32_t pid, uint32_t ns_pid,
			    uint64_t pc, uint64_t time_ns, struct symbol *ret);
/* A jitdump file that PID mapped: read from FD (borrowed) now. */
struct error *symbolizer_load_jitdump(struct symbolizer *symbolizer, uint32_t pid, int fd,
				      const char *name);
