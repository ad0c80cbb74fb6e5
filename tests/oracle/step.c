/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program is run instruction by instruction under ptrace. At every pc the caller that the host
 * walker finds is compared with the one that the shadow call stack knows, and now and then the
 * whole stack. Prints what differs, once per place, and totals; judges nothing: step.py does.
 *
 *   step [--entry] [--go] [--steps N] [--whole N] -- PROGRAM ARGUMENTS...
 *
 *   --entry  begin where the program begins, not where the dynamic loader does
 *   --go     stacks are those of goroutines
 *
 * Lines, fields separated by tabs:
 *   wrong KIND COUNT OBJECT FUNCTION ADDR EXPECTED GOT END
 *   total INSTRUCTIONS JUDGED EQUAL FP_EQUAL FP_LOST NO_CALLER STACKS STACKS_EQUAL
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/array.h"
#include "base/str.h"
#include "machine.h"
#include "proc/maps.h"
#include "shadow.h"

enum {
	PAGE = 4096,
	CODE_PAGES = 512,
	WRONG_MAX = 4096,
	MAIN_STACK_BYTES = 8 << 20, /* RLIMIT_STACK as it usually is: how far the stack may grow */
	GO_G_OFFSET = 8,            /* runtime.g is at fs_base - 8 (cmd/internal/obj/x86) */
};

struct code_page {
	uint64_t addr; /* 0: empty */
	uint8_t byte[PAGE];
};

/* One distinct disagreement. */
struct wrong {
	const char *kind; /* NULL: empty */
	uint64_t pc, count;
	char *text;
};

struct totals {
	uint64_t instructions, judged, equal, fp_equal, fp_lost, no_caller, stacks, stacks_equal;
};

struct stepper {
	pid_t pid;
	bool go, ended, changed; /* changed: mappings did, in the last step */
	uint64_t steps_max, whole_every;
	struct machine *machine;
	struct shadow *shadow;
	struct shadow_region *region; /* the stack in use; NULL: not known */
	struct user_regs_struct regs;
	struct code_page code[CODE_PAGES];
	struct wrong wrong[WRONG_MAX];
	size_t wrongs;
	struct totals totals;
};

static bool read_code(struct stepper *s, uint64_t pc, uint8_t *ret)
{
	size_t offset = pc % PAGE;
	struct code_page *page = &s->code[pc / PAGE % CODE_PAGES];

	if (offset + SHADOW_CODE_BYTES > PAGE) {
		// The instruction may end with the page, and the next one may not be there.
		memset(ret, 0, SHADOW_CODE_BYTES);
		return machine_read(s->machine, pc, ret, SHADOW_CODE_BYTES) ||
		       machine_read(s->machine, pc, ret, PAGE - offset);
	}
	if (page->addr != pc - offset) {
		if (!machine_read(s->machine, pc - offset, page->byte, PAGE))
			return false;
		page->addr = pc - offset;
	}
	memcpy(ret, page->byte + offset, SHADOW_CODE_BYTES);
	return true;
}

/* Make s->region the stack that holds SP. */
static struct error *find_region(struct stepper *s, uint64_t sp)
{
	_cleanup_(maps_deinit) struct maps maps = MAPS_INIT;
	uint64_t g, bounds[2];

	if (s->region && sp >= s->region->low && sp < s->region->high)
		return NULL;
	if (s->go && s->shadow->main &&
	    (sp < s->shadow->main->low || sp >= s->shadow->main->high)) {
		s->region = NULL;
		if (!machine_read(s->machine, s->regs.fs_base - GO_G_OFFSET, &g, sizeof(g)) ||
		    !machine_read(s->machine, g, bounds, sizeof(bounds)) || sp < bounds[0] ||
		    sp >= bounds[1])
			return NULL;
		s->region = shadow_find(s->shadow, sp);
		if (s->region && s->region->low == bounds[0] && s->region->high == bounds[1])
			return NULL;
		return shadow_add(s->shadow, bounds[0], bounds[1], &s->region);
	}
	s->region = shadow_find(s->shadow, sp);
	if (s->region)
		return NULL;
	TRY(maps_read(s->pid, MAPS_all, &maps));
	const struct map *map = maps_find(&maps, sp);
	if (!map)
		return NULL;
	bool is_main = !strcmp(map->path, "[stack]");
	TRY(shadow_add(s->shadow, is_main ? map->end - MAIN_STACK_BYTES : map->start, map->end,
		       &s->region));
	if (is_main)
		s->shadow->main = s->region;
	return NULL;
}

