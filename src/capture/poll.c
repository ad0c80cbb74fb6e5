/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples without any help of the kernel's: processes are looked at from outside, at a steady rate.
 * It needs no more rights than a debugger has, and a thread that runs is stopped for each sample,
 * for some 100 us.
 *
 * Which threads are on a CPU the kernel does not tell. What they have consumed since the last look
 * it does: that decides who is looked at and how much a stack counts (poll-credit.h). In wall-clock
 * mode every thread counts at every look, and one that has not run since is not even read.
 */
#define LOG_DOMAIN "poll"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "capture/captures.h"
#include "capture/poll-look.h"
#include "proc/access.h"
#include "proc/stop.h"

enum {
	HZ_MAX = 1000,
	// Before the first look, for the rows of what is looked at.
	WARM_NS = 300 * 1000 * 1000,
	// A thread may fall asleep or wake up while it is looked at.
	LOOKS_MAX = 3,
	PROBE_LOOKS = 100,
	PROBE_PAUSE_US = 1000,
	PROBE_LIMIT_MS = 10,
};

/*
 * Of those that would run and wait for a CPU, whoever is owed most. There may be many, and waiting
 * for each would take longer than the period: one is waited for.
 */
struct queued {
	uint32_t pid, tid; /* 0: nobody */
	uint64_t worth_ns;
};

struct poller {
	bool wall;
	struct source_parts parts; /* options is not used */
	struct poll_tasks *tasks;
	struct poll_look look;
	struct poll_schedule schedule;
	struct queued queued; /* at this look */
	bool started;
	char *failure; /* of a look, the first of them; owned */
	/* The tables that walks look up, owned. */
	struct unwind_module *modules;
	struct unwind_rule *rules;
	struct unwind_segment *segment[STORE_SEGMENTS_MAX];
	struct python_process *pythons;
	struct python_layout *layouts;
};

/* --- opening */

static struct error *new_segment(void *context, unsigned number, struct unwind_segment **ret)
{
	struct poller *poller = context;

	TRY(ARRAY_NEW(poller->segment[number], 1));
	*ret = poller->segment[number];
	return NULL;
}

static void poller_close(void *source)
{
	struct poller *poller = source;

	if (!poller)
		return;
	poll_tasks_free(poller->tasks);
	poll_look_deinit(&poller->look);
	free(poller->failure);
	for (size_t i = 0; i < STORE_SEGMENTS_MAX; i++)
		free(poller->segment[i]);
	free(poller->modules);
	free(poller->rules);
	free(poller->pythons);
	free(poller->layouts);
	free(poller);
}

/* What cannot be had from outside. */
static struct error *check_options(const struct capture_options *options)
{
	if (strcmp(options->event, "cpu-clock") != 0 || !options->hz)
		return error_new("the poll capture goes by the clock: -e and -c do not go with it");
	if (options->hz > HZ_MAX)
		return error_new("the poll capture looks at most %d times a second", HZ_MAX);
	if (options->cgroup_count || options->cpu_count)
		return error_new("the poll capture knows neither control groups nor CPUs: -G and "
				 "--cpus do not go with it");
	if (!options->user_stacks)
		return error_new("the poll capture sees no kernel stacks: -K does not go with it");
	return NULL;
}

static struct error *open_tables(struct poller *poller)
{
	TRY(ARRAY_NEW(poller->modules, STORE_MODULES_MAX));
	TRY(ARRAY_NEW(poller->rules, UNWIND_RULES_MAX));
	TRY(ARRAY_NEW(poller->pythons, TABLE_PYTHONS));
	return ARRAY_NEW(poller->layouts, TABLE_PYTHON_LAYOUTS);
}

static struct error *poller_open(const struct capture_options *options, struct counters *counters,
				 void **ret, struct source_tables *ret_tables)
{
	struct poller *poller;

	TRY(check_options(options));
	TRY(ARRAY_NEW(poller, 1));
	struct error *err = open_tables(poller);
	if (err) {
		poller_close(poller);
		return err;
	}
	*ret_tables = (struct source_tables){
		.store = {.segments_max = options->memory_mib,
			  .segment = new_segment,
			  .context = poller,
			  .modules = poller->modules,
			  .rules = poller->rules,
			  .counters = counters},
		.pythons = poller->pythons,
		.layouts = poller->layouts,
	};
	*ret = poller;
	return NULL;
}

