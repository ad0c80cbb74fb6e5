/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of Python: int of any size, float, complex. */
#pragma once

#include "runtimes/python/heap.h"
#include "runtimes/python/out.h"

/*
 * The number at ADDR, of kind small, long, bool, float or complex, as repr() writes it. An int of
 * more than 512 bits is told by how many it has. False: unreadable, or no such number.
 */
bool python_number_print(const struct python_heap *heap, uint64_t addr, enum python_kind kind,
			 struct python_out *out);

/* An int (small or long) that fits. False: unreadable, negative or too large. */
bool python_int_u64(const struct python_heap *heap, uint64_t addr, enum python_kind kind,
		    uint64_t *ret);
