/* SPDX-License-Identifier: Apache-2.0 */
/* The list form of the kernel's bitmaps, bitmap_print_to_pagebuf(). */
#include "proc/cpus.h"

#include <fcntl.h>
#include <stdbool.h>

#include "base/array.h"
#include "base/file.h"

/* 65536 numbers of five digits, each with its comma. */
enum { LIST_BYTES_MAX = CPUS_MAX * 6 };

void cpus_deinit(struct cpus *cpus)
{
	free(cpus->cpu);
	*cpus = (struct cpus)CPUS_INIT;
}

static bool skip(struct bytes *b, char c)
{
	if (b->at == b->end || *b->at != c)
		return false;
	b->at++;
	return true;
}

static struct error *scan_cpu(struct bytes *b, uint32_t *ret)
{
	const uint8_t *first = b->at;
	uint32_t value = 0;

	while (b->at < b->end && *b->at >= '0' && *b->at <= '9') {
		value = value * 10 + (*b->at - '0');
		if (value >= CPUS_MAX)
			return bytes_error(b, "CPU numbers end at %d", CPUS_MAX - 1);
		b->at++;
	}
	if (b->at == first)
		return bytes_error(b, "expected a CPU number");
	*ret = value;
	return NULL;
}

static struct error *add_range(struct bytes *b, struct cpus *cpus)
{
	uint32_t first, last;

	TRY(scan_cpu(b, &first));
	last = first;
	if (skip(b, '-'))
		TRY(scan_cpu(b, &last));
	if (last < first || (cpus->count && first <= cpus->cpu[cpus->count - 1]))
		return bytes_error(b, "CPU numbers do not ascend");
	TRY(ARRAY_RESERVE(cpus->cpu, cpus->room, cpus->count, last - first + 1, CPUS_MAX, "CPUs"));
	for (uint32_t cpu = first; cpu <= last; cpu++)
		cpus->cpu[cpus->count++] = cpu;
	return NULL;
}

struct error *cpus_parse(struct bytes text, struct cpus *ret)
{
	_cleanup_(cpus_deinit) struct cpus cpus = CPUS_INIT;

	if (bytes_left(&text) && text.end[-1] == '\n')
		text.end--;
	bool more = bytes_left(&text) > 0;
	while (more) {
		TRY(add_range(&text, &cpus));
		more = skip(&text, ',');
	}
	if (bytes_left(&text))
		return bytes_error(&text, "expected ','");
	*ret = take_struct(cpus);
	return NULL;
}

struct error *cpus_read_online(struct cpus *ret)
{
	static const char path[] = "/sys/devices/system/cpu/online";
	_cleanup_free_ char *text = NULL;
	size_t size;

	TRY(file_read(AT_FDCWD, path, LIST_BYTES_MAX, &text, &size));
	return cpus_parse(bytes_over(text, size, path), ret);
}