static struct error *poller_join(void *source, const struct source_parts *parts)
{
	struct poller *poller = source;
	const struct capture_options *options = parts->options;
	uint64_t period_ns = 1000000000u / options->hz;
	const struct poll_tasks_options tasks = {
		.period_ns = period_ns,
		.pids = options->pids,
		.pid_count = options->pid_count,
		.tids = options->tids,
		.tid_count = options->tid_count,
		.children = options->children,
		.processes = parts->processes,
	};

	poller->parts = *parts;
	poller->wall = options->wall;
	poller->schedule.period_ns = period_ns;
	poller->look.options = (struct poll_look_options){
		.only_gil = options->only_gil,
		.by_thread = options->by_thread,
		.processes = parts->processes,
		.stacks = parts->stacks,
		.counters = parts->counters,
	};
	return poll_tasks_new(&tasks, &poller->tasks);
}

/* --- looking */

static void add_samples(const struct poller *poller, const struct stacks_kept *kept,
			unsigned samples)
{
	for (unsigned i = 0; i < samples; i++)
		stacks_repeat(poller->parts.stacks, kept);
}

static void offer_queued(struct poller *poller, const struct poll_process *process,
			 const struct poll_thread *thread, uint64_t worth_ns)
{
	if (worth_ns > poller->queued.worth_ns)
		poller->queued = (struct queued){process->pid, thread->tid, worth_ns};
}

/* A thread that has consumed CPU time: as many samples as that is worth. */
static struct error *look_by_credit(struct poller *poller, struct poll_process *process,
				    struct poll_thread *thread)
{
	uint64_t period_ns = poller->schedule.period_ns;
	unsigned samples = credit_due(&thread->credit, period_ns);
	enum poll_outcome outcome;
	struct stacks_kept kept;

	if (!samples)
		return NULL;
	TRY(poll_look_running(&poller->look, process, thread, &kept, &outcome));
	if (outcome == POLL_walked)
		add_samples(poller, &kept, samples);
	if (outcome == POLL_walked || outcome == POLL_unasked)
		credit_take(&thread->credit, samples, period_ns);
	if (outcome == POLL_queues)
		offer_queued(poller, process, thread, (uint64_t)thread->credit.ns);
	return NULL;
}

/* Walk a thread, whether it runs or not. */
static struct error *look_anyway(struct poller *poller, struct poll_process *process,
				 struct poll_thread *thread, enum poll_outcome *ret_outcome)
{
	bool waited = false;

	*ret_outcome = POLL_waits;
	for (int i = 0; i < LOOKS_MAX; i++) {
		TRY(poll_look_waiting(&poller->look, process, thread, &thread->kept, ret_outcome));
		waited = *ret_outcome == POLL_walked;
		if (*ret_outcome == POLL_runs)
			TRY(poll_look_running(&poller->look, process, thread, &thread->kept,
					      ret_outcome));
		if (*ret_outcome != POLL_waits)
			break;
	}
	// The same until it has run again.
	thread->has_stack = waited && thread->last.turns;
	thread->turns = thread->last.turns;
	return NULL;
}

static struct error *look_by_clock(struct poller *poller, struct poll_process *process,
				   struct poll_thread *thread)
{
	enum poll_outcome outcome = POLL_walked;

	if (!thread->has_stack || thread->turns != thread->last.turns)
		TRY(look_anyway(poller, process, thread, &outcome));
	if (outcome != POLL_walked) {
		// It counts where it is seen next.
		if (outcome == POLL_queues)
			offer_queued(poller, process, thread, thread->missed + 1);
		thread->missed++;
		return NULL;
	}
	unsigned samples = 1 + thread->missed;
	add_samples(poller, &thread->kept,
		    samples < CREDIT_SAMPLES_MAX ? samples : CREDIT_SAMPLES_MAX);
	thread->missed = 0;
	return NULL;
}

/* Are all its stacks known still? */
static bool unchanged(const struct poll_process *process)
{
	for (size_t i = 0; i < process->count; i++)
		if (!process->thread[i].has_stack)
			return false;
	return true;
}

static struct error *look_at_process(struct poller *poller, struct poll_process *process,
				     enum poll_measure measure)
{
	if (process->denied || (measure == POLL_idle && !poller->wall))
		return NULL;
	if (measure == POLL_active || !unchanged(process))
		TRY(poll_look_begin(&poller->look, process));
	for (size_t i = 0; i < process->count; i++) {
		struct poll_thread *thread = &process->thread[i];
		TRY(poller->wall ? look_by_clock(poller, process, thread)
				 : look_by_credit(poller, process, thread));
	}
	return NULL;
}

/* One process that cannot be looked at does not end the session of all others. */
static struct error *note_failure(struct poller *poller, struct error *err)
{
	_cleanup_error_ struct error *failure = err;

