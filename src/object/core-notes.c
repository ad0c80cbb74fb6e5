/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The notes of a core: threads, the process, the signal, the mapped files. Written by the kernel
 * (fs/binfmt_elf.c: fill_note_info(), fill_files_note()), laid out as in <sys/procfs.h> and
 * <sys/user.h> of x86-64.
 */
#include "object/core-inside.h"

#include <elf.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/array.h"

enum {
	/* struct elf_prstatus */
	PRSTATUS_BYTES = 336,
	PRSTATUS_SIGNAL = 12,
	PRSTATUS_TID = 32,
	PRSTATUS_REGISTERS = 112,
	/* struct elf_prpsinfo */
	PRPSINFO_BYTES = 136,
	PRPSINFO_UID = 16,
	PRPSINFO_PID = 24,
	PRPSINFO_NAME = 40,
	/* siginfo_t, as far as it is looked at */
	SIGINFO_BYTES = 24,
	SIGINFO_CODE = 8,
	SIGINFO_ADDR = 16,

	AUXV_BYTES_MAX = 16 << 10,
	/* Rows of three numbers, and paths. */
	FILES_BYTES_MAX = MAPS_PATHS_BYTES + MAPS_MAX * 24,
	NOTE_HEADER = 12,
};

/* The order of struct user_regs_struct. */
enum user_register {
	USER_R15,
	USER_R14,
	USER_R13,
	USER_R12,
	USER_RBP,
	USER_RBX,
	USER_R11,
	USER_R10,
	USER_R9,
	USER_R8,
	USER_RAX,
	USER_RCX,
	USER_RDX,
	USER_RSI,
	USER_RDI,
	USER_ORIG_RAX,
	USER_RIP,
	USER_CS,
	USER_EFLAGS,
	USER_RSP,
	USER_SS,
	USER_FS_BASE,
	USER_REGISTERS,
};

static const enum user_register user_of[UNWIND_REGISTERS] = {
	[UNWIND_RAX] = USER_RAX, [UNWIND_RDX] = USER_RDX, [UNWIND_RCX] = USER_RCX,
	[UNWIND_RBX] = USER_RBX, [UNWIND_RSI] = USER_RSI, [UNWIND_RDI] = USER_RDI,
	[UNWIND_RBP] = USER_RBP, [UNWIND_RSP] = USER_RSP, [UNWIND_R8] = USER_R8,
	[UNWIND_R9] = USER_R9,   [UNWIND_R10] = USER_R10, [UNWIND_R11] = USER_R11,
	[UNWIND_R12] = USER_R12, [UNWIND_R13] = USER_R13, [UNWIND_R14] = USER_R14,
	[UNWIND_R15] = USER_R15,
};

struct note {
	uint32_t type;
	uint64_t offset, size; /* of what it says */
};

/* --- threads and the process */

static struct error *read_status(struct core *core, const struct note *note)
{
	uint8_t data[PRSTATUS_BYTES];
	uint64_t user[USER_REGISTERS];
	uint16_t got_signal;
	uint32_t tid;

	if (note->size < sizeof(data))
		return NULL;
	TRY(core_read_file(core, note->offset, data, sizeof(data)));
	struct bytes b = bytes_over(data, sizeof(data), core->name);
	TRY(bytes_seek(&b, PRSTATUS_SIGNAL));
	TRY(bytes_u16(&b, &got_signal));
	TRY(bytes_seek(&b, PRSTATUS_TID));
	TRY(bytes_u32(&b, &tid));
	TRY(bytes_seek(&b, PRSTATUS_REGISTERS));
	for (size_t i = 0; i < USER_REGISTERS; i++)
		TRY(bytes_u64(&b, &user[i]));

