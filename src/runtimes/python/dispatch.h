/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The evaluator in an object without symbols: CPython keeps a table of where in it the code of each
 * of the 256 opcodes is (opcode_targets, Python/opcode_targets.h; 2.7 and 3.1 and later, where the
 * compiler has computed gotos), and nothing else looks like that.
 */
#pragma once

#include "runtimes/python/find.h"

struct object;

/*
 * Add the pieces of code that such a table in FILE leads to. False: there is no such table, and
 * OBJECT is untouched.
 */
bool python_dispatch_find(struct object *file, struct python_object *object);
