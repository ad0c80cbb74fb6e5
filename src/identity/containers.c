/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded memory of ids and names. Finding is cgroup-path.c's and runtime-state.c's. */
#include "identity/containers.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "identity/runtime-state.h"
#include "proc/proctext.h"

enum {
	CGROUP_BYTES_MAX = 256 * 1024,
	KNOWN_MAX = 4096, /* then everything is forgotten */
	SHORT_ID = 12,    /* characters of an id that tools show */
};

/* kubelet links a container's log a moment after its start. */
static const uint64_t again_ns = 10000000000;

struct known {
	char id[CONTAINER_ID_MAX + 1];
	char *name;         /* owned; "": none was found */
	uint64_t looked_ns; /* when */
};

struct containers {
	int root_fd; /* owned */
	struct known *known;
	size_t count, room;
	struct hash_index by_id;
};

struct error *containers_new(int root_fd, struct containers **ret)
{
	struct containers *containers = calloc(1, sizeof(*containers));

	if (!containers)
		return error_oom();
	containers->root_fd = root_fd;
	*ret = containers;
	return NULL;
}

static void forget_all(struct containers *containers)
{
	for (size_t i = 0; i < containers->count; i++)
		free(containers->known[i].name);
	containers->count = 0;
	hash_index_clear(&containers->by_id);
}

void containers_free(struct containers *containers)
{
	if (!containers)
		return;
	forget_all(containers);
	hash_index_deinit(&containers->by_id);
	free(containers->known);
	close(containers->root_fd);
	free(containers);
}

struct id_key {
	const struct known *known;
	const char *id;
};

static bool same_id(const void *context, uint32_t item)
{
	const struct id_key *key = context;

	return !strcmp(key->known[item].id, key->id);
}

/* What is known of ID; it is entered if it is not there. */
static struct error *get(struct containers *containers, const char *id, struct known **ret)
{
	struct id_key key = {containers->known, id};
	uint64_t hash = hash_bytes(id, strlen(id), 0);
	struct known entry = {0};
	uint32_t item;

	if (hash_find(&containers->by_id, hash, same_id, &key, &item)) {
		*ret = &containers->known[item];
		return NULL;
	}
	if (containers->count == KNOWN_MAX)
		forget_all(containers);
	TRY(ARRAY_RESERVE(containers->known, containers->room, containers->count, 1, KNOWN_MAX,
			  "containers"));
	snprintf(entry.id, sizeof(entry.id), "%s", id);
	TRY(hash_add(&containers->by_id, hash, (uint32_t)containers->count));
	containers->known[containers->count] = entry;
	*ret = &containers->known[containers->count++];
	return NULL;
}

static struct error *name_of_id(struct containers *containers, const char *id, uint32_t uid,
				const char **ret)
{
	struct known *known;
	uint64_t now_ns = clock_monotonic_ns();

	TRY(get(containers, id, &known));
	if (!known->name || (!*known->name && now_ns - known->looked_ns >= again_ns)) {
		struct container_asked asked = {containers->root_fd, id, uid};
		char name[CONTAINER_NAME_MAX], *copy;
		TRY(runtime_state_find(&asked, name));
		TRY(str_copy(&copy, name));
		free(known->name);
		known->name = copy;
		known->looked_ns = now_ns;
	}
	*ret = known->name;
	return NULL;
}

struct error *containers_find(struct containers *containers, char *text,
			      char ret[CONTAINER_NAME_MAX])
{
	struct container_path path;
	const char *name = "";

	container_path_parse(text, &path);
	for (size_t i = 0; !*name && i < path.count; i++) {
		name = path.level[i].text;
		if (!path.level[i].named)
			TRY(name_of_id(containers, path.level[i].text, path.uid, &name));
	}
	if (*name || !path.count)
		snprintf(ret, CONTAINER_NAME_MAX, "%s", name);
	else
		snprintf(ret, CONTAINER_NAME_MAX, "%.*s", SHORT_ID, path.level[0].text);
	return NULL;
}

struct error *containers_find_process(struct containers *containers, pid_t pid, bool *ret_there,
				      char ret[CONTAINER_NAME_MAX])
{
	_cleanup_free_ char *text = NULL;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	TRY(proctext_read(path, CGROUP_BYTES_MAX, &text));
	*ret_there = text && *text;
	return *ret_there ? containers_find(containers, text, ret) : NULL;
}
