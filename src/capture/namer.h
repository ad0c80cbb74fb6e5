/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of what walks meet: an address of an object, code made at run time, the kernel. Opens the
 * files that symbolize/ asks for, below the root of the process that is looked at, and keeps the
 * symbols of objects open from one question to the next.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/objects.h"
#include "symbolize/symbolizer.h"

struct namer_options {
	bool lines, debuginfod;
	struct objects *objects; /* borrowed; whatever a number means is asked of it */
};

struct namer;

struct error *namer_new(const struct namer_options *options, struct namer **ret);
void namer_free(struct namer *namer);
static inline void cleanup_namer(struct namer **namer)
{
	namer_free(*namer);
}
#define _cleanup_namer_ _cleanup_(cleanup_namer)

/*
 * Give back names and all that was read of objects. Whoever asks object by object calls it in
 * between: the tables of a large one with debug information are hundreds of MB.
 */
void namer_trim(struct namer *namer);

/* An address in an object. */
struct namer_place {
	uint32_t object; /* number */
	uint64_t addr;
	bool call;  /* ADDR is behind a call */
	bool plain; /* a name is enough: neither a source line nor inlined calls */
};

/*
 * Names at PLACE, innermost (inlined) first. At least one, "(path)" if nothing is known. Strings
 * live until namer_trim() or namer_free().
 */
struct error *namer_object(struct namer *namer, const struct namer_place *place,
			   struct symbol ret[SYMBOLS_MAX], size_t *ret_count);

/* Code without a file at PC of process PID; "[jit]" without a name. */
struct error *namer_jit(struct namer *namer, uint32_t pid, uint64_t pc, struct symbol *ret);

/* An address of the kernel; "[kernel]" without a name. */
struct error *namer_kernel(struct namer *namer, uint64_t pc, struct symbol *ret);
