/* SPDX-License-Identifier: Apache-2.0 */
/* perf's side-band records, decoded and ordered. The layouts are those of perf_event_open(2). */
#include "capture/side-band.h"

#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/str.h"
#include "proc/perf-event.h"

enum {
	EVENTS_MAX = 1 << 18,
	TEXT_MAX_BYTES = 32 << 20,
	/* pid, tid, time, cpu, reserved: what sample_id_all appends for our sample_type */
	SAMPLE_ID_BYTES = 24,
	RINGS_MAX = 4096,
};

struct cpu_ring {
	unsigned cpu;
	struct perf_ring ring;
};

struct side_band {
	size_t data_bytes;
	struct counters *counters; /* borrowed from the capture */
	struct cpu_ring *rings;
	size_t ring_count, ring_room;
	struct side_event *events; /* those before `taken` are done with */
	size_t count, room, taken;
	bool sorted;
	struct arena text[2]; /* texts are in text[side] */
	int side;
};

struct error *side_band_new(size_t data_bytes, struct counters *counters, struct side_band **ret)
{
	struct side_band *side = calloc(1, sizeof(*side));

	if (!side)
		return error_oom();
	side->data_bytes = data_bytes;
	side->counters = counters;
	side->text[0].max_bytes = side->text[1].max_bytes = TEXT_MAX_BYTES;
	*ret = side;
	return NULL;
}

void side_band_free(struct side_band *side)
{
	if (!side)
		return;
	for (size_t i = 0; i < side->ring_count; i++)
		perf_ring_deinit(&side->rings[i].ring);
	free(side->rings);
	free(side->events);
	arena_deinit(&side->text[0]);
	arena_deinit(&side->text[1]);
	free(side);
}

/* Pages for one of CPUS rings: a power of two, 64 KiB to 512 KiB. */
static unsigned pages_for(const struct side_band *side, unsigned cpus)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned pages = (unsigned)(512 * 1024 / page);

	while (pages * page > 64 * 1024 && pages * page * cpus > side->data_bytes)
		pages /= 2;
	return pages;
}

struct error *side_band_add_cpu(struct side_band *side, unsigned cpu, unsigned cpus)
{
	for (size_t i = 0; i < side->ring_count; i++)
		if (side->rings[i].cpu == cpu)
			return NULL;
	TRY(ARRAY_RESERVE(side->rings, side->ring_room, side->ring_count, 1, RINGS_MAX, "CPUs"));
	struct cpu_ring *ring = &side->rings[side->ring_count];
	ring->cpu = cpu;
	TRY(perf_ring_open((int)cpu, pages_for(side, cpus), &ring->ring));
	struct error *err = perf_ring_start(&ring->ring);
	if (err) {
		perf_ring_deinit(&ring->ring);
		return err;
	}
	side->ring_count++;
	return NULL;
}

void side_band_remove_cpu(struct side_band *side, unsigned cpu)
{
	for (size_t i = 0; i < side->ring_count; i++) {
		if (side->rings[i].cpu != cpu)
			continue;
		perf_ring_deinit(&side->rings[i].ring);
		side->rings[i] = side->rings[--side->ring_count];
		return;
	}
}

/* MMAP2 behind its header: pid, tid, addr, len, pgoff, file identity, prot, flags, path. */
static struct error *parse_map(struct bytes *b, bool has_build_id, struct side_event *event)
{
	struct bytes identity;
	uint64_t length;
	uint8_t size;

	TRY(bytes_u32(b, &event->pid));
	TRY(bytes_u32(b, &event->tid));
	TRY(bytes_u64(b, &event->start));
	TRY(bytes_u64(b, &length));
	TRY(bytes_u64(b, &event->offset));
	TRY(bytes_cut(b, 24, &identity));
	TRY(bytes_skip(b, 8));
	TRY(bytes_string(b, &event->text));
	event->end = event->start + length;
	if (!has_build_id) { // device numbers, inode
		TRY(bytes_skip(&identity, 8));
		return bytes_u64(&identity, &event->inode);
	}
	TRY(bytes_u8(&identity, &size));
	TRY(bytes_skip(&identity, 3));
	if (size > OBJECT_BUILD_ID_MAX)
		return bytes_error(&identity, "build id of %u bytes", size);
	event->build_id.length = size;
	memcpy(event->build_id.data, identity.at, size);
	return NULL;
}

/* FORK and EXIT: pid, ppid, tid, ptid. */
static struct error *parse_task(struct bytes *b, struct side_event *event)
{
	TRY(bytes_u32(b, &event->pid));
	TRY(bytes_u32(b, &event->parent_pid));
	return bytes_u32(b, &event->tid);
}

