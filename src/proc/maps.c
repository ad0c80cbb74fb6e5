/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/maps, line by line. Its form is that of show_map_vma() in the kernel's
 * fs/proc/task_mmu.c. */
#include "proc/maps.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"

/* The kernel escapes a newline as four characters, so that PATH_MAX may grow to this. */
enum { PATH_TEXT_MAX = 4 * PATH_MAX, READ_BYTES = 64 * 1024 };

void maps_deinit(struct maps *maps)
{
	free(maps->map);
	arena_deinit(&maps->paths);
	*maps = (struct maps)MAPS_INIT;
}

bool map_is_file(const struct map *map)
{
	return map->inode && map->path[0] == '/';
}

static int digit_value(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return 16;
}

static struct error *scan_number(struct bytes *b, unsigned base, uint64_t max, uint64_t *ret)
{
	const uint8_t *first = b->at;
	uint64_t value = 0;

	while (b->at < b->end) {
		unsigned digit = (unsigned)digit_value(*b->at);
		if (digit >= base)
			break;
		if (digit > max || value > (max - digit) / base)
			return bytes_error(b, "number too large");
		value = value * base + digit;
		b->at++;
	}
	if (b->at == first)
		return bytes_error(b, "expected a number");
	*ret = value;
	return NULL;
}

static struct error *scan_char(struct bytes *b, char expected)
{
	if (b->at == b->end || *b->at != expected)
		return bytes_error(b, "expected '%c'", expected);
	b->at++;
	return NULL;
}

static struct error *scan_prot(struct bytes *b, uint8_t *ret)
{
	static const struct {
		char on, off;
		uint8_t flag;
	} columns[] = {
		{'r', '-', MAPS_READ},
		{'w', '-', MAPS_WRITE},
		{'x', '-', MAPS_EXECUTE},
		{'s', 'p', MAPS_SHARED},
	};
	uint8_t prot = 0;

	for (size_t i = 0; i < ARRAY_COUNT(columns); i++) {
		if (b->at == b->end || (*b->at != columns[i].on && *b->at != columns[i].off))
			return bytes_error(b, "expected '%c' or '%c'", columns[i].on,
					   columns[i].off);
		prot |= *b->at == columns[i].on ? columns[i].flag : 0;
		b->at++;
	}
	*ret = prot;
	return NULL;
}

static struct error *scan_numbers(struct bytes *b, struct map *map)
{
	uint64_t major, minor;

	TRY(scan_number(b, 16, UINT64_MAX, &map->start));
	TRY(scan_char(b, '-'));
	TRY(scan_number(b, 16, UINT64_MAX, &map->end));
	if (map->end <= map->start)
		return bytes_error(b, "a mapping ends before it starts");
	TRY(scan_char(b, ' '));
	TRY(scan_prot(b, &map->prot));
	TRY(scan_char(b, ' '));
	TRY(scan_number(b, 16, UINT64_MAX, &map->offset));
	TRY(scan_char(b, ' '));
	TRY(scan_number(b, 16, UINT32_MAX, &major));
	TRY(scan_char(b, ':'));
	TRY(scan_number(b, 16, UINT32_MAX, &minor));
	TRY(scan_char(b, ' '));
	TRY(scan_number(b, 10, UINT64_MAX, &map->inode));
	map->dev_major = (uint32_t)major;
	map->dev_minor = (uint32_t)minor;
	return NULL;
}

/* Take the newlines back that seq_path() wrote as \012; it escapes nothing else, not even the
 * backslash. */
static size_t unescape(char *text, size_t length)
{
	size_t out = 0;

	for (size_t in = 0; in < length; in++, out++) {
		bool escaped = length - in >= 4 && !memcmp(text + in, "\\012", 4);
		text[out] = escaped ? '\n' : text[in];
		in += escaped ? 3 : 0;
	}
	return out;
}

/* Keep TEXT. As a rule one file has several mappings in a row, so the last path may serve again.
 */
static struct error *keep_path(struct maps *maps, const char *text, size_t length, const char **ret)
{
	const char *last = maps->count ? maps->map[maps->count - 1].path : "";

	if (strlen(last) == length && !memcmp(last, text, length)) {
		*ret = last;
		return NULL;
	}
	return arena_copy(&maps->paths, text, length, ret);
}