	if (!failure)
		return NULL;
	counter_add(poller->parts.counters, COUNTER_poll_failed, 1);
	return poller->failure ? NULL : str_copy(&poller->failure, error_text(failure));
}

/* Wait for one that waits for a CPU. */
static struct error *look_at_queued(struct poller *poller)
{
	struct queued queued = take_struct(poller->queued);
	struct poll_process *process;
	struct poll_thread *thread;

	if (!queued.pid ||
	    !poll_tasks_find(poller->tasks, queued.pid, queued.tid, &process, &thread))
		return NULL;
	TRY(poll_look_begin(&poller->look, process));
	// It has been counted as missed at this look.
	thread->missed -= thread->missed > 0;
	poller->look.patient = true;
	struct error *err = poller->wall ? look_by_clock(poller, process, thread)
					 : look_by_credit(poller, process, thread);
	poller->look.patient = false;
	poller->queued = (struct queued){0};
	return err;
}

static struct error *look_at_all(struct poller *poller, uint64_t now_ns)
{
	enum poll_measure measure;
	size_t i = 0;

	TRY(poll_tasks_update(poller->tasks, now_ns));
	while (i < poll_tasks_count(poller->tasks)) {
		struct poll_process *process = poll_tasks_at(poller->tasks, i);
		struct error *err = poll_tasks_measure(poller->tasks, process, &measure);
		if (!err && measure == POLL_gone) {
			poll_tasks_remove(poller->tasks, process);
			continue;
		}
		if (!err)
			err = look_at_process(poller, process, measure);
		TRY(note_failure(poller, err));
		i++;
	}
	return note_failure(poller, look_at_queued(poller));
}

/* --- running */

/* The rows of those that are to be looked at first. */
static struct error *warm(struct poller *poller)
{
	uint64_t now_ns = clock_monotonic_ns();
	enum poll_measure measure;
	struct process_state *state;

	for (size_t i = 0; i < poll_tasks_count(poller->tasks); i++) {
		struct poll_process *process = poll_tasks_at(poller->tasks, i);
		TRY(poll_tasks_measure(poller->tasks, process, &measure));
		if (measure == POLL_active)
			TRY(processes_get(poller->parts.processes, process->pid, now_ns, &state));
		if (clock_monotonic_ns() > now_ns + WARM_NS)
			break;
	}
	TRY(processes_publish(poller->parts.processes, now_ns));
	return processes_warm(poller->parts.processes, now_ns + WARM_NS);
}

static struct error *poller_start(void *source)
{
	struct poller *poller = source;
	enum poll_measure measure;

	// The pauses between looks shall not take 50 us longer than they must.
	(void)prctl(PR_SET_TIMERSLACK, 1);
	TRY(warm(poller));
	for (size_t i = 0; i < poll_tasks_count(poller->tasks); i++)
		TRY(poll_tasks_measure(poller->tasks, poll_tasks_at(poller->tasks, i), &measure));
	// What was consumed up to now is nobody's.
	(void)poll_tasks_end_session(poller->tasks, true);
	poller->schedule.due_ns = clock_monotonic_ns() + poller->schedule.period_ns;
	poller->started = true;
	return NULL;
}

static void poller_stop(void *source)
{
	struct poller *poller = source;

	poller->started = false;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
				 .tv_nsec = (long)(ns % 1000000000u)};
}

/* Wait until UNTIL_NS or until WAKE_FD is readable. */
static struct error *pause_until(uint64_t until_ns, int wake_fd, bool *ret_woken)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct timespec left = timespec_of(until_ns > now_ns ? until_ns - now_ns : 0);
	struct pollfd wake = {.fd = wake_fd, .events = POLLIN};

	int ready = ppoll(&wake, 1, &left, NULL);
	if (ready < 0 && errno != EINTR)
		return error_errno("wait for the next look");
	*ret_woken = ready > 0;
	return NULL;
}

static struct error *poller_wait(void *source, unsigned timeout_ms, int wake_fd)
{
	struct poller *poller = source;
	struct poll_schedule *schedule = &poller->schedule;
	uint64_t end_ns = clock_monotonic_ns() + timeout_ms * 1000000ull;
	bool woken = false;

	while (!woken && clock_monotonic_ns() < end_ns) {
		bool ends = !poller->started || schedule->due_ns > end_ns;
		TRY(pause_until(ends ? end_ns : schedule->due_ns, wake_fd, &woken));
		uint64_t now_ns = clock_monotonic_ns();
		if (!poller->started || now_ns < schedule->due_ns)
			continue;
		uint64_t late = poll_schedule_advance(schedule, now_ns);
		counter_add(poller->parts.counters, COUNTER_poll_late, late);
		TRY(look_at_all(poller, now_ns));
	}
	return NULL;
}

