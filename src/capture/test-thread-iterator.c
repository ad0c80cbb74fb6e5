/* SPDX-License-Identifier: Apache-2.0 */
/* The iterator over threads on this kernel, against what /proc and ptrace say of a child's. */
#include "capture/thread-iterator.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/threads.h"
#include "unit.h"

enum { MANY = 500, WAIT_MS = 5000 };

static volatile unsigned long sink;

static void bind_to_cpu(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	ASSERT_EQ(sched_setaffinity(pid, sizeof(set), &set), 0);
}

static void *wait_for_ever(void *context)
{
	for (;;)
		pause();
	return NULL;
}

/* A child with THREADS threads that wait in pause(); its first one spins if asked to. */
static pid_t start_child(int threads, bool spin)
{
	volatile int *ready =
		mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;

	ASSERT_TRUE(ready != MAP_FAILED);
	pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, 65536);
		for (int i = 1; i < threads; i++)
			if (pthread_create(&thread, &attr, wait_for_ever, NULL))
				_exit(1);
		*ready = 1;
		while (spin)
			sink++;
		wait_for_ever(NULL);
	}
	ASSERT_TRUE(pid > 0);
	while (!*ready)
		usleep(500);
	munmap((void *)ready, sizeof(int));
	return pid;
}

/* Until all threads but SPINNING ones wait. */
static void settle(pid_t pid, size_t spinning)
{
	uint64_t end_ns = clock_monotonic_ns() + WAIT_MS * 1000000ull;
	size_t running = spinning + 1;

	while (running > spinning && clock_monotonic_ns() < end_ns) {
		_cleanup_(threads_deinit) struct threads threads = THREADS_INIT;
		ASSERT_OK(threads_read(pid, 0, &threads));
		running = 0;
		for (size_t i = 0; i < threads.count; i++)
			running += threads.thread[i].state == 'R';
	}
	ASSERT_TRUE(running <= spinning);
	usleep(2000);
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
}

/* NULL, and the reason is printed: nothing to test. */
static struct thread_iterator *open_iterator(void)
{
	struct thread_iterator *iterator = NULL;
	struct error *err = thread_iterator_open(&iterator);

	if (err) {
		print_message("%s\n", error_text(err));
		error_free(err);
	}
	return iterator;
}

static void compare_with_ptrace(const struct thread_record *record)
{
	struct thread_registers registers;
	struct user_regs_struct regs;
	int status;

	ASSERT_TRUE(thread_record_registers(record, &registers));
	ASSERT_EQ(ptrace(PTRACE_SEIZE, record->tid, 0, 0), 0);
	ASSERT_EQ(ptrace(PTRACE_INTERRUPT, record->tid, 0, 0), 0);
	ASSERT_EQ(waitpid((pid_t)record->tid, &status, __WALL), record->tid);
	ASSERT_EQ(ptrace(PTRACE_GETREGS, record->tid, 0, &regs), 0);
	ASSERT_EQ(ptrace(PTRACE_DETACH, record->tid, 0, 0), 0);
	ASSERT_EQ(registers.at.pc, regs.rip);
	ASSERT_EQ(registers.at.sp, regs.rsp);
	ASSERT_EQ(registers.at.fp, regs.rbp);
	ASSERT_EQ(registers.at.reg[UNWIND_RBX], regs.rbx);
	ASSERT_EQ(registers.at.reg[UNWIND_R12], regs.r12);
	ASSERT_EQ(registers.at.reg[UNWIND_R13], regs.r13);
	ASSERT_EQ(registers.at.reg[UNWIND_R14], regs.r14);
	ASSERT_EQ(registers.at.reg[UNWIND_R15], regs.r15);
	ASSERT_EQ(registers.at.reg[UNWIND_RDI], regs.rdi);
	ASSERT_EQ(registers.at.reg[UNWIND_RSI], regs.rsi);
	ASSERT_EQ(registers.at.reg[UNWIND_RDX], regs.rdx);
	ASSERT_EQ(registers.at.reg[UNWIND_R8], regs.r8);
	ASSERT_EQ(registers.fs_base, regs.fs_base);
	ASSERT_FALSE(registers.compat);
	// The stop itself ends the wait: what the call returns is not yet there when it waits.
	ASSERT_EQ(registers.syscall, regs.orig_rax);
}

TEST(registers_of_waiting_threads_are_those_that_ptrace_sees)
{
	_cleanup_thread_iterator_ struct thread_iterator *iterator = open_iterator();
	_cleanup_(thread_records_deinit) struct thread_records records = THREAD_RECORDS_INIT;
	struct thread_call call;

	if (!iterator)
		SKIP("no BPF");
	pid_t pid = start_child(20, false);
	settle(pid, 0);
	ASSERT_OK(thread_iterator_read(iterator, pid, &records));
	ASSERT_EQ(records.count, 20);
	for (size_t i = 0; i < records.count; i++) {
		ASSERT_EQ(records.record[i].pid, pid);
		ASSERT_EQ(records.record[i].flags & (THREAD_on_cpu | THREAD_no_user), 0);
		ASSERT_OK(thread_read_call(pid, (pid_t)records.record[i].tid, &call));
		ASSERT_EQ(call.kind, THREAD_CALL_inside);
		ASSERT_EQ(call.pc, records.record[i].word[16]);
		ASSERT_EQ(call.sp, records.record[i].word[19]);
	}
	for (size_t i = 0; i < records.count; i++)
		compare_with_ptrace(&records.record[i]);
	end_child(pid);
}

