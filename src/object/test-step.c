/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows against what really happens: C programs are run instruction by instruction. Calls and
 * returns are followed as they happen, so that at every instruction it is known where the
 * function's frame begins, where it will return to and what its caller's frame pointer was; the
 * rule of that instruction must find all three. No table of the program is used for that.
 *
 * The programs are linked statically, so that libc is stepped through too: glibc by its unwind
 * information, musl, which has none, by its instructions.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "base/str.h"
#include "object/object.h"
#include "object/rows.h"

#include "unit.h"

enum {
	DEPTH_MAX = 4096,
	STEPS_MAX = 600000,
};

static const char source[] =
	"#include <math.h>\n"
	"#include <regex.h>\n"
	"#include <setjmp.h>\n"
	"#include <signal.h>\n"
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"#include <string.h>\n"
	"#include <time.h>\n"
	"#include <wchar.h>\n"
	"static jmp_buf again;\n"
	"static volatile int handled;\n"
	"static void handler(int sig) { handled += sig; }\n"
	"static int order(const void *a, const void *b) { return *(const int *)a - *(const int "
	"*)b; }\n"
	"static int deep(int n) { volatile char room[n + 1]; room[n] = n;\n"
	"\treturn n ? deep(n - 1) + room[n] : 0; }\n"
	"static void jump(int n) { if (n) jump(n - 1); else longjmp(again, 1); }\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"\tint values[64]; char text[256]; wchar_t wide[32]; regex_t re; time_t at = 86400 * 365;\n"
	"\tfor (int i = 0; i < 64; i++) values[i] = i * 7919 % 64;\n"
	"\tqsort(values, 64, sizeof(int), order);\n"
	"\tsnprintf(text, sizeof text, \"%d %s %.10g %Lf %x\", values[3], \"abc\", sin(0.5), 1.5L, "
	"255);\n"
	"\tdouble d = strtod(\"1234.5678e10\", NULL) + deep(20);\n"
	"\tsignal(SIGUSR1, handler);\n"
	"\traise(SIGUSR1);\n"
	"\tif (!setjmp(again)) jump(5);\n"
	"\tif (!regcomp(&re, \"a(b|c)*d+\", REG_EXTENDED)) {\n"
	"\t\tregexec(&re, \"xxabcbcddd\", 0, NULL, 0);\n"
	"\t\tregfree(&re);\n"
	"\t}\n"
	"\tstrftime(text + 128, 64, \"%A %c\", gmtime(&at));\n"
	"\tswprintf(wide, 32, L\"%ls %d\", L\"wide\", 5);\n"
	"\tchar *copy = strdup(text); copy = realloc(copy, 100000);\n"
	"\tprintf(\"%s %f %d %s\\n\", copy, d, handled, strstr(text, \"abc\"));\n"
	"\tfree(copy);\n"
	"\treturn fflush(stdout) || handled != SIGUSR1;\n"
	"}\n";

/* What a called function is to find again. */
struct shadow {
	uint64_t cfa, fp, ra;
};

struct stepper {
	char dir[32];
	_Alignas(8) char path[64];
	struct object *object;
	struct rows rows;
	pid_t pid;
	struct user_regs_struct regs;
	struct shadow stack[DEPTH_MAX];
	int depth;
	int signal;   /* being delivered */
	bool leaving; /* in longjmp, which has left its frame and has yet to jump */
	unsigned long steps, checked, by_fp, gaps, guessed, signals, roots;
};

static void cleanup_stepper(struct stepper *s)
{
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
	}
	rows_deinit(&s->rows);
	object_free(s->object);
	if (!s->dir[0])
		return;
	unlink(s->path);
	rmdir(s->dir);
}

