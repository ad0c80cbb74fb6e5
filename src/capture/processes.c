/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes by pid, as side-band events and /proc tell of them. A child shares its parent's set of
 * mappings (map-set.h) until one of them changes it: a fork costs one reference, and no entry in
 * any table.
 */
#define LOG_DOMAIN "processes"
#include "capture/processes.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "proc/maps.h"
#include "proc/process.h"

enum {
	PROCESSES_MAX = 1 << 20,
	BACKOFF_FIRST_MS = 50,
	BACKOFF_STEPS = 9, /* doubling: at most 25.6 s */
	PYTHON_RETRY_MS = 10,
	PYTHON_RETRY_STEPS = 12, /* doubling: at most 41 s */
	ASKS_MAX = 3,            /* programs write their titles some time after they have begun */
	ASK_PAUSE_MS = 500,      /* times 8 */
};

struct process_state {
	uint32_t pid, parent_pid; /* parent_pid 0: its fork was not seen */
	struct map_set *maps;     /* owned reference */
	uint64_t published_ns;    /* as_of of the entry in the kernel; 0: none */
	uint64_t entered_ns;      /* when it was put there */
	bool dirty;               /* in the list of what to publish */
	bool leader_gone;
	bool ended;            /* and still here for the samples that its last moments may bring */
	uint64_t next_read_ns; /* back-off of /proc reads */
	unsigned read_attempts;
	struct python_image
		*python;        /* owned reference; NULL: does not run CPython, as far as known */
	uint32_t python_object; /* in which its interpreter was looked for last */
	unsigned python_attempts;
	uint64_t python_retry_ns; /* when it is looked at again, at the latest; 0: it was ready */
	char *application;        /* owned; NULL: not known */
	uint64_t ask_ns;          /* not before then */
	unsigned asked;
};

/* An interpreter that was not ready to be looked at. */
struct python_retry {
	uint32_t pid;
	uint64_t at_ns;
};

struct processes {
	struct map_sets sets;
	struct process_state **process;
	size_t count, room;
	struct hash_index by_pid;
	uint32_t *dirty; /* pids */
	size_t dirty_count, dirty_room;
	uint32_t *ended; /* pids */
	size_t ended_count, ended_room;
	uint32_t *republish; /* pids that passed exec in the last drain */
	size_t republish_count, republish_room;
	struct python_retry *retry;
	size_t retry_count, retry_room;
	uint64_t lost_swept;     /* side-band records that had been lost at the last sweep */
	struct pythons *pythons; /* borrowed */
	const struct application_options *applications; /* borrowed */
};

/* --- processes */

struct pid_key {
	struct process_state *const *process;
	uint32_t pid;
};

static bool pid_equal(const void *context, uint32_t item)
{
	const struct pid_key *key = context;

	return key->process[item]->pid == key->pid;
}

static struct process_state *find(const struct processes *processes, uint32_t pid)
{
	struct pid_key key = {processes->process, pid};
	uint32_t item;

	return hash_find(&processes->by_pid, hash_u64(pid), pid_equal, &key, &item)
		       ? processes->process[item]
		       : NULL;
}

static void remove_entry(struct processes *processes, uint32_t pid)
{
	if (processes->sets.kernel)
		kernel_remove_process(processes->sets.kernel, pid);
}

static void remove_process(struct processes *processes, struct process_state *process)
{
	struct pid_key key = {processes->process, process->pid};
	uint32_t item, last = (uint32_t)processes->count - 1;

	if (!hash_find(&processes->by_pid, hash_u64(process->pid), pid_equal, &key, &item))
		return;
	hash_remove(&processes->by_pid, hash_u64(process->pid), item);
	if (item != last) {
		// The last one takes the place; its index entry follows. Removing and adding
		// leaves room enough.
		uint64_t hash = hash_u64(processes->process[last]->pid);
		hash_remove(&processes->by_pid, hash, last);
		processes->process[item] = processes->process[last];
		error_free(hash_add(&processes->by_pid, hash, item));
	}
	processes->count--;
	remove_entry(processes, process->pid);
	map_set_unref(&processes->sets, process->maps);
	python_image_unref(processes->pythons, process->python);
	free(process->application);
	free(process);
}