static struct error *place_text(struct stepper *s, uint64_t pc, bool call, char **ret)
{
	struct machine_place place;

	TRY(machine_place(s->machine, pc, call, &place));
	return str_format(ret, "%s\t%s\t0x%" PRIx64, place.object, place.function, place.addr);
}

/*
 * Note a disagreement about who called the frame at PC (an address as the walker pushes it); the
 * first one at a place is the one that is shown.
 */
static struct error *note(struct stepper *s, const char *kind, uint64_t pc,
			  const struct shadow_entry *expected, const struct host_walk *got)
{
	_cleanup_free_ char *place = NULL, *wanted = NULL, *found = NULL;
	size_t at = (pc * 31 + (unsigned char)kind[0]) % WRONG_MAX;

	while (s->wrong[at].kind && (s->wrong[at].pc != pc || s->wrong[at].kind != kind))
		at = (at + 1) % WRONG_MAX;
	struct wrong *wrong = &s->wrong[at];
	if (wrong->count++)
		return NULL;
	if (++s->wrongs == WRONG_MAX)
		return error_new("%d different disagreements", WRONG_MAX);
	wrong->kind = kind;
	wrong->pc = pc;
	TRY(place_text(s, pc & ~SAMPLE_EXACT_PC, !(pc & SAMPLE_EXACT_PC), &place));
	if (expected)
		TRY(str_format(&wanted, "pc=%" PRIx64 ",sp=%" PRIx64 ",fp=%" PRIx64, expected->pc,
			       expected->sp, expected->fp));
	else
		TRY(str_copy(&wanted, "root"));
	TRY(str_format(&found, "pc=%llx,sp=%llx,fp=%llx", got->walk.at.pc, got->walk.at.sp,
		       got->walk.at.fp));
	return str_format(&wrong->text, "%s\t%s\t%s\t%s", place, wanted, found,
			  walk_end_text(got->walk.end));
}

static bool is_caller(const struct shadow_entry *entry, const struct walk_state *at)
{
	return entry->pc == at->pc && entry->sp == at->sp;
}

/*
 * Go: the walker went from the thread's stack to the goroutine's. It found the goroutine's caller
 * itself (nanotime1 borrows the thread's stack), or a frame of that caller's callee (systemstack).
 */
static struct error *judge_switch(struct stepper *s, const struct walk_state *at,
				  struct shadow_region *to, bool *ret)
{
	const struct shadow_entry *direct = shadow_caller(to, at->sp - 8);
	uint64_t frames[2];
	struct host_walk walk;

	*ret = direct && is_caller(direct, at);
	if (*ret)
		return NULL;
	TRY(machine_walk(s->machine, &s->regs, 2, frames, &walk));
	const struct shadow_entry *entry = shadow_caller(to, walk.walk.at.sp - 8);
	*ret = walk.walk.end == END_depth && entry && is_caller(entry, &walk.walk.at);
	return NULL;
}

/* RET: the caller is right, with all that further callers depend on. */
static struct error *judge_caller(struct stepper *s, bool *ret)
{
	// Not by the stack pointer: vfork() takes its return address off the stack for a while.
	const struct shadow_entry *entry = shadow_top(s->region);
	bool root = !entry && s->region == s->shadow->main;
	uint64_t frame, word;
	struct host_walk walk;

