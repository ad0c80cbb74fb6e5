/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of our own in known places, and what /proc says of them. */
#include "proc/threads.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/registers.h"
#include "unit.h"

struct reader {
	pthread_t thread;
	pid_t tid;
	sem_t ready;
	int fd;
	volatile int rounds; /* bytes until it ends; 0: one */
	char byte;
};

static void *read_for_ever(void *context)
{
	struct reader *reader = context;

	prctl(PR_SET_NAME, "odd ) (name\n");
	reader->tid = (pid_t)syscall(SYS_gettid);
	sem_post(&reader->ready);
	do {
		(void)!read(reader->fd, &reader->byte, 1);
	} while (--reader->rounds > 0);
	return NULL;
}

/* A thread that waits in read(ret_fds[0]) until a byte comes. */
static void start_reader(struct reader *reader, int ret_fds[2])
{
	struct thread_call call;

	ASSERT_EQ(pipe(ret_fds), 0);
	reader->fd = ret_fds[0];
	sem_init(&reader->ready, 0, 0);
	ASSERT_EQ(pthread_create(&reader->thread, NULL, read_for_ever, reader), 0);
	sem_wait(&reader->ready);
	do {
		usleep(1000);
		ASSERT_OK(thread_read_call(getpid(), reader->tid, &call));
	} while (call.kind != THREAD_CALL_inside);
}

static void end_reader(struct reader *reader, const int fds[2])
{
	(void)!write(fds[1], "", 1);
	pthread_join(reader->thread, NULL);
	close(fds[0]);
	close(fds[1]);
}

TEST(a_thread_is_shown_with_its_name_and_the_call_it_waits_in)
{
	_cleanup_(threads_deinit) struct threads threads = THREADS_INIT;
	struct reader reader = {0};
	int fds[2];

	start_reader(&reader, fds);
	ASSERT_OK(threads_read(getpid(), THREADS_everything, &threads));
	ASSERT_EQ(threads.count, 2);
	ASSERT_EQ(threads.thread[0].tid, getpid());
	ASSERT_EQ(threads.thread[0].state, 'R');
	ASSERT_EQ(threads.thread[0].call.kind, THREAD_CALL_inside); // reads its own file
	ASSERT_TRUE(threads.thread[0].voluntary + threads.thread[0].involuntary > 0);

	const struct thread *thread = &threads.thread[1];
	ASSERT_EQ(thread->tid, reader.tid);
	ASSERT_STREQ(thread->comm, "odd ) (name\n");
	ASSERT_EQ(thread->ns_tid, reader.tid);
	ASSERT_EQ(thread->state, 'S');
	ASSERT_FALSE(thread->kernel_thread);
	ASSERT_EQ(thread->call.kind, THREAD_CALL_inside);
	ASSERT_EQ(thread->call.number, SYS_read);
	ASSERT_EQ(thread->call.argument[0], fds[0]);
	ASSERT_EQ(thread->call.argument[1], (uintptr_t)&reader.byte);
	ASSERT_EQ(thread->call.argument[2], 1);
	ASSERT_TRUE(thread->call.sp && thread->call.pc);
	ASSERT_TRUE(thread->voluntary > 0);
	end_reader(&reader, fds);
}

TEST(turns_tell_whether_a_thread_has_run)
{
	struct thread_turns before, after;
	struct reader reader = {0};
	struct thread_call call;
	bool stayed = false;
	int fds[2];

	start_reader(&reader, fds);
	ASSERT_OK(thread_read_turns(getpid(), reader.tid, &before));
	ASSERT_OK(thread_read_call(getpid(), reader.tid, &call));
	usleep(2000);
	ASSERT_OK(thread_has_stayed(getpid(), reader.tid, &before, &call, &stayed));
	ASSERT_TRUE(stayed);
	ASSERT_OK(thread_read_turns(getpid(), reader.tid, &after));
	ASSERT_TRUE(before.there && after.there);
	ASSERT_EQ(before.turns, after.turns);
	ASSERT_EQ(before.switches, after.switches);
	// Moved by a byte, and waiting again, is moved.
	pid_t tid = reader.tid;
	end_reader(&reader, fds);
	ASSERT_OK(thread_read_turns(getpid(), tid, &after));
	ASSERT_FALSE(after.there && after.turns == before.turns &&
		     after.switches == before.switches);
	ASSERT_OK(thread_has_stayed(getpid(), tid, &before, &call, &stayed));
	ASSERT_FALSE(stayed);
}

TEST(a_thread_that_came_back_to_the_same_place_has_not_stayed)
{
	struct thread_turns before;
	struct thread_call call, again;
	struct reader reader = {.rounds = 2};
	bool stayed = true;
	int fds[2];

	start_reader(&reader, fds);
	ASSERT_OK(thread_read_turns(getpid(), reader.tid, &before));
	ASSERT_OK(thread_read_call(getpid(), reader.tid, &call));
	(void)!write(fds[1], "", 1);
	// The byte has been read, and the thread waits for the next.
	while (reader.rounds > 1)
		usleep(500);
	do {
		usleep(1000);
		ASSERT_OK(thread_read_call(getpid(), reader.tid, &again));
	} while (again.kind != THREAD_CALL_inside);
	ASSERT_EQ(again.pc, call.pc);
	ASSERT_EQ(again.sp, call.sp);
	ASSERT_OK(thread_has_stayed(getpid(), reader.tid, &before, &call, &stayed));
	ASSERT_FALSE(stayed);
	end_reader(&reader, fds);
}