/* --- ending a session */

/* Looks add their samples themselves. */
static struct error *poller_settle(void *source)
{
	return NULL;
}

static struct error *add_note(struct profile *profile, const char *format, uint64_t number)
	__attribute__((format(printf, 2, 0)));

static struct error *add_note(struct profile *profile, const char *format, uint64_t number)
{
	char text[256];

	(void)snprintf(text, sizeof(text), format, number);
	return number ? capture_note(profile, text) : NULL;
}

static struct error *add_reason(struct profile *profile, const char *format, const char *why)
	__attribute__((format(printf, 2, 0)));

static struct error *add_reason(struct profile *profile, const char *format, const char *why)
{
	char text[256];

	(void)snprintf(text, sizeof(text), format, why);
	return capture_note(profile, text);
}

static struct error *add_notes(const struct poller *poller, struct profile *profile)
{
	const uint64_t *value = poller->parts.counters->value;
	const char *denied = poll_tasks_denied(poller->tasks);

	TRY(add_note(profile, "%lu samples' worth of CPU time fell between the looks",
		     value[COUNTER_samples_lost]));
	TRY(add_note(profile,
		     poller->wall ? "%lu looks came too late and were left out"
				  : "%lu looks came too late; CPU time counts all the same",
		     value[COUNTER_poll_late]));
	TRY(add_note(profile, "%lu times a thread did not stop, and was tried again later",
		     value[COUNTER_poll_unstopped]));
	TRY(add_note(profile, "%lu system calls returned EINTR because of a stop",
		     value[COUNTER_poll_ended_waits]));
	TRY(add_note(profile, "%lu looks at a process failed", value[COUNTER_poll_failed]));
	if (poller->failure)
		TRY(add_reason(profile, "the first of them: %s", poller->failure));
	if (poller->look.why_not)
		TRY(add_reason(profile, "%s", poller->look.why_not));
	TRY(add_note(profile, "%lu processes may not be looked at", value[COUNTER_poll_denied]));
	return denied ? add_reason(profile, "not to be looked at: %s", denied) : NULL;
}

static struct error *poller_end_session(void *source, struct profile *profile)
{
	struct poller *poller = source;
	struct counters *counters = poller->parts.counters;

	uint64_t lost = poll_tasks_end_session(poller->tasks, !poller->started);
	// What is not wanted, or counts by the clock, is not lost.
	if (!poller->wall && !poller->look.options.only_gil)
		counter_add(counters, COUNTER_samples_lost, lost);
	for (size_t i = 0; i < poll_tasks_count(poller->tasks); i++)
		counter_add(counters, COUNTER_poll_denied, poll_tasks_at(poller->tasks, i)->denied);
	return add_notes(poller, profile);
}

/* --- may it be used? */

static void do_nothing(void *context, const struct thread_registers *registers)
{
}

/* Is a child of ours, that runs, ours to look at? */
static struct error *probe_child(pid_t child)
{
	const struct stop_options options = {.limit_ms = PROBE_LIMIT_MS, .fn = do_nothing};
	_cleanup_process_memory_ struct process_memory *memory = NULL;
	enum process_memory_look look = PROCESS_MEMORY_gone;
	_cleanup_free_ char *why = NULL;
	struct stop_result result = {.outcome = STOP_waits};

	TRY(process_memory_open(child, &look, &memory));
	if (look == PROCESS_MEMORY_denied) {
		TRY(access_explain(child, &why));
		return error_new("the memory of a process cannot be read: %s", why);
	}
	for (int i = 0; i < PROBE_LOOKS && result.outcome == STOP_waits; i++) {
		TRY(thread_stop(child, child, &options, &result));
		usleep(PROBE_PAUSE_US);
	}
	if (result.outcome != STOP_denied)
		return NULL;
	TRY(stop_explain(child, child, result.outcome, &why));
	return error_new("%s", why);
}

static struct error *poller_probe(void)
{
	pid_t child = fork();

	if (child < 0)
		return error_errno("start a process to look at");
	if (!child) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
	struct error *err = probe_child(child);
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	return err;
}

const struct source source_poll = {
	.lacks = "kernel frames are missing, and what ran for less than a sample's time may be",
	.probe = poller_probe,
	.open = poller_open,
	.join = poller_join,
	.close = poller_close,
	.start = poller_start,
	.wait = poller_wait,
	.stop = poller_stop,
	.settle = poller_settle,
	.end_session = poller_end_session,
};