	*ret = false;
	if (!entry && (!root || s->go)) {
		s->totals.no_caller++;
		return NULL;
	}
	TRY(machine_walk(s->machine, &s->regs, 1, &frame, &walk));
	const struct walk_state *at = &walk.walk.at;
	bool right = root ? walk.walk.end == END_root
			  : walk.walk.end == END_depth && is_caller(entry, at);
	*ret = right && (root || entry->fp == at->fp);
	struct shadow_region *other = s->go ? shadow_find(s->shadow, at->sp) : NULL;
	if (!right && other && other != s->region && walk.walk.end == END_depth)
		TRY(judge_switch(s, at, other, &right));
	else if (right && !root && entry->fp == at->fp)
		s->totals.fp_equal++;
	else if (right && !root && at->fp == WALK_FP_LOST)
		s->totals.fp_lost++;
	else if (right && !root)
		TRY(note(s, "fp", s->regs.rip | SAMPLE_EXACT_PC, entry, &walk));
	// A goroutine's stack was moved or given to another one.
	if (!right && s->go && entry &&
	    (!machine_read(s->machine, entry->slot, &word, sizeof(word)) || word != entry->pc)) {
		s->region->count = 0;
		s->totals.no_caller++;
		return NULL;
	}
	s->totals.judged++;
	s->totals.equal += right;
	return right ? NULL : note(s, "caller", s->regs.rip | SAMPLE_EXACT_PC, entry, &walk);
}

static struct error *judge_stack(struct stepper *s)
{
	static uint64_t frames[SAMPLE_USER_FRAMES];
	uint64_t sp = s->regs.rsp;
	size_t i = 1;
	const struct shadow_entry *entry = NULL;
	struct host_walk walk;
	struct shadow_region *region = s->region;
	bool right = true;

	TRY(machine_walk(s->machine, &s->regs, SAMPLE_USER_FRAMES, frames, &walk));
	for (; right && i < walk.walk.frames && region; i += right) {
		entry = i == 1 ? shadow_top(region) : shadow_caller(region, sp);
		right = entry ? (frames[i] & ~SAMPLE_EXACT_PC) == entry->pc
			      : region != s->shadow->main;
		if (!entry)
			break;
		sp = entry->sp;
		region = shadow_find(s->shadow, sp);
	}
	if (right && region && region == s->shadow->main && walk.walk.end != END_depth)
		right = walk.walk.end == END_root && !shadow_caller(region, sp);
	s->totals.stacks++;
	s->totals.stacks_equal += right;
	// Where the walk went astray, or ended too early.
	return right ? NULL : note(s, "stack", frames[i - 1], entry, &walk);
}

static struct error *judge(struct stepper *s)
{
	bool right;

	TRY(find_region(s, s->regs.rsp));
	if (!s->region) {
		s->totals.no_caller++;
		return NULL;
	}
	TRY(judge_caller(s, &right));
	// On the thread's own stack Go's walks go over to the goroutine's; single steps judge that.
	if (right && !s->go && s->totals.instructions % s->whole_every == 0)
		TRY(judge_stack(s));
	return NULL;
}

/* Did the kernel just enter a handler for SIGNAL? arch/x86/kernel/signal_64.c */
static bool in_handler(const struct user_regs_struct *now, int signal)
{
	return now->rdi == (unsigned)signal && now->rdx == now->rsp + 8;
}

static struct error *entered_handler(struct stepper *s, const struct user_regs_struct *before)
{
	struct user_regs_struct *now = &s->regs;
	struct shadow_entry interrupted = {.slot = now->rsp + 8,
					   .pc = before->rip,
					   .sp = before->rsp,
					   .fp = before->rbp,
					   .signal = true};
	struct shadow_entry restorer = {.slot = now->rsp, .sp = now->rsp + 8, .fp = now->rbp};

	TRY(find_region(s, now->rsp));
	if (!s->region || !machine_read(s->machine, now->rsp, &restorer.pc, sizeof(restorer.pc)))
		return NULL;
	TRY(shadow_push(s->region, &interrupted));
	return shadow_push(s->region, &restorer);
}

