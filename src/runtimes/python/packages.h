/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which package a file of a packages directory belongs to: what installers left beside it says so.
 * Formats: "Recording installed projects" and "Core metadata" of the Python Packaging User Guide,
 * and installed-files.txt of setuptools, which was there before.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"

enum python_open {
	PYTHON_OPEN_file,
	PYTHON_OPEN_directory,
};

/*
 * Open PATH as the process sees it (proc/root.h), for reading or to be listed. RET_FD is -1 if it
 * cannot be opened; a failure is one of ours.
 */
typedef struct error *python_open_fn(void *context, const char *path, enum python_open what,
				     int *ret_fd);

struct python_files {
	python_open_fn *open;
	void *context; /* borrowed */
};

struct python_package {
	const char *name, *version; /* as the package spells them */
};

/* The packages of one directory. */
struct python_packages {
	struct arena texts;
	struct python_package *package;
	size_t count, room;
	struct python_packages_file *file;
	size_t file_count, file_room;
	struct hash_index files;
	uint64_t seed;
	bool cut; /* a maximum was met: something is missing */
};

#define PYTHON_PACKAGES_INIT                                                                       \
	{                                                                                          \
		0                                                                                  \
	}

/* What looking at packages may cost yet. */
struct python_packages_budget {
	uint64_t bytes; /* to read */
	uint64_t files; /* to keep in mind */
};

/*
 * Read what is installed in DIRECTORY, which ends in a slash. What it costs is taken off BUDGET.
 * Only files whose names end in ".py" are kept. What cannot be opened is not there.
 */
struct error *python_packages_read(const struct python_files *files, const char *directory,
				   struct python_packages_budget *budget,
				   struct python_packages *ret);
void python_packages_deinit(struct python_packages *packages);

/* The package that installed FILE, a path below the directory; NULL: none is known. */
const struct python_package *python_packages_find(const struct python_packages *packages,
						  const char *file);

/* --- the formats */

enum {
	PYTHON_PACKAGES_PATH_MAX = 4096,
	PYTHON_PACKAGES_NAME_MAX = 128,
};

/*
 * The next path of a RECORD, a row of which is PATH,HASH,SIZE with quotes as in RFC 4180. False:
 * there is none any more. One that is too long is "".
 */
bool python_record_next(struct bytes *b, char ret[static PYTHON_PACKAGES_PATH_MAX]);

/* The same of an installed-files.txt, a line of which is a path. */
bool python_installed_next(struct bytes *b, char ret[static PYTHON_PACKAGES_PATH_MAX]);

/*
 * Make PATH the shortest that means the same, below the directory that FROM is below (NULL: it is
 * below that directory itself); RET may be PATH. False: it leads out of there.
 */
bool python_packages_path(const char *from, const char *path,
			  char ret[static PYTHON_PACKAGES_PATH_MAX]);

struct python_metadata {
	char name[PYTHON_PACKAGES_NAME_MAX], version[PYTHON_PACKAGES_NAME_MAX]; /* "": not said */
};

/* A METADATA or PKG-INFO, of which the beginning is enough. */
void python_metadata_parse(struct bytes b, struct python_metadata *ret);