/* A process with MAPS, whose reference is consumed on success. */
static struct error *add_process(struct processes *processes, uint32_t pid, struct map_set *maps,
				 struct process_state **ret)
{
	TRY(ARRAY_RESERVE(processes->process, processes->room, processes->count, 1, PROCESSES_MAX,
			  "processes"));
	struct process_state *process = calloc(1, sizeof(*process));
	if (!process)
		return error_oom();
	struct error *err = hash_add(&processes->by_pid, hash_u64(pid), (uint32_t)processes->count);
	if (err) {
		free(process);
		return err;
	}
	process->pid = pid;
	process->maps = maps;
	processes->process[processes->count++] = process;
	counter_add(processes->sets.counters, COUNTER_processes, 1);
	*ret = process;
	return NULL;
}

static struct error *mark_dirty(struct processes *processes, struct process_state *process)
{
	if (process->dirty)
		return NULL;
	TRY(ARRAY_RESERVE(processes->dirty, processes->dirty_room, processes->dirty_count, 1,
			  PROCESSES_MAX, "processes to publish"));
	processes->dirty[processes->dirty_count++] = process->pid;
	process->dirty = true;
	return NULL;
}

/* Replace a process's mappings by MAPS, whose reference is consumed. */
static struct error *set_maps(struct processes *processes, struct process_state *process,
			      struct map_set *maps)
{
	map_set_unref(&processes->sets, process->maps);
	process->maps = maps;
	return mark_dirty(processes, process);
}

/*
 * The executable mappings of PID as /proc shows them; NULL: there are none (a kernel thread, or it
 * is gone).
 */
static struct error *read_maps(struct processes *processes, uint32_t pid, struct map_set **ret)
{
	_cleanup_(maps_deinit) struct maps maps = MAPS_INIT;
	struct map_set *set;

	counter_add(processes->sets.counters, COUNTER_maps_reads, 1);
	TRY(maps_read((pid_t)pid, MAPS_executable, &maps));
	if (!maps.count) {
		*ret = NULL;
		return NULL;
	}
	TRY(map_set_new(&set));
	struct map_owner owner = {.pid = pid};
	struct error *err = map_set_add_maps(&processes->sets, set, &owner, &maps);
	if (err) {
		map_set_unref(&processes->sets, set);
		return err;
	}
	*ret = set;
	return NULL;
}

/* Enter or renew PID from /proc. RET is NULL for one that is gone. */
static struct error *learn(struct processes *processes, uint32_t pid, struct process_state **ret)
{
	struct process_state *process = find(processes, pid);
	struct map_set *maps;

	struct error *err = read_maps(processes, pid, &maps);
	if (err) {
		log_debug("%s", error_text(err));
		error_free(err); // not ours to look at, or gone: its samples end visibly
		maps = NULL;
	}
	if (!maps) {
		*ret = process;
		return NULL;
	}
	if (!process) {
		err = add_process(processes, pid, maps, &process);
		if (err) {
			map_set_unref(&processes->sets, maps);
			return err;
		}
		TRY(mark_dirty(processes, process));
	} else {
		TRY(set_maps(processes, process, maps));
	}
	*ret = process;
	return NULL;
}

struct error *processes_scan(struct processes *processes, uint64_t now_ns)
{
	_cleanup_(pids_deinit) struct pids pids = PIDS_INIT;
	struct process_state *process;

	TRY(processes_list(&pids));
	for (size_t i = 0; i < pids.count; i++)
		TRY(learn(processes, (uint32_t)pids.pid[i], &process));
	return processes_publish(processes, now_ns);
}

/* Is a thread of PID on a CPU, or waiting for one? */
static bool running(uint32_t pid)
{
	enum process_look look = PROCESS_gone;
	struct process_status status;
	struct error *err = process_read_status((pid_t)pid, &look, &status);
	bool is = !err && look == PROCESS_there && status.state == 'R';

	error_free(err); // it is gone, or not ours to look at
	return is;
}