/* The instruction of KIND ran: BEFORE to s->regs. */
static struct error *ran(struct stepper *s, enum shadow_kind kind,
			 const struct user_regs_struct *before)
{
	struct user_regs_struct *now = &s->regs;
	struct shadow_entry entry = {.slot = now->rsp, .sp = now->rsp + 8, .fp = now->rbp};

	if (kind == SHADOW_syscall) {
		// Any of these may bring or take code.
		s->changed = before->rax == SYS_mmap || before->rax == SYS_munmap ||
			     before->rax == SYS_mprotect || before->rax == SYS_mremap;
		if (before->rax == SYS_rt_sigreturn && s->region)
			shadow_pop_signal(s->region);
	}
	TRY(find_region(s, now->rsp));
	if (!s->region)
		return NULL;
	if (kind == SHADOW_call && now->rsp + 8 == before->rsp &&
	    machine_read(s->machine, now->rsp, &entry.pc, sizeof(entry.pc)))
		return shadow_push(s->region, &entry);
	if (kind == SHADOW_return || kind == SHADOW_syscall)
		if (kind == SHADOW_return || before->rax == SYS_rt_sigreturn)
			shadow_pop(s->region, now->rsp);
	return NULL;
}

static struct error *wait_stop(struct stepper *s, int *ret_signal)
{
	int status;

	if (waitpid(s->pid, &status, __WALL) != s->pid)
		return error_errno("waitpid");
	s->ended = !WIFSTOPPED(status);
	*ret_signal = s->ended ? 0 : WSTOPSIG(status);
	if (WIFEXITED(status) && WEXITSTATUS(status))
		return error_new("the program ended with status %d", WEXITSTATUS(status));
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		return error_new("the program was ended by signal %d", WTERMSIG(status));
	return NULL;
}

/* Run one instruction, or enter a signal handler. */
static struct error *step(struct stepper *s)
{
	struct user_regs_struct before = s->regs;
	uint8_t code[SHADOW_CODE_BYTES];
	int signal, delivered = 0;

	if (!read_code(s, before.rip, code))
		return error_new("no code at 0x%llx", before.rip);
	if (ptrace(PTRACE_SINGLESTEP, s->pid, 0, 0))
		return error_errno("single step");
	TRY(wait_stop(s, &signal));
	if (!s->ended && signal != SIGTRAP) {
		if (ptrace(PTRACE_GETREGS, s->pid, 0, &s->regs))
			return error_errno("registers");
		TRY(ran(s, shadow_decode(code), &before));
		before = s->regs;
		delivered = signal;
		if (ptrace(PTRACE_SINGLESTEP, s->pid, 0, signal))
			return error_errno("single step");
		TRY(wait_stop(s, &signal));
	}
	if (s->ended)
		return NULL;
	if (ptrace(PTRACE_GETREGS, s->pid, 0, &s->regs))
		return error_errno("registers");
	if (delivered && in_handler(&s->regs, delivered))
		return entered_handler(s, &before);
	if (delivered && !read_code(s, before.rip, code))
		return error_new("no code at 0x%llx", before.rip);
	return ran(s, shadow_decode(code), &before);
}

static struct error *run(struct stepper *s)
{
	uint64_t last = 0;

	if (ptrace(PTRACE_GETREGS, s->pid, 0, &s->regs))
		return error_errno("registers");
	while (!s->ended && s->totals.instructions < s->steps_max) {
		// A repeated string instruction stops once for every round.
		if (s->regs.rip != last) {
			s->totals.instructions++;
			TRY(judge(s));
		}
		last = s->regs.rip;
		TRY(step(s));
		if (!s->changed || s->ended)
			continue;
		s->changed = false;
		memset(s->code, 0, sizeof(s->code));
		TRY(machine_refresh(s->machine));
	}
	return NULL;
}

/* Stay on this CPU, with the program: waking each other across CPUs takes most of a step's time. */
static void pin(void)
{
	int cpu = sched_getcpu();
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu < 0 ? 0 : cpu, &set);
	sched_setaffinity(0, sizeof(set), &set); // it is slower otherwise, and no less right
}

/* The address at which the program itself starts, from the auxiliary vector. */
static struct error *find_entry(pid_t pid, uint64_t *ret)
{
	_cleanup_free_ char *path = NULL;
	uint64_t pair[2];

	TRY(str_format(&path, "/proc/%d/auxv", pid));
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	while (f && fread(pair, sizeof(pair), 1, f) == 1)
		if (pair[0] == 9) { // AT_ENTRY
			*ret = pair[1];
			return NULL;
		}
	return error_new("no entry in %s", path);
}

