/* SPDX-License-Identifier: Apache-2.0 */
/* One process's perf map. When it is opened and forgotten is the symbolizer's business. */
#include "symbolize/perfmap.h"

#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "symbolize/textlines.h"

/* Pieces of the map at first, entries of the file behind them: the later, the stronger. */
struct layers {
	struct perfmap_piece *piece;
	size_t count, room;
};

static void layers_deinit(struct layers *layers)
{
	free(layers->piece);
}

void perfmap_deinit(struct perfmap *map)
{
	free(map->piece);
	strbuf_deinit(&map->names);
	*map = (struct perfmap)PERFMAP_INIT;
}

size_t perfmap_bytes(const struct perfmap *map)
{
	return map->room * sizeof(*map->piece) + map->names.room;
}

static uint64_t piece_end(const struct perfmap_piece *piece)
{
	return piece->start + piece->size;
}

static struct error *add_line(struct perfmap *map, struct layers *layers, char *line)
{
	uint64_t start, size;

	// What is no entry is passed over: some programs write comments and blank lines.
	if (!textline_hex(&line, &start) || !textline_hex(&line, &size))
		return NULL;
	size_t length = strnlen(line, PERFMAP_NAME_BYTES);
	if (!length || !size || size > UINT32_MAX || start > UINT64_MAX - size)
		return NULL;

	struct perfmap_piece piece = {start, (uint32_t)size, (uint32_t)map->names.length};
	TRY(strbuf_add(&map->names, line, length));
	TRY(strbuf_add(&map->names, "", 1));
	TRY(ARRAY_RESERVE(layers->piece, layers->room, layers->count, 1, 3 * PERFMAP_LINES,
			  "entries in a perf map"));
	layers->piece[layers->count++] = piece;
	return NULL;
}

/* A heap of layer numbers, the greatest on top. */
struct heap {
	uint32_t *item;
	size_t count;
};

static void heap_push(struct heap *heap, uint32_t item)
{
	size_t at = heap->count++;

	while (at && heap->item[(at - 1) / 2] < item) {
		heap->item[at] = heap->item[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap->item[at] = item;
}

static void heap_pop(struct heap *heap)
{
	uint32_t item = heap->item[--heap->count];
	size_t at = 0;

	for (size_t child = 1; child < heap->count; child = 2 * at + 1) {
		if (child + 1 < heap->count && heap->item[child + 1] > heap->item[child])
			child++;
		if (heap->item[child] <= item)
			break;
		heap->item[at] = heap->item[child];
		at = child;
	}
	heap->item[at] = item;
}

static int compare_start(const void *a, const void *b, void *context)
{
	const struct perfmap_piece *piece = context;
	uint64_t x = piece[*(const uint32_t *)a].start, y = piece[*(const uint32_t *)b].start;

	return x < y ? -1 : x > y;
}

/* Add FROM to UNTIL of LAYER to the end of PIECES, as part of the piece before if it continues it.
 */
static struct error *emit(struct layers *pieces, uint64_t from, uint64_t until,
			  const struct perfmap_piece *layer)
{
	struct perfmap_piece *last = pieces->count ? &pieces->piece[pieces->count - 1] : NULL;

	if (last && piece_end(last) == from && last->name == layer->name) {
		last->size = (uint32_t)(until - last->start);
		return NULL;
	}
	TRY(ARRAY_RESERVE(pieces->piece, pieces->room, pieces->count, 1, 6 * PERFMAP_LINES,
			  "pieces of a perf map"));
	pieces->piece[pieces->count++] =
		(struct perfmap_piece){from, (uint32_t)(until - from), layer->name};
	return NULL;
}

/* Sweep over LAYERS in the order of their starts; at each place the strongest one that covers it is
 * on top of the heap. */
static struct error *flatten(const struct layers *layers, struct layers *ret)
{
	_cleanup_(layers_deinit) struct layers pieces = {0};
	_cleanup_free_ uint32_t *order = calloc(layers->count + 1, sizeof(*order));
	_cleanup_free_ uint32_t *items = calloc(layers->count + 1, sizeof(*items));
	struct heap heap = {.item = items};
	uint64_t at = 0;
	size_t next = 0;

	if (!order || !items)
		return error_oom();
	for (size_t i = 0; i < layers->count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, layers->count, sizeof(*order), compare_start, layers->piece);

	for (;;) {
		while (heap.count && piece_end(&layers->piece[heap.item[0]]) <= at)
			heap_pop(&heap);
		if (!heap.count && next == layers->count)
			break;
		if (!heap.count)
			at = layers->piece[order[next]].start;
		while (next < layers->count && layers->piece[order[next]].start <= at)
			heap_push(&heap, order[next++]);
		const struct perfmap_piece *top = &layers->piece[heap.item[0]];
		uint64_t until = piece_end(top);
		if (next < layers->count && layers->piece[order[next]].start < until)
			until = layers->piece[order[next]].start;
		TRY(emit(&pieces, at, until, top));
		at = until;
	}
	*ret = take_struct(pieces);
	return NULL;
}

/* Read the lines of FD from map->offset on. */
static struct error *read_lines(struct perfmap *map, int fd, const char *name,
				struct layers *layers)
{
	_cleanup_(textlines_close) struct textlines lines = {0};
	struct textline line;
	bool more;

	TRY(textlines_open(fd, name, map->offset, &lines));
	for (size_t count = 0; count < PERFMAP_LINES && lines.offset < PERFMAP_FILE_BYTES;
	     count++) {
		TRY(textlines_read(&lines, &line, &more));
		if (!more || !line.whole)
			break;
		TRY(add_line(map, layers, line.text));
		map->offset = lines.offset;
	}
	return NULL;
}

/* Begin where MAP stands: its pieces as the weakest layers, its names copied. */
static struct error *copy_map(const struct perfmap *map, struct perfmap *copy,
			      struct layers *layers)
{
	if (map->names.length)
		TRY(strbuf_add(&copy->names, map->names.text, map->names.length));
	TRY(ARRAY_RESERVE(layers->piece, layers->room, 0, map->count, 3 * PERFMAP_LINES,
			  "entries in a perf map"));
	if (map->count)
		memcpy(layers->piece, map->piece, map->count * sizeof(*map->piece));
	layers->count = map->count;
	copy->offset = map->offset;
	return NULL;
}

struct error *perfmap_update(struct perfmap *map, int fd, const char *name)
{
	_cleanup_(perfmap_deinit) struct perfmap fresh = PERFMAP_INIT;
	_cleanup_(layers_deinit) struct layers layers = {0};
	struct layers pieces;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_errno("read %s", name);
	if (!S_ISREG(st.st_mode))
		return error_new("%s: not a regular file", name);
	bool same = map->offset && map->device == st.st_dev && map->inode == st.st_ino &&
		    (uint64_t)st.st_size >= map->offset;
	if (same && (uint64_t)st.st_size == map->offset)
		return NULL;
	if (same)
		TRY(copy_map(map, &fresh, &layers));
	fresh.device = st.st_dev;
	fresh.inode = st.st_ino;
	TRY(read_lines(&fresh, fd, name, &layers));
	TRY(flatten(&layers, &pieces));
	fresh.piece = pieces.piece;
	fresh.count = pieces.count;
	fresh.room = pieces.room;
	perfmap_deinit(map);
	*map = take_struct(fresh);
	return NULL;
}

const char *perfmap_find(const struct perfmap *map, uint64_t pc)
{
	size_t low = 0, high = map->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (map->piece[middle].start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || pc - map->piece[low - 1].start >= map->piece[low - 1].size)
		return NULL;
	return map->names.text + map->piece[low - 1].name;
}