TEST(counts_are_those_of_proc_and_tell_whether_a_thread_ran)
{
	_cleanup_thread_iterator_ struct thread_iterator *iterator = open_iterator();
	struct thread_record before, after;
	struct thread_turns turns;
	struct thread thread;
	enum process_look look;
	bool there = false;

	if (!iterator)
		SKIP("no BPF");
	pid_t pid = start_child(1, false);
	settle(pid, 0);
	ASSERT_OK(thread_iterator_read_one(iterator, pid, pid, &there, &before));
	ASSERT_TRUE(there);
	ASSERT_OK(thread_read_turns(pid, pid, &turns));
	if (turns.counts)
		ASSERT_EQ(turns.turns, before.turns);
	ASSERT_OK(thread_read(pid, pid, THREADS_everything, &look, &thread));
	ASSERT_EQ(thread.voluntary + thread.involuntary, before.switches);
	ASSERT_STREQ(thread.comm, before.comm);
	ASSERT_OK(thread_iterator_read_one(iterator, pid, pid, &there, &after));
	ASSERT_EQ(before.turns, after.turns);
	ASSERT_EQ(before.switches, after.switches);
	ASSERT_EQ(before.runtime_ns, after.runtime_ns);

	kill(pid, SIGSTOP);
	kill(pid, SIGCONT);
	settle(pid, 0);
	ASSERT_OK(thread_iterator_read_one(iterator, pid, pid, &there, &after));
	ASSERT_TRUE(after.switches > before.switches);
	end_child(pid);
	ASSERT_OK(thread_iterator_read_one(iterator, pid, pid, &there, &after));
	ASSERT_FALSE(there);
}

TEST(a_thread_on_a_cpu_has_no_registers)
{
	_cleanup_thread_iterator_ struct thread_iterator *iterator = open_iterator();
	struct thread_registers registers;
	struct thread_record record;
	int on_cpu = 0;
	bool there;

	if (!iterator)
		SKIP("no BPF");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP("one CPU: nobody else is on it while we look");
	pid_t pid = start_child(1, true);
	bind_to_cpu(0, 0);
	bind_to_cpu(pid, 1);
	for (int i = 0; i < 200; i++) {
		usleep(1000);
		ASSERT_OK(thread_iterator_read_one(iterator, pid, pid, &there, &record));
		ASSERT_TRUE(there);
		if (!(record.flags & THREAD_on_cpu))
			continue;
		ASSERT_FALSE(thread_record_registers(&record, &registers));
		on_cpu++;
	}
	// Others may want that CPU, too.
	ASSERT_TRUE(on_cpu > 0);
	end_child(pid);
}

TEST(all_threads_of_the_machine_come_in_one_pass)
{
	_cleanup_thread_iterator_ struct thread_iterator *iterator = open_iterator();
	_cleanup_(thread_records_deinit) struct thread_records records = THREAD_RECORDS_INIT;
	_cleanup_(thread_records_deinit) struct thread_records some = THREAD_RECORDS_INIT;
	struct thread_registers registers;
	size_t found = 0;

	if (!iterator)
		SKIP("no BPF");
	pid_t pid = start_child(MANY, false);
	settle(pid, 0);
	ASSERT_OK(thread_iterator_read(iterator, 0, &records));
	ASSERT_OK(thread_iterator_read(iterator, pid, &some));
	ASSERT_EQ(some.count, MANY);
	for (size_t i = 0; i < records.count; i++)
		if (records.record[i].pid == (uint32_t)pid) {
			ASSERT_TRUE(thread_record_registers(&records.record[i], &registers));
			found++;
		}
	ASSERT_EQ(found, MANY);
	const struct thread_record *own = thread_records_find(&records, getpid());
	ASSERT_TRUE(own && own->flags & THREAD_on_cpu);
	const struct thread_record *worker = thread_records_find(&records, 2);
	ASSERT_TRUE(!worker || worker->flags & THREAD_no_user);
	end_child(pid);
}

RUN_TESTS(UNIT_TEST(registers_of_waiting_threads_are_those_that_ptrace_sees),
	  UNIT_TEST(counts_are_those_of_proc_and_tell_whether_a_thread_ran),
	  UNIT_TEST(a_thread_on_a_cpu_has_no_registers),
	  UNIT_TEST(all_threads_of_the_machine_come_in_one_pass))
