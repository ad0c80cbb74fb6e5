/* SPDX-License-Identifier: Apache-2.0 */
/* Names of what walks meet. How an address gets its name is symbolize/'s business. */
#define LOG_DOMAIN "naming"
#include "capture/namer.h"

#include <fcntl.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/str.h"
#include "proc/process.h"
#include "proc/root.h"
#include "symbolize/names.h"

struct namer {
	struct namer_options options;
	struct symbolizer *symbolizer;
	struct symbol_object **symbols; /* by object number; NULL: not open */
	struct rows *starts;            /* by object number; symbols refer to them */
	uint32_t opened;                /* numbers below this may be open */
	struct names names;             /* of objects that cannot be opened */
	bool kernel_loaded;
	uint32_t pid, ns_pid; /* the process asked about last, and what it calls itself */
};

/* Perf maps and debug files: a file of the target's owner or root's, below the target's root. */
static int open_for_symbols(void *context, uint32_t pid, const char *path)
{
	enum root_outcome outcome;
	int fd = -1;
	struct error *err = root_open((pid_t)pid, path, &outcome, &fd);

	if (err) {
		log_debug("%s", error_text(err));
		// No such file is the usual case, and no descriptor left ends alike.
		error_free(err);
		return -1;
	}
	return outcome == ROOT_opened ? fd : -1;
}

static struct error *init(struct namer *namer)
{
	struct symbolizer_options how = {
		.open = open_for_symbols,
		.lines = namer->options.lines,
		.debuginfod = namer->options.debuginfod,
	};

	TRY(ARRAY_NEW(namer->symbols, STORE_MODULES_MAX));
	TRY(ARRAY_NEW(namer->starts, STORE_MODULES_MAX));
	return symbolizer_new(&how, &namer->symbolizer);
}

struct error *namer_new(const struct namer_options *options, struct namer **ret)
{
	struct namer *namer;

	TRY(ARRAY_NEW(namer, 1));
	namer->options = *options;
	struct error *err = init(namer);
	if (err) {
		namer_free(namer);
		return err;
	}
	*ret = namer;
	return NULL;
}

static void close_objects(struct namer *namer)
{
	for (uint32_t i = 0; i < namer->opened; i++) {
		symbol_object_free(namer->symbols[i]);
		namer->symbols[i] = NULL;
		rows_deinit(&namer->starts[i]);
		namer->starts[i] = (struct rows)ROWS_INIT;
	}
	namer->opened = 0;
}

void namer_free(struct namer *namer)
{
	if (!namer)
		return;
	close_objects(namer);
	symbolizer_free(namer->symbolizer);
	names_deinit(&namer->names);
	free(namer->symbols);
	free(namer->starts);
	free(namer);
}

void namer_trim(struct namer *namer)
{
	close_objects(namer);
	symbolizer_trim(namer->symbolizer);
	names_deinit(&namer->names);
}

/* The symbols of object NUMBER; NULL when its file could not be opened. */
static struct error *symbols_of(struct namer *namer, uint32_t number, struct symbol_object **ret)
{
	struct objects *objects = namer->options.objects;
	struct object *object = objects_object(objects, number);

	if (!object || number >= STORE_MODULES_MAX) {
		*ret = NULL;
		return NULL;
	}
	if (!namer->symbols[number]) {
		namer->opened = number >= namer->opened ? number + 1 : namer->opened;
		rows_deinit(&namer->starts[number]);
		TRY(objects_starts(objects, number, &namer->starts[number]));
		struct symbol_place place = {
			.path = objects_path(objects, number),
			.pid = objects_pid(objects, number),
			.rows = &namer->starts[number],
		};
		TRY(symbolizer_object(namer->symbolizer, object, &place, &namer->symbols[number]));
	}
	*ret = namer->symbols[number];
	return NULL;
}

struct error *namer_object(struct namer *namer, const struct namer_place *place,
			   struct symbol ret[SYMBOLS_MAX], size_t *ret_count)
{
	struct symbol symbol = {.kind = KIND_native};
	struct symbol_object *from;
	_cleanup_free_ char *text = NULL;

	TRY(symbols_of(namer, place->object, &from));
	if (from) {
		symbol_object_set_lines(from, !place->plain);
		return symbolize_object(from, place->addr, place->call, ret, ret_count);
	}
	TRY(str_format(&text, "(%s)", objects_path(namer->options.objects, place->object)));
	TRY(names_add(&namer->names, text, strlen(text), &symbol.function));
	ret[0] = symbol;
	*ret_count = 1;
	return NULL;
}

/* What process PID calls itself: its pid in its own namespace, which names its perf map. */
static uint32_t ns_pid_of(struct namer *namer, uint32_t pid)
{
	struct process_status status;
	enum process_look look;

	if (namer->pid == pid && namer->ns_pid)
		return namer->ns_pid;
	struct error *err = process_read_status((pid_t)pid, &look, &status);
	bool known = !err && look == PROCESS_there && status.ns_count;
	error_free(err); // gone: the map may be there all the same, under the number we know
	namer->pid = pid;
	namer->ns_pid = known ? (uint32_t)status.ns_pid[status.ns_count - 1] : pid;
	return namer->ns_pid;
}

struct error *namer_jit(struct namer *namer, uint32_t pid, uint64_t pc, struct symbol *ret)
{
	struct symbol_jit at = {.pid = pid, .ns_pid = ns_pid_of(namer, pid), .pc = pc};

	return symbolize_jit(namer->symbolizer, &at, ret);
}

/* Names of the kernel are read when the first one is asked for. */
static struct error *load_kernel(struct namer *namer)
{
	if (namer->kernel_loaded)
		return NULL;
	namer->kernel_loaded = true;
	_cleanup_close_ int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL; // no names for kernel frames, which then say so themselves
	return symbolizer_load_kernel(namer->symbolizer, fd);
}

struct error *namer_kernel(struct namer *namer, uint64_t pc, struct symbol *ret)
{
	TRY(load_kernel(namer));
	return symbolize_kernel(namer->symbolizer, pc, ret);
}
