/* SPDX-License-Identifier: Apache-2.0 */
#include "object/go-view.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "object/object.h"

void go_view_deinit(struct go_view *view)
{
	for (int i = 0; i < GO_WINDOWS; i++)
		free(view->window[i].data);
	*view = (struct go_view){.object = view->object};
}

/* Cut [START, END) down to the segment that holds ADDR. False: none does. */
static bool clip_to_segment(const struct object *object, uint64_t addr, uint64_t *start,
			    uint64_t *end)
{
	size_t count;
	const struct object_segment *segment = object_segments(object, &count);

	for (size_t i = 0; i < count; i++, segment++) {
		if (addr < segment->addr || addr - segment->addr >= segment->file_size)
			continue;
		if (*start < segment->addr)
			*start = segment->addr;
		if (*end - segment->addr > segment->file_size)
			*end = segment->addr + segment->file_size;
		return true;
	}
	return false;
}

static bool window_fill(struct go_view *view, struct go_window *window, uint64_t addr)
{
	uint64_t size = (uint64_t)1 << GO_WINDOW_BITS;
	uint64_t start = addr & ~(size - 1), end = start + size;

	// The last window of the address space has no end, and nothing that we want.
	if (end < start || !clip_to_segment(view->object, addr, &start, &end))
		return false;
	if (!window->data)
		window->data = malloc(size);
	if (!window->data)
		return false;
	window->start = window->end = 0;
	if (!object_read(view->object, start, window->data, end - start))
		return false;
	window->start = start;
	window->end = end;
	return true;
}

const uint8_t *go_view_at(struct go_view *view, uint64_t addr, size_t *ret_size)
{
	struct go_window *window = &view->window[(addr >> GO_WINDOW_BITS) % GO_WINDOWS];

	if ((addr < window->start || addr >= window->end) && !window_fill(view, window, addr))
		return NULL;
	*ret_size = window->end - addr;
	return window->data + (addr - window->start);
}

size_t go_view_some(struct go_view *view, uint64_t addr, void *ret, size_t size)
{
	uint8_t *to = ret;
	size_t done = 0;

	while (done < size) {
		size_t got;
		const uint8_t *from = go_view_at(view, addr + done, &got);
		if (!from)
			break;
		if (got > size - done)
			got = size - done;
		memcpy(to + done, from, got);
		done += got;
	}
	return done;
}

bool go_view_read(struct go_view *view, uint64_t addr, void *ret, size_t size)
{
	return go_view_some(view, addr, ret, size) == size;
}

bool go_view_u32(struct go_view *view, uint64_t addr, uint32_t *ret)
{
	uint32_t value;

	if (!go_view_read(view, addr, &value, sizeof(value)))
		return false;
	*ret = le32toh(value);
	return true;
}

bool go_view_u64(struct go_view *view, uint64_t addr, uint64_t *ret)
{
	uint64_t value;

	if (!go_view_read(view, addr, &value, sizeof(value)))
		return false;
	*ret = le64toh(value);
	return true;
}

bool go_view_length(struct go_view *view, uint64_t addr, size_t max, size_t *ret)
{
	size_t length = 0;

	while (length <= max) {
		size_t size;
		const uint8_t *at = go_view_at(view, addr + length, &size);
		if (!at)
			return false;
		const uint8_t *end = memchr(at, 0, size);
		if (end) {
			*ret = length + (size_t)(end - at);
			return *ret <= max;
		}
		length += size;
	}
	return false;
}
