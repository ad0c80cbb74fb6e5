/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a profile by pid, name and application: each is looked at once in a session. */
#define LOG_DOMAIN "owners"
#include "capture/owners.h"

#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/log.h"

enum {
	/* Processes that are told apart in one profile. */
	PROCESSES_APART = 8192,
	/* Looked at in one session; of more no container is known. */
	LOOKS_MAX = 1 << 17,
	/* Ancestors that are asked for the container of one that has ended. */
	ANCESTORS_MAX = 4,
};

struct owner {
	uint32_t pid;
	string_id name, application;
	uint32_t index; /* in the profile */
};

struct owners {
	struct owners_options options;
	struct owner *owner;
	size_t count, room;
	struct hash_index by_key;
};

struct error *owners_new(const struct owners_options *options, struct owners **ret)
{
	struct owners *owners = calloc(1, sizeof(*owners));

	if (!owners)
		return error_oom();
	owners->options = *options;
	*ret = owners;
	return NULL;
}

void owners_clear(struct owners *owners)
{
	owners->count = 0;
	hash_index_clear(&owners->by_key);
}

void owners_free(struct owners *owners)
{
	if (!owners)
		return;
	hash_index_deinit(&owners->by_key);
	free(owners->owner);
	free(owners);
}

struct owner_key {
	const struct owner *owner;
	uint32_t pid;
	string_id name, application;
};

static bool same_owner(const void *context, uint32_t item)
{
	const struct owner_key *key = context;
	const struct owner *owner = &key->owner[item];

	return owner->pid == key->pid && owner->name == key->name &&
	       owner->application == key->application;
}

static struct error *look(struct owners *owners, uint32_t pid, char ret[CONTAINER_NAME_MAX])
{
	bool there = false;

	// A child is born in its parent's group, and what ends before it was looked at has rarely
	// been moved to another one.
	for (int i = 0; i < ANCESTORS_MAX && pid && !there; i++) {
		TRY(containers_find_process(owners->options.containers, (pid_t)pid, &there, ret));
		pid = processes_parent(owners->options.processes, pid);
	}
	return NULL;
}

static struct error *find_container(struct owners *owners, struct profile *profile, uint32_t pid,
				    string_id *ret)
{
	char name[CONTAINER_NAME_MAX] = "";

	if (!owners->options.containers || !pid)
		return NULL;
	struct error *err = look(owners, pid, name);
	if (err) {
		log_debug("%s", error_text(err));
		error_free(err); // not ours to look at: its container is not known
		return NULL;
	}
	return profile_string(profile, name, strlen(name), ret);
}

static struct error *add_owner(struct owners *owners, struct profile *profile,
			       const struct owner_key *key, uint32_t *ret)
{
	struct process process = {
		.pid = key->pid, .name = key->name, .application = key->application};

	if (owners->count < LOOKS_MAX)
		TRY(find_container(owners, profile, key->pid, &process.container));
	if (profile_processes(profile) >= PROCESSES_APART)
		process.pid = 0;
	return profile_process(profile, &process, ret);
}

struct error *owners_find(struct owners *owners, struct profile *profile,
			  const struct sample *sample, uint32_t *ret)
{
	struct owner_key key = {.owner = owners->owner, .pid = sample->pid};
	size_t length = strnlen(sample->comm, sizeof(sample->comm));
	struct owner owner;
	const char *text;
	uint32_t item;

	TRY(profile_string(profile, sample->comm, length, &key.name));
	TRY(processes_application(owners->options.processes, sample->pid, &text));
	TRY(profile_string(profile, text, strlen(text), &key.application));
	uint64_t hash = hash_u64((uint64_t)key.name << 32 | sample->pid);
	hash = hash_u64(hash ^ key.application);
	if (hash_find(&owners->by_key, hash, same_owner, &key, &item)) {
		*ret = owners->owner[item].index;
		return NULL;
	}
	owner = (struct owner){key.pid, key.name, key.application, 0};
	TRY(add_owner(owners, profile, &key, &owner.index));
	*ret = owner.index;
	if (owners->count == LOOKS_MAX)
		return NULL;
	TRY(ARRAY_RESERVE(owners->owner, owners->room, owners->count, 1, LOOKS_MAX, "processes"));
	TRY(hash_add(&owners->by_key, hash, (uint32_t)owners->count));
	owners->owner[owners->count++] = owner;
	return NULL;
}
