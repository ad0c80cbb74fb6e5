/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptrace(2) binds a tracee to the thread that traces it: only that one can let it go on, and when
 * it ends the kernel does. So a thread of our own does nothing but stop, wait until the caller has
 * read what it wants or the limit is over, and end. It shares no data with the caller: what it has
 * found changes hands with a semaphore.
 */
#include "proc/stop.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "proc/access.h"
#include "proc/proctext.h"
#include "proc/threads.h"

enum {
	ARRIVE_US = 200000, /* so long may a thread that waits for a CPU need until it stops */
	EAGER_LOOKS = 15,   /* looks without a pause, some 10 us, for one that is on another CPU */
	PAUSE_NS = 10000,   /* between two looks, at first */
	PAUSE_MAX_NS = 250000,
	FOREMOST = -20, /* nice */
	SEIZE_TRIES = 20,
	SEIZE_PAUSE_NS = 50000,
	EVENT_SHIFT = 8, /* si_status of a ptrace stop: signal, and event above it */
	SIGNAL_MASK = 0xff,
	NS_PER_MS = 1000000,
	NS_PER_US = 1000,
};

/* Owned by the tracer until it posts ARRIVED, and again once it has been joined. */
struct tracer {
	pid_t pid, tid;
	unsigned limit_ms, arrive_us;
	sem_t arrived; /* the tracer has stopped the thread, or given up */
	sem_t read;    /* the caller has what it wants */
	struct thread_registers registers;
	struct stop_result result;
};

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
				 .tv_nsec = (long)(ns % 1000000000u)};
}

/* How the calling thread was scheduled before it hurried. */
struct pace {
	int policy, nice;
	struct sched_param param;
};

/*
 * Who holds up another thread does not queue for a CPU behind the others: on a busy machine that,
 * and nothing else, makes a stop last (measured, three programs on two CPUs: a tenth of all stops
 * above 4 ms without, below 60 us with it). A real-time policy comes before all sessions; a nice
 * value does so inside of its own autogroup alone (sched(7)). Threads that are created while it
 * lasts inherit it. Where neither is permitted all stays as it is.
 */
static struct pace hurry(void)
{
	const struct sched_param foremost = {.sched_priority = 1};
	struct pace before = {.policy = sched_getscheduler(0)};

	errno = 0;
	before.nice = getpriority(PRIO_PROCESS, 0);
	if (before.policy < 0 || sched_getparam(0, &before.param) < 0 ||
	    sched_setscheduler(0, SCHED_FIFO, &foremost) < 0)
		before.policy = -1;
	if (before.policy < 0)
		(void)setpriority(PRIO_PROCESS, 0, FOREMOST);
	return before;
}

static void slow_down(const struct pace *before)
{
	if (before->policy >= 0)
		(void)sched_setscheduler(0, before->policy, &before->param);
	else
		(void)setpriority(PRIO_PROCESS, 0, before->nice);
}

/* Why the kernel refused to trace the thread. */
static enum stop_outcome judge_refusal(pid_t pid, pid_t tid)
{
	_cleanup_free_ char *status = NULL;
	char path[64];
	uint64_t tracer = 0;
	const char *end;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	struct error *err = proctext_read(path, PROCTEXT_STATUS_BYTES, &status);
	if (err) {
		error_free(err); // hidden from us
		return STOP_denied;
	}
	const char *state = status ? proctext_line(status, "State") : NULL;
	const char *line = status ? proctext_line(status, "TracerPid") : NULL;
	if (!state || *state == 'Z' || *state == 'X')
		return STOP_gone;
	if (line && proctext_number(line, &tracer, &end) && tracer)
		return STOP_traced;
	return STOP_denied;
}

/* STOP_done: it runs, and may be stopped. */
static enum stop_outcome look(const struct tracer *tracer)
{
	enum process_look there = PROCESS_gone;
	struct thread thread;
	struct error *err = thread_read(tracer->pid, tracer->tid, THREADS_call, &there, &thread);

	if (err) {
		error_free(err); // it cannot be looked at, so it is not touched
		return STOP_denied;
	}
	if (there == PROCESS_gone || thread.state == 'Z' || thread.state == 'X')
		return STOP_gone;
	if (thread.call.kind == THREAD_CALL_unknown)
		return thread.state == 'R' ? STOP_done : STOP_waits;
	return thread.call.kind == THREAD_CALL_running ? STOP_done : STOP_waits;
}

