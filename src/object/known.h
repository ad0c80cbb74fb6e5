/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for code without unwind information: what is known by where it is or how it looks (jump
 * stubs, the return from signal handlers), what scan-object.h reads off instructions, and, for an
 * object with next to no unwind information, the frame pointer.
 */
#pragma once

#include "object/arch.h"
#include "object/rows.h"

struct object;

/* Fill gaps of ROWS. */
struct error *known_fill(struct object *object, const struct arch *arch, struct rows *rows);