/* Let the loader run. */
static struct error *run_to_entry(struct stepper *s)
{
	uint64_t entry;
	int signal;

	TRY(find_entry(s->pid, &entry));
	errno = 0;
	long code = ptrace(PTRACE_PEEKTEXT, s->pid, entry, 0);
	if (errno || ptrace(PTRACE_POKETEXT, s->pid, entry, (code & ~0xffl) | 0xcc) ||
	    ptrace(PTRACE_CONT, s->pid, 0, 0))
		return error_errno("breakpoint");
	TRY(wait_stop(s, &signal));
	if (s->ended || signal != SIGTRAP || ptrace(PTRACE_GETREGS, s->pid, 0, &s->regs))
		return error_new("the program did not get to its entry");
	s->regs.rip = entry;
	if (ptrace(PTRACE_POKETEXT, s->pid, entry, code) ||
	    ptrace(PTRACE_SETREGS, s->pid, 0, &s->regs))
		return error_errno("breakpoint");
	return NULL;
}

static struct error *start(struct stepper *s, char **arguments, bool from_entry)
{
	int signal;

	pin();
	s->pid = fork();
	if (s->pid < 0)
		return error_errno("fork");
	if (!s->pid) {
		personality(ADDR_NO_RANDOMIZE);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execv(arguments[0], arguments);
		_exit(127);
	}
	TRY(wait_stop(s, &signal));
	if (s->ended)
		return error_new("%s did not start", arguments[0]);
	if (ptrace(PTRACE_SETOPTIONS, s->pid, 0, PTRACE_O_EXITKILL))
		return error_errno("trace");
	if (from_entry)
		TRY(run_to_entry(s));
	TRY(machine_new(s->pid, &s->machine));
	return ARRAY_NEW(s->shadow, 1);
}

static void print(const struct stepper *s)
{
	const struct totals *t = &s->totals;

	for (size_t i = 0; i < WRONG_MAX; i++)
		if (s->wrong[i].text)
			printf("wrong\t%s\t%" PRIu64 "\t%s\n", s->wrong[i].kind, s->wrong[i].count,
			       s->wrong[i].text);
	printf("total\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
	       "\t%" PRIu64 "\t%" PRIu64 "\n",
	       t->instructions, t->judged, t->equal, t->fp_equal, t->fp_lost, t->no_caller,
	       t->stacks, t->stacks_equal);
}

int main(int count, char **arguments)
{
	static const struct option options[] = {{"entry", no_argument, NULL, 'e'},
						{"go", no_argument, NULL, 'g'},
						{"steps", required_argument, NULL, 's'},
						{"whole", required_argument, NULL, 'w'},
						{0}};
	static struct stepper s = {.steps_max = UINT64_MAX, .whole_every = 64};
	bool entry = false, usable = true;

	for (int letter; (letter = getopt_long(count, arguments, "+", options, NULL)) != -1;) {
		entry |= letter == 'e';
		s.go |= letter == 'g';
		if (letter == 's')
			usable &= str_parse_u64(optarg, 1, UINT64_MAX, &s.steps_max);
		if (letter == 'w')
			usable &= str_parse_u64(optarg, 1, UINT64_MAX, &s.whole_every);
		usable &= letter != '?';
	}
	if (!usable || optind >= count) {
		fprintf(stderr, "step [--entry] [--go] [--steps N] [--whole N] -- PROGRAM ...\n");
		return 2;
	}
	struct error *err = start(&s, arguments + optind, entry);
	if (!err)
		err = run(&s);
	// What was seen up to a failure is shown, too.
	print(&s);
	if (err)
		fprintf(stderr, "%s: %s\n", arguments[optind], error_text(err));
	bool failed = err != NULL;
	error_free(err);
	if (s.pid > 0 && !s.ended) {
		kill(s.pid, SIGKILL);
		waitpid(s.pid, NULL, __WALL);
	}
	machine_free(s.machine);
	shadow_free(s.shadow);
	return failed;
}