/* Has the thread stopped? Its end, which is its parent's to know, is not taken away. */
static bool has_stopped(pid_t tid, int *ret_status)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)tid, &info, WSTOPPED | WNOHANG | __WALL) < 0 || !info.si_pid)
		return false;
	*ret_status = info.si_status;
	return true;
}

/*
 * Wait until the thread has stopped. RET_BEFORE_NS is the last moment when it was known to run. A
 * thread on a CPU stops within microseconds; one that waits for a CPU is not held up by us.
 */
static bool wait_for_stop(const struct tracer *tracer, int *ret_status, uint64_t *ret_before_ns)
{
	uint64_t now_ns = clock_monotonic_ns();
	uint64_t end_ns = now_ns + tracer->arrive_us * (uint64_t)NS_PER_US;
	struct timespec pause = {.tv_nsec = PAUSE_NS};

	for (unsigned looks = 0; now_ns < end_ns; looks++) {
		*ret_before_ns = now_ns;
		if (has_stopped(tracer->tid, ret_status))
			return true;
		if (looks >= EAGER_LOOKS) {
			nanosleep(&pause, NULL);
			// Looking too often would take the CPU that the thread waits for.
			pause.tv_nsec += pause.tv_nsec < PAUSE_MAX_NS ? pause.tv_nsec / 4 : 0;
		}
		now_ns = clock_monotonic_ns();
	}
	return false;
}

static bool read_registers(struct tracer *tracer)
{
	struct user_regs_struct regs;
	uint64_t word[REGISTERS_WORDS];

	_Static_assert(offsetof(struct user_regs_struct, ss) == 8 * (REGISTERS_WORDS - 1),
		       "the order that proc/registers.h has");
	if (ptrace(PTRACE_GETREGS, tracer->tid, NULL, &regs) < 0)
		return false; // it was killed in this moment
	memcpy(word, &regs, sizeof(word));
	registers_set(word, regs.fs_base, &tracer->registers);
	return true;
}

/* The thread is ours until this one ends. STOP_done: it is. */
static enum stop_outcome seize(const struct tracer *tracer)
{
	const struct timespec pause = {.tv_nsec = SEIZE_PAUSE_NS};
	enum stop_outcome outcome = STOP_denied;

	// Who traced it a moment ago, we for instance, may not have let go of it quite yet.
	for (int i = 0; i < SEIZE_TRIES; i++) {
		if (ptrace(PTRACE_SEIZE, tracer->tid, NULL, NULL) == 0)
			return STOP_done;
		outcome = judge_refusal(tracer->pid, tracer->tid);
		if (outcome != STOP_traced)
			break;
		nanosleep(&pause, NULL);
	}
	return outcome;
}

/*
 * Seize and stop. STOP_done: it stands, and RET_SIGNAL is what has to be handed on to it. A signal
 * of its own may come first; the stop before its delivery serves as well as ours.
 */
static enum stop_outcome stop(struct tracer *tracer, int *ret_signal, uint64_t *ret_before_ns)
{
	int status = 0;

	*ret_before_ns = clock_monotonic_ns();
	enum stop_outcome outcome = seize(tracer);
	if (outcome != STOP_done)
		return outcome;
	// From here on the end of this thread lets go of the other, and nothing else does until it
	// has stopped. It may have begun to wait meanwhile, or a signal has stopped it already.
	outcome = look(tracer);
	if (outcome == STOP_done) {
		if (ptrace(PTRACE_INTERRUPT, tracer->tid, NULL, NULL) < 0)
			return STOP_gone;
		if (!wait_for_stop(tracer, &status, ret_before_ns))
			return look(tracer) == STOP_gone ? STOP_gone : STOP_in_vain;
	} else if (!has_stopped(tracer->tid, &status)) {
		return outcome;
	}
	*ret_signal = status >> EVENT_SHIFT == PTRACE_EVENT_STOP ? 0 : status & SIGNAL_MASK;
	if (!read_registers(tracer))
		return STOP_gone;
	tracer->result.ended_wait = !*ret_signal && tracer->registers.syscall >= 0 &&
				    tracer->registers.result == -EINTR;
	return STOP_done;
}