/* Load the rows of all that PROCESS has mapped, until UNTIL_NS. */
static struct error *load_rows(struct processes *processes, const struct process_state *process,
			       uint64_t until_ns)
{
	const struct map_set *set = process->maps;

	for (size_t i = 0; i < set->count && clock_monotonic_ns() < until_ns; i++)
		if (set->map[i].object != OBJECT_NONE)
			TRY(objects_load(processes->sets.objects, set->map[i].object));
	return NULL;
}

struct error *processes_warm(struct processes *processes, uint64_t until_ns)
{
	for (size_t i = 0; i < processes->count && clock_monotonic_ns() < until_ns; i++)
		if (processes->process[i]->pid != (uint32_t)getpid() &&
		    running(processes->process[i]->pid))
			TRY(load_rows(processes, processes->process[i], until_ns));
	return NULL;
}

struct error *processes_warm_one(struct processes *processes, uint32_t pid, uint64_t until_ns)
{
	const struct process_state *process = find(processes, pid);
	const struct process_state *own = find(processes, (uint32_t)getpid());

	// A command that was started for the session is about to exec: it is cairn still.
	if (!process || !process->maps->count ||
	    (own && own->maps->count && process->maps->map[0].object == own->maps->map[0].object))
		return NULL;
	return load_rows(processes, process, until_ns);
}

/* --- events */

static struct error *apply_map(struct processes *processes, const struct side_event *event)
{
	struct process_state *process = find(processes, event->pid);
	struct map_set *maps;

	if (!process) {
		TRY(map_set_new(&maps));
		struct error *err = add_process(processes, event->pid, maps, &process);
		if (err) {
			map_set_unref(&processes->sets, maps);
			return err;
		}
	} else if (process->maps->refs > 1) {
		TRY(map_set_copy(&processes->sets, process->maps, &maps));
		TRY(set_maps(processes, process, maps));
	}
	struct object_source source = {
		.path = event->text,
		.pid = event->pid,
		.start = event->start,
		.end = event->end,
		.inode = event->inode,
		.build_id = event->build_id,
	};
	TRY(map_set_add_source(&processes->sets, process->maps, &source, event->offset));
	return mark_dirty(processes, process);
}

static struct error *apply_fork(struct processes *processes, const struct side_event *event)
{
	struct process_state *parent, *child;

	if (event->pid == event->parent_pid) // a thread
		return NULL;
	child = find(processes, event->pid);
	if (child) // an earlier process of this number, whose end was missed
		remove_process(processes, child);
	parent = find(processes, event->parent_pid);
	if (!parent)
		return NULL;
	TRY(add_process(processes, event->pid, parent->maps, &child));
	parent->maps->refs++;
	child->parent_pid = event->parent_pid;
	child->python = python_image_ref(parent->python);
	child->python_object = parent->python_object;
	// It runs what its parent runs until it execs, and may not live until it is asked.
	if (parent->application)
		TRY(str_copy(&child->application, parent->application));
	// The BPF side copied the parent's entry, if it had one by then.
	if (parent->published_ns && parent->entered_ns < event->time_ns && !parent->dirty &&
	    !parent->python_retry_ns) {
		child->published_ns = parent->published_ns;
		child->entered_ns = event->time_ns;
	} else {
		TRY(mark_dirty(processes, child));
	}
	return NULL;
}

/* Another program runs there now. */
static void forget_application(struct process_state *process)
{
	free(take(process->application));
	process->asked = 0;
	process->ask_ns = 0;
}

static struct error *apply_exec(struct processes *processes, const struct side_event *event)
{
	struct process_state *process = find(processes, event->pid);
	struct map_set *maps;

	TRY(ARRAY_RESERVE(processes->republish, processes->republish_room,
			  processes->republish_count, 1, PROCESSES_MAX, "processes to publish"));
	TRY(map_set_new(&maps));
	if (!process) {
		struct error *err = add_process(processes, event->pid, maps, &process);
		if (err)
			map_set_unref(&processes->sets, maps);
		return err;
	}
	// The entry in the kernel is older than the exec, which is how the programs know not to
	// use it. What is published now may be, too (the exec is still under way at its COMM
	// record), so it is published once more.
	// An exec by another thread ends the one that began the process, and takes its number.
	process->leader_gone = process->ended = false;
	process->published_ns = 0;
	python_image_unref(processes->pythons, process->python);
	process->python = NULL;
	process->python_object = OBJECT_NONE;
	process->python_attempts = 0;
	process->python_retry_ns = 0;
	forget_application(process);
	processes->republish[processes->republish_count++] = event->pid;
	return set_maps(processes, process, maps);
}

