/* SPDX-License-Identifier: Apache-2.0 */
/* Objects by identity. Which process maps what is in capture/processes.c. */
#define LOG_DOMAIN "objects"
#include "capture/objects.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "proc/maps.h"
#include "proc/root.h"

/* Numbers fit beside an address in a frame, and each open object holds a descriptor. */
enum { OBJECTS_MAX = STORE_MODULES_MAX };

struct entry {
	bool taken;
	struct object_id id; /* length 0: the file could not be opened, or is no ELF object */
	struct object *object;
	char *path;
	uint32_t pid, module, refs;
	bool used;          /* by a frame of this session */
	uint64_t stat_hash; /* 0: not found through a file */
	uint32_t *points;   /* where functions and gaps begin, relative to text_start */
	size_t point_count;
	uint64_t text_start, text_end;
	bool python_looked_for;
	struct python_object *python; /* owned; NULL: no CPython in it */
};

struct objects {
	struct store *store;       /* borrowed from the capture */
	struct counters *counters; /* borrowed from the capture */
	struct entry *entry;
	size_t count, room;
	struct hash_index by_id, by_stat;
	uint32_t of_module[STORE_MODULES_MAX];
	uint32_t vdso;
};

struct error *objects_new(struct store *store, struct counters *counters, struct objects **ret)
{
	struct objects *objects = calloc(1, sizeof(*objects));

	if (!objects)
		return error_oom();
	objects->store = store;
	objects->counters = counters;
	struct error *err =
		ARRAY_RESERVE(objects->entry, objects->room, 0, 64, OBJECTS_MAX, "objects");
	if (err) {
		free(objects);
		return err;
	}
	objects->entry[0] = (struct entry){0};
	objects->count = 1; // number 0 is "none"
	*ret = objects;
	return NULL;
}

/* Give an entry's number back. */
static void drop(struct objects *objects, uint32_t number)
{
	struct entry *entry = &objects->entry[number];

	if (entry->id.length)
		hash_remove(&objects->by_id, object_id_hash(&entry->id), number);
	if (entry->stat_hash)
		hash_remove(&objects->by_stat, entry->stat_hash, number);
	if (entry->module) {
		objects->of_module[entry->module] = OBJECT_NONE;
		store_remove_module(objects->store, entry->module);
	}
	object_free(entry->object);
	free(entry->path);
	free(entry->points);
	free(entry->python);
	*entry = (struct entry){0};
}

void objects_free(struct objects *objects)
{
	if (!objects)
		return;
	for (uint32_t i = 1; i < objects->count; i++)
		drop(objects, i);
	free(objects->entry);
	hash_index_deinit(&objects->by_id);
	hash_index_deinit(&objects->by_stat);
	free(objects);
}

struct id_key {
	const struct objects *objects;
	const struct object_id *id;
};

static bool id_equal(const void *context, uint32_t item)
{
	const struct id_key *key = context;

	return object_id_equal(&key->objects->entry[item].id, key->id);
}

static bool find_by_id(const struct objects *objects, const struct object_id *id, uint32_t *ret)
{
	struct id_key key = {objects, id};

	return hash_find(&objects->by_id, object_id_hash(id), id_equal, &key, ret);
}

struct stat_key {
	const struct objects *objects;
	uint64_t hash;
};

static bool stat_equal(const void *context, uint32_t item)
{
	const struct stat_key *key = context;

	return key->objects->entry[item].stat_hash == key->hash;
}

/* What changes when a file's content does. 64 bits of hash stand for all of it. */
static uint64_t hash_of_stat(const struct stat *st)
{
	uint64_t words[] = {st->st_dev,
			    st->st_ino,
			    (uint64_t)st->st_size,
			    (uint64_t)st->st_mtim.tv_sec,
			    (uint64_t)st->st_mtim.tv_nsec,
			    (uint64_t)st->st_ctim.tv_sec,
			    (uint64_t)st->st_ctim.tv_nsec};

	return hash_bytes(words, sizeof(words), 1) | 1;
}

