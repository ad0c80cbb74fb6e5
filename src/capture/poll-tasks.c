/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New processes are found by the number that the kernel gave last (/proc/loadavg): as long as it
 * is the same nothing was started; otherwise those between are looked at, one by one. Now and then
 * the whole of /proc is gone through, should that number be wrong.
 */
#define LOG_DOMAIN "poll"
#include "capture/poll-tasks.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "proc/access.h"
#include "proc/proctext.h"
#include "proc/system.h"
#include "proc/threads.h"

enum {
	TASKS_MAX = 1 << 20,          /* processes */
	RANGE_MAX = 256,              /* new numbers that are looked at one by one */
	SCAN_NS = 2000 * 1000 * 1000, /* from one walk through /proc to the next */
	SCAN_SOON_NS = 50 * 1000 * 1000,
	SWEEP_NS = 1000 * 1000 * 1000,
	PATH_BYTES = 64,
	KIB = 1024,
	TICK_NS = 10 * 1000 * 1000, /* the slowest that kernels are built with */
};

struct poll_tasks {
	struct poll_tasks_options options; /* pids and tids are our own copies */
	uint32_t *pids, *tids;
	struct poll_process **process; /* ascending by pid */
	size_t count, room;
	uint32_t sequence; /* threads so far */
	uint32_t last_pid; /* all up to this one have been looked at; 0: the kernel does not say */
	uint64_t begin_ticks; /* what is younger began while we looked */
	uint64_t scan_ns, sweep_ns;
	size_t meters, meters_max; /* that hold a descriptor */
	uint64_t lost;             /* samples, of threads that have ended */
	bool begun;
	char *why_denied;
};

/* --- threads */

/*
 * One process that cannot be looked at, for whatever reason (it may be hidden, or end in this
 * moment), does not end the session of all others.
 */
static void swallow(struct error *err)
{
	if (err)
		log_debug("%s", error_text(err));
	error_free(err); // see above
}

static void drop_thread(struct poll_tasks *tasks, struct poll_thread *thread)
{
	tasks->meters -= thread->meter.fd >= 0;
	thread_meter_close(&thread->meter);
	tasks->lost += credit_lose(&thread->credit, tasks->options.period_ns);
}

/* A thread that has just been found. OLD: it was there before the session. */
static struct error *meet_thread(struct poll_tasks *tasks, const struct poll_process *process,
				 uint32_t tid, bool old, struct poll_thread *ret)
{
	struct poll_thread thread = {
		.tid = tid,
		.meter = {.fd = -1, .pid = (pid_t)process->pid, .tid = (pid_t)tid},
		.credit = credit_begin(tasks->sequence++, tasks->options.period_ns),
	};
	enum meter_look look;

	if (tasks->meters < tasks->meters_max)
		thread.meter = thread_meter_open((pid_t)process->pid, (pid_t)tid);
	tasks->meters += thread.meter.fd >= 0;
	// What it consumed before it was found belongs to the session if it began with it.
	struct error *err = old ? thread_meter_read(&thread.meter, &look, &thread.last) : NULL;
	if (err) {
		drop_thread(tasks, &thread);
		return err;
	}
	*ret = thread;
	return NULL;
}

static bool thread_wanted(const struct poll_tasks *tasks, uint32_t tid)
{
	for (size_t i = 0; i < tasks->options.tid_count; i++)
		if (tasks->tids[i] == tid)
			return true;
	return !tasks->options.tid_count;
}

/* Enter the threads that PROCESS has now; those known keep what is known. */
static struct error *list_threads(struct poll_tasks *tasks, struct poll_process *process, bool old)
{
	_cleanup_(pids_deinit) struct pids tids = PIDS_INIT;
	_cleanup_free_ struct poll_thread *now = NULL;
	size_t room = 0, count = 0, k = 0;

	TRY(process_list_threads((pid_t)process->pid, &tids));
	TRY(ARRAY_RESERVE(now, room, 0, tids.count + 1, PIDS_MAX, "threads"));
	for (size_t i = 0; i < tids.count; i++) {
		uint32_t tid = (uint32_t)tids.pid[i];
		while (k < process->count && process->thread[k].tid < tid)
			drop_thread(tasks, &process->thread[k++]);
		if (k < process->count && process->thread[k].tid == tid)
			now[count++] = process->thread[k++];
		else if (thread_wanted(tasks, tid)) {
			// One that fails is looked for again when the number of threads changes.
			struct error *err = meet_thread(tasks, process, tid, old, &now[count]);
			count += !err;
			swallow(err);
		}
	}
	while (k < process->count)
		drop_thread(tasks, &process->thread[k++]);
	free(process->thread);
	process->thread = take(now);
	process->count = count;
	process->room = room;
	return NULL;
}

