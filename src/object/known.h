/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for code without unwind information that is known by where it is or how it looks: jump
 * stubs, the entry point, the return from signal handlers; and, for an object with next to no unwind
 * information, the frame pointer.
 */
#pragma once

#include "object/arch.h"
#include "object/rows.h"

struct object;

/* Fill gaps of ROWS. */
struct error *known_fill(struct object *object, const struct arch *arch, struct rows *rows);
