/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens when memory runs out. A test that is among starved_tests in its layer's meson.build
 * is linked with starved.c, so that allocations of our own code, and no library's, can fail.
 */
#pragma once

#include "base/error.h"

/* What is tried. When it returns it owns nothing that it did not own before. */
typedef struct error *starved_fn(void *context);

/*
 * Run FN with the first of its allocations failing, then the second, and so on until none fails;
 * beyond the EACHth not with every one of them. The test fails if FN leaves memory behind or
 * fails with something else than that memory ran out. FN may succeed: what it made do without is
 * its own business. It is not thread-safe to allocate elsewhere meanwhile.
 */
void starved_try(starved_fn *fn, void *context, unsigned long each);