/* So many links has its directory of threads: changes when one begins or ends. 0: it is gone. */
static uint64_t read_links(uint32_t pid)
{
	char path[PATH_BYTES];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%u/task", pid);
	return stat(path, &st) < 0 ? 0 : st.st_nlink;
}

/* --- processes */

static size_t position(const struct poll_tasks *tasks, uint32_t pid)
{
	size_t low = 0, high = tasks->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (tasks->process[middle]->pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct poll_process *find(const struct poll_tasks *tasks, uint32_t pid)
{
	size_t i = position(tasks, pid);

	return i < tasks->count && tasks->process[i]->pid == pid ? tasks->process[i] : NULL;
}

static void process_free(struct poll_tasks *tasks, struct poll_process *process)
{
	uint64_t period_ns = tasks->options.period_ns;

	for (size_t i = 0; i < process->count; i++)
		drop_thread(tasks, &process->thread[i]);
	if (process->unseen_ns > 0)
		tasks->lost += ((uint64_t)process->unseen_ns + period_ns / 2) / period_ns;
	process_memory_close(process->memory);
	free(process->thread);
	free(process);
}

static void remove_at(struct poll_tasks *tasks, size_t i)
{
	processes_forget(tasks->options.processes, tasks->process[i]->pid);
	process_free(tasks, tasks->process[i]);
	memmove(tasks->process + i, tasks->process + i + 1,
		(tasks->count - i - 1) * sizeof(*tasks->process));
	tasks->count--;
}

/* Remember why PID may not be looked at; the first reason is told. */
static struct error *note_denied(struct poll_tasks *tasks, uint32_t pid)
{
	_cleanup_free_ char *why = NULL;

	if (tasks->why_denied)
		return NULL;
	TRY(access_explain((pid_t)pid, &why));
	return str_format(&tasks->why_denied, "process %u: %s", pid, why);
}

/*
 * (Re)open what belongs to the program that PROCESS runs. False: there is nothing to look at.
 */
static struct error *open_program(struct poll_tasks *tasks, struct poll_process *process, bool *ret)
{
	enum process_memory_look look;
	struct process_status status;
	enum process_look there;

	*ret = false;
	process_memory_close(take(process->memory));
	TRY(process_read_status((pid_t)process->pid, &there, &status));
	bool same = !process->start_ticks || process->start_ticks == status.start_ticks;
	if (there == PROCESS_gone || status.kernel_thread || !same)
		return NULL;
	process->start_ticks = status.start_ticks;
	memcpy(process->comm, status.comm, sizeof(process->comm));
	TRY(process_memory_open((pid_t)process->pid, &look, &process->memory));
	process->denied = look == PROCESS_MEMORY_denied;
	process->ask_again_ns = clock_monotonic_ns() + SWEEP_NS;
	process->code_kib = 0;
	if (process->denied)
		TRY(note_denied(tasks, process->pid));
	*ret = process->denied || look == PROCESS_MEMORY_opened;
	return NULL;
}

static struct error *add_process(struct poll_tasks *tasks, uint32_t pid)
{
	struct poll_process *process;
	bool there = false;

	TRY(ARRAY_RESERVE(tasks->process, tasks->room, tasks->count, 1, TASKS_MAX, "processes"));
	TRY(ARRAY_NEW(process, 1));
	process->pid = pid;
	struct error *err = open_program(tasks, process, &there);
	bool old = !tasks->begun || process->start_ticks < tasks->begin_ticks;
	// Of one that began with the session all counts.
	process->young = !old;
	if (old)
		(void)cpu_time_of_process((pid_t)pid, &process->cpu_ns);
	if (!err && there && !process->denied) {
		process->links = read_links(pid);
		err = list_threads(tasks, process, old);
	}
	if (err || !there) {
		process_free(tasks, process);
		return err;
	}
	size_t i = position(tasks, pid);
	memmove(tasks->process + i + 1, tasks->process + i,
		(tasks->count - i) * sizeof(*tasks->process));
	tasks->process[i] = process;
	tasks->count++;
	return NULL;
}

/* The process runs another program: nothing that was known of the old one holds. */
static struct error *renew(struct poll_tasks *tasks, struct poll_process *process, bool *ret_there)
{
	processes_forget(tasks->options.processes, process->pid);
	for (size_t i = 0; i < process->count; i++) {
		process->thread[i].fs_base = process->thread[i].thread_state = 0;
		process->thread[i].has_stack = false;
	}
	process->links = 0;
	return open_program(tasks, process, ret_there);
}

/* --- what is new */

/* Is PID, of which nothing is known, to be looked at? */
static struct error *is_wanted(const struct poll_tasks *tasks, uint32_t pid, bool *ret)
{
	const struct poll_tasks_options *options = &tasks->options;
	enum process_look there;
	struct process_status status;

	*ret = false;
	if (pid == (uint32_t)getpid() || options->tid_count)
		return NULL;
	if (!options->pid_count) {
		*ret = true;
		return NULL;
	}
	TRY(process_read_status((pid_t)pid, &there, &status));
	// As with the other captures: what they fork from now on.
	*ret = there == PROCESS_there && status.start_ticks >= tasks->begin_ticks &&
	       find(tasks, (uint32_t)status.parent_pid);
	return NULL;
}

static void meet(struct poll_tasks *tasks, uint32_t pid)
{
	bool wanted;

	if (find(tasks, pid))
		return;
	struct error *err = is_wanted(tasks, pid, &wanted);
	if (!err && wanted)
		err = add_process(tasks, pid);
	swallow(err);
}

/* NUMBER is new: of a process, or of a thread, which its process is asked for. */
static void meet_number(struct poll_tasks *tasks, uint32_t number)
{
	enum process_look look = PROCESS_gone;
	pid_t pid = 0;

	swallow(process_of_thread((pid_t)number, &look, &pid));
	if (look == PROCESS_there && (uint32_t)pid == number)
		meet(tasks, number);
}

static struct error *scan(struct poll_tasks *tasks, uint64_t now_ns)
{
	_cleanup_(pids_deinit) struct pids pids = PIDS_INIT;

	tasks->scan_ns = now_ns + SCAN_NS;
	TRY(processes_list(&pids));
	for (size_t i = 0; i < pids.count; i++)
		meet(tasks, (uint32_t)pids.pid[i]);
	return NULL;
}

/* Does anybody want to know of new processes? */
static bool follows(const struct poll_tasks *tasks)
{
	const struct poll_tasks_options *options = &tasks->options;

	return !options->tid_count && (!options->pid_count || options->children);
}

static struct error *find_new(struct poll_tasks *tasks, uint64_t now_ns)
{
	uint32_t last = 0;
	bool told = system_read_last_pid(&last);

	if (now_ns >= tasks->scan_ns) {
		tasks->last_pid = told ? last : 0;
		return scan(tasks, now_ns);
	}
	if (told && last == tasks->last_pid)
		return NULL;
	if (told && tasks->last_pid && last > tasks->last_pid &&
	    last - tasks->last_pid <= RANGE_MAX) {
		while (tasks->last_pid < last)
			meet_number(tasks, ++tasks->last_pid);
		return NULL;
	}
	// They began again from below, or there are many.
	if (tasks->scan_ns > now_ns + SCAN_SOON_NS)
		tasks->scan_ns = now_ns + SCAN_SOON_NS;
	return NULL;
}

/* --- now and then */

/* The size of the executable mappings, which changes when a library is loaded. */
static struct error *read_code_size(uint32_t pid, uint64_t *ret_kib)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_BYTES];
	const char *line, *end;
	uint64_t exe = 0, lib = 0;

	(void)snprintf(path, sizeof(path), "/proc/%u/status", pid);
	TRY(proctext_read(path, PROCTEXT_STATUS_BYTES, &text));
	line = text ? proctext_line(text, "VmExe") : NULL;
	if (line)
		(void)proctext_number(line, &exe, &end);
	line = text ? proctext_line(text, "VmLib") : NULL;
	if (line)
		(void)proctext_number(line, &lib, &end);
	*ret_kib = exe + lib;
	return NULL;
}

