/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readable forms of mangled names: C++ (Itanium), Rust (legacy and v0), D. Limits on hostile names:
 * input and output have a maximum and libiberty's recursion limit is on; a name beyond them is
 * shown as it is.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

enum { DEMANGLE_INPUT_MAX = 64 << 10, DEMANGLE_OUTPUT_MAX = 64 << 10 };

/*
 * RET is the readable form of the NUL-terminated NAME, which the caller frees, or NULL when NAME is
 * not mangled or cannot be read. Suffixes that compilers add are shown as " [clone .cold]"; hashes
 * (Rust's legacy ones, .llvm.123) are not shown.
 */
struct error *demangle_name(const char *name, char **ret);
