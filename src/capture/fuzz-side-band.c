/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as perf's side-band records, one behind the other as a ring has them: u16 size, u16
 * what to do behind it (0: nothing, 1: take events up to now, 2: forget those taken), the record.
 */
#include "capture/side-band.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 4, TAKE = 1, FORGET = 2 };

/* Events come in the order of time, with texts that end. */
static void take_events(struct side_band *side, uint64_t until_ns)
{
	const struct side_event *event;
	uint64_t before_ns = 0;

	while ((event = side_band_next(side, until_ns))) {
		if (event->time_ns < before_ns || event->time_ns > until_ns)
			abort();
		if (event->text && strlen(event->text) > UINT16_MAX)
			abort();
		if (event->build_id.length > OBJECT_BUILD_ID_MAX)
			abort();
		before_ns = event->time_ns;
	}
}

/* In memory of its own, so that a read beyond it is seen. */
static void enter(struct side_band *side, const uint8_t *data, uint16_t size)
{
	_cleanup_free_ struct perf_event_header *header = NULL;

	if (size < sizeof(*header))
		return; // the ring hands out none that is shorter
	header = malloc(size);
	if (!header)
		return;
	memcpy(header, data, size);
	header->size = size;
	error_free(side_band_enter(side, header)); // contradicts itself
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct counters counters = {0};
	struct side_band *side;

	error_free(side_band_new(1 << 20, &counters, &side)); // no memory left
	for (size_t at = 0; size - at >= HEAD;) {
		uint16_t length, action;
		memcpy(&length, data + at, sizeof(length));
		memcpy(&action, data + at + 2, sizeof(action));
		at += HEAD;
		if (length > size - at)
			break;
		enter(side, data + at, length);
		at += length;
		if (action & TAKE)
			take_events(side, length * 1000ull);
		if (action & FORGET)
			error_free(side_band_forget(side)); // no memory left
	}
	take_events(side, UINT64_MAX);
	side_band_free(side);
	return 0;
}