/* Has a library taken the place of another, or an exec happened under a vfork()? */
static struct error *check_program(struct poll_tasks *tasks, struct poll_process *process,
				   uint64_t now_ns)
{
	struct process_state *state;
	enum process_memory_state memory;
	uint64_t kib;
	bool again;

	TRY(process_memory_check(process->memory, &memory));
	if (memory != PROCESS_MEMORY_same) {
		process->renewed = true;
		return NULL;
	}
	TRY(read_code_size(process->pid, &kib));
	if (process->code_kib && kib != process->code_kib) {
		TRY(processes_get(tasks->options.processes, process->pid, now_ns, &state));
		if (state)
			TRY(processes_refresh(tasks->options.processes, state, now_ns, &again));
	}
	process->code_kib = kib;
	return NULL;
}

static void sweep(struct poll_tasks *tasks, uint64_t now_ns)
{
	struct thread leader;

	tasks->sweep_ns = now_ns + SWEEP_NS;
	for (size_t i = 0; i < tasks->count; i++) {
		struct poll_process *process = tasks->process[i];
		if (!process->walked || process->denied)
			continue;
		process->walked = process->young = false;
		enum process_look look = PROCESS_gone;
		swallow(check_program(tasks, process, now_ns));
		swallow(thread_read((pid_t)process->pid, (pid_t)process->pid, 0, &look, &leader));
		if (look == PROCESS_there)
			memcpy(process->comm, leader.comm, sizeof(process->comm));
	}
}

