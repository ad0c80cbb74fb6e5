/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine code of an evaluator: compilers move the parts of a function that rarely run
 * elsewhere (gcc's -freorder-blocks-and-partition), and the evaluator that calls itself by tail
 * calls (3.14 with clang) is a function for each opcode.
 */
#pragma once

#include "runtimes/python/find.h"

/*
 * Add to OBJECT, which has the evaluator's first range, the parts elsewhere that FILE jumps to from
 * there: code that is not entered where a function begins, or that jumps back into the middle.
 */
void python_evaluator_follow(struct object *file, struct python_object *object);

/* Add a range, if there is room and it is not among them. */
void python_evaluator_add(struct python_object *object, uint64_t start, uint64_t size);
