/* SPDX-License-Identifier: Apache-2.0 */
/* One jitdump file. Finding and opening it is the caller's business. */
#include "symbolize/jitdump.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"

enum {
	MAGIC = 0x4a695444,
	HEADER_BYTES = 40,
	PREFIX_BYTES = 16,
	FLAG_ARCH_TIME = 1,
	// A hostile file may put everything at one address; a look-up then settles for the latest
	// of as many as this.
	VISITS_MAX = 1 << 14,
	PIECE_BYTES = 256 << 10,
};

enum record_id { RECORD_LOAD, RECORD_MOVE, RECORD_LINES, RECORD_CLOSE, RECORD_UNWIND };

void jitdump_deinit(struct jitdump *dump)
{
	free(dump->function);
	free(dump->line);
	free(dump->order);
	free(dump->end);
	strbuf_deinit(&dump->text);
	hash_index_deinit(&dump->at);
	*dump = (struct jitdump)JITDUMP_INIT;
}

size_t jitdump_bytes(const struct jitdump *dump)
{
	size_t index = dump->at.slots ? ((size_t)dump->at.mask + 1) * sizeof(*dump->at.slots) : 0;

	return dump->room * sizeof(*dump->function) + dump->line_room * sizeof(*dump->line) +
	       dump->text.room + index +
	       dump->ordered * (sizeof(*dump->order) + sizeof(*dump->end));
}

static struct error *add_text(struct jitdump *dump, const char *text, size_t length, uint32_t *ret)
{
	if (length + 1 > JITDUMP_TEXT_BYTES - dump->text.length)
		return error_new("more than %d bytes of names in a jitdump", JITDUMP_TEXT_BYTES);
	size_t at = dump->text.length;
	TRY(strbuf_add(&dump->text, text, length));
	TRY(strbuf_add(&dump->text, "", 1));
	*ret = (uint32_t)at;
	return NULL;
}

struct wanted {
	const struct jitdump *dump;
	uint64_t start;
};

static bool starts_at(const void *context, uint32_t item)
{
	const struct wanted *wanted = context;

	return wanted->dump->function[item].start == wanted->start;
}

static bool find_start(const struct jitdump *dump, uint64_t start, uint32_t *ret)
{
	struct wanted wanted = {dump, start};

	return hash_find(&dump->at, hash_u64(start), starts_at, &wanted, ret);
}

static struct error *add_function(struct jitdump *dump, const struct jitdump_function *function)
{
	uint64_t hash = hash_u64(function->start);
	uint32_t before;

	if (!function->size || function->start > UINT64_MAX - function->size)
		return NULL;
	TRY(ARRAY_RESERVE(dump->function, dump->room, dump->count, 1, JITDUMP_FUNCTIONS,
			  "functions in a jitdump"));
	if (find_start(dump, function->start, &before))
		hash_remove(&dump->at, hash, before);
	TRY(hash_add(&dump->at, hash, (uint32_t)dump->count));
	dump->function[dump->count++] = *function;
	return NULL;
}

static struct error *read_load(struct jitdump *dump, struct bytes *b, uint64_t time_ns)
{
	struct jitdump_function function = {.from_ns = time_ns, .until_ns = UINT64_MAX};
	uint64_t index;

	TRY(bytes_skip(b, 4 + 4 + 8)); // pid, tid, vma
	TRY(bytes_u64(b, &function.start));
	TRY(bytes_u64(b, &function.size));
	TRY(bytes_u64(b, &index));
	size_t length = strnlen((const char *)b->at, bytes_left(b));
	if (length > JITDUMP_NAME_BYTES)
		length = JITDUMP_NAME_BYTES;
	TRY(add_text(dump, (const char *)b->at, length, &function.name));
	if (dump->lines.count && dump->lines.addr == function.start) {
		function.first_line = dump->lines.first;
		function.line_count = dump->lines.count;
	}
	dump->lines.count = 0;
	return add_function(dump, &function);
}

