/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file's path says where its module is below: a directory of packages, the standard library, an
 * archive, or else the outermost directory without an __init__.py. (Packages without one, PEP 420,
 * are then a part of the path like any other directory.)
 */
#include "runtimes/python/modules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"

enum {
	PATH_LENGTH_MAX = 8192, /* longer than any co_filename that is read */
	CLIMB_MAX = 32,         /* directories looked into for an __init__.py */
	FILES_MAX = 8192,       /* remembered; then all are forgotten */
	DIRECTORIES_MAX = 256,  /* of packages */
	PACKAGES_BYTES_MAX = 256 << 20,
	PACKAGES_FILES_MAX = 512 << 10,
};

struct module_file {
	const char *path;
	struct python_module module;
};

struct directory {
	char *path; /* ends in a slash; owned */
	struct python_packages packages;
};

struct python_modules {
	struct python_files files;
	bool versions, cut;
	struct python_packages_budget budget;
	struct directory *directory;
	size_t directories, directory_room;
	struct arena texts; /* of the files remembered */
	struct module_file *file;
	size_t file_count, file_room;
	struct hash_index index;
};

struct error *python_modules_new(struct python_files files, bool versions,
				 struct python_modules **ret)
{
	struct python_modules *modules = calloc(1, sizeof(*modules));

	if (!modules)
		return error_oom();
	modules->files = files;
	modules->versions = versions;
	modules->budget.bytes = PACKAGES_BYTES_MAX;
	modules->budget.files = PACKAGES_FILES_MAX;
	*ret = modules;
	return NULL;
}

void python_modules_free(struct python_modules *modules)
{
	if (!modules)
		return;
	for (size_t i = 0; i < modules->directories; i++) {
		free(modules->directory[i].path);
		python_packages_deinit(&modules->directory[i].packages);
	}
	free(modules->directory);
	arena_deinit(&modules->texts);
	free(modules->file);
	hash_index_deinit(&modules->index);
	free(modules);
}

bool python_modules_cut(const struct python_modules *modules)
{
	return modules->cut;
}

/* --- what a path says */

/* Behind the last TEXT in PATH; NULL: it is not in there. */
static const char *behind_last(const char *path, const char *text)
{
	const char *found = NULL;

	for (const char *at = path; (at = strstr(at, text)); at++)
		found = at + strlen(text);
	return found;
}

/* Behind the packages directory that the file is in; NULL: it is in none. */
static const char *below_packages(const char *path)
{
	const char *below = behind_last(path, "/site-packages/");

	return below ? below : behind_last(path, "/dist-packages/");
}

/* Behind "/pythonX.Y/" (or X.Yt, free-threaded) at AT; NULL: something else is there. */
static const char *behind_python(const char *at)
{
	if (!str_starts(at, "/python") || !isdigit((unsigned char)at[7]) || at[8] != '.')
		return NULL;
	size_t digits = strspn(at + 9, "0123456789");
	at += 9 + digits;
	at += *at == 't';
	return digits == 1 || digits == 2 ? (*at == '/' ? at + 1 : NULL) : NULL;
}

/* Behind the last directory of a standard library; NULL: there is none. */
static const char *below_python(const char *path)
{
	const char *found = NULL;

	for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
		const char *behind = behind_python(at);
		found = behind ? behind : found;
	}
	return found;
}

/* gProfiler's rule: in a directory /pythonX.Y/ behind which there are no packages. */
static bool is_standard(const char *path)
{
	const char *below = below_python(path);

	return below && !strstr(below, "site-packages") && !strstr(below, "dist-packages");
}

/* Behind an archive that modules are imported from; NULL: there is none. */
static const char *below_archive(const char *path)
{
	static const char *const suffixes[] = {".egg/", ".whl/", ".zip/", ".pyz/", ".pex/"};
	const char *found = NULL;

	for (size_t i = 0; i < ARRAY_COUNT(suffixes); i++) {
		const char *below = behind_last(path, suffixes[i]);
		if (below && (!found || below > found))
			found = below;
	}
	return found;
}

/* Is there an __init__.py in the directory that is the first LENGTH bytes of PATH? */
static struct error *has_init(struct python_modules *modules, const char *path, size_t length,
			      bool *ret)
{
	_cleanup_free_ char *init = NULL;
	_cleanup_close_ int fd = -1;

	TRY(str_format(&init, "%.*s/__init__.py", (int)length, path));
	TRY(modules->files.open(modules->files.context, init, PYTHON_OPEN_file, &fd));
	*ret = fd >= 0;
	return NULL;
}

/* Behind the innermost directory above PATH that is no package. */
static struct error *climb(struct python_modules *modules, const char *path, const char **ret)
{
	const char *slash = strrchr(path, '/');
	const char *found = slash ? slash + 1 : path;
	bool package = true;

	// A relative path says nothing: where it begins is the process's business.
	for (int i = 0; i < CLIMB_MAX && slash && slash != path && *path == '/'; i++) {
		TRY(has_init(modules, path, (size_t)(slash - path), &package));
		if (!package)
			break;
		slash = memrchr(path, '/', (size_t)(slash - path));
		found = slash ? slash + 1 : found;
	}
	*ret = found;
	return NULL;
}

static struct error *find_below(struct python_modules *modules, const char *path, const char **ret)
{
	const char *packages = below_packages(path);
	const char *archive = below_archive(packages ? packages : path);

