/* SPDX-License-Identifier: Apache-2.0 */
/* The front of this layer: the kernel, run-time code, and what is kept in memory. Objects are in
 * objects.c. */
#define LOG_DOMAIN "symbolize"
#include "symbolize/symbolizer.h"

#include <malloc.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "symbolize/state.h"

enum { MAP_FRESH_NS = 100000000 };

struct error *symbolizer_new(const struct symbolizer_options *options, struct symbolizer **ret)
{
	struct symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));

	if (!symbolizer)
		return error_oom();
	symbolizer->options = *options;
	if (!symbolizer->options.max_bytes)
		symbolizer->options.max_bytes =
			options->lines ? SYMBOLIZER_LINES_BYTES : SYMBOLIZER_BYTES;
	*ret = symbolizer;
	return NULL;
}

void symbolizer_free(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	while (symbolizer->object_count)
		symbol_object_free(symbolizer->object[symbolizer->object_count - 1]);
	free(symbolizer->object);
	jits_deinit(&symbolizer->jits);
	kallsyms_deinit(&symbolizer->kernel);
	names_deinit(&symbolizer->names);
	free(symbolizer);
}

void symbolizer_trim(struct symbolizer *symbolizer)
{
	for (size_t i = 0; i < symbolizer->object_count; i++)
		symbol_object_drop(symbolizer->object[i]);
	jits_trim(&symbolizer->jits);
	names_deinit(&symbolizer->names);
	// Freed tables lie between what stays; without this the C library keeps their pages.
	malloc_trim(0);
}

/* Of all tables, kernel symbols excepted, the one that was used longest ago. */
struct oldest {
	uint64_t used;
	struct symbol_object *object;
	struct jit_process *process;
};

static size_t total_bytes(const struct symbolizer *symbolizer, struct oldest *ret_oldest)
{
	struct oldest oldest = {.used = symbolizer->clock};
	size_t bytes = 0;

	for (size_t i = 0; i < symbolizer->object_count; i++) {
		struct symbol_object *object = symbolizer->object[i];
		size_t held = symbol_object_bytes(object);
		bytes += held;
		if (held && symbol_object_used(object) < oldest.used)
			oldest = (struct oldest){symbol_object_used(object), object, NULL};
	}
	for (size_t i = 0; i < symbolizer->jits.count; i++) {
		struct jit_process *process = symbolizer->jits.process[i];
		bytes += jit_process_bytes(process);
		if (process->used < oldest.used)
			oldest = (struct oldest){process->used, NULL, process};
	}
	*ret_oldest = oldest;
	return bytes;
}

size_t symbolizer_bytes(const struct symbolizer *symbolizer)
{
	const struct kallsyms *kernel = &symbolizer->kernel;
	struct oldest oldest;

	return total_bytes(symbolizer, &oldest) + kernel->room * sizeof(*kernel->entry) +
	       kernel->names.room;
}

void symbolizer_evict(struct symbolizer *symbolizer)
{
	struct oldest oldest;

	while (total_bytes(symbolizer, &oldest) > symbolizer->options.max_bytes) {
		if (oldest.object)
			symbol_object_drop(oldest.object);
		else if (oldest.process)
			jits_remove(&symbolizer->jits, oldest.process);
		else
			break;
	}
}

struct error *symbolizer_load_kernel(struct symbolizer *symbolizer, int fd)
{
	struct kallsyms kernel;

	TRY(kallsyms_read(fd, &kernel));
	kallsyms_deinit(&symbolizer->kernel);
	symbolizer->kernel = kernel;
	return NULL;
}

size_t symbolizer_kernel_count(const struct symbolizer *symbolizer)
{
	return symbolizer->kernel.count;
}

struct error *symbolize_kernel(struct symbolizer *symbolizer, uint64_t pc, struct symbol *ret)
{
	struct symbol symbol = {.kind = KIND_kernel};
	const char *name = kallsyms_find(&symbolizer->kernel, pc, &symbol.start);

	symbol.named = symbol.identified = name != NULL;
	if (!name)
		name = "[kernel]";
	TRY(names_add(&symbolizer->names, name, strlen(name), &symbol.function));
	*ret = symbol;
	return NULL;
}

/* Is the map of PROCESS as it was when the sample was taken, or later? */
static bool map_is_fresh(const struct jit_process *process, uint64_t time_ns)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (!process->map_read_ns)
		return false;
	return time_ns && time_ns < now_ns ? time_ns < process->map_read_ns
					   : now_ns - process->map_read_ns < MAP_FRESH_NS;
}

/* Read the perf map of PROCESS if it may have grown. What is wrong with it means fewer names and is
 * no failure. */
static struct error *refresh_map(struct symbolizer *symbolizer, struct jit_process *process,
				 const struct symbol_jit *at)
{
	const struct symbolizer_options *options = &symbolizer->options;
	_cleanup_free_ char *path = NULL;

	if (!options->open || map_is_fresh(process, at->time_ns))
		return NULL;
	TRY(str_format(&path, "/tmp/perf-%u.map", at->ns_pid));
	process->map_read_ns = clock_monotonic_ns();
	_cleanup_close_ int fd = options->open(options->context, process->pid, path);
	if (fd < 0)
		return NULL;
	struct error *err = perfmap_update(&process->map, fd, path);
	if (err) {
		log_debug("perf map not read pid=%u error=\"%s\"", process->pid, error_text(err));
		error_free(err);
	}
	symbolizer_evict(symbolizer);
	return NULL;
}

struct error *symbolize_jit(struct symbolizer *symbolizer, const struct symbol_jit *at,
			    struct symbol *ret)
{
	struct symbol symbol = {.kind = KIND_jit};
	struct jitdump_found found = {.name = "[jit]"};
	struct jit_process *process;

	TRY(jits_get(&symbolizer->jits, at->pid, ++symbolizer->clock, &process));
	TRY(refresh_map(symbolizer, process, at));
	symbol.named = jit_process_find(process, at->pc, at->time_ns, &found);
	symbol.identified = symbol.named;
	symbol.line = found.line;
	TRY(names_add_symbol(&symbolizer->names, found.name, "", &symbol.function));
	if (found.file)
		TRY(names_add(&symbolizer->names, found.file, strlen(found.file), &symbol.file));
	*ret = symbol;
	return NULL;
}

struct error *symbolizer_load_jitdump(struct symbolizer *symbolizer, uint32_t pid, int fd,
				      const char *name)
{
	struct jit_process *process;

	TRY(jits_get(&symbolizer->jits, pid, ++symbolizer->clock, &process));
	TRY(jit_process_load(process, fd, name));
	symbolizer_evict(symbolizer);
	return NULL;
}
