/* SPDX-License-Identifier: Apache-2.0 */
/* Stopping a child's only thread, in all the states it can be in, and what it notices of that. */
#include "proc/stop.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "proc/threads.h"
#include "unit.h"

enum { STOPS = 100, LIMIT_MS = 20, FLOOD = 2000, PATIENCE_MS = 10000 };

/* What a child tells of itself. */
struct told {
	volatile int ready;
	volatile uint64_t rounds, interrupted, signals;
	volatile uint64_t largest_gap_ns;
	volatile uint64_t spin_start, spin_end, fs_base;
};

struct child {
	pid_t pid;
	struct told *told;
};

static struct told *child_told; // in the child; a signal handler has nowhere else to look

static void count_signal(int number)
{
	child_told->signals++;
}

static void spin(struct told *told)
{
	uint64_t before_ns = clock_monotonic_ns();

	told->ready = 1;
	for (;;) {
		uint64_t now_ns = clock_monotonic_ns();
		if (now_ns - before_ns > told->largest_gap_ns)
			told->largest_gap_ns = now_ns - before_ns;
		before_ns = now_ns;
		told->rounds++;
	}
}

/* Waits that the kernel does not restart after a signal. */
static void wait_in_epoll(struct told *told)
{
	struct epoll_event event;
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	told->ready = 1;
	for (;;) {
		if (epoll_wait(epoll, &event, 1, -1) < 0 && errno == EINTR)
			told->interrupted++;
	}
}

static void wait_for_vforked(struct told *told)
{
	pid_t pid = (pid_t)syscall(SYS_vfork);

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		told->ready = 1;
		for (;;)
			pause();
	}
}

static struct child start_child(void (*run)(struct told *))
{
	struct child child = {.pid = 0};
	struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};

	child.told = mmap(NULL, sizeof(*child.told), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_TRUE(child.told != MAP_FAILED);
	child.pid = fork();
	if (!child.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		child_told = child.told;
		sigaction(SIGUSR1, &action, NULL);
		sigaction(SIGRTMIN, &action, NULL);
		run(child.told);
		_exit(0);
	}
	ASSERT_TRUE(child.pid > 0);
	while (!child.told->ready)
		usleep(500);
	usleep(2000);
	return child;
}

static void end_child(struct child *child)
{
	kill(child->pid, SIGKILL);
	ASSERT_EQ(waitpid(child->pid, NULL, 0), child->pid);
	munmap(child->told, sizeof(*child->told));
}

static char state_of(pid_t pid)
{
	enum process_look look = PROCESS_gone;
	struct thread thread = {0};

	ASSERT_OK(thread_read(pid, pid, 0, &look, &thread));
	return look == PROCESS_there ? thread.state : 0;
}

static bool becomes(pid_t pid, const char *states)
{
	uint64_t end_ns = clock_monotonic_ns() + PATIENCE_MS * 1000000ull;

	while (clock_monotonic_ns() < end_ns) {
		if (strchr(states, state_of(pid)))
			return true;
		usleep(500);
	}
	return false;
}

static bool goes_on(const struct child *child)
{
	uint64_t rounds = child->told->rounds,
		 end_ns = clock_monotonic_ns() + PATIENCE_MS * 1000000ull;

	while (clock_monotonic_ns() < end_ns && child->told->rounds == rounds)
		usleep(500);
	return child->told->rounds > rounds;
}

/* What the caller's function of a test does and sees. */
struct visit {
	struct thread_registers registers;
	pid_t pid;
	int calls, signal, count, sleep_ms;
	char state;
};

static void visit_thread(void *context, const struct thread_registers *registers)
{
	struct visit *visit = context;
	union sigval value = {0};

	visit->registers = *registers;
	visit->calls++;
	visit->state = state_of(visit->pid);
	for (int i = 0; i < visit->count; i++)
		(void)sigqueue(visit->pid, visit->signal, value);
	if (visit->sleep_ms)
		usleep((useconds_t)visit->sleep_ms * 1000);
}

static struct stop_result stop_child(pid_t pid, struct visit *visit)
{
	struct stop_options options = {LIMIT_MS, visit_thread, visit};
	struct stop_result result = {.outcome = STOP_denied};

	visit->pid = pid;
	ASSERT_OK(thread_stop(pid, pid, &options, &result));
	return result;
}

/* A child that spins may wait for a CPU, which others have, or be seen in a fault of a page. */
static struct stop_result stop_running(pid_t pid, struct visit *visit)
{
	struct stop_result result = {.outcome = STOP_waits};

	for (int i = 0; i < 10 && result.outcome == STOP_waits; i++)
		result = stop_child(pid, visit);
	ASSERT_EQ(result.outcome, STOP_done);
	return result;
}