static struct error *read_move(struct jitdump *dump, struct bytes *b, uint64_t time_ns)
{
	uint64_t from, to, size;
	uint32_t item;

	TRY(bytes_skip(b, 4 + 4 + 8)); // pid, tid, vma
	TRY(bytes_u64(b, &from));
	TRY(bytes_u64(b, &to));
	TRY(bytes_u64(b, &size));
	if (!find_start(dump, from, &item))
		return NULL;
	struct jitdump_function moved = dump->function[item];
	hash_remove(&dump->at, hash_u64(from), item);
	dump->function[item].until_ns = time_ns;
	moved.start = to;
	moved.size = size;
	moved.from_ns = time_ns;
	moved.line_count = 0; // their addresses are those of the old place
	return add_function(dump, &moved);
}

static struct error *read_line(struct jitdump *dump, struct bytes *b)
{
	struct jitdump_line line;
	const char *file;

	TRY(bytes_u64(b, &line.addr));
	TRY(bytes_u32(b, &line.line));
	TRY(bytes_skip(b, 4)); // discriminator
	TRY(bytes_string(b, &file));
	bool first = !dump->lines.count;
	uint32_t before = first ? 0 : dump->line[dump->line_count - 1].file;
	// "\xff" stands for the file of the line before.
	bool same = !first && (!strcmp(file, "\xff") || !strcmp(file, dump->text.text + before));
	line.file = before;
	if (!same)
		TRY(add_text(dump, file, strnlen(file, JITDUMP_NAME_BYTES), &line.file));
	TRY(ARRAY_RESERVE(dump->line, dump->line_room, dump->line_count, 1, JITDUMP_LINES,
			  "source lines in a jitdump"));
	dump->line[dump->line_count++] = line;
	dump->lines.count++;
	return NULL;
}

static struct error *read_lines(struct jitdump *dump, struct bytes *b)
{
	uint64_t count;

	TRY(bytes_u64(b, &dump->lines.addr));
	TRY(bytes_u64(b, &count));
	dump->lines.first = (uint32_t)dump->line_count;
	dump->lines.count = 0;
	for (uint64_t i = 0; i < count && bytes_left(b); i++)
		TRY(read_line(dump, b));
	return NULL;
}

/* One record, of which B holds what is behind the prefix (or the first JITDUMP_RECORD_BYTES). */
static struct error *read_record(struct jitdump *dump, uint32_t id, uint64_t time_ns,
				 struct bytes *b)
{
	if (dump->timeless)
		time_ns = 0;
	switch ((enum record_id)id) {
	case RECORD_LOAD:
		return read_load(dump, b, time_ns);
	case RECORD_MOVE:
		return read_move(dump, b, time_ns);
	case RECORD_LINES:
		return read_lines(dump, b);
	case RECORD_CLOSE:
		dump->closed = true;
		return NULL;
	case RECORD_UNWIND:
		break;
	}
	return NULL; // records of kinds to come are passed over
}

static struct error *read_header(struct jitdump *dump, struct bytes *b, uint32_t *ret_size)
{
	uint32_t magic, version;
	uint64_t flags;

	TRY(bytes_u32(b, &magic));
	b->big_endian = magic == __builtin_bswap32(MAGIC);
	if (magic != MAGIC && !b->big_endian)
		return error_new("%s: not a jitdump file", b->name);
	TRY(bytes_u32(b, &version));
	if (version != 1)
		return bytes_error(b, "jitdump version %u, known is 1", version);
	TRY(bytes_u32(b, ret_size));
	TRY(bytes_skip(b, 4 + 4 + 4 + 8)); // machine, pad, pid, time
	TRY(bytes_u64(b, &flags));
	if (*ret_size < HEADER_BYTES)
		return bytes_error(b, "header of %u bytes", *ret_size);
	dump->big_endian = b->big_endian;
	dump->timeless = flags & FLAG_ARCH_TIME;
	return NULL;
}