static struct error *scan_path(struct bytes *b, struct maps *maps, struct map *map)
{
	static const char deleted[] = " (deleted)";
	char text[PATH_TEXT_MAX];

	while (b->at < b->end && *b->at == ' ')
		b->at++;
	size_t length = bytes_left(b);
	if (length > sizeof(text))
		return bytes_error(b, "a path of more than %zu bytes", sizeof(text));
	if (memchr(b->at, 0, length))
		return bytes_error(b, "a path with a zero byte");
	memcpy(text, b->at, length);

	size_t tail = sizeof(deleted) - 1;
	map->deleted = length > tail && !memcmp(text + length - tail, deleted, tail);
	if (map->deleted)
		length -= tail;
	b->at = b->end;
	return keep_path(maps, text, unescape(text, length), &map->path);
}

/*
 * Put MAP at the end. Between two reads of the file a mapping may have been merged with one that
 * was listed already; the kernel then goes on with one that starts before the last end.
 */
static struct error *add_map(struct maps *maps, const struct map *map)
{
	while (maps->count && maps->map[maps->count - 1].start >= map->start)
		maps->count--;
	if (maps->count && maps->map[maps->count - 1].end > map->start)
		maps->map[maps->count - 1].end = map->start;
	TRY(ARRAY_RESERVE(maps->map, maps->room, maps->count, 1, MAPS_MAX, "mappings"));
	maps->map[maps->count++] = *map;
	return NULL;
}

static struct error *add_line(struct maps *maps, enum maps_which which, struct bytes *line)
{
	struct map map = {0};

	TRY(scan_numbers(line, &map));
	if (which == MAPS_executable && !(map.prot & MAPS_EXECUTE))
		return NULL;
	// Without a path the line ends in a space, or (before Linux 3.16) right behind the inode.
	if (bytes_left(line))
		TRY(scan_char(line, ' '));
	TRY(scan_path(line, maps, &map));
	return add_map(maps, &map);
}

struct error *maps_parse(struct bytes text, enum maps_which which, struct maps *ret)
{
	_cleanup_(maps_deinit) struct maps maps = MAPS_INIT;

	maps.paths.max_bytes = MAPS_PATHS_BYTES;
	while (bytes_left(&text)) {
		const uint8_t *newline = memchr(text.at, '\n', bytes_left(&text));
		struct bytes line = text;
		line.end = newline ? newline : text.end;
		TRY(add_line(&maps, which, &line));
		text.at = newline ? newline + 1 : text.end;
	}
	*ret = take_struct(maps);
	return NULL;
}

static struct error *read_lines(FILE *file, const char *path, enum maps_which which,
				struct maps *maps)
{
	_cleanup_free_ char *text = NULL;
	size_t room = 0;
	ssize_t length;

	while ((length = getline(&text, &room, file)) >= 0) {
		if (length && text[length - 1] == '\n')
			length--;
		struct bytes line = bytes_over(text, (size_t)length, path);
		TRY(add_line(maps, which, &line));
	}
	// A process that ends while it is read has no mappings any more.
	if (ferror(file) && errno != ESRCH)
		return error_errno("read %s", path);
	return NULL;
}

struct error *maps_read(pid_t pid, enum maps_which which, struct maps *ret)
{
	_cleanup_(maps_deinit) struct maps maps = MAPS_INIT;
	_cleanup_free_ char *path = NULL;

	maps.paths.max_bytes = MAPS_PATHS_BYTES;
	TRY(str_format(&path, "/proc/%d/maps", pid));
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	if (!file && errno != ENOENT && errno != ESRCH)
		return error_errno("open %s", path);
	if (file) {
		// Fewer, larger reads: the list is consistent only within one.
		(void)setvbuf(file, NULL, _IOFBF, READ_BYTES);
		TRY(read_lines(file, path, which, &maps));
	}
	*ret = take_struct(maps);
	return NULL;
}

const struct map *maps_find(const struct maps *maps, uint64_t addr)
{
	size_t low = 0, high = maps->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (maps->map[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == maps->count || maps->map[low].start > addr)
		return NULL;
	return &maps->map[low];
}
