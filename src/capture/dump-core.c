/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a core file. What a core is, is object/core.h's business. */
#include "capture/dump-core.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/str.h"
#include "capture/dump-tasks.h"
#include "object/core.h"
#include "proc/root.h"
#include "proc/waiting.h"

enum { BLANK_WORDS = 64 };

struct post_mortem {
	const struct dump_options *options;
	struct dump *dump;
	struct core *core; /* owned */
};

static void post_mortem_deinit(struct post_mortem *look)
{
	core_close(look->core);
}

/* Files that the process had mapped, as this machine has them. */
static struct error *open_mapped(void *context, const char *path, enum root_outcome *ret,
				 int *ret_fd)
{
	return root_open(0, path, ret, ret_fd);
}

/* For what is unpacked: beside other temporary files, not in memory, for it may be large. */
static struct error *open_temporary(void *context, int *ret_fd)
{
	const char *folder = getenv("TMPDIR");
	int fd =
		open(folder && *folder ? folder : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		return error_errno("a temporary file in %s",
				   folder && *folder ? folder : "/var/tmp");
	*ret_fd = fd;
	return NULL;
}

static struct error *open_file(const char *path, int *ret_fd)
{
	// A FIFO would block; what is no file is refused by whoever reads it.
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return error_errno("open %s", path);
	*ret_fd = fd;
	return NULL;
}

static struct error *open_core(const struct dump_core_source *source, struct core **ret)
{
	struct core_options options = {.open = open_mapped, .temporary = open_temporary};
	_cleanup_close_ int fd = -1, exe = -1;
	_cleanup_core_ struct core *core = NULL;

	TRY(open_file(source->path, &fd));
	TRY(core_open(fd, source->path, &options, &core));
	fd = -1;
	if (source->exe) {
		TRY(open_file(source->exe, &exe));
		struct error *err = core_set_exe(core, exe);
		if (err)
			return error_wrap(err, "%s", source->exe);
		exe = -1;
	}
	*ret = take(core);
	return NULL;
}

/* The file behind the mapping at START, if the core does not prove it to be another one. */
static struct error *open_of_core(void *context, uint64_t start, int *ret_fd)
{
	struct post_mortem *look = context;
	const struct map *map = maps_find(core_maps(look->core), start);
	enum core_file outcome;

	return map ? core_open_file(look->core, map, &outcome, ret_fd) : NULL;
}

static struct error *describe(struct post_mortem *look)
{
	const struct core_facts *facts = core_facts(look->core);
	const char *exe = core_exe(look->core);
	struct dump *dump = look->dump;

	dump->pid = facts->pid;
	if (facts->name[0])
		TRY(dump_text(dump, facts->name, &dump->name));
	if (facts->arguments[0])
		TRY(dump_text(dump, facts->arguments, &dump->command));
	if (exe[0])
		TRY(dump_text(dump, exe, &dump->exe));
	if (facts->signal)
		TRY(dump_note(dump, "the process was ended by signal %d (%s), which thread %d got",
			      facts->signal, strsignal(facts->signal), facts->signal_tid));
	return NULL;
}

/* What the thread waited in: arguments are where the kernel takes them from. */
static struct error *describe_call(struct post_mortem *look, const struct core_thread *from,
				   struct dump_thread *to)
{
	const __u64 *reg = from->state.reg;
	struct thread thread = {
		.tid = from->tid,
		.state = 'S',
		.call = {.kind = THREAD_CALL_inside,
			 .number = (uint64_t)from->syscall,
			 .argument = {reg[UNWIND_RDI], reg[UNWIND_RSI], reg[UNWIND_RDX],
				      reg[UNWIND_R10], reg[UNWIND_R8], reg[UNWIND_R9]},
			 .sp = from->state.sp,
			 .pc = from->state.pc},
	};
	_cleanup_free_ char *text = NULL;

	to->state = DUMP_waiting;
	TRY(thread_waiting_text(&thread, &text));
	return dump_text(look->dump, text, &to->waits_in);
}

static struct error *introduce(struct post_mortem *look, const struct core_thread *from,
			       struct dump_thread *to)
{
	const struct core_facts *facts = core_facts(look->core);
	struct target_thread who = {.fs_base = from->fs_base};
	struct target_python_thread python;

