/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows against what really happens: programs are run instruction by instruction from main.work on.
 * Calls and returns are followed as they happen, so that at every instruction it is known where the
 * function's frame begins and what its caller's frame pointer was; the rule of that instruction
 * must find both. No table of the program is used for that.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "object/go.h"
#include "object/object.h"
#include "object/rows.h"
#include "object/test-go-build.h"

enum {
	DEPTH_MAX = 4096,
	STEPS_MAX = 400000,
	WAITS_MAX = 40 * STEPS_MAX, /* of all threads: a program that does not end is a failure */
};

/* What a called function is to find again. */
struct shadow {
	uint64_t cfa, fp;
};

struct stepper {
	const struct go_program *program;
	struct object *object;
	struct go_table *table;
	struct rows rows;
	pid_t pid, stepping; /* 0: nobody yet */
	uint64_t breakpoint;
	long saved; /* the word there */
	struct shadow stack[DEPTH_MAX];
	int depth;
	struct go_function function; /* that of the last pc */
	struct user_regs_struct regs;
	unsigned long steps, checked, by_fp, switches, saved_contexts, functions;
};

static void cleanup_stepper(struct stepper *s)
{
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		while (waitpid(-1, NULL, __WALL) > 0)
			;
	}
	rows_deinit(&s->rows);
	go_table_free(s->table);
	object_free(s->object);
}

static uint64_t peek(const struct stepper *s, uint64_t addr)
{
	return (uint64_t)ptrace(PTRACE_PEEKDATA, s->stepping, (void *)addr, NULL);
}

static void open_program(struct stepper *s)
{
	struct go_function work;
	int fd = open(s->program->path, O_RDONLY | O_CLOEXEC);

	ASSERT_TRUE(fd >= 0);
	ASSERT_OK(object_open(fd, s->program->label, &s->object));
	ASSERT_OK(go_table_open(s->object, &s->table));
	ASSERT_OK(rows_compile(s->object, &s->rows));
	for (uint32_t i = 0; i < go_function_count(s->table) && !s->breakpoint; i++)
		if (go_function_get(s->table, i, &work) && strcmp(work.name, "main.work") == 0)
			s->breakpoint = work.entry;
	ASSERT_TRUE(s->breakpoint != 0);
}

/* Start the program and stop at its first instruction. False: we may not trace. */
static bool start(struct stepper *s)
{
	int status;

	s->pid = fork();
	ASSERT_TRUE(s->pid >= 0);
	if (s->pid == 0) {
		int null = open("/dev/null", O_WRONLY);
		dup2(null, 2);
		// A signal to preempt a goroutine could come between any two steps.
		setenv("GODEBUG", "asyncpreemptoff=1", 1);
		setenv("GOMAXPROCS", "1", 1);
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
			execl(s->program->path, s->program->path, (char *)NULL);
		_exit(99);
	}
	ASSERT_EQ(waitpid(s->pid, &status, 0), s->pid);
	if (!WIFSTOPPED(status)) {
		s->pid = 0;
		return false;
	}
	ptrace(PTRACE_SETOPTIONS, s->pid, NULL, (void *)(PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL));
	s->saved = ptrace(PTRACE_PEEKTEXT, s->pid, (void *)s->breakpoint, NULL);
	ptrace(PTRACE_POKETEXT, s->pid, (void *)s->breakpoint,
	       (void *)((s->saved & ~0xffl) | 0xcc));
	ptrace(PTRACE_CONT, s->pid, NULL, NULL);
	return true;
}

static void compare(struct stepper *s, uint64_t cfa, uint64_t fp)
{
	const struct shadow *top = &s->stack[s->depth - 1];

	if (cfa != top->cfa || fp != top->fp)
		fail_msg("%s: %s: 0x%llx: CFA 0x%lx, not 0x%lx; frame pointer 0x%lx, not 0x%lx",
			 s->program->label, s->function.name, s->regs.rip, (long)cfa,
			 (long)top->cfa, (long)fp, (long)top->fp);
	s->checked++;
}

/* As the walker does: g, m, the goroutine, its saved context (see abi/unwind.h). */
static void check_saved(struct stepper *s, const struct unwind_rule *rule)
{
	uint64_t g = peek(s, s->regs.fs_base + (uint64_t)(int64_t)rule->ra_offset);
	uint64_t m = peek(s, g + (uint16_t)rule->offset);
	uint64_t context = peek(s, m + ((uint32_t)rule->offset >> 16)) + (uint32_t)rule->aux;
	uint64_t sp = peek(s, context), fp = peek(s, context + (uint64_t)rule->fp_offset);
	const struct unwind_rule *next = rows_find(&s->rows, peek(s, context + 8));

	// systemstack leaves a context inside systemstack_switch, morestack that of its caller.
	ASSERT_TRUE(next && next->cfa == UNWIND_CFA_reg && next->base == UNWIND_RSP);
	if (strcmp(s->function.name, "runtime.systemstack") == 0)
		sp += (uint64_t)next->offset;
	compare(s, sp, fp);
	s->saved_contexts++;
}