	*ret = archive ? archive : packages ? packages : below_python(path);
	return *ret ? NULL : climb(modules, path, ret);
}

/* The dotted name of the module at BELOW, in TO, which has room for it. */
static void name_module(const char *below, char *to)
{
	static const char *const suffixes[] = {".py", ".pyc", ".pyo"};
	static const char init[] = "__init__";
	size_t length = strlen(below);

	for (size_t i = 0; i < ARRAY_COUNT(suffixes); i++)
		if (str_ends(below, suffixes[i])) {
			length = strlen(below) - strlen(suffixes[i]);
			break;
		}
	size_t start = length - (sizeof(init) - 1);
	if (length > sizeof(init) - 1 && below[start - 1] == '/' &&
	    !strncmp(below + start, init, sizeof(init) - 1))
		length = start - 1;
	for (size_t i = 0; i < length; i++)
		*to++ = below[i] == '/' ? '.' : below[i];
	*to = 0;
}

/* "<frozen importlib._bootstrap>" is importlib._bootstrap; other code in brackets has no module. */
static void name_bracketed(const char *path, char *to)
{
	static const char frozen[] = "<frozen ";
	size_t length = strlen(path);

	*to = 0;
	if (!str_starts(path, frozen) || !str_ends(path, ">"))
		return;
	length -= sizeof(frozen) - 1 + 1;
	memcpy(to, path + sizeof(frozen) - 1, length);
	to[length] = 0;
}

/* --- packages */

/* The packages in the directory that is the first LENGTH bytes of PATH; NULL: there are too many
 * directories. */
static struct error *packages_of(struct python_modules *modules, const char *path, size_t length,
				 const struct python_packages **ret)
{
	struct directory made = {0};

	*ret = NULL;
	for (size_t i = 0; i < modules->directories; i++)
		if (!strncmp(modules->directory[i].path, path, length) &&
		    !modules->directory[i].path[length]) {
			*ret = &modules->directory[i].packages;
			return NULL;
		}
	if (modules->directories == DIRECTORIES_MAX) {
		modules->cut = true;
		return NULL;
	}
	TRY(ARRAY_RESERVE(modules->directory, modules->directory_room, modules->directories, 1,
			  DIRECTORIES_MAX, "directories of Python packages"));
	_cleanup_free_ char *directory = NULL;
	TRY(str_format(&directory, "%.*s", (int)length, path));
	TRY(python_packages_read(&modules->files, directory, &modules->budget, &made.packages));
	modules->cut = modules->cut || made.packages.cut;
	made.path = take(directory);
	modules->directory[modules->directories] = made;
	*ret = &modules->directory[modules->directories++].packages;
	return NULL;
}

/* As gProfiler does, for files *.py with a whole path alone. */
static struct error *find_package(struct python_modules *modules, const char *path,
				  struct python_module *module)
{
	const struct python_packages *packages;
	const char *below = below_packages(path);

	if (!modules->versions || *path != '/' || !str_ends(path, ".py"))
		return NULL;
	module->standard = is_standard(path);
	if (!below)
		return NULL;
	TRY(packages_of(modules, path, (size_t)(below - path), &packages));
	const struct python_package *package =
		packages ? python_packages_find(packages, below) : NULL;
	if (package) {
		module->package = package->name;
		module->version = package->version;
		module->standard = false;
	}
	return NULL;
}

/* --- files */

struct wanted {
	const struct python_modules *modules;
	const char *path;
};

static bool same_path(const void *context, uint32_t item)
{
	const struct wanted *wanted = context;

	return !strcmp(wanted->modules->file[item].path, wanted->path);
}

static void forget(struct python_modules *modules)
{
	arena_deinit(&modules->texts);
	hash_index_clear(&modules->index);
	modules->file_count = 0;
}

static struct error *add_file(struct python_modules *modules, const char *path, uint64_t hash)
{
	char name[PATH_LENGTH_MAX];
	struct module_file file = {0};
	const char *below;

	if (*path == '<') {
		name_bracketed(path, name);
	} else {
		TRY(find_below(modules, path, &below));
		name_module(below, name);
	}
	TRY(find_package(modules, path, &file.module));
	if (modules->file_count == FILES_MAX)
		forget(modules);
	TRY(ARRAY_RESERVE(modules->file, modules->file_room, modules->file_count, 1, FILES_MAX,
			  "Python files"));
	TRY(arena_copy(&modules->texts, path, strlen(path), &file.path));
	TRY(arena_copy(&modules->texts, name, strlen(name), &file.module.name));
	TRY(hash_add(&modules->index, hash, (uint32_t)modules->file_count));
	modules->file[modules->file_count++] = file;
	return NULL;
}

struct error *python_modules_find(struct python_modules *modules, const char *file,
				  struct python_module *ret)
{
	struct wanted wanted = {modules, file};
	uint64_t hash = hash_bytes(file, strlen(file), 0);
	uint32_t item;

	if (strlen(file) >= PATH_LENGTH_MAX) {
		*ret = (struct python_module){.name = ""};
		return NULL;
	}
	if (!hash_find(&modules->index, hash, same_path, &wanted, &item)) {
		TRY(add_file(modules, file, hash));
		item = (uint32_t)modules->file_count - 1;
	}
	*ret = modules->file[item].module;
	return NULL;
}
