/* SPDX-License-Identifier: Apache-2.0 */
/* Names of addresses in one object: where they are looked for, and in which order. */
#define LOG_DOMAIN "symbolize"
#include "symbolize/symbolizer.h"

#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/str.h"
#include "object/go.h"
#include "symbolize/debugfile.h"
#include "symbolize/debuginfo.h"
#include "symbolize/minidebug.h"
#include "symbolize/plt.h"
#include "symbolize/state.h"
#include "symbolize/symtab.h"

struct symbol_object {
	struct symbolizer *symbolizer; /* borrowed; it owns this */
	struct object *object;         /* borrowed from the caller */
	const struct rows *rows;       /* borrowed from the caller */
	char *path;
	uint32_t pid;
	uint64_t used; /* symbolizer->clock of the last use */
	bool no_lines; /* its lines are not wanted */

	bool loaded;
	struct symtab symtab;
	struct minidebug mini;
	struct object *debug; /* separate debug file; NULL: none */
	bool no_debug;        /* it has been looked for in vain */
	struct go_table *go;  /* NULL: not made by Go */
	bool lines_known;
	struct object *again;    /* the object itself, opened once more for its DWARF */
	struct debuginfo *lines; /* NULL: none, or not wanted */
};

struct error *symbolizer_object(struct symbolizer *symbolizer, struct object *object,
				const struct symbol_place *place, struct symbol_object **ret)
{
	for (size_t i = 0; i < symbolizer->object_count; i++) {
		if (symbolizer->object[i]->object == object) {
			*ret = symbolizer->object[i];
			return NULL;
		}
	}
	TRY(ARRAY_RESERVE(symbolizer->object, symbolizer->object_room, symbolizer->object_count, 1,
			  SYMBOLIZER_OBJECTS, "objects"));
	struct symbol_object *made = calloc(1, sizeof(*made));
	if (!made)
		return error_oom();
	struct error *err = str_copy(&made->path, place->path);
	if (err) {
		free(made);
		return err;
	}
	made->symbolizer = symbolizer;
	made->object = object;
	made->rows = place->rows;
	made->pid = place->pid;
	symbolizer->object[symbolizer->object_count++] = made;
	*ret = made;
	return NULL;
}

void symbol_object_set_lines(struct symbol_object *object, bool wanted)
{
	object->no_lines = !wanted;
}

void symbol_object_drop(struct symbol_object *object)
{
	if (!object->loaded)
		return;
	debuginfo_free(take(object->lines));
	object->lines_known = false;
	object_free(take(object->again));
	go_table_free(take(object->go));
	symtab_deinit(&object->symtab);
	minidebug_deinit(&object->mini);
	object_free(take(object->debug));
	object_release(object->object);
	object->loaded = false;
}

void symbol_object_free(struct symbol_object *object)
{
	struct symbolizer *symbolizer;

	if (!object)
		return;
	symbolizer = object->symbolizer;
	symbol_object_drop(object);
	for (size_t i = 0; i < symbolizer->object_count; i++)
		if (symbolizer->object[i] == object)
			symbolizer->object[i] = symbolizer->object[--symbolizer->object_count];
	free(object->path);
	free(object);
}

size_t symbol_object_bytes(const struct symbol_object *object)
{
	if (!object->loaded)
		return 0;
	size_t lines = object->lines ? debuginfo_bytes(object->lines) : 0;
	return sizeof(*object) + symtab_bytes(&object->symtab) + lines;
}

uint64_t symbol_object_used(const struct symbol_object *object)
{
	return object->used;
}

static struct debugfile_search search_of(const struct symbol_object *object)
{
	return (struct debugfile_search){
		.options = &object->symbolizer->options, .path = object->path, .pid = object->pid};
}

/* The separate debug file, looked for once and kept until the tables are dropped. */
static struct error *find_debug(struct symbol_object *object)
{
	struct debugfile_search search = search_of(object);

	if (object->debug || object->no_debug)
		return NULL;
	TRY(debugfile_open(&search, object->object, &object->debug));
	object->no_debug = !object->debug;
	return NULL;
}

static bool has_section(struct object *object, const char *name)
{
	size_t count;
	const struct object_section *section = object_sections(object, &count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(section[i].name, name))
			return true;
	return false;
}

/* Symbols of what was stripped: from the file itself or from a separate one. */
static struct error *load_stripped(struct symbol_object *object)
{
	struct symtab *symtab = &object->symtab;

