/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for the stubs through which an object calls others: "puts@plt". They are in no symbol
 * table; a stub jumps through a slot, and a relocation says whose address is in the slot.
 */
#pragma once

#include "base/error.h"
#include "object/object.h"
#include "symbolize/symtab.h"

enum { PLT_SLOTS_MAX = 1 << 20 };

/* Add the stubs of OBJECT (x86-64: .plt, .plt.sec, .plt.got, .plt.bnd, lazily bound or not, with or
 * without IBT). Other machines have none here. */
struct error *plt_add(struct symtab *symtab, struct object *object);
