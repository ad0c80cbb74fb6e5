/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of sessions, in a directory and in memory. Sending them is sender.c. */
#define LOG_DOMAIN "spool"
#include "agent/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"

enum {
	NAME_DIGITS = 16,
	FILE_BYTES_MAX = PARCEL_DATA_MAX + 4096,
};

static const char suffix[] = ".session";

/* One session that waits. */
struct entry {
	uint64_t number;
	size_t size;
	char *packed; /* NULL: in the file of its number */
};

struct spool {
	char *directory;
	int dir_fd; /* -1: everything is in memory */
	int lock_fd;
	struct spool_limits limits;
	pthread_mutex_t mutex; /* of everything below */
	struct entry *entries; /* by number */
	size_t count, room;
	uint64_t next_number;
	uint64_t taken; /* the number that spool_first() gave; 0: none */
	uint64_t disk_bytes, memory_bytes;
	struct spool_counts counts;
};

static void cleanup_unlock(pthread_mutex_t **mutex)
{
	pthread_mutex_unlock(*mutex);
}

/* The spool's mutex, locked, for a scope guard. */
static pthread_mutex_t *hold(struct spool *spool)
{
	pthread_mutex_lock(&spool->mutex);
	return &spool->mutex;
}

static void name_of(uint64_t number, char ret[32])
{
	snprintf(ret, 32, "%0*" PRIx64 "%s", NAME_DIGITS, number, suffix);
}

/* The number in NAME, if that is what name_of() makes. 0: it is not. */
static uint64_t number_of(const char *name)
{
	char digits[NAME_DIGITS + 3] = "0x", again[32];
	uint64_t number = 0;

	if (strlen(name) != NAME_DIGITS + sizeof(suffix) - 1)
		return 0;
	memcpy(digits + 2, name, NAME_DIGITS);
	if (!str_parse_u64(digits, 1, UINT64_MAX / 2, &number))
		return 0;
	name_of(number, again);
	return strcmp(name, again) ? 0 : number;
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	return left->number < right->number ? -1 : left->number > right->number;
}

/* Take entry INDEX out, its file included. */
static void forget(struct spool *spool, size_t index)
{
	struct entry *entry = &spool->entries[index];
	char name[32];

	name_of(entry->number, name);
	if (entry->packed)
		spool->memory_bytes -= entry->size;
	else
		spool->disk_bytes -= entry->size;
	// One that stays would be sent once more by the next run, under the same id.
	if (!entry->packed && unlinkat(spool->dir_fd, name, 0) < 0 && errno != ENOENT)
		log_warning("remove %s/%s: %m", spool->directory, name);
	if (!entry->packed)
		(void)fsync(spool->dir_fd); // the same
	free(entry->packed);
	memmove(entry, entry + 1, (spool->count - index - 1) * sizeof(*entry));
	spool->count--;
}

/* Drop the oldest for which there is no room any more. IN_MEMORY: of those without a file. */
static bool drop_oldest(struct spool *spool, bool in_memory)
{
	for (size_t i = 0; i < spool->count; i++) {
		struct entry *entry = &spool->entries[i];
		if (entry->number == spool->taken || (in_memory && !entry->packed))
			continue;
		forget(spool, i);
		spool->counts.dropped++;
		return true;
	}
	return false;
}

/* See that COUNT more sessions of SIZE bytes on the disk are within the limits. */
static void make_room(struct spool *spool, size_t count, size_t size)
{
	while ((spool->count + count > spool->limits.sessions ||
		spool->disk_bytes + size > spool->limits.bytes) &&
	       drop_oldest(spool, false))
		continue;
}

static struct error *add_file(struct spool *spool, const char *name)
{
	uint64_t number = number_of(name);
	struct stat st;

	if (str_ends(name, ".tmp")) // of a process that was killed while it wrote
		(void)unlinkat(spool->dir_fd, name, 0);
	if (!number || fstatat(spool->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode))
		return NULL;
	TRY(ARRAY_RESERVE(spool->entries, spool->room, spool->count, 1, 16 * SPOOL_SESSIONS_MAX,
			  "sessions waiting in one directory"));
	spool->entries[spool->count++] =
		(struct entry){.number = number, .size = (size_t)st.st_size};
	spool->disk_bytes += (uint64_t)st.st_size;
	if (number >= spool->next_number)
		spool->next_number = number + 1;
	return NULL;
}