	struct error *err = minidebug_open(object->object, &object->mini);
	if (err) {
		log_debug("MiniDebugInfo not used error=\"%s\"", error_text(err));
		error_free(err); // damaged: the other tables have to do
	}
	if (object->mini.object)
		TRY(symtab_add(symtab, object->mini.object, ".symtab", ".strtab"));
	TRY(find_debug(object));
	if (object->debug)
		TRY(symtab_add(symtab, object->debug, ".symtab", ".strtab"));
	return NULL;
}

static struct error *load_go(struct symbol_object *object)
{
	if (!object_is_go(object->object))
		return NULL;
	struct error *err = go_table_open(object->object, &object->go);
	if (err) {
		log_debug("pclntab not used error=\"%s\"", error_text(err));
		error_free(err); // damaged: what symbols there are have to do
	}
	return NULL;
}

static struct error *load_tables(struct symbol_object *object)
{
	struct symtab *symtab = &object->symtab;

	TRY(load_go(object));
	TRY(symtab_set_text(symtab, object->object));
	if (has_section(object->object, ".symtab"))
		TRY(symtab_add(symtab, object->object, ".symtab", ".strtab"));
	else
		TRY(load_stripped(object));
	TRY(symtab_add(symtab, object->object, ".dynsym", ".dynstr"));
	TRY(plt_add(symtab, object->object));
	symtab_finish(symtab);

	// The symbol tables are not needed any more; string tables are read again with the first
	// name.
	symtab_release(symtab);
	object_release(object->object);
	if (object->debug)
		object_release(object->debug);
	if (object->mini.object)
		object_release(object->mini.object);
	return NULL;
}

/*
 * DWARF of the object or of its debug file. The object's own is read through a handle of its own if
 * the file can be had once more: what libelf has read can only be given back by closing it.
 */
static struct error *load_lines(struct symbol_object *object)
{
	struct debugfile_search search = search_of(object);
	struct object *source = object->object;

	if (object->lines_known || !search.options->lines)
		return NULL;
	object->lines_known = true;
	if (has_section(source, ".debug_info") || has_section(source, ".zdebug_info")) {
		TRY(debugfile_reopen(&search, source, &object->again));
		source = object->again ? object->again : source;
	} else {
		TRY(find_debug(object));
		source = object->debug;
	}
	if (!source)
		return NULL;
	TRY(debuginfo_open(&search, source, &object->lines));
	symbolizer_evict(object->symbolizer);
	return NULL;
}

static struct error *load(struct symbol_object *object)
{
	object->used = ++object->symbolizer->clock;
	if (object->loaded)
		return NULL;
	object->loaded = true;
	struct error *err = load_tables(object);
	if (err)
		symbol_object_drop(object);
	else
		symbolizer_evict(object->symbolizer);
	return err;
}

/* What is shown where there is no name: "(path+0xSTART)", or "(path)". */
static struct error *name_by_place(struct symbol_object *object, uint64_t addr, struct symbol *ret)
{
	_cleanup_free_ char *text = NULL;
	uint64_t start = 0;

	ret->identified = object->rows && rows_find_start(object->rows, addr, &start);
	ret->start = start;
	if (ret->identified)
		TRY(str_format(&text, "(%s+0x%llx)", object->path, (unsigned long long)start));
	else
		TRY(str_format(&text, "(%s)", object->path));
	return names_add(&object->symbolizer->names, text, strlen(text), &ret->function);
}

/* The symbol that holds ADDR, unless it only seems to: one without a size ends where the unwind
 * information knows of another function. */
static bool find_symbol(struct symbol_object *object, uint64_t addr, struct symtab_found *ret)
{
	struct symtab_found found;
	uint64_t start;

	if (!symtab_find(&object->symtab, addr, &found))
		return false;
	if (!found.sized && object->rows && rows_find_start(object->rows, addr, &start) &&
	    start > found.start)
		return false;
	*ret = found;
	return true;
}

static struct error *add_name(struct symbol_object *object, const char *text, const char **ret)
{
	if (text)
		return names_add(&object->symbolizer->names, text, strlen(text), ret);
	*ret = NULL;
	return NULL;
}

static struct error *add_file(struct symbol_object *object, const struct debuginfo_call *call,
			      const char **ret)
{
	_cleanup_free_ char *path = NULL;

	if (!call->file || call->file[0] == '/' || !call->dir)
		return add_name(object, call->file, ret);
	TRY(str_format(&path, "%s/%s", call->dir, call->file));
	return add_name(object, path, ret);
}