/* Does any thread of PID still run? */
static bool alive(uint32_t pid)
{
	_cleanup_(pids_deinit) struct pids threads = PIDS_INIT;
	enum process_look look = PROCESS_gone;
	struct process_status status;

	// A process that cannot be looked at is taken for gone: if it is not, its next sample
	// brings it back.
	struct error *err = process_read_status((pid_t)pid, &look, &status);
	if (err || look == PROCESS_gone) {
		error_free(err);
		return false;
	}
	if (status.state != 'Z' && status.state != 'X')
		return true;
	err = process_list_threads((pid_t)pid, &threads);
	error_free(err); // as above
	return threads.count > 1;
}

static struct error *add_ended(struct processes *processes, uint32_t pid)
{
	TRY(ARRAY_RESERVE(processes->ended, processes->ended_room, processes->ended_count, 1,
			  PROCESSES_MAX, "processes that ended"));
	processes->ended[processes->ended_count++] = pid;
	return NULL;
}

static struct error *apply_exit(struct processes *processes, const struct side_event *event)
{
	struct process_state *process;

	if (event->tid != event->pid)
		return NULL;
	process = find(processes, event->pid);
	if (!process)
		return NULL;
	// The other threads of a process may outlive the one that began it.
	process->leader_gone = true;
	return alive(event->pid) ? NULL : add_ended(processes, event->pid);
}

struct error *processes_apply(struct processes *processes, const struct side_event *event)
{
	switch (event->kind) {
	case SIDE_map:
		return apply_map(processes, event);
	case SIDE_fork:
		return apply_fork(processes, event);
	case SIDE_exec:
		return apply_exec(processes, event);
	case SIDE_exit:
		return apply_exit(processes, event);
	}
	return NULL;
}

/* --- questions */

struct error *processes_get(struct processes *processes, uint32_t pid, uint64_t now_ns,
			    struct process_state **ret)
{
	struct process_state *process = find(processes, pid);

	if (!process)
		TRY(learn(processes, pid, &process));
	*ret = process;
	return NULL;
}

struct error *processes_refresh(struct processes *processes, struct process_state *process,
				uint64_t now_ns, bool *ret)
{
	struct process_state *renewed;

	if (now_ns < process->next_read_ns) {
		counter_add(processes->sets.counters, COUNTER_maps_backoff, 1);
		*ret = false;
		return NULL;
	}
	// Quiet for longer than the longest pause: as if for the first time.
	if (now_ns > process->next_read_ns + (BACKOFF_FIRST_MS * 1000000ull << BACKOFF_STEPS))
		process->read_attempts = 0;
	process->next_read_ns = now_ns + (BACKOFF_FIRST_MS * 1000000ull << process->read_attempts);
	if (process->read_attempts < BACKOFF_STEPS)
		process->read_attempts++;
	TRY(learn(processes, process->pid, &renewed));
	*ret = true;
	return NULL;
}

uint32_t processes_parent(const struct processes *processes, uint32_t pid)
{
	const struct process_state *process = find(processes, pid);

	return process ? process->parent_pid : 0;
}

struct code process_code(const struct process_state *process, uint64_t pc)
{
	return map_set_code(process->maps, pc);
}

struct error *processes_missed(struct processes *processes, struct process_state *process,
			       uint64_t time_ns)
{
	// One that was published since needs no more.
	return process->published_ns < time_ns ? mark_dirty(processes, process) : NULL;
}

struct error *process_table(struct processes *processes, struct process_state *process,
			    const struct unwind_mapping **ret, size_t *ret_count)
{
	TRY(map_set_build_table(&processes->sets, process->maps));
	*ret = process->maps->table;
	*ret_count = process->maps->count;
	return NULL;
}

