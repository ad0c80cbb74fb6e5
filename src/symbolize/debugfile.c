/* SPDX-License-Identifier: Apache-2.0 */
/* Finding debug files. Opening a path in the right root is the work of symbolizer_options.open. */
#define LOG_DOMAIN "symbolize"
#include "symbolize/debugfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <zlib.h>

#include "base/log.h"
#include "base/str.h"
#include "symbolize/debuginfod.h"

/* What a candidate must be. */
struct wanted {
	const struct object_id *id; /* NULL: unknown */
	bool has_crc;
	uint32_t crc;
};

static const struct object_id *build_id(const struct object *object)
{
	const struct object_id *id = object_id(object);

	return id->hashed ? NULL : id;
}

/* The checksum of .gnu_debuglink, over the whole file. False: it could not be read. */
static bool sum_up(int fd, uint32_t *ret)
{
	_cleanup_free_ uint8_t *piece = malloc(64 << 10);
	uLong crc = crc32(0, NULL, 0);

	if (!piece)
		return false;
	for (off_t offset = 0; offset <= DEBUGFILE_CRC_BYTES;) {
		ssize_t got = pread(fd, piece, 64 << 10, offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got == 0)
			*ret = (uint32_t)crc;
		if (got <= 0)
			return got == 0;
		crc = crc32(crc, piece, (uInt)got);
		offset += got;
	}
	return false;
}

static bool is_wanted(const struct wanted *wanted, const struct object *candidate, int fd)
{
	const struct object_id *id = build_id(candidate);
	uint32_t crc;

	if (wanted->id && id)
		return object_id_equal(wanted->id, id);
	return wanted->has_crc && sum_up(fd, &crc) && crc == wanted->crc;
}

/* Open PATH in the root of PID if it is WANTED; otherwise RET stays NULL. */
static struct error *try_root(const struct debugfile_search *search, uint32_t pid, const char *path,
			      const struct wanted *wanted, struct object **ret)
{
	_cleanup_object_ struct object *object = NULL;
	_cleanup_close_ int again = -1;
	_cleanup_close_ int fd = search->options->open(search->options->context, pid, path);

	if (fd < 0)
		return NULL;
	again = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct error *err = object_open(fd, path, &object);
	if (err) {
		log_debug("debug file not used error=\"%s\"", error_text(err));
		error_free(err); // a damaged candidate is none
		return NULL;
	}
	take_fd(&fd);
	if (again >= 0 && is_wanted(wanted, object, again))
		*ret = take(object);
	return NULL;
}

/* Open PATH in the target's root, then in the host's. */
static struct error *try_path(const struct debugfile_search *search, const char *path,
			      const struct wanted *wanted, struct object **ret)
{
	if (!search->options->open || strlen(path) >= DEBUGFILE_PATH_BYTES)
		return NULL;
	TRY(try_root(search, search->pid, path, wanted, ret));
	if (!*ret && search->pid)
		TRY(try_root(search, 0, path, wanted, ret));
	return NULL;
}

static struct error *by_build_id(const struct debugfile_search *search, const struct wanted *wanted,
				 struct object **ret)
{
	_cleanup_free_ char *path = NULL;
	char hex[2 * OBJECT_BUILD_ID_MAX + 1];

	if (!wanted->id || wanted->id->length < 2)
		return NULL;
	str_hex(wanted->id->data, wanted->id->length, hex);
	TRY(str_format(&path, "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2));
	return try_path(search, path, wanted, ret);
}

/* Length of the directory part of PATH, without the last slash. */
static int directory_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (int)(slash - path) : 0;
}

static struct error *by_link(const struct debugfile_search *search, struct object *object,
			     struct wanted wanted, struct object **ret)
{
	static const char *const forms[][2] = {
		{"", "/"}, {"", "/.debug/"}, {"/usr/lib/debug", "/"}};
	const char *name;
	struct bytes b;

	// A NUL-terminated name, zeros up to a multiple of four, the checksum.
	if (!object_section(object, ".gnu_debuglink", &b, NULL))
		return NULL;
	struct error *err = bytes_string(&b, &name);
	if (!err)
		err = bytes_seek(&b, (bytes_offset(&b) + 3) & ~(size_t)3);
	if (!err)
		err = bytes_u32(&b, &wanted.crc);
	if (err) {
		error_free(err); // damaged: it leads nowhere
		return NULL;
	}
	wanted.has_crc = true;
	if (search->path[0] != '/' || !name[0] || strchr(name, '/'))
		return NULL;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]) && !*ret; i++) {
		_cleanup_free_ char *path = NULL;
		TRY(str_format(&path, "%s%.*s%s%s", forms[i][0], directory_length(search->path),
			       search->path, forms[i][1], name));
		if (strcmp(path, search->path) != 0)
			TRY(try_path(search, path, &wanted, ret));
	}
	return NULL;
}

static struct error *by_server(const struct debugfile_search *search, const struct wanted *wanted,
			       struct object **ret)
{
	_cleanup_close_ int fd = -1;

	if (!search->options->debuginfod || !wanted->id)
		return NULL;
	fd = debuginfod_fetch(wanted->id->data, wanted->id->length);
	if (fd < 0)
		return NULL;
	_cleanup_object_ struct object *object = NULL;
	struct error *err = object_open(fd, "file from debuginfod", &object);
	if (err) {
		log_debug("debuginfod file not used error=\"%s\"", error_text(err));
		error_free(err); // as a damaged candidate on disk
		return NULL;
	}
	take_fd(&fd);
	if (is_wanted(wanted, object, -1))
		*ret = take(object);
	return NULL;
}

struct error *debugfile_open(const struct debugfile_search *search, struct object *object,
			     struct object **ret)
{
	struct wanted wanted = {.id = build_id(object)};

	*ret = NULL;
	TRY(by_build_id(search, &wanted, ret));
	if (!*ret)
		TRY(by_link(search, object, wanted, ret));
	if (!*ret)
		TRY(by_server(search, &wanted, ret));
	return NULL;
}

struct error *debugfile_reopen(const struct debugfile_search *search, const struct object *object,
			       struct object **ret)
{
	_cleanup_object_ struct object *again = NULL;

	*ret = NULL;
	if (!search->options->open || search->path[0] != '/')
		return NULL;
	_cleanup_close_ int fd =
		search->options->open(search->options->context, search->pid, search->path);
	if (fd < 0)
		return NULL;
	struct error *err = object_open(fd, search->path, &again);
	if (err) {
		error_free(err); // another file by now: the caller has the one that is open
		return NULL;
	}
	take_fd(&fd);
	if (object_id_equal(object_id(again), object_id(object)))
		*ret = take(again);
	return NULL;
}

struct error *debugfile_open_alt(const struct debugfile_search *search, struct object *debug,
				 const struct debugfile_alt *alt, struct object **ret)
{
	_cleanup_free_ char *path = NULL;
	struct object_id id = {0};

	*ret = NULL;
	if (!alt->build_id_size || alt->build_id_size > sizeof(id.data))
		return NULL;
	id.length = (uint8_t)alt->build_id_size;
	memcpy(id.data, alt->build_id, alt->build_id_size);
	struct wanted wanted = {.id = &id};
	const char *base = object_name(debug);
	if (alt->name[0] == '/')
		TRY(str_format(&path, "%s", alt->name));
	else
		TRY(str_format(&path, "%.*s/%s", directory_length(base), base, alt->name));
	TRY(try_path(search, path, &wanted, ret));
	if (!*ret)
		TRY(by_build_id(search, &wanted, ret));
	return NULL;
}