static struct error *parse_exec(struct bytes *b, struct side_event *event)
{
	TRY(bytes_u32(b, &event->pid));
	TRY(bytes_u32(b, &event->tid));
	return bytes_string(b, &event->text);
}

/* The time at the end of every record. */
static struct error *parse_time(struct bytes record, uint64_t *ret)
{
	TRY(bytes_seek(&record, (size_t)(record.end - record.start) - SAMPLE_ID_BYTES + 8));
	return bytes_u64(&record, ret);
}

/* Decode one record. *RET_KNOWN is false for those that say nothing to us. */
static struct error *parse(const struct perf_event_header *header, struct side_event *event,
			   bool *ret_known)
{
	struct bytes record = bytes_over(header, header->size, "side-band record");
	struct bytes body = record;

	*ret_known = false;
	if (header->size < sizeof(*header) + SAMPLE_ID_BYTES)
		return bytes_error(&record, "only %u bytes", header->size);
	TRY(parse_time(record, &event->time_ns));
	TRY(bytes_skip(&body, sizeof(*header)));
	switch (header->type) {
	case PERF_RECORD_MMAP2:
		event->kind = SIDE_map;
		TRY(parse_map(&body, header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID, event));
		break;
	case PERF_RECORD_FORK:
		event->kind = SIDE_fork;
		TRY(parse_task(&body, event));
		break;
	case PERF_RECORD_EXIT:
		event->kind = SIDE_exit;
		TRY(parse_task(&body, event));
		break;
	case PERF_RECORD_COMM:
		if (!(header->misc & PERF_RECORD_MISC_COMM_EXEC))
			return NULL;
		event->kind = SIDE_exec;
		TRY(parse_exec(&body, event));
		break;
	default:
		return NULL;
	}
	*ret_known = true;
	return NULL;
}

static void count_lost(struct side_band *side, const struct perf_event_header *header)
{
	struct bytes body = bytes_over(header, header->size, "lost record");
	uint64_t lost = 1;

	// struct { header; u64 id; u64 lost; }: one without a number counts as one.
	error_free(bytes_skip(&body, sizeof(*header) + 8));
	error_free(bytes_u64(&body, &lost));
	counter_add(side->counters, COUNTER_side_band_lost, lost);
}

struct error *side_band_enter(struct side_band *side, const struct perf_event_header *header)
{
	struct side_event event = {0};
	bool known;

	if (header->type == PERF_RECORD_LOST) {
		count_lost(side, header);
		return NULL;
	}
	TRY(parse(header, &event, &known));
	if (!known)
		return NULL;
	if (side->count >= EVENTS_MAX) {
		counter_add(side->counters, COUNTER_side_band_lost, 1);
		return NULL;
	}
	struct error *err = NULL;
	if (event.text)
		err = arena_copy(&side->text[side->side], event.text, strlen(event.text),
				 &event.text);
	if (err) {
		// The arena's limit: the record is lost like one that found the ring full.
		error_free(err);
		counter_add(side->counters, COUNTER_side_band_lost, 1);
		return NULL;
	}
	TRY(ARRAY_RESERVE(side->events, side->room, side->count, 1, EVENTS_MAX,
			  "side-band events"));
	if (side->count && side->events[side->count - 1].time_ns > event.time_ns)
		side->sorted = false;
	side->events[side->count++] = event;
	return NULL;
}

static int by_time(const void *a, const void *b)
{
	const struct side_event *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

struct error *side_band_read(struct side_band *side)
{
	const struct perf_event_header *header;

	for (size_t i = 0; i < side->ring_count; i++)
		while ((header = perf_ring_next(&side->rings[i].ring)))
			TRY(side_band_enter(side, header));
	return NULL;
}

const struct side_event *side_band_next(struct side_band *side, uint64_t until_ns)
{
	if (!side->sorted && side->count > side->taken)
		qsort(side->events + side->taken, side->count - side->taken, sizeof(*side->events),
		      by_time);
	side->sorted = true;
	if (side->taken == side->count || side->events[side->taken].time_ns > until_ns)
		return NULL;
	return &side->events[side->taken++];
}

struct error *side_band_forget(struct side_band *side)
{
	memmove(side->events, side->events + side->taken,
		(side->count - side->taken) * sizeof(*side->events));
	side->count -= side->taken;
	side->taken = 0;
	// What remains is young and little; its texts move to the other arena.
	int other = !side->side;
	for (size_t i = 0; i < side->count; i++) {
		struct side_event *event = &side->events[i];
		if (event->text)
			TRY(arena_copy(&side->text[other], event->text, strlen(event->text),
				       &event->text));
	}
	arena_deinit(&side->text[side->side]);
	side->side = other;
	return NULL;
}