struct python_image *process_python(const struct process_state *process)
{
	return process->python;
}

struct error *processes_application(struct processes *processes, uint32_t pid, const char **ret)
{
	struct process_state *process = processes->applications ? find(processes, pid) : NULL;

	*ret = "";
	if (!process)
		return NULL;
	if (!process->application && process->asked < ASKS_MAX && !process->ended) {
		uint64_t now_ns = clock_monotonic_ns();
		if (now_ns >= process->ask_ns) {
			process->ask_ns =
				now_ns + (ASK_PAUSE_MS * 1000000ull << 3 * process->asked);
			process->asked++;
			TRY(application_find(processes->applications, (pid_t)pid,
					     &process->application));
		}
	}
	*ret = process->application ? process->application : "";
	return NULL;
}

/* --- interpreters */

/*
 * Look at PROCESS again later, and as long as it lives: a program that embeds CPython may start it
 * when it first needs it. What the process maps meanwhile brings a look of its own.
 */
static struct error *retry_python(struct processes *processes, struct process_state *process)
{
	uint64_t now_ns = clock_monotonic_ns();
	uint64_t pause_ns = PYTHON_RETRY_MS * 1000000ull << process->python_attempts;

	process->python_object = OBJECT_NONE;
	if (process->python_retry_ns > now_ns)
		return NULL;
	TRY(ARRAY_RESERVE(processes->retry, processes->retry_room, processes->retry_count, 1,
			  PROCESSES_MAX, "interpreters to look at again"));
	process->python_attempts += process->python_attempts < PYTHON_RETRY_STEPS;
	process->python_retry_ns = now_ns + pause_ns;
	processes->retry[processes->retry_count++] =
		(struct python_retry){process->pid, process->python_retry_ns};
	return NULL;
}

/* Find PROCESS's interpreter, if one of its objects holds CPython. */
static struct error *find_python(struct processes *processes, struct process_state *process)
{
	const struct map_set *set = process->maps;
	enum pythons_outcome outcome = PYTHONS_none;

	if (!processes->pythons)
		return NULL;
	for (size_t i = 0; !process->python && i < set->count; i++) {
		const struct process_map *map = &set->map[i];
		if (map->object == OBJECT_NONE || map->object == process->python_object ||
		    !objects_python(processes->sets.objects, map->object))
			continue;
		process->python_object = map->object;
		struct python_place place = {process->pid, map->object, map->bias};
		TRY(pythons_attach(processes->pythons, &place, &outcome, &process->python));
		if (outcome == PYTHONS_attached && processes->sets.kernel)
			kernel_await_program(processes->sets.kernel, process->pid);
		if (outcome == PYTHONS_not_yet)
			return retry_python(processes, process);
		process->python_retry_ns = 0;
	}
	return NULL;
}

/* Those whose pause is over are looked at again with the next publishing. */
static struct error *retry_pythons(struct processes *processes)
{
	uint64_t now_ns = processes->retry_count ? clock_monotonic_ns() : 0;
	size_t kept = 0;

	for (size_t i = 0; i < processes->retry_count; i++) {
		struct python_retry retry = processes->retry[i];
		struct process_state *process = find(processes, retry.pid);
		if (retry.at_ns > now_ns)
			processes->retry[kept++] = retry;
		else if (process && !process->python)
			TRY(mark_dirty(processes, process));
	}
	processes->retry_count = kept;
	return NULL;
}

/* --- publishing */

static struct error *publish_one(struct processes *processes, struct process_state *process,
				 uint64_t as_of_ns)
{
	bool fits;

	TRY(find_python(processes, process));
	if (!processes->sets.kernel)
		return NULL;
	TRY(map_set_publish(&processes->sets, process->maps, &fits));
	if (!fits) {
		// What the entry points at has been given back. Without one the host walks.
		kernel_remove_process(processes->sets.kernel, process->pid);
		process->published_ns = 0;
		return NULL;
	}
	struct process_entry entry = {
		.as_of_ns = as_of_ns,
		.first_mapping = process->maps->first,
		.mappings = (uint32_t)process->maps->count,
		.python = process->python ? python_image_number(process->python) : 0,
	};
	struct error *err = kernel_set_process(processes->sets.kernel, process->pid, &entry);
	if (err) {
		// Full. Its samples come with copies of the stack and are walked by the host.
		error_free(err);
		counter_add(processes->sets.counters, COUNTER_processes_skipped, 1);
		return NULL;
	}
	process->published_ns = as_of_ns;
	process->entered_ns = clock_monotonic_ns();
	return NULL;
}