/* A free number with an empty entry. */
static struct error *new_entry(struct objects *objects, uint32_t *ret)
{
	for (uint32_t i = 1; i < objects->count; i++)
		if (!objects->entry[i].taken) {
			*ret = i;
			return NULL;
		}
	TRY(ARRAY_RESERVE(objects->entry, objects->room, objects->count, 1, OBJECTS_MAX,
			  "objects at a time"));
	objects->entry[objects->count] = (struct entry){0};
	*ret = (uint32_t)objects->count++;
	return NULL;
}

/*
 * Enter OBJECT (NULL: a file without code), which is consumed, under its identity. A failure
 * leaves it with the caller.
 */
static struct error *add(struct objects *objects, const struct object_source *source,
			 struct object *object, uint64_t stat_hash, uint32_t *ret)
{
	_cleanup_free_ char *path = NULL;
	uint32_t number, module = UNWIND_MODULE_none;

	TRY(str_copy(&path, source->path));
	TRY(new_entry(objects, &number));
	if (object)
		TRY(store_add_module(objects->store, &module));

	struct entry *entry = &objects->entry[number];
	*entry = (struct entry){.taken = true,
				.path = take(path),
				.pid = source->pid,
				.module = module,
				.stat_hash = stat_hash};
	if (object)
		entry->id = *object_id(object);
	else if (source->build_id.length)
		entry->id = source->build_id;
	struct error *err = NULL;
	if (entry->id.length)
		err = hash_add(&objects->by_id, object_id_hash(&entry->id), number);
	if (!err && stat_hash)
		err = hash_add(&objects->by_stat, stat_hash, number);
	if (err) {
		drop(objects, number);
		return err;
	}
	entry->object = object;
	if (module)
		objects->of_module[module] = number;
	counter_add(objects->counters, object ? COUNTER_objects : COUNTER_objects_failed, 1);
	*ret = number;
	return NULL;
}

/*
 * Open the file that is mapped: by its path if that still leads to it, else through the mapping
 * itself.
 */
static struct error *open_source(const struct object_source *source, int *ret_fd)
{
	enum root_outcome outcome;
	struct stat st;

	if (source->open)
		return source->open(source->context, source->start, ret_fd);
	if (source->path[0] == '/') {
		_cleanup_close_ int fd = -1;
		TRY(root_open((pid_t)source->pid, source->path, &outcome, &fd));
		// The device is no proof (overlayfs, btrfs); with a build id the content decides
		// later.
		if (outcome == ROOT_opened && !fstat(fd, &st) &&
		    (!source->inode || st.st_ino == source->inode)) {
			*ret_fd = take_fd(&fd);
			return NULL;
		}
	}
	TRY(root_open_map((pid_t)source->pid, source->start, source->end, &outcome, ret_fd));
	if (outcome == ROOT_opened)
		return NULL;
	// A process that is gone took its root with it; most had ours.
	if (source->path[0] == '/')
		TRY(root_open(0, source->path, &outcome, ret_fd));
	return NULL;
}

/* Is OBJECT what SOURCE says was mapped? */
static bool is_source(const struct object *object, const struct object_source *source)
{
	return !source->build_id.length || object_id_equal(object_id(object), &source->build_id);
}

/* Open SOURCE as an object; NULL when it is none, or another file by now. */
static struct error *open_object(const struct object_source *source, int *fd, struct object **ret)
{
	struct object *object;
	struct error *err = object_open(*fd, source->path, &object);

	if (err) {
		log_debug("%s", error_text(err));
		error_free(err); // no ELF file: mapped data, or damage; it is counted by add()
		*ret = NULL;
		return NULL;
	}
	*fd = -1;
	if (is_source(object, source)) {
		*ret = object;
		return NULL;
	}
	object_free(object);
	enum root_outcome outcome;
	TRY(root_open_map((pid_t)source->pid, source->start, source->end, &outcome, fd));
	if (outcome != ROOT_opened) {
		*ret = NULL;
		return NULL;
	}
	err = object_open(*fd, source->path, &object);
	if (err) {
		error_free(err); // as above
		object = NULL;
	} else {
		*fd = -1;
	}
	*ret = object;
	return NULL;
}

