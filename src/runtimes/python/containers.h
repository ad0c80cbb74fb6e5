/* SPDX-License-Identifier: Apache-2.0 */
/* Values that hold others: sequences, dicts and sets, ranges. */
#pragma once

#include "runtimes/python/print.h"

/* The tuple, list, dict, set or frozenset at ADDR. */
void python_container_print(struct python_print *print, uint64_t addr, enum python_kind kind);

/*
 * The items of the tuple at ADDR, with commas between them and none behind; RET_COUNT: how many it
 * has. False: unreadable; what could be read has been printed.
 */
bool python_tuple_items_print(struct python_print *print, uint64_t addr, uint64_t *ret_count);

/* The first COUNT members of the object at ADDR, each an object, as arguments of NAME. */
void python_members_print(struct python_print *print, uint64_t addr, const char *name,
			  unsigned count);
