/* SPDX-License-Identifier: Apache-2.0 */
/* Of a file's path only the hash is kept: a large installation has 100,000 of them. */
#include "runtimes/python/packages.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/str.h"

enum {
	PACKAGES_MAX = 8192,
	LIST_BYTES_MAX = 16 << 20,     /* of a RECORD */
	METADATA_BYTES_MAX = 64 << 10, /* its headers stand in front of the description */
};

struct python_packages_file {
	uint64_t hash;
	uint32_t package; /* number */
};

/* How a kind of installer leaves its traces. */
struct installer {
	const char *suffix;      /* of the directory about a package */
	const char *list;        /* its file of files */
	const char *metadata[2]; /* the first that is there; NULL: none */
	bool (*next)(struct bytes *b, char ret[static PYTHON_PACKAGES_PATH_MAX]);
	bool relative; /* its paths are below the directory about the package */
};

static const struct installer installers[] = {
	{".dist-info", "RECORD", {"METADATA", "PKG-INFO"}, python_record_next, false},
	{".egg-info", "installed-files.txt", {"PKG-INFO", NULL}, python_installed_next, true},
};

/* --- the formats */

/* A path being read, which may turn out too long. */
struct path_text {
	char *text;
	size_t length;
};

static void path_add(struct path_text *path, uint8_t byte)
{
	if (path->length < PYTHON_PACKAGES_PATH_MAX)
		path->text[path->length++] = (char)byte;
}

static void path_end(struct path_text *path)
{
	if (path->length == PYTHON_PACKAGES_PATH_MAX)
		path->length = 0;
	path->text[path->length] = 0;
}

static void skip_line(struct bytes *b)
{
	const uint8_t *end = memchr(b->at, '\n', bytes_left(b));

	b->at = end ? end + 1 : b->end;
}

/* The rest of a field whose quote has been read. */
static void read_quoted(struct bytes *b, struct path_text *path)
{
	while (bytes_left(b)) {
		uint8_t byte = *b->at++;
		if (byte == '"' && (!bytes_left(b) || *b->at++ != '"'))
			return;
		path_add(path, byte);
	}
}

bool python_record_next(struct bytes *b, char ret[static PYTHON_PACKAGES_PATH_MAX])
{
	struct path_text path = {.text = ret};

	if (!bytes_left(b))
		return false;
	if (*b->at == '"') {
		b->at++;
		read_quoted(b, &path);
		b->at--; // what ended it may be the end of the line
	} else {
		while (bytes_left(b) && *b->at != ',' && *b->at != '\n' && *b->at != '\r')
			path_add(&path, *b->at++);
	}
	skip_line(b);
	path_end(&path);
	return true;
}

bool python_installed_next(struct bytes *b, char ret[static PYTHON_PACKAGES_PATH_MAX])
{
	struct path_text path = {.text = ret};

	if (!bytes_left(b))
		return false;
	while (bytes_left(b) && *b->at != '\n' && *b->at != '\r')
		path_add(&path, *b->at++);
	skip_line(b);
	path_end(&path);
	return true;
}

/* Append the components of PATH to RET, of which LENGTH bytes are there. False: out of the top, or
 * too long. */
static bool join(const char *path, char *ret, size_t *length)
{
	for (size_t size; *path; path += size + (path[size] == '/')) {
		size = strcspn(path, "/");
		if (!size || (size == 1 && *path == '.'))
			continue;
		if (size == 2 && path[0] == '.' && path[1] == '.') {
			if (!*length)
				return false;
			const char *slash = memrchr(ret, '/', *length);
			*length = slash ? (size_t)(slash - ret) : 0;
			continue;
		}
		if (*length + size + 2 > PYTHON_PACKAGES_PATH_MAX)
			return false;
		if (*length)
			ret[(*length)++] = '/';
		memmove(ret + *length, path, size);
		*length += size;
	}
	return true;
}

bool python_packages_path(const char *from, const char *path,
			  char ret[static PYTHON_PACKAGES_PATH_MAX])
{
	char joined[PYTHON_PACKAGES_PATH_MAX];
	size_t length = 0;

	if (*path == '/' || (from && !join(from, joined, &length)) || !join(path, joined, &length))
		return false;
	memcpy(ret, joined, length);
	ret[length] = 0;
	return true;
}

/* The value of a header line of SIZE bytes that begins with NAME and a colon, if RET is empty. */
static void take_header(const char *line, size_t size, const char *name,
			char ret[static PYTHON_PACKAGES_NAME_MAX])
{
	size_t length = strlen(name);

	if (*ret || size <= length || line[length] != ':' || strncasecmp(line, name, length) != 0)
		return;
	line += length + 1;
	size -= length + 1;
	for (; size && strchr(" \t", *line); size--)
		line++;
	while (size && strchr(" \t\r", line[size - 1]))
		size--;
	if (size >= PYTHON_PACKAGES_NAME_MAX || memchr(line, 0, size))
		return;
	memcpy(ret, line, size);
	ret[size] = 0;
}

