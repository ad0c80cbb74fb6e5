/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a function that has no unwind information, read off its instructions: from its entry
 * on, along every path, how far the stack pointer is from where it was, and where the caller's
 * frame pointer is (scan-state.h). If two paths meet and do not agree, if a return does not find
 * the stack as it was, or if an instruction is not understood, nothing is said about the function.
 *
 * Two things are taken on trust. Where a path that comes out of a call disagrees with another one,
 * that call is taken never to return. Code behind a jump that no path reaches is the target of one
 * of the function's indirect jumps (a switch), with the stack as it was there, if that works out;
 * in a function without such jumps it is the next function.
 */
#pragma once

#include "object/insn.h"
#include "object/rows-build.h"
#include "object/scan-state.h"

enum {
	SCAN_FUNCTION_MAX = 256 << 10, /* bytes; larger ones are not looked at */
	SCAN_EXITS_MAX = 64,
};

typedef bool scan_decode_fn(const struct bytes *b, uint64_t addr, struct insn *ret);

/* A piece of code: from where a function starts to where the next one does, or a gap ends. */
struct scan_function {
	struct bytes code;
	uint64_t addr;
	struct scan_state start;
	bool certain; /* it is known to begin there, and another one where it ends */
};

/* A jump out of the function: into another one, or into a cold part of this one elsewhere. */
struct scan_exit {
	uint64_t addr;
	struct scan_state state;
};

struct scan_result {
	bool understood;
	uint64_t end; /* where the code ends, or before, if another function seems to follow */
	const struct scan_exit *exits; /* valid until the next scan */
	size_t exit_count;
};

struct scanner;

struct error *scanner_new(scan_decode_fn *decode, struct scanner **ret);
void scanner_free(struct scanner *scanner);
static inline void cleanup_scanner(struct scanner **scanner)
{
	scanner_free(*scanner);
}
#define _cleanup_scanner_ _cleanup_(cleanup_scanner)

/*
 * Add the rules of FUNCTION to PIECES, if it is understood. One scanner is for one object: after
 * some seconds of work it understands nothing more.
 */
struct error *scan_function(struct scanner *scanner, const struct scan_function *function,
			    struct rows_pieces *pieces, struct scan_result *ret);
