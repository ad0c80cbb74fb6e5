/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The separate file that holds what was stripped from an object: by build id, or by the name and
 * checksum in .gnu_debuglink, both in the target's root and then in the host's. A file is taken
 * only if it is the right one: the same build id, or, where either has none, the right checksum.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "object/object.h"
#include "symbolize/symbolizer.h"

enum {
	DEBUGFILE_CRC_BYTES = 1 << 30, /* larger files are not summed up */
	DEBUGFILE_PATH_BYTES = 4096,
};

/* Where to look. */
struct debugfile_search {
	const struct symbolizer_options *options; /* borrowed */
	const char *path;                         /* what the process calls the object; borrowed */
	uint32_t pid;
};

/* RET is the debug file of OBJECT, or NULL: none was found. */
struct error *debugfile_open(const struct debugfile_search *search, struct object *object,
			     struct object **ret);

/* The same file as OBJECT opened once more, so that what libraries keep of it can be given back;
 * NULL: it is not there any more. */
struct error *debugfile_reopen(const struct debugfile_search *search, const struct object *object,
			       struct object **ret);

/*
 * The file with what several debug files share (dwz), named NAME in the .gnu_debugaltlink of DEBUG,
 * with BUILD_ID; NULL: not found.
 */
struct debugfile_alt {
	const char *name;
	const uint8_t *build_id;
	size_t build_id_size;
};
struct error *debugfile_open_alt(const struct debugfile_search *search, struct object *debug,
				 const struct debugfile_alt *alt, struct object **ret);