void python_metadata_parse(struct bytes b, struct python_metadata *ret)
{
	*ret = (struct python_metadata){0};
	while (bytes_left(&b)) {
		const uint8_t *line = b.at;
		const uint8_t *end = memchr(line, '\n', bytes_left(&b));
		size_t size = (size_t)((end ? end : b.end) - line);
		if (!size || *line == '\r')
			break; // the description follows
		take_header((const char *)line, size, "Name", ret->name);
		take_header((const char *)line, size, "Version", ret->version);
		skip_line(&b);
	}
}

/* --- reading a directory */

struct reader {
	const struct python_files *files;
	const char *directory;
	struct python_packages_budget *budget;
	struct python_packages *packages;
};

/* A file that was read, up to a maximum. text is NULL: it is not there. */
struct content {
	char *text;
	size_t size;
};

static void content_deinit(struct content *content)
{
	free(content->text);
}

/* Up to SIZE bytes of FD; one that fails has no more. */
static size_t read_up_to(int fd, char *to, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t got = read(fd, to + done, size - done);
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

/* The first MAX bytes of NAME, which stands in the directory ABOUT a package. */
static struct error *read_content(struct reader *reader, const char *about, const char *name,
				  size_t max, struct content *ret)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	struct stat st;

	TRY(str_format(&path, "%s%s/%s", reader->directory, about, name));
	TRY(reader->files->open(reader->files->context, path, PYTHON_OPEN_file, &fd));
	if (fd < 0 || fstat(fd, &st) || st.st_size < 0)
		return NULL;
	size_t size = (uint64_t)st.st_size < max ? (size_t)st.st_size : max;
	if (size < (uint64_t)st.st_size && max == LIST_BYTES_MAX)
		reader->packages->cut = true;
	if (size > reader->budget->bytes) {
		reader->packages->cut = true;
		return NULL;
	}
	char *text = malloc(size + 1);
	if (!text)
		return error_oom();
	ret->text = text;
	ret->size = read_up_to(fd, text, size);
	reader->budget->bytes -= size;
	return NULL;
}

static struct error *add_text(struct python_packages *packages, const char *text, const char **ret)
{
	return arena_copy(&packages->texts, text, strlen(text), ret);
}

static void take_part(const char *text, size_t length, char ret[static PYTHON_PACKAGES_NAME_MAX])
{
	if (*ret || length >= PYTHON_PACKAGES_NAME_MAX)
		return;
	memcpy(ret, text, length);
	ret[length] = 0;
}

/* What METADATA leaves out is in the name of the directory, NAME-VERSION or NAME-VERSION-pyX.Y. */
static void complete(const char *about, const char *suffix, struct python_metadata *metadata)
{
	size_t length = strlen(about) - strlen(suffix);
	size_t name = strcspn(about, "-");

	name = name < length ? name : length;
	take_part(about, name, metadata->name);
	if (name == length)
		return;
	const char *version = about + name + 1;
	size_t size = strcspn(version, "-");
	length -= name + 1;
	take_part(version, size < length ? size : length, metadata->version);
}

static struct error *add_package(struct python_packages *packages,
				 const struct python_metadata *metadata)
{
	struct python_package package;

	TRY(ARRAY_RESERVE(packages->package, packages->room, packages->count, 1, PACKAGES_MAX,
			  "Python packages in a directory"));
	TRY(add_text(packages, metadata->name, &package.name));
	TRY(add_text(packages, metadata->version, &package.version));
	packages->package[packages->count++] = package;
	return NULL;
}

struct wanted {
	const struct python_packages_file *files;
	uint64_t hash;
};

static bool same_hash(const void *context, uint32_t item)
{
	const struct wanted *wanted = context;

	return wanted->files[item].hash == wanted->hash;
}

static bool find_file(const struct python_packages *packages, uint64_t hash, uint32_t *ret)
{
	struct wanted wanted = {packages->file, hash};

	return hash_find(&packages->files, hash, same_hash, &wanted, ret);
}

static uint64_t hash_of(const struct python_packages *packages, const char *path)
{
	return hash_bytes(path, strlen(path), packages->seed);
}

/* PATH belongs to the package that was added last. */
static struct error *add_file(struct reader *reader, const char *path)
{
	struct python_packages *packages = reader->packages;
	struct python_packages_file file = {
		.hash = hash_of(packages, path),
		.package = (uint32_t)packages->count - 1,
	};
	uint32_t there;