/* What an earlier run has left. */
static struct error *find_files(struct spool *spool)
{
	int fd = openat(spool->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		return error_errno("read %s", spool->directory);
	for (struct dirent *entry; (entry = readdir(dir));)
		TRY(add_file(spool, entry->d_name));
	if (spool->count)
		qsort(spool->entries, spool->count, sizeof(*spool->entries), compare_entries);
	make_room(spool, 0, 0);
	return NULL;
}

/* Profiles hold what programs are called and do; nobody else may put any here, or read them. */
static struct error *check_directory(const struct spool *spool)
{
	struct stat st;

	if (fstat(spool->dir_fd, &st) < 0)
		return error_errno("%s", spool->directory);
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return error_new("%s: belongs to another user, or others may write to it",
				 spool->directory);
	if (faccessat(spool->dir_fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return error_errno("%s", spool->directory);
	return NULL;
}

/* *RET_BUSY: another process has the directory; that is the failure. */
static struct error *lock_directory(struct spool *spool, bool *ret_busy)
{
	spool->lock_fd =
		openat(spool->dir_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (spool->lock_fd < 0)
		return error_errno("make %s/lock", spool->directory);
	if (!flock(spool->lock_fd, LOCK_EX | LOCK_NB))
		return NULL;
	*ret_busy = errno == EWOULDBLOCK;
	if (!*ret_busy)
		return error_errno("lock %s", spool->directory);
	return error_new("%s: another agent keeps its sessions there; give this one a directory of "
			 "its own with --spool-dir",
			 spool->directory);
}

static struct error *open_directory(struct spool *spool, bool *ret_busy)
{
	TRY(file_make_directories(spool->directory, 0700));
	spool->dir_fd = open(spool->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (spool->dir_fd < 0)
		return error_errno("open %s", spool->directory);
	TRY(check_directory(spool));
	TRY(lock_directory(spool, ret_busy));
	return find_files(spool);
}

static void cleanup_spool(struct spool **spool)
{
	spool_close(*spool);
}

struct error *spool_open(const char *directory, const struct spool_limits *limits,
			 struct spool **ret, struct error **ret_problem)
{
	_cleanup_(cleanup_spool) struct spool *spool = calloc(1, sizeof(*spool));
	bool busy = false;

	if (!spool)
		return error_oom();
	spool->limits = *limits;
	spool->dir_fd = spool->lock_fd = -1;
	spool->next_number = 1;
	pthread_mutex_init(&spool->mutex, NULL);
	TRY(str_copy(&spool->directory, directory));
	struct error *err = open_directory(spool, &busy);
	if (busy)
		return err;
	if (err) {
		cleanup_close(&spool->dir_fd);
		spool->dir_fd = -1;
		spool->count = spool->disk_bytes = 0;
	}
	*ret_problem = err;
	*ret = take(spool);
	return NULL;
}

void spool_close(struct spool *spool)
{
	if (!spool)
		return;
	for (size_t i = 0; i < spool->count; i++)
		free(spool->entries[i].packed);
	free(spool->entries);
	free(spool->directory);
	cleanup_close(&spool->dir_fd);
	cleanup_close(&spool->lock_fd); // and the lock with it
	pthread_mutex_destroy(&spool->mutex);
	free(spool);
}

static struct error *write_file(const struct spool *spool, const struct entry *entry)
{
	_cleanup_(file_writer_deinit) struct file_writer writer = FILE_WRITER_INIT;
	_cleanup_free_ char *path = NULL;
	char name[32];

	if (spool->dir_fd < 0)
		return error_new("%s: cannot be used", spool->directory);
	name_of(entry->number, name);
	TRY(str_format(&path, "%s/%s", spool->directory, name));
	TRY(file_writer_open(path, &writer));
	if (fchmod(fileno(writer.stream), 0600) < 0)
		return error_errno("write %s", path);
	fwrite(entry->packed, 1, entry->size, writer.stream);
	TRY(file_writer_commit(&writer));
	if (fsync(spool->dir_fd) < 0)
		return error_errno("write %s", path);
	return NULL;
}

/* Move ENTRY, which is in memory, to the disk. */
static struct error *settle(struct spool *spool, struct entry *entry)
{
	TRY(write_file(spool, entry));
	free(take(entry->packed));
	spool->memory_bytes -= entry->size;
	spool->disk_bytes += entry->size;
	return NULL;
}

/*
 * Move what is in memory to the disk, oldest first. The one that was taken stays: who has it
 * removes it in a moment.
 */
static struct error *settle_all(struct spool *spool)
{
	for (size_t i = 0; i < spool->count; i++) {
		struct entry *entry = &spool->entries[i];
		if (entry->packed && entry->number != spool->taken)
			TRY(settle(spool, entry));
	}
	return NULL;
}

static struct error *append(struct spool *spool, const struct parcel *parcel)
{
	_cleanup_free_ char *packed = NULL;
	size_t size;

	TRY(parcel_pack(parcel, &packed, &size));
	make_room(spool, 1, size);
	if (spool->count >= spool->limits.sessions || size > spool->limits.bytes)
		return error_new("no room for a session of %zu bytes", size);
	TRY(ARRAY_RESERVE(spool->entries, spool->room, spool->count, 1, 16 * SPOOL_SESSIONS_MAX,
			  "sessions waiting in one directory"));
	spool->entries[spool->count++] = (struct entry){
		.number = spool->next_number++, .size = size, .packed = take(packed)};
	spool->memory_bytes += size;
	return NULL;
}

enum spool_place spool_add(struct spool *spool, const struct parcel *parcel, struct error **ret_why)
{
	_cleanup_(cleanup_unlock) pthread_mutex_t *held = hold(spool);

	spool->counts.added++;
	*ret_why = append(spool, parcel);
	if (*ret_why) {
		spool->counts.dropped++;
		return SPOOL_dropped;
	}
	uint64_t number = spool->next_number - 1;
	*ret_why = settle_all(spool);
	while (spool->memory_bytes > spool->limits.memory_bytes && drop_oldest(spool, true))
		continue;
	if (!*ret_why)
		return SPOOL_on_disk;
	bool kept = spool->count && spool->entries[spool->count - 1].number == number;
	return kept ? SPOOL_in_memory : SPOOL_dropped;
}

/* The bytes of ENTRY, a copy from the directory. */
static struct error *read_entry(const struct spool *spool, const struct entry *entry,
				struct parcel *ret)
{
	_cleanup_free_ char *data = NULL;
	_cleanup_close_ int fd = -1;
	size_t size;
	char name[32];

	if (entry->packed)
		return parcel_unpack(entry->packed, entry->size, ret);
	name_of(entry->number, name);
	fd = openat(spool->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return error_errno("open %s", name);
	TRY(file_read_fd(fd, name, FILE_BYTES_MAX, &data, &size));
	return parcel_unpack(data, size, ret);
}

bool spool_first(struct spool *spool, uint64_t *ret_number, struct parcel *ret)
{
	_cleanup_(cleanup_unlock) pthread_mutex_t *held = hold(spool);

	while (spool->count) {
		struct error *err = read_entry(spool, &spool->entries[0], ret);
		if (!err) {
			*ret_number = spool->taken = spool->entries[0].number;
			return true;
		}
		// Too many open files, or too little memory, pass.
		if (error_code(err) && error_code(err) != ENOENT) {
			log_debug("%s", error_text(err));
			error_free(err);
			return false;
		}
		log_error("a waiting session is lost: %s", error_text(err));
		error_free(err);
		forget(spool, 0);
		spool->counts.damaged++;
	}
	return false;
}

void spool_done(struct spool *spool, uint64_t number)
{
	_cleanup_(cleanup_unlock) pthread_mutex_t *held = hold(spool);

	spool->taken = 0;
	for (size_t i = 0; i < spool->count && spool->entries[i].number <= number; i++)
		if (spool->entries[i].number == number) {
			forget(spool, i);
			return;
		}
}

void spool_release(struct spool *spool)
{
	_cleanup_(cleanup_unlock) pthread_mutex_t *held = hold(spool);

	spool->taken = 0;
}

struct spool_counts spool_count(struct spool *spool)
{
	_cleanup_(cleanup_unlock) pthread_mutex_t *held = hold(spool);
	struct spool_counts counts = spool->counts;

	counts.waiting = spool->count;
	counts.waiting_bytes = spool->disk_bytes + spool->memory_bytes;
	for (size_t i = 0; i < spool->count; i++)
		counts.in_memory += spool->entries[i].packed != NULL;
	return counts;
}