/* What is in memory of the file. */
struct window {
	int fd;
	const char *name;
	uint8_t *data;
	size_t room;
	uint64_t offset;
	size_t size;
};

static void window_deinit(struct window *window)
{
	free(window->data);
}

/* Up to WANT bytes of the file from OFFSET on; fewer at its end. */
static struct error *window_read(struct window *window, uint64_t offset, size_t want,
				 struct bytes *ret)
{
	bool held = offset >= window->offset && offset - window->offset <= window->size;
	size_t before = held ? (size_t)(offset - window->offset) : 0;

	if (!held || window->size - before < want) {
		TRY(ARRAY_RESERVE(window->data, window->room, 0,
				  want > PIECE_BYTES ? want : PIECE_BYTES,
				  JITDUMP_RECORD_BYTES + PREFIX_BYTES, "bytes of a jitdump"));
		ssize_t got = pread(window->fd, window->data, window->room, (off_t)offset);
		if (got < 0)
			return error_errno("read %s", window->name);
		window->offset = offset;
		window->size = (size_t)got;
		before = 0;
	}
	size_t left = window->size - before;
	*ret = bytes_over(window->data + before, left < want ? left : want, window->name);
	return NULL;
}

/* Read records from dump->offset on while they are complete. FILE_BYTES: the size of the file. */
static struct error *read_records(struct jitdump *dump, struct window *window, uint64_t file_bytes)
{
	while (!dump->closed && file_bytes - dump->offset >= PREFIX_BYTES) {
		uint32_t id, size;
		uint64_t time_ns;
		struct bytes b;

		TRY(window_read(window, dump->offset, PREFIX_BYTES, &b));
		b.big_endian = dump->big_endian;
		TRY(bytes_u32(&b, &id));
		TRY(bytes_u32(&b, &size));
		TRY(bytes_u64(&b, &time_ns));
		if (size < PREFIX_BYTES)
			return error_new("%s: offset 0x%llx: record of %u bytes", window->name,
					 (unsigned long long)dump->offset, size);
		if (size > file_bytes - dump->offset)
			return NULL;
		if (++dump->records > JITDUMP_RECORDS)
			return error_new("%s: more than %d records", window->name, JITDUMP_RECORDS);
		size_t want = size < JITDUMP_RECORD_BYTES ? size : JITDUMP_RECORD_BYTES;
		TRY(window_read(window, dump->offset, want, &b));
		b.big_endian = dump->big_endian;
		dump->offset += size;
		TRY(bytes_skip(&b, PREFIX_BYTES));
		// A damaged record is one name less; the next one is found by its size.
		error_free(read_record(dump, id, time_ns, &b));
	}
	return NULL;
}

static int compare_start(const void *a, const void *b, void *context)
{
	const struct jitdump_function *function = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (function[x].start != function[y].start)
		return function[x].start < function[y].start ? -1 : 1;
	return x < y ? -1 : 1;
}

/* The greatest end in order[LOW..HIGH), noted at the middle of it and of each half. No deeper than
 * the logarithm of the number of functions. */
static uint64_t note_ends(struct jitdump *dump, size_t low, size_t high)
{
	if (low == high)
		return 0;
	size_t middle = low + (high - low) / 2;
	const struct jitdump_function *function = &dump->function[dump->order[middle]];
	uint64_t end = function->start + function->size;
	uint64_t left = note_ends(dump, low, middle);
	uint64_t right = note_ends(dump, middle + 1, high);
	if (left > end)
		end = left;
	if (right > end)
		end = right;
	dump->end[middle] = end;
	return end;
}

static struct error *sort_functions(struct jitdump *dump)
{
	_cleanup_free_ uint32_t *order = calloc(dump->count + 1, sizeof(*order));
	_cleanup_free_ uint64_t *end = calloc(dump->count + 1, sizeof(*end));

