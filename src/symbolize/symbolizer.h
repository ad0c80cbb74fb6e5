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

/*
 * What is opened is checked here to be a regular file and the right one; that opening does not
 * block (a FIFO where a debug file should be: O_NONBLOCK) and that a perf map belongs to the
 * process's user or to root is for the opener to see to.
 */
struct symbolizer_options {
	symbolizer_open_fn *open; /* NULL: no separate debug files, no perf maps */
	void *context;
	bool lines;       /* DWARF lines and inlined calls */
	bool debuginfod;  /* ask the servers of DEBUGINFOD_URLS; off unless the user asked */
	size_t max_bytes; /* of tables held at one time; 0: one of SYMBOLIZER_… */
};

/*
 * Tables beyond max_bytes are dropped, the least recently used first, and read again when needed.
 * Asking object by object keeps that from happening often. libelf and libdw hold all debug sections
 * of a file that lines are read from, so that lines need more.
 */
enum { SYMBOLIZER_BYTES = 32 << 20, SYMBOLIZER_LINES_BYTES = 256 << 20 };

/* One name of a frame. Strings are owned by the symbolizer and live until symbolizer_trim() or
 * symbolizer_free(). */
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

/* Inlined calls in one frame; what is beyond is dropped from the inside. */
enum { SYMBOLS_MAX = 64 };

struct symbolizer;
struct symbol_object; /* symbols of one object: opened once, however many processes map it */

struct error *symbolizer_new(const struct symbolizer_options *options, struct symbolizer **ret);
void symbolizer_free(struct symbolizer *symbolizer);
static inline void cleanup_symbolizer(struct symbolizer **symbolizer)
{
	symbolizer_free(*symbolizer);
}
#define _cleanup_symbolizer_ _cleanup_(cleanup_symbolizer)

/*
 * A session is symbolized: give back all names and tables of objects, and the maps of processes
 * that were not asked about since the last call. Kernel symbols stay, and every struct
 * symbol_object stays valid.
 */
void symbolizer_trim(struct symbolizer *symbolizer);

/* Memory held by tables, without the names that were handed out. */
size_t symbolizer_bytes(const struct symbolizer *symbolizer);

/* Where an object was met. */
struct symbol_place {
	const char *path;        /* what the process calls the file */
	uint32_t pid;            /* whose root to look in */
	const struct rows *rows; /* borrowed like the object; NULL: starts are not known */
};

/*
 * The symbols of OBJECT (borrowed; must outlive RET). The path of PLACE is shown for frames without
 * a name, and searched beside for a .gnu_debuglink; its rows tell where functions begin when there
 * is no symbol. Tables are read at the first symbolize_object(), not here; object_release() is
 * called on OBJECT when they have been read or are dropped. Asking again about the same OBJECT
 * gives the same RET.
 */
struct error *symbolizer_object(struct symbolizer *symbolizer, struct object *object,
				const struct symbol_place *place, struct symbol_object **ret);

/* Source lines and inlined calls of OBJECT from now on, if the symbolizer's options have them. They
 * are wanted unless told otherwise. */
void symbol_object_set_lines(struct symbol_object *object, bool wanted);

/* OBJECT is about to be freed: forget it. symbolizer_free() does it for all that are left. */
void symbol_object_free(struct symbol_object *object);

/*
 * Names at object address ADDR, innermost (inlined) first. RETURN_ADDRESS: ADDR is behind a call,
 * so ADDR - 1 is looked up. Always at least one: "(path+0xSTART)" when only the function's start is
 * known, "(path)" when not even that.
 */
struct error *symbolize_object(struct symbol_object *object, uint64_t addr, bool return_address,
			       struct symbol ret[SYMBOLS_MAX], size_t *ret_count);

/*
 * Kernel text, modules and BPF programs, from /proc/kallsyms (or a file like it) behind FD,
 * borrowed. Replaces what was loaded before. Where the kernel hides addresses nothing is loaded,
 * which is no failure.
 */
struct error *symbolizer_load_kernel(struct symbolizer *symbolizer, int fd);

/* How many kernel functions are known; 0: none was loaded, or addresses are hidden. */
size_t symbolizer_kernel_count(const struct symbolizer *symbolizer);

/* One name; "[kernel]" when addresses are hidden or PC lies in no known function. A module's
 * function is named like the kernel's own. */
struct error *symbolize_kernel(struct symbolizer *symbolizer, uint64_t pc, struct symbol *ret);

/* A pc in code that belongs to no object. */
struct symbol_jit {
	uint32_t pid;
	uint32_t ns_pid; /* as the process itself knows it: the PID of /tmp/perf-PID.map */
	uint64_t pc;
	uint64_t time_ns; /* of the sample, CLOCK_MONOTONIC; 0, or a time to come: now */
};

/*
 * Its name by the jitdump files loaded for the process, then by its perf map. A perf map that was
 * read after the sample, or within the last tenth of a second, is not looked at again; a jitdump
 * name must have been there at the time. RET is KIND_jit; "[jit]" when there is no name.
 */
struct error *symbolize_jit(struct symbolizer *symbolizer, const struct symbol_jit *at,
			    struct symbol *ret);

/* A jitdump file that PID mapped: read from FD (borrowed) now, or what it has grown by since. */
struct error *symbolizer_load_jitdump(struct symbolizer *symbolizer, uint32_t pid, int fd,
				      const char *name);