struct error *poll_tasks_update(struct poll_tasks *tasks, uint64_t now_ns)
{
	if (follows(tasks))
		TRY(find_new(tasks, now_ns));
	if (now_ns >= tasks->sweep_ns)
		sweep(tasks, now_ns);
	return NULL;
}

/* --- measuring */

static struct error *read_thread(struct poll_thread *thread, uint64_t *spent_ns, bool *ret_there)
{
	struct meter_reading now;
	enum meter_look look;

	TRY(thread_meter_read(&thread->meter, &look, &now));
	*ret_there = look == METER_read;
	if (!*ret_there)
		return NULL;
	// It cannot go down but for another thread of the same number.
	uint64_t ns = now.cpu_ns > thread->last.cpu_ns ? now.cpu_ns - thread->last.cpu_ns : 0;
	credit_add(&thread->credit, ns);
	*spent_ns += ns;
	thread->last = now;
	return NULL;
}

/* One that cannot be read any more has ended. */
static void read_threads(struct poll_tasks *tasks, struct poll_process *process, uint64_t *spent_ns)
{
	size_t kept = 0;

	process->busy = 0;
	for (size_t i = 0; i < process->count; i++) {
		uint64_t before_ns = *spent_ns;
		bool there = false;
		swallow(read_thread(&process->thread[i], spent_ns, &there));
		process->busy += *spent_ns > before_ns;
		if (there)
			process->thread[kept++] = process->thread[i];
		else
			drop_thread(tasks, &process->thread[i]);
	}
	process->count = kept;
}

static struct error *runs_another(const struct poll_process *process, bool *ret)
{
	enum process_memory_state memory;

	*ret = process->renewed || !process_memory_lives(process->memory);
	// Up to an exec under a vfork() its memory is its parent's, and lives on.
	if (*ret || !process->young)
		return NULL;
	TRY(process_memory_check(process->memory, &memory));
	*ret = memory != PROCESS_MEMORY_same;
	return NULL;
}

/* The program that is there; *RET: it may be looked at. */
static struct error *see_program(struct poll_tasks *tasks, struct poll_process *process, bool *ret)
{
	bool another;

	TRY(runs_another(process, &another));
	*ret = true;
	if (!another)
		return NULL;
	process->renewed = false;
	return renew(tasks, process, ret);
}

struct error *poll_tasks_measure(struct poll_tasks *tasks, struct poll_process *process,
				 enum poll_measure *ret)
{
	uint64_t cpu_ns, spent_ns = 0, links;
	bool there;

	*ret = POLL_gone;
	if (!cpu_time_of_process((pid_t)process->pid, &cpu_ns))
		return NULL;
	*ret = POLL_idle;
	if (cpu_ns == process->cpu_ns)
		return NULL;
	// It may have become ours: programs that change to another user begin as somebody else's.
	if (process->denied && clock_monotonic_ns() < process->ask_again_ns)
		return NULL;
	process->renewed |= process->denied;
	TRY(see_program(tasks, process, &there));
	if (!there) {
		*ret = POLL_gone;
		return NULL;
	}
	links = process->denied ? process->links : read_links(process->pid);
	if (links != process->links) {
		TRY(list_threads(tasks, process, false));
		process->links = links;
	}
	read_threads(tasks, process, &spent_ns);
	if (!tasks->options.tid_count)
		process->unseen_ns += (int64_t)(cpu_ns - process->cpu_ns) - (int64_t)spent_ns;
	process->cpu_ns = cpu_ns;
	*ret = process->denied ? POLL_idle : POLL_active;
	return NULL;
}