/* Compile the source with COMPILER. False: it is not installed, or cannot link statically. */
static bool build(struct stepper *s, const char *compiler)
{
	_cleanup_free_ char *command = NULL;

	snprintf(s->dir, sizeof(s->dir), "/tmp/cairn-step-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	snprintf(s->path, sizeof(s->path), "%s/program", s->dir);
	ASSERT_OK(str_format(&command, "%s -w -O2 -static -no-pie -x c -o %s - -lm 2>/dev/null",
			     compiler, s->path));
	FILE *pipe = popen(command, "w");
	assert_non_null(pipe);
	fputs(source, pipe);
	return pclose(pipe) == 0;
}

/* Start the program and stop at its first instruction. False: we may not trace. */
static bool start(struct stepper *s)
{
	int status, fd = open(s->path, O_RDONLY | O_CLOEXEC);

	ASSERT_TRUE(fd >= 0);
	ASSERT_OK(object_open(fd, "program", &s->object));
	ASSERT_OK(rows_compile(s->object, &s->rows));
	s->pid = fork();
	ASSERT_TRUE(s->pid >= 0);
	if (s->pid == 0) {
		dup2(open("/dev/null", O_WRONLY), 1);
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
			execl(s->path, s->path, (char *)NULL);
		_exit(99);
	}
	ASSERT_EQ(waitpid(s->pid, &status, 0), s->pid);
	if (!WIFSTOPPED(status)) {
		s->pid = 0;
		return false;
	}
	ptrace(PTRACE_SETOPTIONS, s->pid, NULL, (void *)PTRACE_O_EXITKILL);
	return true;
}

static uint64_t peek(const struct stepper *s, uint64_t addr)
{
	return (uint64_t)ptrace(PTRACE_PEEKDATA, s->pid, (void *)addr, NULL);
}

/* Value of a register by its DWARF number. */
static uint64_t reg(const struct stepper *s, unsigned number)
{
	const struct user_regs_struct *r = &s->regs;
	const uint64_t values[UNWIND_REGISTERS] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi,
						   r->rbp, r->rsp, r->r8,  r->r9,  r->r10, r->r11,
						   r->r12, r->r13, r->r14, r->r15};

	ASSERT_TRUE(number < UNWIND_REGISTERS);
	return values[number];
}

static uint64_t cfa_by(const struct stepper *s, const struct unwind_rule *rule)
{
	uint64_t base = reg(s, rule->base) + (uint64_t)(int64_t)rule->offset;

	if (rule->cfa == UNWIND_CFA_deref)
		return peek(s, base) + (uint64_t)(int64_t)rule->aux;
	ASSERT_TRUE(rule->cfa == UNWIND_CFA_reg || rule->cfa == UNWIND_CFA_plt);
	if (rule->cfa == UNWIND_CFA_plt && (s->regs.rip & 15) >= (uint64_t)rule->aux)
		base += 8;
	return base;
}

static void compare(struct stepper *s, const struct unwind_rule *rule)
{
	const struct shadow *top = &s->stack[s->depth - 1];
	uint64_t cfa = cfa_by(s, rule), fp = s->regs.rbp;
	uint64_t ra = rule->ra == UNWIND_RA_reg ? reg(s, (unsigned)rule->ra_offset)
						: peek(s, cfa + (uint64_t)(int64_t)rule->ra_offset);

	if (rule->fp == UNWIND_FP_cfa)
		fp = peek(s, cfa + (uint64_t)(int64_t)rule->fp_offset);
	else if (rule->fp == UNWIND_FP_reg)
		fp = peek(s, s->regs.rbp + (uint64_t)(int64_t)rule->fp_offset);
	else if (rule->fp == UNWIND_FP_undefined)
		fp = top->fp;
	if (cfa != top->cfa || ra != top->ra || fp != top->fp)
		fail_msg("0x%llx: CFA 0x%lx, not 0x%lx; return address 0x%lx, not 0x%lx; frame "
			 "pointer 0x%lx, not 0x%lx",
			 s->regs.rip, (long)cfa, (long)top->cfa, (long)ra, (long)top->ra, (long)fp,
			 (long)top->fp);
	s->checked++;
	s->by_fp += rule->base == UNWIND_RBP;
}

/* Is the rule at the present instruction right? */
static void check(struct stepper *s)
{
	const struct unwind_rule *rule = rows_find(&s->rows, s->regs.rip);
	bool gap = !rule || rule->cfa == UNWIND_CFA_none;

	if (gap || rule->cfa == UNWIND_CFA_frame_ptr) {
		if (gap && !s->gaps++)
			print_message("first gap at 0x%llx\n", s->regs.rip);
		s->guessed += !gap;
		return;
	}
	if (rule->cfa == UNWIND_CFA_signal) {
		// The kernel restores what it finds there: 40 bytes in, behind 16 registers.
		ASSERT_EQ(peek(s, s->regs.rsp + 40 + 16 * 8), s->stack[s->depth - 1].ra);
		s->signals++;
		return;
	}
	// glibc's longjmp describes where it goes to, before it goes there.
	if (rule->ra == UNWIND_RA_reg && rule->base != UNWIND_RSP)
		return;
	s->roots += rule->cfa == UNWIND_CFA_root;
	if (s->depth == 0 && rule->cfa != UNWIND_CFA_root)
		fail_msg("0x%llx: outside all calls, and not at the entry", s->regs.rip);
	if (s->depth == 0)
		ASSERT_EQ(rule->cfa, UNWIND_CFA_root);
	else
		compare(s, rule);
}

static void push(struct stepper *s, uint64_t ra)
{
	ASSERT_TRUE(s->depth < DEPTH_MAX);
	s->stack[s->depth++] = (struct shadow){s->regs.rsp + 8, s->regs.rbp, ra};
}

