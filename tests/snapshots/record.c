/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Make a snapshot of a process that runs CPython and stands still: record PID, to standard output
 * (src/runtimes/python/test-snapshot.h says what it is). make.py runs it for each interpreter.
 */
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "capture/target-state.h"
#include "proc/process-memory.h"
#include "proc/process.h"
#include "runtimes/python/test-snapshot.h"
#include "unwind/native.h"

enum { READS_MAX = 1 << 20 };

/* What was read, in the order of reading. */
struct recorder {
	struct memory below;
	struct snapshot_piece *read; /* data is not set */
	size_t count, room;
	struct error *err;
};

static int record_read(void *context, uint64_t addr, void *to, size_t size)
{
	struct recorder *recorder = context;

	if (memory_read(&recorder->below, addr, to, size))
		return -1;
	if (!recorder->err)
		recorder->err = ARRAY_RESERVE(recorder->read, recorder->room, recorder->count, 1,
					      READS_MAX, "reads");
	if (!recorder->err)
		recorder->read[recorder->count++] = (struct snapshot_piece){addr, size, NULL};
	return 0;
}

static int by_addr(const void *left, const void *right)
{
	const struct snapshot_piece *one = left, *other = right;

	return one->addr < other->addr ? -1 : one->addr > other->addr;
}

/* What was read, once. */
static struct error *keep_pieces(struct recorder *recorder, struct snapshot *snapshot)
{
	qsort(recorder->read, recorder->count, sizeof(*recorder->read), by_addr);
	for (size_t i = 0, next; i < recorder->count; i = next) {
		uint64_t addr = recorder->read[i].addr, end = addr;
		for (next = i; next < recorder->count && recorder->read[next].addr <= end; next++)
			if (recorder->read[next].addr + recorder->read[next].size > end)
				end = recorder->read[next].addr + recorder->read[next].size;
		_cleanup_free_ uint8_t *data = malloc(end - addr + 1);
		if (!data)
			return error_oom();
		if (memory_read(&recorder->below, addr, data, end - addr))
			return error_new("the process changes");
		TRY(snapshot_add_bytes(snapshot, addr, data, end - addr));
		(void)take(data);
	}
	return NULL;
}

/* --- the threads, which stand still as long as we trace them */

static struct error *stop_thread(pid_t tid, struct snapshot *snapshot)
{
	struct user_regs_struct regs;
	struct thread_registers registers;
	int status;

	if (snapshot->threads == SNAPSHOT_THREADS)
		return error_new("more than %d threads", SNAPSHOT_THREADS);
	if (ptrace(PTRACE_SEIZE, tid, 0, 0) || ptrace(PTRACE_INTERRUPT, tid, 0, 0) ||
	    waitpid(tid, &status, __WALL) != tid || ptrace(PTRACE_GETREGS, tid, 0, &regs))
		return error_errno("stop thread %d", tid);
	registers_set((const uint64_t *)&regs, regs.fs_base, &registers);
	snapshot->thread[snapshot->threads++] =
		(struct snapshot_thread){(uint32_t)tid, registers.fs_base, registers.at};
	return NULL;
}

static struct error *stop_threads(pid_t pid, struct snapshot *snapshot)
{
	_cleanup_(pids_deinit) struct pids tids = PIDS_INIT;

	TRY(process_list_threads(pid, &tids));
	for (size_t i = 0; i < tids.count; i++)
		TRY(stop_thread(tids.pid[i], snapshot));
	return NULL;
}

/* --- what walks need beside memory */

/* Modules get numbers in the order of mappings: each mapping is one of its own. */
static struct error *keep_maps(const struct target *target, struct snapshot *snapshot)
{
	uint32_t module = UNWIND_MODULE_first;

	if (target->set->count > SNAPSHOT_MAPS)
		return error_new("more than %d mappings", SNAPSHOT_MAPS);
	for (size_t i = 0; i < target->set->count; i++) {
		uint32_t object = target->set->map[i].object;
		const char *path = object == OBJECT_NONE
					   ? "anonymous"
					   : objects_path(target->sets.objects, object);
		const char *base = strrchr(path, '/');
		snprintf(snapshot->map_name[i], SNAPSHOT_NAME, "%s", base ? base + 1 : path);
		snapshot->map[i] = target->set->table[i];
		if (snapshot->map[i].module >= UNWIND_MODULE_first)
			snapshot->map[i].module = module++;
	}
	snapshot->maps = target->set->count;
	return NULL;
}

