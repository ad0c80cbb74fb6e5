/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading an object by address through a few windows, so that tables of many megabytes are looked
 * at without being loaded. What the file does not hold reads as false.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct object;

enum {
	GO_WINDOW_BITS = 14,
	GO_WINDOWS = 32, /* half a megabyte at most */
};

struct go_window {
	uint64_t start, end; /* addresses; equal: empty */
	uint8_t *data;
};

struct go_view {
	struct object *object; /* borrowed */
	struct go_window window[GO_WINDOWS];
};

void go_view_deinit(struct go_view *view);

/* SIZE bytes at ADDR. False leaves RET undefined. */
bool go_view_read(struct go_view *view, uint64_t addr, void *ret, size_t size);
bool go_view_u32(struct go_view *view, uint64_t addr, uint32_t *ret);
bool go_view_u64(struct go_view *view, uint64_t addr, uint64_t *ret);

/* As many as there are of SIZE bytes at ADDR; returns how many. */
size_t go_view_some(struct go_view *view, uint64_t addr, void *ret, size_t size);

/* The bytes from ADDR to the end of its window, valid until the next call. NULL: none. */
const uint8_t *go_view_at(struct go_view *view, uint64_t addr, size_t *ret_size);

/* The length of the string at ADDR. False: it is longer than MAX or not there. */
bool go_view_length(struct go_view *view, uint64_t addr, size_t max, size_t *ret);