/* Follow the instruction at BEFORE that led to the present registers. */
static void follow(struct stepper *s, const struct user_regs_struct *before, uint64_t code)
{
	// notrack, bnd, addr32 and REX prefixes stand before calls and returns
	while ((code & 0xff) == 0x3e || (code & 0xff) == 0xf2 || (code & 0xff) == 0xf3 ||
	       (code & 0xff) == 0x67 || (code & 0xf0) == 0x40)
		code >>= 8;
	uint8_t opcode = (uint8_t)code, operand = (uint8_t)(code >> 8);
	bool call = opcode == 0xe8 || (opcode == 0xff && (operand >> 3 & 7) == 2);

	if (call && s->regs.rsp == before->rsp - 8)
		push(s, peek(s, s->regs.rsp));
	if (s->signal) {
		// The handler's frame, and under it the one that the kernel made.
		push(s, before->rip);
		s->stack[s->depth - 1].cfa = 0;
		push(s, peek(s, s->regs.rsp));
		s->signal = 0;
	}
	// A return, a return from a signal, or longjmp.
	int depth = s->depth;
	while (s->depth && s->stack[s->depth - 1].cfa && s->regs.rsp >= s->stack[s->depth - 1].cfa)
		s->depth--;
	if (s->depth < depth)
		s->leaving = opcode != 0xc3 && opcode != 0xc2;
	else if (opcode == 0xff)
		s->leaving = false;
	if (s->depth && !s->stack[s->depth - 1].cfa && s->stack[s->depth - 1].ra == s->regs.rip)
		s->depth--;
}

static void run(struct stepper *s)
{
	struct user_regs_struct before;
	int status = 0;

	ptrace(PTRACE_GETREGS, s->pid, NULL, &s->regs);
	check(s);
	while (s->steps++ < STEPS_MAX) {
		uint64_t code = peek(s, s->regs.rip);
		before = s->regs;
		ptrace(PTRACE_SINGLESTEP, s->pid, NULL, (void *)(long)s->signal);
		ASSERT_EQ(waitpid(s->pid, &status, 0), s->pid);
		if (!WIFSTOPPED(status))
			break;
		ptrace(PTRACE_GETREGS, s->pid, NULL, &s->regs);
		if (WSTOPSIG(status) != SIGTRAP) {
			s->signal = WSTOPSIG(status);
			continue;
		}
		follow(s, &before, code);
		if (!s->leaving)
			check(s);
	}
	if (WIFEXITED(status)) {
		s->pid = 0;
		ASSERT_EQ(WEXITSTATUS(status), 0);
	}
}

/* Step through the program as COMPILER makes it. False: there is no such compiler. */
static bool step_through(const char *compiler)
{
	_cleanup_(cleanup_stepper) struct stepper s = {.pid = 0};

	if (!build(&s, compiler))
		return false;
	if (!start(&s))
		SKIP("processes may not be traced here");
	run(&s);
	print_message("%s: %lu steps, %lu checked, %lu by frame pointer, %lu at the entry, %lu in "
		      "signal frames, %lu in gaps, %lu by a guess\n",
		      compiler, s.steps, s.checked, s.by_fp, s.roots, s.signals, s.gaps, s.guessed);
	ASSERT_TRUE(s.checked > 10000);
	ASSERT_TRUE(s.roots > 0);
	ASSERT_TRUE(s.signals > 0);
	ASSERT_EQ(s.gaps + s.guessed, 0);
	return true;
}

TEST(unwind_information_holds_at_every_instruction_that_is_run)
{
	if (!step_through("cc"))
		SKIP("there is no compiler with a static libc");
}

TEST(musl_is_unwound_at_every_instruction_that_is_run)
{
	if (!step_through("musl-gcc"))
		SKIP("there is no musl-gcc");
}

TEST(code_without_unwind_information_is_unwound_at_every_instruction_that_is_run)
{
	static const char *const flags[] = {"-fomit-frame-pointer", "-fno-omit-frame-pointer",
					    "-Os"};
	_cleanup_free_ char *compiler = NULL;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		free(take(compiler));
		ASSERT_OK(str_format(&compiler, "musl-gcc -fno-asynchronous-unwind-tables %s -s",
				     flags[i]));
		if (!step_through(compiler))
			SKIP("there is no musl-gcc");
	}
}

RUN_TESTS(UNIT_TEST(unwind_information_holds_at_every_instruction_that_is_run),
	  UNIT_TEST(musl_is_unwound_at_every_instruction_that_is_run),
	  UNIT_TEST(code_without_unwind_information_is_unwound_at_every_instruction_that_is_run))
