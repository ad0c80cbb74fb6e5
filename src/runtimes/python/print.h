/* SPDX-License-Identifier: Apache-2.0 */
/* A value being printed: what the parts of values.h share. */
#pragma once

#include "runtimes/python/heap.h"
#include "runtimes/python/out.h"
#include "runtimes/python/values.h"

/* U+2026: something was left out. */
#define ELLIPSIS "\xe2\x80\xa6"

enum { PYTHON_PRINT_DEPTH_MAX = 16 };

struct python_print {
	struct python_heap heap;
	struct python_value_limits limits;
	struct python_out out;
	unsigned depth;
	uint64_t path[PYTHON_PRINT_DEPTH_MAX]; /* the objects around what is printed */
};

/* Any object. */
void python_print_value(struct python_print *print, uint64_t addr);

/*
 * Go into the object at ADDR, whose parts come next. False: it is deep enough, or within itself;
 * OTHERWISE is printed. Each true is followed by python_print_leave().
 */
bool python_print_enter(struct python_print *print, uint64_t addr, const char *otherwise);
void python_print_leave(struct python_print *print);

/* What stands for the object at ADDR whose memory cannot be read. */
void python_print_unreadable(struct python_print *print, uint64_t addr);
