/* SPDX-License-Identifier: Apache-2.0 */
/* The flame graph viewer of ui/: one page, cut where the profile goes. Made by tools/embed.py. */
#pragma once

#include <stddef.h>

extern const unsigned char viewer_before[], viewer_after[]; /* no NUL behind them */
extern const size_t viewer_before_size, viewer_after_size;