/* The row that holds at PC. */
static struct error *keep_row(const struct target *target, uint64_t pc, struct snapshot *snapshot)
{
	struct host_tables tables = store_tables(target->store);
	struct host_walk host = {.tables = &tables,
				 .walk = {.mappings = (uint32_t)target->set->count}};
	struct snapshot_row row = {0};

	tables.mapping = target->set->table;
	tables.mappings = target->set->count;
	if (native_find_mapping(&host.walk, pc) < 0)
		return NULL;
	while (snapshot->map[row.map].start != host.walk.in.start)
		row.map++;
	row.addr = pc - host.walk.in.bias;
	if (host.walk.in.module < UNWIND_MODULE_first ||
	    native_find_rule(&host.walk, host.walk.in.module, row.addr, &row.rule) != END_none)
		return NULL;
	TRY(ARRAY_RESERVE(snapshot->row, snapshot->row_room, snapshot->rows, 1, SNAPSHOT_ROWS,
			  "rows in a snapshot"));
	snapshot->row[snapshot->rows++] = row;
	return NULL;
}

static struct error *keep_rows(struct target *target, struct snapshot *snapshot)
{
	_cleanup_(target_stack_deinit) struct target_stack stack = TARGET_STACK_INIT;

	for (size_t i = 0; i < snapshot->threads; i++) {
		struct thread_registers registers = {.known = REGISTERS_all,
						     .at = snapshot->thread[i].at,
						     .fs_base = snapshot->thread[i].fs_base};
		TRY(target_walk_whole(target, &registers, &stack));
		for (size_t k = 0; k < stack.words; k += target_frame_words(stack.word[k])) {
			uint64_t word = stack.word[k], pc = word & ~SAMPLE_EXACT_PC;
			if (target_frame_words(word) == 1)
				TRY(keep_row(target, pc - !(word & SAMPLE_EXACT_PC), snapshot));
		}
	}
	return NULL;
}

static int by_place(const void *left, const void *right)
{
	const struct snapshot_row *one = left, *other = right;

	if (one->map != other->map)
		return one->map < other->map ? -1 : 1;
	return one->addr < other->addr ? -1 : one->addr > other->addr;
}

/* Each once, in order. */
static void sort_rows(struct snapshot *snapshot)
{
	struct snapshot_row *row = snapshot->row;
	size_t kept = 0;

	qsort(row, snapshot->rows, sizeof(*row), by_place);
	for (size_t i = 0; i < snapshot->rows; i++)
		if (!i || by_place(&row[i - 1], &row[i]) != 0)
			row[kept++] = row[i];
	snapshot->rows = kept;
}

static struct error *find_python(struct target *target, const struct memory *memory,
				 struct snapshot *snapshot)
{
	struct python_instance instance;
	char reason[PYTHON_REASON_MAX];

	for (size_t i = 0; i < target->set->count; i++) {
		const struct process_map *map = &target->set->map[i];
		const struct python_object *object =
			map->object == OBJECT_NONE
				? NULL
				: objects_python(target->sets.objects, map->object);
		if (!object ||
		    python_attach(object, map->bias, memory, &instance, reason) != PYTHON_ATTACH_ok)
			continue;
		snapshot->object = *object;
		snapshot->bias = map->bias;
		return NULL;
	}
	return error_new("it runs no CPython that could be read");
}

/* --- writing */

static void write_lines(const char *word, const struct strbuf *text, FILE *out)
{
	const char *at = text->text ? text->text : "";

	while (*at) {
		size_t length = strcspn(at, "\n");
		fprintf(out, "%s %.*s\n", word, (int)length, at);
		at += length + (at[length] == '\n');
	}
}

static void write_tables(const struct snapshot *snapshot, FILE *out)
{
	const struct python_object *object = &snapshot->object;

	fprintf(out, "object %x %x %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 "\n",
		object->version, object->unicode_width, object->runtime, object->interpreters,
		object->holder, object->code_type, snapshot->bias);
	for (uint32_t i = 0; i < object->evals; i++)
		fprintf(out, "eval %" PRIx64 " %" PRIx64 "\n", object->eval[i].start,
			object->eval[i].end);
	for (size_t i = 0; i < snapshot->maps; i++)
		fprintf(out, "map %llx %llx %llx %x %s\n", snapshot->map[i].start,
			snapshot->map[i].end, snapshot->map[i].bias, snapshot->map[i].module,
			snapshot->map_name[i]);
	for (size_t i = 0; i < snapshot->rows; i++) {
		const struct unwind_rule *rule = &snapshot->row[i].rule;
		fprintf(out, "row %x %" PRIx64 " %u %u %u %u %d %d %d %d\n", snapshot->row[i].map,
			snapshot->row[i].addr, rule->cfa, rule->base, rule->fp, rule->ra,
			rule->offset, rule->aux, rule->fp_offset, rule->ra_offset);
	}
	for (size_t i = 0; i < snapshot->threads; i++) {
		const struct snapshot_thread *thread = &snapshot->thread[i];
		fprintf(out, "thread %x %" PRIx64 " %llx %llx %llx", thread->tid, thread->fs_base,
			thread->at.pc, thread->at.sp, thread->at.fp);
		for (size_t k = 0; k < UNWIND_REGISTERS; k++)
			fprintf(out, " %llx", thread->at.reg[k]);
		fprintf(out, "\n");
	}
}

