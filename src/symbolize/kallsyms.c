/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's symbols. Which file they come from is the caller's choice. */
#include "symbolize/kallsyms.h"

#include <string.h>

#include "base/array.h"
#include "symbolize/textlines.h"

enum { KALLSYMS_HOLE = UINT32_MAX };

void kallsyms_deinit(struct kallsyms *symbols)
{
	free(symbols->entry);
	strbuf_deinit(&symbols->names);
	*symbols = (struct kallsyms)KALLSYMS_INIT;
}

/* Code that bears a name of a place, not of a function. */
static bool is_end(const char *name)
{
	return !strcmp(name, "_etext") || !strcmp(name, "_einittext");
}

static struct error *add_name(struct kallsyms *symbols, const char *name, uint32_t *ret)
{
	size_t length = strlen(name);

	if (length + 1 > KALLSYMS_NAME_BYTES - symbols->names.length)
		return error_new("more than %d bytes of kernel symbol names", KALLSYMS_NAME_BYTES);
	*ret = (uint32_t)symbols->names.length;
	return strbuf_add(&symbols->names, name, length + 1);
}

static struct error *add_line(struct kallsyms *symbols, char *line)
{
	struct kallsyms_entry entry;

	if (!textline_hex(&line, &entry.addr) || !entry.addr || !line[0] || line[1] != ' ')
		return NULL;
	bool code = strchr("tTwW", line[0]) != NULL;
	char *name = line + 2;
	name[strcspn(name, " \t")] = 0;
	entry.name = KALLSYMS_HOLE;
	if (code && name[0] && !is_end(name))
		TRY(add_name(symbols, name, &entry.name));
	TRY(ARRAY_RESERVE(symbols->entry, symbols->room, symbols->count, 1, KALLSYMS_MAX,
			  "kernel symbols"));
	symbols->entry[symbols->count++] = entry;
	return NULL;
}

static size_t underscores(const char *name)
{
	return strspn(name, "_");
}

/* By address; at one address the better name first: code before data, then the fewest leading
 * underscores, then the earlier line. */
static int compare(const void *a, const void *b, void *context)
{
	const struct kallsyms_entry *x = a, *y = b;
	const char *names = context;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (x->name == KALLSYMS_HOLE || y->name == KALLSYMS_HOLE)
		return (x->name == KALLSYMS_HOLE) - (y->name == KALLSYMS_HOLE);
	size_t x_noise = underscores(names + x->name), y_noise = underscores(names + y->name);
	if (x_noise != y_noise)
		return x_noise < y_noise ? -1 : 1;
	return x->name < y->name ? -1 : 1;
}

/* Keep one entry per address, and one per run of data. */
static void sort_out(struct kallsyms *symbols)
{
	struct kallsyms_entry *entry = symbols->entry;
	size_t kept = 0;

	if (symbols->count)
		qsort_r(entry, symbols->count, sizeof(*entry), compare, symbols->names.text);
	for (size_t i = 0; i < symbols->count; i++) {
		bool hole = entry[i].name == KALLSYMS_HOLE;
		bool again = kept && entry[kept - 1].addr == entry[i].addr;
		bool after_hole = !kept || entry[kept - 1].name == KALLSYMS_HOLE;
		if (!again && !(hole && after_hole))
			entry[kept++] = entry[i];
	}
	symbols->count = kept;
	if (!kept || !symbols->names.text)
		return;
	// The table stays for the life of the program, so the room that growing left is given back.
	struct kallsyms_entry *fitted = realloc(entry, kept * sizeof(*entry));
	if (fitted) {
		symbols->entry = fitted;
		symbols->room = kept;
	}
	char *names = realloc(symbols->names.text, symbols->names.length + 1);
	if (names) {
		symbols->names.text = names;
		symbols->names.room = symbols->names.length + 1;
	}
}

struct error *kallsyms_read(int fd, struct kallsyms *ret)
{
	_cleanup_(kallsyms_deinit) struct kallsyms symbols = KALLSYMS_INIT;
	_cleanup_(textlines_close) struct textlines lines = {0};
	struct textline line;
	bool more;

	TRY(textlines_open(fd, "kernel symbols", 0, &lines));
	for (;;) {
		TRY(textlines_read(&lines, &line, &more));
		if (!more)
			break;
		TRY(add_line(&symbols, line.text));
	}
	sort_out(&symbols);
	*ret = take_struct(symbols);
	return NULL;
}

const char *kallsyms_find(const struct kallsyms *symbols, uint64_t pc, uint64_t *ret_start)
{
	size_t low = 0, high = symbols->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (symbols->entry[middle].addr <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	const struct kallsyms_entry *entry = &symbols->entry[low - 1];
	if (entry->name == KALLSYMS_HOLE || pc - entry->addr >= KALLSYMS_FUNCTION_MAX)
		return NULL;
	*ret_start = entry->addr;
	return symbols->names.text + entry->name;
}