	if (!order || !end)
		return error_oom();
	for (size_t i = 0; i < dump->count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, dump->count, sizeof(*order), compare_start, dump->function);
	free(dump->order);
	free(dump->end);
	dump->order = take(order);
	dump->end = take(end);
	dump->ordered = dump->count;
	note_ends(dump, 0, dump->count);
	return NULL;
}

struct error *jitdump_update(struct jitdump *dump, int fd, const char *name)
{
	_cleanup_(window_deinit) struct window window = {.fd = fd, .name = name};
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_errno("read %s", name);
	if (!S_ISREG(st.st_mode))
		return error_new("%s: not a regular file", name);
	uint64_t size = (uint64_t)st.st_size;
	bool same = dump->offset && dump->device == st.st_dev && dump->inode == st.st_ino &&
		    size >= dump->offset;
	if (!same) {
		uint32_t header;
		struct bytes b;
		jitdump_deinit(dump);
		dump->device = st.st_dev;
		dump->inode = st.st_ino;
		TRY(window_read(&window, 0, HEADER_BYTES, &b));
		TRY(read_header(dump, &b, &header));
		dump->offset = header;
	}
	if (dump->offset > size)
		return NULL;
	struct error *err = read_records(dump, &window, size);
	if (dump->ordered == dump->count)
		return err;
	struct error *unsorted = sort_functions(dump);
	if (!err)
		return unsorted;
	error_free(unsorted); // the first failure is the one to tell of
	return err;
}

/* The better of BEST (NULL: none yet) and CANDIDATE as what was at PC at TIME_NS. */
static const struct jitdump_function *better(const struct jitdump_function *best,
					     const struct jitdump_function *candidate, uint64_t pc,
					     uint64_t time_ns)
{
	if (pc - candidate->start >= candidate->size || candidate->from_ns > time_ns ||
	    candidate->until_ns <= time_ns)
		return best;
	if (!best || candidate->from_ns != best->from_ns)
		return !best || candidate->from_ns > best->from_ns ? candidate : best;
	return candidate > best ? candidate : best; // later in the file
}

static const struct jitdump_function *find_function(const struct jitdump *dump, uint64_t pc,
						    uint64_t time_ns)
{
	const struct jitdump_function *best = NULL;
	struct {
		size_t low, high;
	} todo[64] = {{0, dump->ordered}};
	size_t count = 1;

	for (size_t visits = 0; count && visits < VISITS_MAX; visits++) {
		size_t low = todo[--count].low, high = todo[count].high;
		if (low == high)
			continue;
		size_t middle = low + (high - low) / 2;
		if (dump->end[middle] <= pc) // nothing in this range reaches pc
			continue;
		const struct jitdump_function *function = &dump->function[dump->order[middle]];
		todo[count].low = low;
		todo[count++].high = middle;
		if (function->start > pc)
			continue;
		best = better(best, function, pc, time_ns);
		todo[count].low = middle + 1;
		todo[count++].high = high;
	}
	return best;
}

bool jitdump_find(const struct jitdump *dump, uint64_t pc, uint64_t time_ns,
		  struct jitdump_found *ret)
{
	if (!time_ns || time_ns == UINT64_MAX || dump->timeless)
		time_ns = UINT64_MAX - 1;
	const struct jitdump_function *function = find_function(dump, pc, time_ns);
	if (!function)
		return false;
	*ret = (struct jitdump_found){.name = dump->text.text + function->name,
				      .start = function->start};
	// Lines are nearly always in order of address; where they are not, the nearest before pc
	// holds.
	const struct jitdump_line *best = NULL;
	for (uint32_t i = 0; i < function->line_count; i++) {
		const struct jitdump_line *line = &dump->line[function->first_line + i];
		if (line->addr <= pc && (!best || line->addr >= best->addr))
			best = line;
	}
	if (best) {
		ret->line = best->line;
		ret->file = dump->text.text + best->file;
	}
	return true;
}