/* On a busy machine the limit may be over before what is looked at has been. */
static struct stop_result stop_in_time(pid_t pid, struct visit *visit)
{
	struct stop_result result = stop_running(pid, visit);

	for (int i = 0; i < 100 && result.cut_short; i++)
		result = stop_running(pid, visit);
	ASSERT_FALSE(result.cut_short);
	return result;
}

static void check_says(pid_t pid, enum stop_outcome outcome, const char *part)
{
	_cleanup_free_ char *text = NULL;

	ASSERT_OK(stop_explain(pid, pid, outcome, &text));
	if (!strstr(text, part))
		print_error("\"%s\"\n", text);
	ASSERT_TRUE(strstr(text, part));
}

TEST(a_running_thread_is_stopped_shortly_and_notices_nothing)
{
	struct child child = start_child(spin);
	struct visit visit = {0};
	uint64_t sum_ns = 0;

	for (int i = 0; i < STOPS; i++) {
		struct stop_result result = stop_in_time(child.pid, &visit);
		ASSERT_FALSE(result.ended_wait);
		ASSERT_EQ(visit.state, 't');
		ASSERT_EQ(visit.registers.known, REGISTERS_all);
		ASSERT_TRUE(visit.registers.at.pc && visit.registers.at.sp);
		ASSERT_TRUE(visit.registers.fs_base);
		sum_ns += result.stopped_ns;
	}
	print_message("%d stops of %ju ns\n", STOPS, (uintmax_t)(sum_ns / STOPS));
	ASSERT_TRUE(goes_on(&child));
	ASSERT_TRUE(state_of(child.pid) == 'R');
	ASSERT_EQ(child.told->signals, 0);
	end_child(&child);
}

TEST(a_thread_that_waits_is_left_alone)
{
	struct child child = start_child(wait_in_epoll);
	struct visit visit = {0};
	struct stop_result result;

	for (int i = 0; i < STOPS; i++) {
		result = stop_child(child.pid, &visit);
		ASSERT_EQ(result.outcome, STOP_waits);
	}
	check_says(child.pid, STOP_waits, "waits");
	ASSERT_EQ(visit.calls, 0);
	ASSERT_EQ(child.told->interrupted, 0);
	end_child(&child);

	// In a wait that no signal ends, too: state D.
	child = start_child(wait_for_vforked);
	ASSERT_EQ(state_of(child.pid), 'D');
	result = stop_child(child.pid, &visit);
	ASSERT_EQ(result.outcome, STOP_waits);
	end_child(&child);
}

TEST(the_limit_ends_the_stop_whatever_the_caller_does)
{
	struct child child = start_child(spin);
	struct visit visit = {.sleep_ms = 10 * LIMIT_MS};

	struct stop_result result = stop_running(child.pid, &visit);
	ASSERT_TRUE(result.cut_short);
	ASSERT_TRUE(result.stopped_ns < 5ull * LIMIT_MS * 1000000);
	ASSERT_TRUE(child.told->largest_gap_ns < 5ull * LIMIT_MS * 1000000);
	visit.sleep_ms = 0;
	result = stop_running(child.pid, &visit);
	ASSERT_FALSE(result.cut_short);
	end_child(&child);
}

TEST(signals_that_come_during_a_stop_are_neither_lost_nor_invented)
{
	struct child child = start_child(spin);
	struct visit visit = {.signal = SIGRTMIN, .count = 50};
	uint64_t expected = 0;

	for (int i = 0; i < 20; i++) {
		stop_running(child.pid, &visit);
		expected += 50;
	}
	ASSERT_TRUE(goes_on(&child));
	ASSERT_EQ(child.told->signals, expected);
	end_child(&child);
}