/* Is the rule at the present instruction right? */
static void check(struct stepper *s)
{
	const struct unwind_rule *rule = rows_find(&s->rows, s->regs.rip);

	if (rule && rule->cfa == UNWIND_CFA_go_switch)
		check_saved(s, rule);
	if (!rule || rule->cfa != UNWIND_CFA_reg)
		return;
	uint64_t base = rule->base == UNWIND_RBP ? s->regs.rbp : s->regs.rsp;
	uint64_t cfa = base + (uint64_t)(int64_t)rule->offset;
	uint64_t fp = s->regs.rbp;
	if (rule->fp == UNWIND_FP_cfa)
		fp = peek(s, cfa + (uint64_t)(int64_t)rule->fp_offset);
	compare(s, cfa, fp);
	s->by_fp += rule->base == UNWIND_RBP;
	// Far apart: the frame is on another stack than we are.
	s->switches += rule->base == UNWIND_RBP && cfa - s->regs.rsp > 65536;
}

static void push(struct stepper *s)
{
	ASSERT_TRUE(s->depth < DEPTH_MAX);
	s->stack[s->depth++] = (struct shadow){s->regs.rsp + 8, s->regs.rbp};
}

/* Follow the instruction that led from BEFORE to the present registers. */
static void follow(struct stepper *s, const struct user_regs_struct *before, uint64_t code)
{
	bool rex = (code & 0xf0) == 0x40;
	uint8_t opcode = (uint8_t)(rex ? code >> 8 : code);
	uint8_t operand = (uint8_t)(rex ? code >> 16 : code >> 8);
	bool call = opcode == 0xe8 || (opcode == 0xff && (operand >> 3 & 7) == 2);

	if (call && s->regs.rsp == before->rsp - 8)
		push(s);
	else if (opcode == 0xc3 && s->depth && s->regs.rsp == s->stack[s->depth - 1].cfa)
		s->depth--;
	else if (opcode == 0xc3)
		s->depth = 0; // not a return from what we saw called
}

static void find_function(struct stepper *s)
{
	if (s->regs.rip >= s->function.entry && s->regs.rip < s->function.end)
		return;
	if (!go_function_find(s->table, s->regs.rip, &s->function))
		s->function = (struct go_function){.name = "?"};
	s->functions++;
	// Goroutines change: nothing that was called will be returned to.
	if (strstr(s->function.name, "gogo"))
		s->depth = 0;
}

/* The thread that is stepped has made a step. False: that is enough. */
static bool step(struct stepper *s)
{
	struct user_regs_struct before = s->regs;
	uint64_t code;

	code = peek(s, before.rip);
	ptrace(PTRACE_GETREGS, s->stepping, NULL, &s->regs);
	follow(s, &before, code);
	find_function(s);
	if (s->depth)
		check(s);
	return ++s->steps < STEPS_MAX;
}

static void at_breakpoint(struct stepper *s, pid_t tid)
{
	s->stepping = tid;
	ptrace(PTRACE_GETREGS, tid, NULL, &s->regs);
	s->regs.rip--;
	ASSERT_EQ(s->regs.rip, s->breakpoint);
	ptrace(PTRACE_SETREGS, tid, NULL, &s->regs);
	ptrace(PTRACE_POKETEXT, tid, (void *)s->breakpoint, (void *)s->saved);
	push(s);
	find_function(s);
	check(s);
}

/* Serve the threads until there were steps enough or the program ends. */
static void run(struct stepper *s)
{
	pid_t tid;
	int status, waits = 0;

	while ((tid = waitpid(-1, &status, __WALL)) > 0 && waits++ < WAITS_MAX) {
		if (!WIFSTOPPED(status))
			continue;
		int sig = WSTOPSIG(status);
		if (sig == SIGTRAP && !(status >> 16)) {
			if (!s->stepping)
				at_breakpoint(s, tid);
			else if (tid == s->stepping && !step(s))
				return;
		}
		// New threads begin with a stop of their own.
		bool ours = sig == SIGTRAP || sig == SIGSTOP;
		ptrace(tid == s->stepping ? PTRACE_SINGLESTEP : PTRACE_CONT, tid, NULL,
		       (void *)(long)(ours ? 0 : sig));
	}
	ASSERT_TRUE(waits < WAITS_MAX);
}

TEST(rules_hold_at_every_instruction_that_is_run)
{
	const struct go_programs *programs = go_programs();

	if (!programs->count)
		SKIP("there is no Go toolchain");
	for (int i = 0; i < programs->count; i++) {
		_cleanup_(cleanup_stepper) struct stepper s = {.program = &programs->program[i]};
		// Where a PIE is loaded is another's business; its code is the same.
		if (strstr(s.program->label, " plain") == NULL)
			continue;
		open_program(&s);
		if (!start(&s))
			SKIP("processes may not be traced here");
		run(&s);
		print_message("%s: %lu steps through %lu functions, %lu checked, %lu by frame "
			      "pointer, %lu of them from another stack, %lu by a saved context\n",
			      s.program->label, s.steps, s.functions, s.checked, s.by_fp,
			      s.switches, s.saved_contexts);
		ASSERT_TRUE(s.checked > 10000 && s.checked > s.steps / 2);
		ASSERT_TRUE(s.by_fp > 0);
		ASSERT_TRUE(s.switches > 0);
		ASSERT_TRUE(s.saved_contexts > 0);
	}
}

RUN_TESTS(UNIT_TEST(rules_hold_at_every_instruction_that_is_run))