void poll_tasks_remove(struct poll_tasks *tasks, const struct poll_process *process)
{
	remove_at(tasks, position(tasks, process->pid));
}

size_t poll_tasks_count(const struct poll_tasks *tasks)
{
	return tasks->count;
}

struct poll_process *poll_tasks_at(const struct poll_tasks *tasks, size_t i)
{
	return tasks->process[i];
}

bool poll_tasks_find(const struct poll_tasks *tasks, uint32_t pid, uint32_t tid,
		     struct poll_process **ret_process, struct poll_thread **ret_thread)
{
	struct poll_process *process = find(tasks, pid);

	for (size_t i = 0; process && process->memory && i < process->count; i++) {
		if (process->thread[i].tid != tid)
			continue;
		*ret_process = process;
		*ret_thread = &process->thread[i];
		return true;
	}
	return false;
}

const char *poll_tasks_denied(const struct poll_tasks *tasks)
{
	return tasks->why_denied;
}

uint64_t poll_tasks_end_session(struct poll_tasks *tasks, bool last)
{
	uint64_t period_ns = tasks->options.period_ns, lost = take_struct(tasks->lost);

	for (size_t i = 0; i < tasks->count; i++) {
		struct poll_process *process = tasks->process[i];
		// Of threads that run the newest bit is known of the process alone.
		int64_t newest_ns = (int64_t)process->busy * TICK_NS;
		struct credit unseen = {process->unseen_ns - newest_ns};
		lost += credit_lose(&unseen, period_ns);
		process->unseen_ns = unseen.ns + newest_ns;
		for (size_t k = 0; k < process->count; k++) {
			if (last)
				lost += credit_lose(&process->thread[k].credit, period_ns);
			process->thread[k].has_stack = false;
		}
	}
	return lost;
}

/* --- beginning */

static struct error *copy_ids(const uint32_t *ids, size_t count, uint32_t **ret)
{
	TRY(ARRAY_NEW(*ret, count + 1));
	if (count)
		memcpy(*ret, ids, count * sizeof(**ret));
	return NULL;
}

static struct error *add_chosen(struct poll_tasks *tasks)
{
	const struct poll_tasks_options *options = &tasks->options;
	enum process_look look;
	pid_t pid;

	for (size_t i = 0; i < options->pid_count; i++)
		if (!find(tasks, tasks->pids[i]))
			TRY(add_process(tasks, tasks->pids[i]));
	for (size_t i = 0; i < options->tid_count; i++) {
		TRY(process_of_thread((pid_t)tasks->tids[i], &look, &pid));
		if (look == PROCESS_there && !find(tasks, (uint32_t)pid))
			TRY(add_process(tasks, (uint32_t)pid));
	}
	if ((options->pid_count || options->tid_count) && tasks->why_denied)
		return error_new("not to be looked at: %s", tasks->why_denied);
	return NULL;
}

static struct error *begin(struct poll_tasks *tasks)
{
	const struct poll_tasks_options *options = &tasks->options;
	struct rlimit limit = {.rlim_cur = KIB};
	long ticks = sysconf(_SC_CLK_TCK);
	struct timespec boot = {0};

	TRY(copy_ids(options->pids, options->pid_count, &tasks->pids));
	TRY(copy_ids(options->tids, options->tid_count, &tasks->tids));
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	tasks->meters_max = limit.rlim_cur / 2;
	// Start times of processes are rounded down.
	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	tasks->begin_ticks = (uint64_t)boot.tv_sec * (uint64_t)ticks +
			     (uint64_t)boot.tv_nsec * (uint64_t)ticks / 1000000000u;
	(void)system_read_last_pid(&tasks->last_pid);
	TRY(add_chosen(tasks));
	if (!options->pid_count && !options->tid_count)
		TRY(scan(tasks, 0));
	tasks->begun = true;
	return NULL;
}

struct error *poll_tasks_new(const struct poll_tasks_options *options, struct poll_tasks **ret)
{
	struct poll_tasks *tasks;

	TRY(ARRAY_NEW(tasks, 1));
	tasks->options = *options;
	struct error *err = begin(tasks);
	if (err) {
		poll_tasks_free(tasks);
		return err;
	}
	*ret = tasks;
	return NULL;
}

void poll_tasks_free(struct poll_tasks *tasks)
{
	if (!tasks)
		return;
	for (size_t i = 0; i < tasks->count; i++)
		process_free(tasks, tasks->process[i]);
	free(tasks->process);
	free(tasks->pids);
	free(tasks->tids);
	free(tasks->why_denied);
	free(tasks);
}
