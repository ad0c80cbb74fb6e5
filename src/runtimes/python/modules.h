/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module that a file of Python is, and the package that installed it: with them gProfiler
 * writes a frame as
 *
 *   yaml.parser.Parser.parse (/usr/lib/python3/dist-packages/yaml/parser.py:74 [PyYAML==6.0])
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "runtimes/python/packages.h"

/* The modules of processes that have one root directory; remembers what it has found. */
struct python_modules;

/* FILES (its context is borrowed) opens them; VERSIONS: packages are looked for. */
struct error *python_modules_new(struct python_files files, bool versions,
				 struct python_modules **ret);
void python_modules_free(struct python_modules *modules);

static inline void cleanup_python_modules(struct python_modules **modules)
{
	python_modules_free(*modules);
}
#define _cleanup_python_modules_ _cleanup_(cleanup_python_modules)

struct python_module {
	/* As it is imported; "" if the file does not tell, as "<string>". */
	const char *name;
	/* What has installed the file; NULL: not known. */
	const char *package, *version;
	/* It came with the interpreter, whose version is the package's. */
	bool standard;
};

/* The module in FILE, which is co_filename. RET is borrowed until the next call. */
struct error *python_modules_find(struct python_modules *modules, const char *file,
				  struct python_module *ret);

/* Were there more packages than have been looked at? */
bool python_modules_cut(const struct python_modules *modules);
