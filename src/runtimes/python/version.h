/* SPDX-License-Identifier: Apache-2.0 */
/* Which release of its version an interpreter is. No walk depends on it; people ask for it. */
#pragma once

#include "proc/memory.h"
#include "runtimes/python/attach.h"

enum { PYTHON_VERSION_TEXT_MAX = 32 };

/*
 * "3.11.2", "3.14.0rc1": by what the object says of itself, from 3.11 on, or by sys.hexversion in
 * MEMORY; "3.6" if neither can be read.
 */
void python_version_text(const struct python_instance *instance, const struct memory *memory,
			 char ret[static PYTHON_VERSION_TEXT_MAX]);
