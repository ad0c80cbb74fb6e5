/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a frame is. */
#pragma once

enum frame_kind {
	KIND_none = 0,
#define KIND(name, id, help) KIND_##name = id,
#include "abi/kinds.def"
#undef KIND
	KIND_MAX = 32
};
