/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chosen.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "proc/process.h"

void chosen_deinit(struct chosen *chosen)
{
	free(chosen->pids);
	*chosen = (struct chosen)CHOSEN_INIT;
}

static struct error *add(struct chosen *chosen, uint32_t pid)
{
	for (size_t i = 0; i < chosen->count; i++)
		if (chosen->pids[i] == pid)
			return NULL;
	TRY(ARRAY_RESERVE(chosen->pids, chosen->room, chosen->count, 1, CHOSEN_MAX,
			  "processes chosen"));
	chosen->pids[chosen->count++] = pid;
	return NULL;
}

struct error *chosen_add(struct chosen *chosen, uint64_t pid)
{
	if (kill((pid_t)pid, 0) < 0 && errno == ESRCH)
		return error_new("there is no process %" PRIu64, pid);
	return add(chosen, (uint32_t)pid);
}

struct error *chosen_add_pids(struct chosen *chosen, const struct uint_list *pids)
{
	for (size_t i = 0; i < pids->count; i++)
		TRY(chosen_add(chosen, pids->items[i]));
	return NULL;
}

static struct error *add_name(struct chosen *chosen, const char *name)
{
	_cleanup_(pids_deinit) struct pids found = PIDS_INIT;
	size_t others = 0;

	TRY(processes_find(name, &found));
	for (size_t i = 0; i < found.count; i++) {
		if (found.pid[i] == getpid())
			continue;
		TRY(add(chosen, (uint32_t)found.pid[i]));
		others++;
	}
	return others ? NULL : error_new("no process has a name that matches \"%s\"", name);
}

struct error *chosen_add_names(struct chosen *chosen, const struct text_list *names)
{
	for (size_t i = 0; i < names->count; i++)
		TRY(add_name(chosen, names->items[i]));
	return NULL;
}

struct family {
	uint32_t pid, parent;
};

/* Who has forked whom, of all processes there are. */
static struct error *read_families(struct family **ret, size_t *ret_count)
{
	_cleanup_(pids_deinit) struct pids pids = PIDS_INIT;
	_cleanup_free_ struct family *family = NULL;
	size_t count = 0;

	TRY(processes_list(&pids));
	TRY(ARRAY_NEW(family, pids.count + 1));
	for (size_t i = 0; i < pids.count; i++) {
		struct process_status status;
		enum process_look look = PROCESS_gone;
		struct error *err = process_read_status(pids.pid[i], &look, &status);
		error_free(err); // hidden from us: nobody's child, then
		if (!err && look == PROCESS_there)
			family[count++] =
				(struct family){(uint32_t)pids.pid[i], (uint32_t)status.parent_pid};
	}
	*ret = take(family);
	*ret_count = count;
	return NULL;
}

struct error *chosen_add_children(struct chosen *chosen)
{
	_cleanup_free_ struct family *family = NULL;
	size_t families;

	TRY(read_families(&family, &families));
	// What is added is looked at in its turn.
	for (size_t i = 0; i < chosen->count; i++)
		for (size_t k = 0; k < families; k++)
			if (family[k].parent == chosen->pids[i] &&
			    family[k].pid != (uint32_t)getpid())
				TRY(add(chosen, family[k].pid));
	return NULL;
}