/* What one call of DWARF says. Where it has no name at all, RET->function stays NULL. */
static struct error *name_call(struct symbol_object *object, const struct debuginfo_call *call,
			       struct symbol *ret)
{
	const char *name = call->scoped_name ? call->scoped_name : call->name;

	if (call->linkage_name)
		TRY(names_add_symbol(&object->symbolizer->names, call->linkage_name, "",
				     &ret->function));
	else
		TRY(add_name(object, name, &ret->function));
	ret->line = call->line;
	return add_file(object, call, &ret->file);
}

/* Calls of DWARF, innermost first. OUTER is the function itself as symbols know it; its name is
 * better than DWARF's, which has none for what a compiler made of one (".cold", ".constprop"). */
static struct error *name_calls(struct symbol_object *object, const struct debuginfo_call *calls,
				size_t count, const struct symbol *outer, struct symbol *ret)
{
	for (size_t i = 0; i < count; i++) {
		struct symbol symbol = {.kind = outer->kind, .inlined = i + 1 < count};
		TRY(name_call(object, &calls[i], &symbol));
		if (!symbol.inlined && outer->named)
			symbol.function = outer->function;
		if (!symbol.inlined)
			symbol.start = outer->start ? outer->start : calls[i].start;
		symbol.named = symbol.function != NULL;
		if (!symbol.named && symbol.inlined)
			TRY(add_name(object, "[inlined]", &symbol.function));
		else if (!symbol.named)
			symbol.function = outer->function;
		symbol.identified = symbol.named || outer->identified;
		ret[i] = symbol;
	}
	return NULL;
}

/* Add inlined calls and lines to the one entry in RET. */
static struct error *add_lines(struct symbol_object *object, uint64_t addr,
			       struct symbol ret[SYMBOLS_MAX], size_t *ret_count)
{
	struct debuginfo_call calls[SYMBOLS_MAX];
	struct symbol outer = ret[0];
	size_t count;

	TRY(load_lines(object));
	if (!object->lines)
		return NULL;
	TRY(debuginfo_find(object->lines, addr, SYMBOLS_MAX, calls, &count));
	if (!count)
		return NULL;
	struct error *err = name_calls(object, calls, count, &outer, ret);
	debuginfo_calls_deinit(calls, count);
	*ret_count = count;
	return err;
}

/* Names by the pclntab. RET_COUNT 0: ADDR is in no Go function (cgo's part of a program). */
static struct error *name_go(struct symbol_object *object, uint64_t addr,
			     struct symbol ret[SYMBOLS_MAX], size_t *ret_count)
{
	bool lines = object->symbolizer->options.lines;
	struct go_call calls[GO_CALLS_MAX];
	struct go_function function;

	*ret_count = 0;
	if (!object->go || !go_function_find(object->go, addr, &function))
		return NULL;
	size_t count = go_inlines(object->go, &function, addr, calls);
	for (size_t i = lines || !count ? 0 : count - 1; i < count && *ret_count < SYMBOLS_MAX;
	     i++) {
		struct symbol symbol = {.kind = KIND_go, .named = true, .identified = true};
		symbol.inlined = calls[i].inlined;
		symbol.start = symbol.inlined ? 0 : function.entry;
		TRY(add_name(object, calls[i].function, &symbol.function));
		if (lines) {
			TRY(add_name(object, calls[i].file, &symbol.file));
			symbol.line = calls[i].line;
		}
		ret[(*ret_count)++] = symbol;
	}
	return NULL;
}

struct error *symbolize_object(struct symbol_object *object, uint64_t addr, bool return_address,
			       struct symbol ret[SYMBOLS_MAX], size_t *ret_count)
{
	struct symbol symbol = {.kind = KIND_native};
	struct symtab_found found;

	TRY(load(object));
	if (return_address && addr)
		addr--;
	TRY(name_go(object, addr, ret, ret_count));
	if (*ret_count)
		return NULL;
	if (find_symbol(object, addr, &found)) {
		symbol.named = symbol.identified = true;
		symbol.start = found.start;
		TRY(names_add_symbol(&object->symbolizer->names, found.name, found.suffix,
				     &symbol.function));
	} else {
		TRY(name_by_place(object, addr, &symbol));
	}
	ret[0] = symbol;
	*ret_count = 1;
	return object->no_lines ? NULL : add_lines(object, addr, ret, ret_count);
}