static void write_memory(const struct snapshot *snapshot, FILE *out)
{
	for (size_t i = 0; i < snapshot->pieces; i++) {
		fprintf(out, "memory %" PRIx64 " ", snapshot->piece[i].addr);
		for (size_t k = 0; k < snapshot->piece[i].size; k++)
			fprintf(out, "%02x", snapshot->piece[i].data[k]);
		fprintf(out, "\n");
	}
}

/* What comes out of SNAPSHOT with MEMORY. */
static struct error *run(const struct snapshot *snapshot, const struct memory *memory,
			 struct strbuf *ret)
{
	_cleanup_(snapshot_tables_deinit) struct snapshot_tables tables = {0};
	_cleanup_free_ char *text = NULL;
	size_t size;

	TRY(snapshot_load(&tables, snapshot));
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return error_oom();
	struct error *err = snapshot_run(snapshot, &tables, memory, out);
	fclose(out);
	return err ? err : strbuf_add(ret, text, size);
}

static void recorder_deinit(struct recorder *recorder)
{
	free(recorder->read);
	error_free(recorder->err);
}

static struct error *record(pid_t pid, struct snapshot *snapshot)
{
	_cleanup_process_memory_ struct process_memory *process = NULL;
	_cleanup_(recorder_deinit) struct recorder recorder = {0};
	_cleanup_(strbuf_deinit) struct strbuf replayed = STRBUF_INIT;
	_cleanup_(maps_deinit) struct maps maps = MAPS_INIT;
	_cleanup_target_ struct target *target = NULL;
	enum process_memory_look look;

	TRY(stop_threads(pid, snapshot));
	TRY(maps_read(pid, MAPS_executable, &maps));
	TRY(process_memory_open(pid, &look, &process));
	if (look != PROCESS_MEMORY_opened)
		return error_new("the memory of %d cannot be read", pid);
	recorder.below = process_memory_reader(process);
	struct target_options options = {
		.owner = {.pid = (uint32_t)pid}, .maps = &maps, .memory = &recorder.below};
	TRY(target_open(&options, &target));
	TRY(find_python(target, &recorder.below, snapshot));
	TRY(keep_maps(target, snapshot));
	TRY(keep_rows(target, snapshot));
	sort_rows(snapshot);
	struct memory recording = {.read = record_read, .context = &recorder};
	TRY(run(snapshot, &recording, &snapshot->expected));
	TRY(take(recorder.err));
	TRY(keep_pieces(&recorder, snapshot));
	struct memory memory = snapshot_memory(snapshot);
	TRY(run(snapshot, &memory, &replayed));
	if (strcmp(snapshot->expected.text, replayed.text) != 0)
		return error_new("what was read does not give the same once more");
	return NULL;
}

/* What the program told, on standard input, goes into the snapshot as it is. */
static struct error *read_told(struct snapshot *snapshot)
{
	char line[SNAPSHOT_LINE];

	while (fgets(line, sizeof(line), stdin))
		TRY(strbuf_add(&snapshot->told, line, strlen(line)));
	return NULL;
}

static struct error *make(pid_t pid)
{
	_cleanup_(snapshot_deinit) struct snapshot snapshot = {0};

	TRY(read_told(&snapshot));
	TRY(record(pid, &snapshot));
	write_tables(&snapshot, stdout);
	write_lines("told", &snapshot.told, stdout);
	write_lines("expect", &snapshot.expected, stdout);
	write_memory(&snapshot, stdout);
	return NULL;
}

int main(int count, char **arguments)
{
	uint64_t pid;

	if (count != 2 || !str_parse_u64(arguments[1], 1, PIDS_MAX, &pid)) {
		fprintf(stderr, "record PID\n");
		return 2;
	}
	struct error *err = make((pid_t)pid);
	if (err)
		fprintf(stderr, "%s\n", error_text(err));
	bool failed = err != NULL;
	error_free(err);
	return failed;
}