/*
 * Remove those that ended before the last drain. One that ended since is marked and goes with the
 * next: samples of its exit may still come.
 */
static void remove_ended(struct processes *processes)
{
	size_t kept = 0;

	for (size_t i = 0; i < processes->ended_count; i++) {
		struct process_state *process = find(processes, processes->ended[i]);
		if (!process || !process->leader_gone) // its number is in use again
			continue;
		if (process->ended) {
			remove_process(processes, process);
			continue;
		}
		process->ended = true;
		processes->ended[kept++] = process->pid;
	}
	processes->ended_count = kept;
}

struct error *processes_publish(struct processes *processes, uint64_t as_of_ns)
{
	remove_ended(processes);
	TRY(retry_pythons(processes));
	for (size_t i = 0; i < processes->dirty_count; i++) {
		struct process_state *process = find(processes, processes->dirty[i]);
		if (!process || !process->dirty)
			continue;
		process->dirty = false;
		if (!process->ended)
			TRY(publish_one(processes, process, as_of_ns));
	}
	processes->dirty_count = 0;
	for (size_t i = 0; i < processes->republish_count; i++) {
		struct process_state *process = find(processes, processes->republish[i]);
		if (process)
			TRY(mark_dirty(processes, process));
	}
	processes->republish_count = 0;
	return NULL;
}

/* Among the records that were lost may be ends of processes. */
static struct error *find_missed_ends(struct processes *processes)
{
	uint64_t lost = processes->sets.counters->value[COUNTER_side_band_lost];

	if (lost == processes->lost_swept)
		return NULL;
	processes->lost_swept = lost;
	for (size_t i = 0; i < processes->count; i++) {
		struct process_state *process = processes->process[i];
		if (process->leader_gone || !kill((pid_t)process->pid, 0) || errno != ESRCH)
			continue;
		process->leader_gone = true;
		TRY(add_ended(processes, process->pid));
	}
	return NULL;
}

struct error *processes_sweep(struct processes *processes)
{
	for (size_t i = processes->count; i-- > 0;) {
		struct process_state *process = processes->process[i];
		if (process->leader_gone && !alive(process->pid))
			remove_process(processes, process);
	}
	return find_missed_ends(processes);
}

void processes_forget(struct processes *processes, uint32_t pid)
{
	struct process_state *process = find(processes, pid);

	if (process)
		remove_process(processes, process);
}

size_t processes_count(const struct processes *processes)
{
	return processes->count;
}

struct error *processes_new(const struct processes_options *options, struct processes **ret)
{
	struct processes *processes = calloc(1, sizeof(*processes));

	if (!processes)
		return error_oom();
	processes->sets.kernel = options->kernel;
	processes->sets.objects = options->objects;
	processes->sets.counters = options->counters;
	processes->pythons = options->pythons;
	processes->applications = options->applications;
	struct error *err =
		ranges_add(&processes->sets.ranges, (struct range){.count = options->mapping_room});
	if (err) {
		processes_free(processes);
		return err;
	}
	*ret = processes;
	return NULL;
}

void processes_free(struct processes *processes)
{
	if (!processes)
		return;
	for (size_t i = 0; i < processes->count; i++) {
		map_set_unref(&processes->sets, processes->process[i]->maps);
		python_image_unref(processes->pythons, processes->process[i]->python);
		free(processes->process[i]->application);
		free(processes->process[i]);
	}
	free(processes->process);
	free(processes->dirty);
	free(processes->republish);
	free(processes->ended);
	free(processes->retry);
	hash_index_deinit(&processes->by_pid);
	ranges_deinit(&processes->sets.ranges);
	free(processes);
}