	TRY(ARRAY_RESERVE(core->thread, core->thread_room, core->thread_count, 1, CORE_THREADS_MAX,
			  "threads in a core"));
	// The kernel writes the thread that dumped first, and the same signal for all of them; gdb
	// writes the one that has a signal first.
	if (!core->thread_count && got_signal) {
		core->facts.signal = got_signal;
		core->facts.signal_tid = (pid_t)tid;
	}
	struct core_thread *thread = &core->thread[core->thread_count++];
	*thread = (struct core_thread){
		.tid = (pid_t)tid,
		.state = {.pc = user[USER_RIP], .sp = user[USER_RSP], .fp = user[USER_RBP]},
		.fs_base = user[USER_FS_BASE],
		.syscall = (int64_t)user[USER_ORIG_RAX],
	};
	if (thread->syscall < 0)
		thread->syscall = -1;
	for (size_t i = 0; i < UNWIND_REGISTERS; i++)
		thread->state.reg[i] = user[user_of[i]];
	return NULL;
}

static struct error *read_process(struct core *core, const struct note *note)
{
	uint8_t data[PRPSINFO_BYTES];
	uint32_t uid, pid, parent;

	if (note->size < sizeof(data))
		return NULL;
	TRY(core_read_file(core, note->offset, data, sizeof(data)));
	struct bytes b = bytes_over(data, sizeof(data), core->name);
	TRY(bytes_seek(&b, PRPSINFO_UID));
	TRY(bytes_u32(&b, &uid));
	TRY(bytes_seek(&b, PRPSINFO_PID));
	TRY(bytes_u32(&b, &pid));
	TRY(bytes_u32(&b, &parent));
	core->facts.uid = uid;
	core->facts.pid = (pid_t)pid;
	core->facts.parent_pid = (pid_t)parent;
	memcpy(core->facts.name, data + PRPSINFO_NAME, CORE_NAME);
	memcpy(core->facts.arguments, data + PRPSINFO_NAME + CORE_NAME, CORE_ARGUMENTS);
	// The kernel joins the arguments by blanks, and leaves one behind the last.
	size_t length = strlen(core->facts.arguments);
	while (length && core->facts.arguments[length - 1] == ' ')
		core->facts.arguments[--length] = 0;
	return NULL;
}

static bool has_address(uint32_t signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
	       signal == SIGTRAP;
}

static struct error *read_signal(struct core *core, const struct note *note)
{
	uint8_t data[SIGINFO_BYTES];
	uint32_t number, code;

	// gdb writes one for each thread; the first is that of the thread that got it.
	if (note->size < sizeof(data) || core->facts.signal_code || core->thread_count > 1)
		return NULL;
	TRY(core_read_file(core, note->offset, data, sizeof(data)));
	struct bytes b = bytes_over(data, sizeof(data), core->name);
	TRY(bytes_u32(&b, &number));
	TRY(bytes_seek(&b, SIGINFO_CODE));
	TRY(bytes_u32(&b, &code));
	TRY(bytes_seek(&b, SIGINFO_ADDR));
	core->facts.signal_code = (int)code;
	// A code that is not positive was sent by a process, and has its number there.
	if (has_address(number) && (int32_t)code > 0)
		TRY(bytes_u64(&b, &core->facts.signal_addr));
	return NULL;
}

static struct error *read_auxv(struct core *core, const struct note *note)
{
	uint8_t data[AUXV_BYTES_MAX];
	size_t size = note->size < sizeof(data) ? (size_t)note->size : sizeof(data);
	uint64_t type, value;

	TRY(core_read_file(core, note->offset, data, size));
	struct bytes b = bytes_over(data, size, core->name);
	while (bytes_left(&b) >= sizeof(Elf64_auxv_t)) {
		TRY(bytes_u64(&b, &type));
		TRY(bytes_u64(&b, &value));
		if (type == AT_ENTRY)
			core->facts.entry = value;
		if (type == AT_PHDR)
			core->facts.headers = value;
		if (type == AT_SYSINFO_EHDR)
			core->facts.vdso = value;
	}
	return NULL;
}

/* --- mapped files */

/*
 *   u64 count | u64 page size | count x { u64 start, end, page offset } | count x path, NUL
 */
static struct error *parse_files(struct core *core, struct bytes *rows)
{
	uint64_t count, page, pages;
	struct bytes paths = *rows;
	const char *path;

