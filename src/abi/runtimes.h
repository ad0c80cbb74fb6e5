/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Ids of the runtimes whose frames walkers know, for BPF and host. */
#pragma once

enum runtime_id {
	RUNTIME_none = 0,
#define RUNTIME(name, id, covers) RUNTIME_##name = id,
#include "abi/runtimes.def"
#undef RUNTIME
};
