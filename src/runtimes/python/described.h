/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that no literal can say: functions, classes, modules, exceptions, instances. They are told
 * by their name and, most of them, by where they are.
 */
#pragma once

#include "runtimes/python/print.h"

/* The object at ADDR, of any kind that is neither a number, a string nor a container. */
void python_described_print(struct python_print *print, uint64_t addr,
			    const struct python_type *type);