static struct error *find_new(struct objects *objects, const struct object_source *source,
			      uint32_t *ret)
{
	_cleanup_close_ int fd = -1;
	_cleanup_object_ struct object *object = NULL;
	struct stat st;
	uint64_t stat_hash = 0;
	uint32_t number;

	TRY(open_source(source, &fd));
	if (fd >= 0 && !fstat(fd, &st)) {
		stat_hash = hash_of_stat(&st);
		struct stat_key key = {objects, stat_hash};
		if (hash_find(&objects->by_stat, stat_hash, stat_equal, &key, &number)) {
			*ret = number;
			return NULL;
		}
		TRY(open_object(source, &fd, &object));
	}
	if (object && find_by_id(objects, object_id(object), &number)) {
		*ret = number;
		return NULL;
	}
	TRY(add(objects, source, object, stat_hash, ret));
	(void)take(object);
	return NULL;
}

/*
 * Entry *NUMBER has an identity whose file could not be opened for one process; SOURCE may lead to
 * it. If it does, the object is entered anew: who maps the old number counts addresses in a file
 * of unknown layout.
 */
static struct error *open_late(struct objects *objects, const struct object_source *source,
			       uint32_t *number)
{
	_cleanup_close_ int fd = -1;
	_cleanup_object_ struct object *object = NULL;
	struct entry *entry = &objects->entry[*number];

	TRY(open_source(source, &fd));
	if (fd >= 0)
		TRY(open_object(source, &fd, &object));
	if (!object)
		return NULL;
	hash_remove(&objects->by_id, object_id_hash(&entry->id), *number);
	entry->id.length = 0;
	TRY(add(objects, source, object, 0, number));
	(void)take(object);
	return NULL;
}

struct error *objects_find(struct objects *objects, const struct object_source *source,
			   uint32_t *ret)
{
	uint32_t number;

	if (!source->build_id.length || !find_by_id(objects, &source->build_id, &number))
		TRY(find_new(objects, source, &number));
	else if (!objects->entry[number].object)
		TRY(open_late(objects, source, &number));
	objects->entry[number].refs++;
	*ret = number;
	return NULL;
}

/* End of the [vdso] mapping that starts at START; 0: there is none. */
static struct error *vdso_end(uint64_t start, uint64_t *ret)
{
	_cleanup_(maps_deinit) struct maps maps = MAPS_INIT;

	TRY(maps_read(getpid(), MAPS_executable, &maps));
	const struct map *map = maps_find(&maps, start);
	*ret = map && map->start == start ? map->end : 0;
	return NULL;
}

struct error *objects_find_vdso(struct objects *objects, uint32_t *ret)
{
	uint64_t start = getauxval(AT_SYSINFO_EHDR), end = 0;
	struct object_source source = {.path = "[vdso]"};
	_cleanup_object_ struct object *object = NULL;

	if (!objects->vdso) {
		if (start)
			TRY(vdso_end(start, &end));
		if (end)
			TRY(object_open_memory((const void *)(uintptr_t)start, end - start,
					       "[vdso]", &object));
		TRY(add(objects, &source, object, 0, &objects->vdso));
		(void)take(object);
		objects->entry[objects->vdso].refs++; // kept as long as we live
	}
	objects->entry[objects->vdso].refs++;
	*ret = objects->vdso;
	return NULL;
}

void objects_ref(struct objects *objects, uint32_t number)
{
	objects->entry[number].refs++;
}

void objects_unref(struct objects *objects, uint32_t number)
{
	if (number != OBJECT_NONE && --objects->entry[number].refs == 0 &&
	    !objects->entry[number].used)
		drop(objects, number);
}