	TRY(bytes_u64(rows, &count));
	TRY(bytes_u64(rows, &page));
	if (count > MAPS_MAX || !page)
		return bytes_error(rows, "%" PRIu64 " mapped files make no sense", count);
	TRY(bytes_seek(&paths, bytes_offset(rows)));
	TRY(bytes_skip(&paths, count * 24));
	for (uint64_t i = 0; i < count; i++) {
		struct core_mapped row = {0};
		TRY(bytes_u64(rows, &row.start));
		TRY(bytes_u64(rows, &row.end));
		TRY(bytes_u64(rows, &pages));
		TRY(bytes_string(&paths, &path));
		if (row.start >= row.end || pages > UINT64_MAX / page ||
		    pages * page > UINT64_MAX - (row.end - row.start))
			continue;
		row.offset = pages * page;
		TRY(core_add_mapped(core, &row, path));
	}
	return NULL;
}

static struct error *read_files(struct core *core, const struct note *note)
{
	_cleanup_free_ uint8_t *data = NULL;

	if (core->mapped_count)
		return NULL;
	if (note->size > FILES_BYTES_MAX)
		return core_remark(core,
				   "%s: the list of mapped files is too long: %" PRIu64 " bytes",
				   core->name, note->size);
	data = malloc(note->size ? note->size : 1);
	if (!data)
		return error_oom();
	TRY(core_read_file(core, note->offset, data, note->size));
	struct bytes b = bytes_over(data, note->size, "the list of mapped files");
	struct error *err = parse_files(core, &b);
	if (!err)
		return NULL;
	// What was read of it serves.
	struct error *told = core_remark(core, "%s: %s", core->name, error_text(err));
	error_free(err);
	return told;
}

/* --- all of them */

static struct error *read_note(struct core *core, const struct note *note)
{
	switch (note->type) {
	case NT_PRSTATUS:
		return read_status(core, note);
	case NT_PRPSINFO:
		return read_process(core, note);
	case NT_SIGINFO:
		return read_signal(core, note);
	case NT_AUXV:
		return read_auxv(core, note);
	case NT_FILE:
		return read_files(core, note);
	}
	return NULL;
}

static uint64_t padded(uint32_t size)
{
	return ((uint64_t)size + 3) & ~3ull;
}

/* Read the note at AT; RET_NEXT is where the next one stands, 0 if this one leads beyond END. */
static struct error *read_note_at(struct core *core, uint64_t at, uint64_t end, uint64_t *ret_next)
{
	uint8_t data[NOTE_HEADER + 8] = {0};
	uint32_t name_size, size;
	struct note note;

	size_t have = end - at < sizeof(data) ? (size_t)(end - at) : sizeof(data);
	TRY(core_read_file(core, at, data, have));
	struct bytes b = bytes_over(data, have, core->name);
	TRY(bytes_u32(&b, &name_size));
	TRY(bytes_u32(&b, &size));
	TRY(bytes_u32(&b, &note.type));
	*ret_next = 0;
	uint64_t skip = NOTE_HEADER + padded(name_size);
	// The last one need not be padded.
	if (skip > end - at || size > end - at - skip)
		return NULL;
	note.offset = at + skip;
	note.size = size;
	*ret_next = note.offset + padded(size);
	if (name_size < 4 || memcmp(data + NOTE_HEADER, "CORE", 4))
		return NULL;
	return read_note(core, &note);
}

struct error *core_read_notes(struct core *core, uint64_t offset, uint64_t size)
{
	uint64_t all = core->facts.size_bytes;

	if (core->notes++ >= CORE_NOTES_MAX || !size)
		return NULL;
	uint64_t there = offset < all ? all - offset : 0;
	if (there < size)
		TRY(core_remark(core,
				"%s: the core is cut within its notes: threads or mapped "
				"files are missing",
				core->name));
	uint64_t end = offset + (there < size ? there : size);
	for (uint64_t at = offset, next; at < end && end - at >= NOTE_HEADER; at = next) {
		TRY(read_note_at(core, at, end, &next));
		if (next)
			continue;
		if (there >= size)
			TRY(core_remark(core, "%s: damaged notes at byte 0x%" PRIx64, core->name,
					at));
		break;
	}
	return NULL;
}