TEST(signals_that_come_at_any_moment_are_neither_lost_nor_invented)
{
	struct child child = start_child(spin);
	struct visit visit = {0};
	union sigval value = {0};
	uint64_t sent = 0;

	struct told *sender = mmap(NULL, sizeof(*sender), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = fork();
	if (!pid) {
		for (int i = 0; i < FLOOD; i++) {
			sender->signals += !sigqueue(child.pid, SIGRTMIN, value);
			usleep(20);
		}
		_exit(0);
	}
	while (waitpid(pid, NULL, WNOHANG) == 0)
		stop_running(child.pid, &visit);
	ASSERT_TRUE(goes_on(&child));
	sent = sender->signals;
	print_message("%ju signals, %d stops\n", (uintmax_t)sent, visit.calls);
	ASSERT_EQ(child.told->signals, sent);
	munmap(sender, sizeof(*sender));
	end_child(&child);
}

TEST(a_stopped_process_stays_stopped_and_one_that_is_being_stopped_stops)
{
	struct child child = start_child(spin);
	struct visit visit = {0};

	kill(child.pid, SIGSTOP);
	ASSERT_TRUE(becomes(child.pid, "T"));
	ASSERT_EQ(stop_child(child.pid, &visit).outcome, STOP_waits);
	ASSERT_EQ(state_of(child.pid), 'T');
	kill(child.pid, SIGCONT);
	ASSERT_TRUE(goes_on(&child));

	visit.signal = SIGSTOP;
	visit.count = 1;
	stop_running(child.pid, &visit);
	ASSERT_TRUE(becomes(child.pid, "T"));
	kill(child.pid, SIGCONT);
	ASSERT_TRUE(goes_on(&child));
	ASSERT_EQ(child.told->signals, 0);
	end_child(&child);
}

TEST(a_thread_with_another_tracer_is_left_to_it)
{
	struct child child = start_child(spin);
	struct visit visit = {0};
	char number[16];
	int ready[2];
	char byte;

	ASSERT_EQ(pipe(ready), 0);
	pid_t debugger = fork();
	if (!debugger) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!write(ready[1], ptrace(PTRACE_SEIZE, child.pid, 0, 0) ? "n" : "y", 1);
		for (;;)
			pause();
	}
	ASSERT_EQ(read(ready[0], &byte, 1), 1);
	ASSERT_EQ(byte, 'y');
	ASSERT_EQ(stop_child(child.pid, &visit).outcome, STOP_traced);
	(void)snprintf(number, sizeof(number), "%d", debugger);
	check_says(child.pid, STOP_traced, number);
	kill(debugger, SIGKILL);
	waitpid(debugger, NULL, 0);
	stop_running(child.pid, &visit);
	close(ready[0]);
	close(ready[1]);
	end_child(&child);
}

TEST(what_has_ended_or_is_not_ours_to_stop_is_said)
{
	struct child child = start_child(spin);
	struct visit visit = {0};
	siginfo_t info;
	int status;

	pid_t other = fork();
	if (!other) {
		struct stop_options options = {LIMIT_MS, visit_thread, &visit};
		struct stop_result result = {.outcome = STOP_done};
		if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
			_exit(77);
		struct error *err = thread_stop(child.pid, child.pid, &options, &result);
		_exit(err ? 100 : (int)result.outcome);
	}
	ASSERT_EQ(waitpid(other, &status, 0), other);
	if (!geteuid())
		ASSERT_EQ(WEXITSTATUS(status), STOP_denied);
	ASSERT_EQ(stop_child(getpid(), &visit).outcome, STOP_denied);
	check_says(getpid(), STOP_denied, "cairn itself");

	kill(child.pid, SIGKILL);
	ASSERT_EQ(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT), 0);
	ASSERT_EQ(stop_child(child.pid, &visit).outcome, STOP_gone);
	check_says(child.pid, STOP_gone, "ended");
	end_child(&child);
	ASSERT_EQ(stop_child(child.pid, &visit).outcome, STOP_gone);
}

TEST(a_thread_goes_on_when_cairn_is_killed_while_it_stands)
{
	struct child child = start_child(spin);

	pid_t cairn = fork();
	if (!cairn) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		struct visit visit = {.pid = child.pid, .sleep_ms = PATIENCE_MS};
		struct stop_options options = {10 * PATIENCE_MS, visit_thread, &visit};
		struct stop_result result;
		for (;;)
			error_free(thread_stop(child.pid, child.pid, &options, &result));
	}
	ASSERT_TRUE(becomes(child.pid, "t"));
	uint64_t rounds = child.told->rounds;
	usleep(20000);
	ASSERT_EQ(child.told->rounds, rounds);
	kill(cairn, SIGKILL);
	ASSERT_EQ(waitpid(cairn, NULL, 0), cairn);
	ASSERT_TRUE(goes_on(&child));
	ASSERT_TRUE(becomes(child.pid, "R"));
	ASSERT_EQ(child.told->signals, 0);
	end_child(&child);
}

RUN_TESTS(UNIT_TEST(a_running_thread_is_stopped_shortly_and_notices_nothing),
	  UNIT_TEST(a_thread_that_waits_is_left_alone),
	  UNIT_TEST(the_limit_ends_the_stop_whatever_the_caller_does),
	  UNIT_TEST(signals_that_come_during_a_stop_are_neither_lost_nor_invented),
	  UNIT_TEST(signals_that_come_at_any_moment_are_neither_lost_nor_invented),
	  UNIT_TEST(a_stopped_process_stays_stopped_and_one_that_is_being_stopped_stops),
	  UNIT_TEST(a_thread_with_another_tracer_is_left_to_it),
	  UNIT_TEST(what_has_ended_or_is_not_ours_to_stop_is_said),
	  UNIT_TEST(a_thread_goes_on_when_cairn_is_killed_while_it_stands))