	if (!str_ends(path, ".py") || find_file(packages, file.hash, &there))
		return NULL;
	if (!reader->budget->files) {
		packages->cut = true;
		return NULL;
	}
	reader->budget->files--;
	TRY(ARRAY_RESERVE(packages->file, packages->file_room, packages->file_count, 1, UINT32_MAX,
			  "files of Python packages"));
	TRY(hash_add(&packages->files, file.hash, (uint32_t)packages->file_count));
	packages->file[packages->file_count++] = file;
	return NULL;
}

static struct error *add_files(struct reader *reader, const struct installer *installer,
			       const char *about, struct bytes list)
{
	const char *from = installer->relative ? about : NULL;
	size_t top = strlen(reader->directory);
	char path[PYTHON_PACKAGES_PATH_MAX];

	while (installer->next(&list, path)) {
		const char *entry = path;
		if (!strncmp(entry, reader->directory, top))
			entry += top; // some write whole paths
		if (python_packages_path(entry == path ? from : NULL, entry, path))
			TRY(add_file(reader, path));
	}
	return NULL;
}

/* ABOUT is the directory that INSTALLER made about a package. */
static struct error *read_package(struct reader *reader, const struct installer *installer,
				  const char *about)
{
	_cleanup_(content_deinit) struct content list = {0};
	_cleanup_(content_deinit) struct content content = {0};
	struct python_metadata metadata;

	TRY(read_content(reader, about, installer->list, LIST_BYTES_MAX, &list));
	if (!list.text)
		return NULL;
	for (size_t i = 0; i < ARRAY_COUNT(installer->metadata) && !content.text; i++)
		if (installer->metadata[i])
			TRY(read_content(reader, about, installer->metadata[i], METADATA_BYTES_MAX,
					 &content));
	if (!content.text)
		return NULL;
	python_metadata_parse(bytes_over(content.text, content.size, "METADATA"), &metadata);
	complete(about, installer->suffix, &metadata);
	TRY(add_package(reader->packages, &metadata));
	return add_files(reader, installer, about, bytes_over(list.text, list.size, "RECORD"));
}

static const struct installer *installer_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(installers); i++)
		if (str_ends(name, installers[i].suffix))
			return &installers[i];
	return NULL;
}

/* The names in a directory that are about packages, in their order. */
struct names {
	const char **name;
	size_t count, room;
};

static void names_deinit(struct names *names)
{
	free(names->name);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct error *read_names(struct reader *reader, int fd, struct names *names)
{
	_cleanup_closedir_ DIR *list = fdopendir(fd);
	const char *copy;

	if (!list) {
		close(fd);
		return NULL; // no directory: nothing is installed in it
	}
	for (struct dirent *entry; (entry = readdir(list));) {
		if (!installer_of(entry->d_name))
			continue;
		if (names->count == PACKAGES_MAX) {
			reader->packages->cut = true;
			break;
		}
		TRY(ARRAY_RESERVE(names->name, names->room, names->count, 1, PACKAGES_MAX,
				  "Python packages in a directory"));
		TRY(add_text(reader->packages, entry->d_name, &copy));
		names->name[names->count++] = copy;
	}
	if (names->count)
		qsort(names->name, names->count, sizeof(*names->name), by_name);
	return NULL;
}

struct error *python_packages_read(const struct python_files *files, const char *directory,
				   struct python_packages_budget *budget,
				   struct python_packages *ret)
{
	_cleanup_(python_packages_deinit) struct python_packages packages = PYTHON_PACKAGES_INIT;
	_cleanup_(names_deinit) struct names names = {0};
	struct reader reader = {files, directory, budget, &packages};
	int fd = -1;

	// Who writes the lists shall not know which names collide.
	if (getrandom(&packages.seed, sizeof(packages.seed), GRND_NONBLOCK) < 0)
		packages.seed = 0;
	TRY(files->open(files->context, directory, PYTHON_OPEN_directory, &fd));
	if (fd >= 0)
		TRY(read_names(&reader, fd, &names));
	for (size_t i = 0; i < names.count; i++)
		TRY(read_package(&reader, installer_of(names.name[i]), names.name[i]));
	*ret = take_struct(packages);
	return NULL;
}

void python_packages_deinit(struct python_packages *packages)
{
	if (!packages)
		return;
	arena_deinit(&packages->texts);
	free(packages->package);
	free(packages->file);
	hash_index_deinit(&packages->files);
	*packages = (struct python_packages)PYTHON_PACKAGES_INIT;
}

const struct python_package *python_packages_find(const struct python_packages *packages,
						  const char *file)
{
	uint32_t item;

	if (!find_file(packages, hash_of(packages, file), &item))
		return NULL;
	return &packages->package[packages->file[item].package];
}