static void *trace(void *context)
{
	struct tracer *tracer = context;
	uint64_t before_ns = 0;
	int signal = 0;

	// The pauses between looks shall not take 50 us longer than they must.
	prctl(PR_SET_TIMERSLACK, 1);
	tracer->result.outcome = stop(tracer, &signal, &before_ns);
	if (tracer->result.outcome != STOP_done) {
		sem_post(&tracer->arrived);
		return NULL;
	}
	struct timespec end = timespec_of(before_ns + tracer->limit_ms * (uint64_t)NS_PER_MS);
	sem_post(&tracer->arrived);
	// From here to its end this thread touches nothing of the caller's but what the semaphore
	// guards.
	int code;
	do {
		code = sem_clockwait(&tracer->read, CLOCK_MONOTONIC, &end);
	} while (code < 0 && errno == EINTR);
	ptrace(PTRACE_DETACH, tracer->tid, NULL, (void *)(intptr_t)signal);
	tracer->result.stopped_ns = clock_monotonic_ns() - before_ns;
	tracer->result.cut_short = code < 0;
	return NULL;
}

/* A thread without signals of its own: handlers stay where they were. */
static int start_tracer(struct tracer *tracer, pthread_t *ret)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int code = pthread_create(ret, NULL, trace, tracer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}

struct error *thread_stop(pid_t pid, pid_t tid, const struct stop_options *options,
			  struct stop_result *ret)
{
	struct tracer tracer = {
		.pid = pid,
		.tid = tid,
		.limit_ms = options->limit_ms,
		.arrive_us = options->arrive_us ? options->arrive_us : ARRIVE_US,
	};
	pthread_t thread;

	// No process may trace itself.
	tracer.result.outcome = pid == getpid() ? STOP_denied : look(&tracer);
	if (tracer.result.outcome != STOP_done) {
		*ret = tracer.result;
		return NULL;
	}
	const struct pace before = hurry(); // the tracer inherits it
	sem_init(&tracer.arrived, 0, 0);
	sem_init(&tracer.read, 0, 0);
	errno = start_tracer(&tracer, &thread);
	if (errno) {
		slow_down(&before);
		return error_errno("start a thread to stop thread %d", tid);
	}
	while (sem_wait(&tracer.arrived) < 0 && errno == EINTR)
		;
	if (tracer.result.outcome == STOP_done) {
		options->fn(options->context, &tracer.registers);
		sem_post(&tracer.read);
	}
	slow_down(&before);
	pthread_join(thread, NULL);
	sem_destroy(&tracer.arrived);
	sem_destroy(&tracer.read);
	*ret = tracer.result;
	return NULL;
}

static struct error *explain_tracer(pid_t pid, pid_t tid, char **ret)
{
	_cleanup_free_ char *status = NULL;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	TRY(proctext_read(path, PROCTEXT_STATUS_BYTES, &status));
	const char *tracer = status ? proctext_line(status, "TracerPid") : NULL;
	int length = tracer ? (int)strspn(tracer, "0123456789") : 0;
	if (!length || *tracer == '0')
		return str_format(ret, "thread %d was traced by another process", tid);
	return str_format(ret, "thread %d is traced by process %.*s already", tid, length, tracer);
}

struct error *stop_explain(pid_t pid, pid_t tid, enum stop_outcome outcome, char **ret)
{
	_cleanup_free_ char *reason = NULL;
	enum process_look there = PROCESS_gone;
	struct process_status status;

	switch (outcome) {
	case STOP_done:
		return str_format(ret, "thread %d was stopped", tid);
	case STOP_waits:
		return str_format(ret, "thread %d waits, and is not stopped", tid);
	case STOP_gone:
		return str_format(ret, "thread %d has ended", tid);
	case STOP_traced:
		return explain_tracer(pid, tid, ret);
	case STOP_in_vain:
		return str_format(ret, "thread %d did not stop in time: the kernel holds it", tid);
	case STOP_denied:
		break;
	}
	if (pid == getpid())
		return str_format(ret, "thread %d is one of cairn itself", tid);
	TRY(process_read_status(pid, &there, &status));
	if (there == PROCESS_there && status.kernel_thread)
		return str_format(ret, "thread %d is one of the kernel", tid);
	TRY(access_explain(pid, &reason));
	return str_format(ret, "thread %d cannot be stopped: %s", tid, reason);
}
