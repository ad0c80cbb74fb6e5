/* SPDX-License-Identifier: Apache-2.0 */
/* An order of samples that depends on their texts alone, not on when they were taken. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "profile/profile.h"

/*
 * The indices of all samples: by container, then process name, then function names from the root
 * of the stack, each byte by byte; a caller's own samples stand before those of what it called.
 * Where all of these are equal the order is that of the profile. The caller frees RET.
 */
struct error *order_samples(const struct profile *profile, uint32_t **ret);
