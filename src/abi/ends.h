/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Ids of the ends of a walk, for BPF and host. The texts are in unwind/ends.c. */
#pragma once

enum walk_end {
#define END(name, id, whole, text) END_##name = id,
#include "abi/ends.def"
#undef END
	END_MAX = 32
};
