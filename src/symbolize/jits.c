/* SPDX-License-Identifier: Apache-2.0 */
/* Per-process tables of code made at run time. Opening files is the symbolizer's part. */
#include "symbolize/jits.h"

#include <string.h>
#include <sys/stat.h>

#include "base/array.h"

static void process_free(struct jit_process *process)
{
	for (size_t i = 0; i < process->dump_count; i++)
		jitdump_deinit(&process->dump[i]);
	free(process->dump);
	perfmap_deinit(&process->map);
	free(process);
}

void jits_deinit(struct jits *jits)
{
	for (size_t i = 0; i < jits->count; i++)
		process_free(jits->process[i]);
	free(jits->process);
	*jits = (struct jits)JITS_INIT;
}

/* Where PID is or belongs. */
static size_t place_of(const struct jits *jits, uint32_t pid)
{
	size_t low = 0, high = jits->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (jits->process[middle]->pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void jits_remove(struct jits *jits, struct jit_process *process)
{
	size_t at = place_of(jits, process->pid);

	process_free(process);
	jits->count--;
	memmove(jits->process + at, jits->process + at + 1,
		(jits->count - at) * sizeof(*jits->process));
}

static void remove_oldest(struct jits *jits)
{
	struct jit_process *oldest = jits->process[0];

	for (size_t i = 1; i < jits->count; i++)
		if (jits->process[i]->used < oldest->used)
			oldest = jits->process[i];
	jits_remove(jits, oldest);
}

struct error *jits_get(struct jits *jits, uint32_t pid, uint64_t clock, struct jit_process **ret)
{
	size_t at = place_of(jits, pid);

	if (at == jits->count || jits->process[at]->pid != pid) {
		if (jits->count == JITS_PROCESSES)
			remove_oldest(jits);
		at = place_of(jits, pid);
		TRY(ARRAY_RESERVE(jits->process, jits->room, jits->count, 1, JITS_PROCESSES,
				  "processes that make code"));
		struct jit_process *process = calloc(1, sizeof(*process));
		if (!process)
			return error_oom();
		process->pid = pid;
		memmove(jits->process + at + 1, jits->process + at,
			(jits->count - at) * sizeof(*jits->process));
		jits->process[at] = process;
		jits->count++;
	}
	jits->process[at]->used = clock;
	jits->process[at]->used_since_trim = true;
	*ret = jits->process[at];
	return NULL;
}

void jits_trim(struct jits *jits)
{
	for (size_t i = jits->count; i-- > 0;) {
		struct jit_process *process = jits->process[i];
		if (process->used_since_trim)
			process->used_since_trim = false;
		else
			jits_remove(jits, process);
	}
}

struct error *jit_process_load(struct jit_process *process, int fd, const char *name)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_errno("read %s", name);
	for (size_t i = 0; i < process->dump_count; i++) {
		struct jitdump *dump = &process->dump[i];
		if (dump->device == st.st_dev && dump->inode == st.st_ino)
			return jitdump_update(dump, fd, name);
	}
	TRY(ARRAY_RESERVE(process->dump, process->dump_room, process->dump_count, 1, JITS_DUMPS,
			  "jitdump files of one process"));
	struct jitdump *dump = &process->dump[process->dump_count];
	*dump = (struct jitdump)JITDUMP_INIT;
	struct error *err = jitdump_update(dump, fd, name);
	if (err && !dump->count)
		jitdump_deinit(dump);
	else
		process->dump_count++; // what stands before the damage is of use
	return err;
}

bool jit_process_find(const struct jit_process *process, uint64_t pc, uint64_t time_ns,
		      struct jitdump_found *ret)
{
	for (size_t i = 0; i < process->dump_count; i++)
		if (jitdump_find(&process->dump[i], pc, time_ns, ret))
			return true;
	const char *name = perfmap_find(&process->map, pc);
	if (!name)
		return false;
	*ret = (struct jitdump_found){.name = name};
	return true;
}

size_t jit_process_bytes(const struct jit_process *process)
{
	size_t bytes = sizeof(*process) + perfmap_bytes(&process->map);

	for (size_t i = 0; i < process->dump_count; i++)
		bytes += jitdump_bytes(&process->dump[i]);
	return bytes;
}