TEST(what_has_ended_is_an_outcome)
{
	_cleanup_(threads_deinit) struct threads threads = THREADS_INIT;
	enum process_look look = PROCESS_there;
	struct thread_turns turns = {.there = true};
	struct thread_call call;
	struct thread thread;

	pid_t pid = fork();
	if (!pid)
		_exit(0);
	siginfo_t info;
	ASSERT_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	ASSERT_OK(thread_read(pid, pid, THREADS_everything, &look, &thread));
	ASSERT_EQ(look, PROCESS_there);
	ASSERT_EQ(thread.state, 'Z');
	waitpid(pid, NULL, 0);

	ASSERT_OK(thread_read(pid, pid, THREADS_everything, &look, &thread));
	ASSERT_EQ(look, PROCESS_gone);
	ASSERT_OK(threads_read(pid, THREADS_everything, &threads));
	ASSERT_EQ(threads.count, 0);
	ASSERT_OK(thread_read_call(pid, pid, &call));
	ASSERT_EQ(call.kind, THREAD_CALL_unknown);
	ASSERT_OK(thread_read_turns(pid, pid, &turns));
	ASSERT_FALSE(turns.there);
}

TEST(kernel_threads_have_no_user_side)
{
	enum process_look look = PROCESS_gone;
	struct thread thread;

	ASSERT_OK(thread_read(2, 2, THREADS_everything, &look, &thread));
	if (look == PROCESS_gone || !thread.kernel_thread)
		SKIP("process 2 is not kthreadd: this is a namespace of its own");
	ASSERT_EQ(thread.call.pc, 0);
}

TEST(the_text_of_a_call_is_taken_apart)
{
	static const struct {
		const char *text;
		bool good;
		struct thread_call call;
	} cases[] = {
		{"running\n", true, {.kind = THREAD_CALL_running}},
		{"-1 0x7ffd10 0x7f83e2ad\n",
		 true,
		 {.kind = THREAD_CALL_outside, .sp = 0x7ffd10, .pc = 0x7f83e2ad}},
		{"202 0x1 0x80 0x2 0x0 0x5 0xffffffffffffffff 0x7ffe 0x4011\n",
		 true,
		 {.kind = THREAD_CALL_inside,
		  .number = 202,
		  .argument = {1, 0x80, 2, 0, 5, UINT64_MAX},
		  .sp = 0x7ffe,
		  .pc = 0x4011}},
		{"", false, {0}},
		{"runn", false, {0}},
		{"0", false, {0}},
		{"-1", false, {0}},
		{"-1 0x1", false, {0}},
		{"-1 -1 -1", false, {0}},
		{"-1 0x1 0x2 0x3", false, {0}},
		{"0 0x1 0x2 0x3 0x4 0x5 0x6 0x7", false, {0}},
		{"0 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8 ", false, {0}},
		{"99999999999999999999 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8", false, {0}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct thread_call call = {.number = 77};
		bool good = thread_call_parse(cases[i].text, &call);
		if (good != cases[i].good)
			print_error("\"%s\"\n", cases[i].text);
		ASSERT_EQ(good, cases[i].good);
		if (good)
			assert_memory_equal(&call, &cases[i].call, sizeof(call));
		else
			ASSERT_EQ(call.number, 77);
	}
}

TEST(saved_words_become_registers)
{
	uint64_t word[REGISTERS_WORDS];
	struct thread_registers registers;

	for (uint64_t i = 0; i < REGISTERS_WORDS; i++)
		word[i] = 100 + i;
	word[17] = 0xabcd0033; // cs
	registers_set(word, 0x7f00, &registers);
	ASSERT_EQ(registers.known, REGISTERS_all);
	ASSERT_EQ(registers.at.pc, 116);
	ASSERT_EQ(registers.at.sp, 119);
	ASSERT_EQ(registers.at.fp, 104);
	ASSERT_EQ(registers.at.reg[UNWIND_RBX], 105);
	ASSERT_EQ(registers.at.reg[UNWIND_R15], 100);
	ASSERT_EQ(registers.at.reg[UNWIND_RDI], 114);
	ASSERT_EQ(registers.fs_base, 0x7f00);
	ASSERT_EQ(registers.syscall, 115);
	ASSERT_EQ(registers.result, 110);
	ASSERT_FALSE(registers.compat);
	word[15] = (uint64_t)-1;
	word[17] = 0x23;
	registers_set(word, 0, &registers);
	ASSERT_EQ(registers.syscall, -1);
	ASSERT_TRUE(registers.compat);
}

RUN_TESTS(UNIT_TEST(a_thread_is_shown_with_its_name_and_the_call_it_waits_in),
	  UNIT_TEST(turns_tell_whether_a_thread_has_run),
	  UNIT_TEST(a_thread_that_came_back_to_the_same_place_has_not_stayed),
	  UNIT_TEST(what_has_ended_is_an_outcome), UNIT_TEST(kernel_threads_have_no_user_side),
	  UNIT_TEST(the_text_of_a_call_is_taken_apart), UNIT_TEST(saved_words_become_registers))
