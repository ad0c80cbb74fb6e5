/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a symbolizer, for the files of this folder. Others see symbolizer.h. */
#pragma once

#include "symbolize/jits.h"
#include "symbolize/kallsyms.h"
#include "symbolize/names.h"
#include "symbolize/symbolizer.h"

struct symbolizer {
	struct symbolizer_options options;
	struct names names;
	struct kallsyms kernel;
	struct symbol_object **object; /* owned */
	size_t object_count, object_room;
	struct jits jits;
	uint64_t clock; /* goes up with each use of a table */
};

enum { SYMBOLIZER_OBJECTS = 1 << 20 };

/* Drop tables until they fit into the budget; what was used at the current clock stays. */
void symbolizer_evict(struct symbolizer *symbolizer);

/* For the budget: what OBJECT holds, when it was last used, and giving it back. */
size_t symbol_object_bytes(const struct symbol_object *object);
uint64_t symbol_object_used(const struct symbol_object *object);
void symbol_object_drop(struct symbol_object *object);