void objects_use(struct objects *objects, uint32_t number, uint64_t now_ns)
{
	struct entry *entry = &objects->entry[number];

	entry->used = true;
	if (entry->module)
		store_touch(objects->store, entry->module, now_ns);
}

void objects_end_session(struct objects *objects)
{
	for (uint32_t i = 1; i < objects->count; i++) {
		struct entry *entry = &objects->entry[i];
		entry->used = false;
		if (entry->taken && !entry->refs)
			drop(objects, i);
	}
}

uint32_t objects_module(const struct objects *objects, uint32_t number)
{
	return objects->entry[number].module;
}

uint32_t objects_of_module(const struct objects *objects, uint32_t module)
{
	return module < STORE_MODULES_MAX ? objects->of_module[module] : OBJECT_NONE;
}

bool objects_is_code(const struct objects *objects, uint32_t number)
{
	return objects->entry[number].object != NULL;
}

bool objects_addr_of_offset(const struct objects *objects, uint32_t number, uint64_t offset,
			    uint64_t *ret)
{
	const struct object *object = objects->entry[number].object;

	return object && object_addr_of_offset(object, offset, ret);
}

const char *objects_path(const struct objects *objects, uint32_t number)
{
	const char *path = objects->entry[number].path;

	return path ? path : "";
}

struct object *objects_object(struct objects *objects, uint32_t number)
{
	return objects->entry[number].object;
}

const struct python_object *objects_python(struct objects *objects, uint32_t number)
{
	struct entry *entry = &objects->entry[number];
	struct python_object found;

	if (!entry->object || entry->python_looked_for)
		return entry->python;
	entry->python_looked_for = true;
	if (!python_object_find(entry->object, &found))
		return NULL;
	entry->python = malloc(sizeof(*entry->python));
	if (entry->python) // else as if there were none
		*entry->python = found;
	return entry->python;
}

uint32_t objects_pid(const struct objects *objects, uint32_t number)
{
	return objects->entry[number].pid;
}

/* One row for all of the object's code: END_no_rows, or by frame pointer. */
static struct error *one_row(const struct object *object, enum unwind_cfa cfa, struct rows *rows)
{
	size_t segments;
	const struct object_segment *segment = object_segments(object, &segments);

	rows->text_start = UINT64_MAX;
	rows->text_end = 0;
	for (size_t i = 0; i < segments; i++) {
		if (!segment[i].executable)
			continue;
		uint64_t end = segment[i].addr + segment[i].mem_size;
		rows->text_start =
			segment[i].addr < rows->text_start ? segment[i].addr : rows->text_start;
		rows->text_end = end > rows->text_end ? end : rows->text_end;
	}
	if (rows->text_start > rows->text_end)
		rows->text_start = rows->text_end = 0;
	TRY(ARRAY_RESERVE(rows->row, rows->room, 0, 1, 1, "rows"));
	TRY(ARRAY_RESERVE(rows->rules, rows->rule_room, 0, 1, 1, "rules"));
	rows->row[0] = (struct row){.addr = rows->text_start};
	rows->rules[0] = (struct unwind_rule){.cfa = (uint8_t)cfa};
	rows->count = rows->rule_count = 1;
	return NULL;
}

/* A point of the text: a function begins, a gap begins, or a gap ends without a function. */
enum {
	POINT_gap = 1u << 31,
	POINT_resume = 1u << 30,
	POINT_OFFSET = POINT_resume - 1, /* up to 1 GiB of text */
};

static bool is_gap(const struct rows *rows, size_t i)
{
	uint8_t cfa = rows->rules[rows->row[i].rule].cfa;

	// Where frame pointers are tried no function is known either.
	return cfa == UNWIND_CFA_none || cfa == UNWIND_CFA_frame_ptr;
}

/*
 * The next point of ROWS at or above what *START and *ROW have left, which move on. False: there
 * is none. A row matters where it begins a gap or ends one.
 */
