/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Ids of the ends of a walk, for BPF and host. The texts are in unwind/ends.c. */
#pragma once

#include <linux/types.h>

enum walk_end {
#define END(name, id, whole, text) END_##name = id,
#include "abi/ends.def"
#undef END
	END_MAX = 32
};

/* Did the walk stop at something that the host may know, or learn? */
static inline __attribute__((always_inline)) int walk_end_unknown(__u32 end)
{
	return end == END_unknown_process || end == END_unknown_pc || end == END_not_loaded;
}
