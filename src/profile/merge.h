/* SPDX-License-Identifier: Apache-2.0 */
/* Adding one profile to another. */
#pragma once

#include "profile/profile.h"

/*
 * Add the samples of FROM to INTO. Facts: times become the span of both, counts add up, and what
 * the two know differently (rate, host, ...) becomes not known. An INTO without samples takes the
 * facts of FROM where it has none. On failure (a maximum, memory) INTO is sound and holds a part of
 * FROM.
 */
struct error *profile_merge(struct profile *into, const struct profile *from);