static bool next_point(const struct rows *rows, size_t *start, size_t *row, uint32_t *ret)
{
	while (*row < rows->count && is_gap(rows, *row) == (*row ? is_gap(rows, *row - 1) : true))
		++*row;
	uint64_t at_start = *start < rows->start_count ? rows->starts[*start] : UINT64_MAX;
	uint64_t at_row = *row < rows->count ? rows->row[*row].addr : UINT64_MAX;
	uint64_t addr = at_start < at_row ? at_start : at_row;

	if (addr == UINT64_MAX || addr < rows->text_start || addr - rows->text_start > POINT_OFFSET)
		return false;
	*ret = (uint32_t)(addr - rows->text_start);
	if (addr != at_start)
		*ret |= is_gap(rows, *row) ? POINT_gap : POINT_resume;
	*start += addr == at_start;
	*row += addr == at_row;
	return true;
}

/* Keep where functions begin and gaps are: what names need of the rows, in 4 bytes each. */
static struct error *keep_points(struct entry *entry, const struct rows *rows)
{
	_cleanup_free_ uint32_t *points = NULL;
	size_t room = 0, count = 0, start = 0, row = 0;
	uint32_t point;

	while (next_point(rows, &start, &row, &point)) {
		TRY(ARRAY_RESERVE(points, room, count, 1, ROWS_STARTS_MAX, "functions"));
		points[count++] = point;
	}
	free(entry->points);
	entry->points = take(points);
	entry->point_count = count;
	entry->text_start = rows->text_start;
	entry->text_end = rows->text_end;
	return NULL;
}

struct error *objects_load(struct objects *objects, uint32_t number)
{
	struct entry *entry = &objects->entry[number];
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;

	if (!entry->object || store_loaded(objects->store, entry->module))
		return NULL;
	struct error *err = rows_compile(entry->object, &rows);
	if (err) {
		// Walks through it end there, visibly, instead of asking for it again and again.
		log_debug("%s: %s", entry->path, error_text(err));
		error_free(err);
		counter_add(objects->counters, COUNTER_objects_failed, 1);
		rows_deinit(&rows);
		TRY(one_row(entry->object, UNWIND_CFA_none, &rows));
	} else if (!rows.count) {
		TRY(one_row(entry->object, UNWIND_CFA_frame_ptr, &rows));
	}
	if (!entry->points)
		TRY(keep_points(entry, &rows));
	err = store_load(objects->store, entry->module, &rows);
	if (!err)
		return NULL;
	// Larger than the whole budget: as above.
	log_debug("%s: %s", entry->path, error_text(err));
	error_free(err);
	rows_deinit(&rows);
	TRY(one_row(entry->object, UNWIND_CFA_none, &rows));
	return store_load(objects->store, entry->module, &rows);
}

struct error *objects_starts(struct objects *objects, uint32_t number, struct rows *ret)
{
	const struct entry *entry = &objects->entry[number];
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
	size_t count = entry->point_count;

	rows.text_start = entry->text_start;
	rows.text_end = entry->text_end;
	TRY(ARRAY_RESERVE(rows.starts, rows.start_room, 0, count, ROWS_STARTS_MAX, "functions"));
	TRY(ARRAY_RESERVE(rows.row, rows.room, 0, count, ROWS_MAX, "rows"));
	TRY(ARRAY_RESERVE(rows.rules, rows.rule_room, 0, 2, 2, "rules"));
	rows.rules[0] = (struct unwind_rule){.cfa = UNWIND_CFA_none};
	rows.rules[1] = (struct unwind_rule){.cfa = UNWIND_CFA_reg};
	rows.rule_count = 2;
	for (size_t i = 0; i < count; i++) {
		uint32_t point = entry->points[i];
		uint64_t addr = entry->text_start + (point & POINT_OFFSET);
		rows.row[rows.count++] = (struct row){addr, !(point & POINT_gap)};
		if (!(point & (POINT_gap | POINT_resume)))
			rows.starts[rows.start_count++] = addr;
	}
	*ret = take_struct(rows);
	return NULL;
}
