/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects (programs, libraries, the vdso) that processes map: found by identity, opened once,
 * shared by all. Their unwind rows are compiled when the first walk needs them, and again after an
 * eviction.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/counters.h"
#include "base/error.h"
#include "object/object.h"
#include "object/rows.h"
#include "runtimes/python/find.h"
#include "unwind/store.h"

enum { OBJECT_NONE = 0 };

struct objects;

/* Opens the file of the mapping that starts at START; RET_FD stays -1 if it is not to be had. */
typedef struct error *object_open_fn(void *context, uint64_t start, int *ret_fd);

/* Where a mapping came from. */
struct object_source {
	const char *path; /* as the process sees it; borrowed */
	uint32_t pid;
	uint64_t start, end;       /* of the mapping */
	uint64_t inode;            /* 0: not known */
	struct object_id build_id; /* length 0: not known */
	object_open_fn *open;      /* NULL: by path, in the root of pid */
	void *context;             /* of open; borrowed */
};

/* STORE and COUNTERS are borrowed. */
struct error *objects_new(struct store *store, struct counters *counters, struct objects **ret);
void objects_free(struct objects *objects);

/*
 * The number of the object behind SOURCE; one reference is the caller's. A file that is there and
 * no ELF object, or that cannot be opened any more, has a number as well: it has a name, and no
 * rows.
 */
struct error *objects_find(struct objects *objects, const struct object_source *source,
			   uint32_t *ret);
/* The vdso, as this process has it (all processes of one kernel share its text). */
struct error *objects_find_vdso(struct objects *objects, uint32_t *ret);

void objects_ref(struct objects *objects, uint32_t number);
void objects_unref(struct objects *objects, uint32_t number);

/* A frame of this session is in the object: it is kept until objects_end_session(). */
void objects_use(struct objects *objects, uint32_t number, uint64_t now_ns);
/* Close what no process maps any more. */
void objects_end_session(struct objects *objects);

/* Module number for the mapping tables; UNWIND_MODULE_none when there is no code to walk. */
uint32_t objects_module(const struct objects *objects, uint32_t number);
/* The object that has module number MODULE. */
uint32_t objects_of_module(const struct objects *objects, uint32_t module);
/* Is it an ELF object at all? */
bool objects_is_code(const struct objects *objects, uint32_t number);
/* Address in the object of file offset OFFSET. */
bool objects_addr_of_offset(const struct objects *objects, uint32_t number, uint64_t offset,
			    uint64_t *ret);
const char *objects_path(const struct objects *objects, uint32_t number);
struct object *objects_object(struct objects *objects, uint32_t number);
/* A process that maps or mapped it; its root is where debug files are looked for first. */
uint32_t objects_pid(const struct objects *objects, uint32_t number);

/* What is known of the CPython in the object; NULL: it holds none. Owned by the object. */
const struct python_object *objects_python(struct objects *objects, uint32_t number);

/* Compile and load the rows of an object that a walk found not loaded. */
struct error *objects_load(struct objects *objects, uint32_t number);

/*
 * Where functions begin and gaps are, for names: rows whose rules say nothing else. The arrays are
 * the caller's (rows_deinit()).
 */
struct error *objects_starts(struct objects *objects, uint32_t number, struct rows *ret);