	to->tid = from->tid;
	to->main = from->tid == facts->pid;
	// NT_PRPSINFO has the name of the first thread (Linux, fs/binfmt_elf.c, fill_psinfo()); of
	// others a core has none.
	if (to->main)
		to->name = look->dump->name;
	if (from->syscall >= 0)
		TRY(describe_call(look, from, to));
	if (target_python_thread(look->dump->target, &who, &python)) {
		to->python_id = python.id;
		to->python_name = python.name;
		if (target_python_holds_lock(look->dump->target, &python))
			to->state = DUMP_gil_holder;
	}
	if (facts->signal && from->tid == facts->signal_tid)
		to->state = DUMP_signalled;
	return NULL;
}

/* Is a stack that begins at SP nothing but zeros? No real one is. */
static bool is_blank(const struct memory *memory, uint64_t sp)
{
	uint64_t word[BLANK_WORDS];

	if (memory_read(memory, sp, word, sizeof(word)))
		return false;
	for (size_t i = 0; i < BLANK_WORDS; i++)
		if (word[i])
			return false;
	return true;
}

/*
 * gdb writes zeros where it could not read (gcore of 13.1, "Memory read failed for corefile
 * section"). It does so of a thread's stack that has guard pages inside of its mapping (glibc 2.42
 * with MADV_GUARD_INSTALL, Linux 662df3e5c376, 6.13), and a return address of zero would pass for
 * the root.
 */
static struct error *check_stack(struct post_mortem *look, const struct core_thread *from,
				 struct target_stack *stack)
{
	struct memory memory = core_memory(look->core);

	if (stack->end != END_root || !is_blank(&memory, from->state.sp))
		return NULL;
	stack->end = END_unreadable;
	return dump_note(look->dump, "the core has zeros where the stack of thread %d was",
			 from->tid);
}

static struct error *look_at(struct post_mortem *look, const struct core_thread *from,
			     struct dump_thread *to)
{
	const struct dump_options *options = look->options;
	struct target *target = look->dump->target;
	_cleanup_(target_stack_deinit) struct target_stack stack = TARGET_STACK_INIT;
	struct thread_registers registers = {
		.known = REGISTERS_all,
		.at = from->state,
		.fs_base = from->fs_base,
		.syscall = from->syscall,
	};

	TRY(target_walk_whole(target, &registers, &stack));
	TRY(check_stack(look, from, &stack));
	TRY(target_read_variables(target, options->locals, &stack));
	TRY(dump_note_variables(look->dump, from->tid, &stack));
	to->end = stack.end;
	return target_name(target, &stack, options->native, &to->frames);
}

static struct error *look_at_threads(struct post_mortem *look)
{
	const struct dump_options *options = look->options;
	size_t count;
	const struct core_thread *thread = core_threads(look->core, &count);

	for (size_t i = 0; i < count; i++) {
		struct dump_thread to = {0}, *added;
		TRY(introduce(look, &thread[i], &to));
		if (options->wanted && !options->wanted(options->context, &to)) {
			look->dump->chosen = true;
			continue;
		}
		TRY(dump_add_thread(look->dump, &to, &added));
		TRY(look_at(look, &thread[i], added));
	}
	return NULL;
}

static struct error *add_remarks(struct post_mortem *look)
{
	size_t count;
	const char *const *remark = core_remarks(look->core, &count);

	for (size_t i = 0; i < count; i++)
		TRY(dump_note(look->dump, "%s", remark[i]));
	return NULL;
}

struct error *dump_core(const struct dump_core_source *source, const struct dump_options *options,
			struct dump *ret)
{
	_cleanup_(post_mortem_deinit) struct post_mortem look = {.options = options, .dump = ret};

	TRY(open_core(source, &look.core));
	struct memory memory = core_memory(look.core);
	struct target_options how = {
		.owner = {.open = open_of_core, .context = &look},
		.maps = core_maps(look.core),
		.memory = &memory,
		.lines = options->lines,
		.debuginfod = options->debuginfod,
	};
	TRY(describe(&look));
	TRY(target_open(&how, &ret->target));
	TRY(dump_describe_python(ret));
	TRY(look_at_threads(&look));
	TRY(dump_read_tasks(ret, options));
	return add_remarks(&look);
}
