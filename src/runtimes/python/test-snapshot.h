/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots: what attaching to an interpreter, walking its threads and naming their frames read of
 * a live process, byte for byte, with the stacks that came out; replayed without the process and
 * without its files. tests/snapshots/record.c makes them. A snapshot is text, a fact a line:
 *
 *   # anything                            how it was made
 *   object VERSION UNICODE RUNTIME INTERPRETERS HOLDER CODE_TYPE BIAS
 *   eval START END                        machine code of the evaluator, in the object
 *   map START END BIAS MODULE NAME        MODULE as in struct unwind_mapping
 *   row MAP ADDR CFA BASE FP RA OFFSET AUX FP_OFFSET RA_OFFSET
 *   thread TID FS_BASE PC SP FP REGISTER...
 *   told TEXT                             a line of what the program says of its Python frames
 *   expect TEXT                           a line of what comes out
 *   memory ADDR BYTES
 *
 * Numbers are hexadecimal; of rows, signed decimal. The rows are those that the walks met alone.
 */
#pragma once

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "abi/runtimes.h"
#include "base/array.h"
#include "base/str.h"
#include "proc/memory.h"
#include "runtimes/python/attach.h"
#include "runtimes/python/code.h"
#include "runtimes/python/locals.h"
#include "runtimes/python/thread-names.h"
#include "runtimes/walk-host.h"
#include "unwind/store.h"

enum {
	SNAPSHOT_MAPS = 256,
	SNAPSHOT_THREADS = 64,
	SNAPSHOT_ROWS = 1 << 16,
	SNAPSHOT_PIECES = 1 << 20,
	SNAPSHOT_PIECE_BYTES = 1024,
	SNAPSHOT_DEPTH = 4096,
	SNAPSHOT_LINE = 8192,
	SNAPSHOT_NAME = 64,
};

struct snapshot_row {
	uint32_t map;  /* number */
	uint64_t addr; /* in the object */
	struct unwind_rule rule;
};

struct snapshot_thread {
	uint32_t tid;
	uint64_t fs_base;
	struct walk_state at;
};

struct snapshot_piece {
	uint64_t addr;
	size_t size;
	uint8_t *data; /* owned */
};

struct snapshot {
	struct python_object object;
	uint64_t bias;
	struct unwind_mapping map[SNAPSHOT_MAPS];
	char map_name[SNAPSHOT_MAPS][SNAPSHOT_NAME];
	size_t maps;
	struct snapshot_row *row; /* sorted by map and address; owned */
	size_t rows, row_room;
	struct snapshot_thread thread[SNAPSHOT_THREADS];
	size_t threads;
	struct strbuf told, expected;
	struct snapshot_piece *piece; /* sorted, apart; owned */
	size_t pieces, piece_room;
};

static inline void snapshot_deinit(struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->pieces; i++)
		free(snapshot->piece[i].data);
	free(snapshot->piece);
	free(snapshot->row);
	strbuf_deinit(&snapshot->told);
	strbuf_deinit(&snapshot->expected);
	*snapshot = (struct snapshot){0};
}

/* --- from a file */

static inline struct error *snapshot_odd(const char *line)
{
	return error_new("not a line of a snapshot: \"%.60s\"", line);
}

static inline struct error *snapshot_add_object(struct snapshot *snapshot, const char *line)
{
	struct python_object *object = &snapshot->object;
	int count = sscanf(
		line,
		"%" SCNx16 " %" SCNx8 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
		&object->version, &object->unicode_width, &object->runtime, &object->interpreters,
		&object->holder, &object->code_type, &snapshot->bias);

	return count == 7 ? NULL : snapshot_odd(line);
}

static inline struct error *snapshot_add_eval(struct snapshot *snapshot, const char *line)
{
	struct python_range range;

	if (snapshot->object.evals == PYTHON_EVALS ||
	    sscanf(line, "%" SCNx64 " %" SCNx64, &range.start, &range.end) != 2)
		return snapshot_odd(line);
	snapshot->object.eval[snapshot->object.evals++] = range;
	return NULL;
}

static inline struct error *snapshot_add_map(struct snapshot *snapshot, const char *line)
{
	unsigned long long start, end, bias;
	unsigned module;
	char name[SNAPSHOT_NAME];

	if (snapshot->maps == SNAPSHOT_MAPS ||
	    sscanf(line, "%llx %llx %llx %x %63s", &start, &end, &bias, &module, name) != 5)
		return snapshot_odd(line);
	memcpy(snapshot->map_name[snapshot->maps], name, sizeof(name));
	snapshot->map[snapshot->maps++] =
		(struct unwind_mapping){start, end, bias, module, .flags = 0};
	return NULL;
}

static inline struct error *snapshot_add_row(struct snapshot *snapshot, const char *line)
{
	struct snapshot_row row = {0};
	unsigned cfa, base, fp, ra;
	int fp_offset, ra_offset;

	if (sscanf(line, "%" SCNx32 " %" SCNx64 " %u %u %u %u %d %d %d %d", &row.map, &row.addr,
		   &cfa, &base, &fp, &ra, &row.rule.offset, &row.rule.aux, &fp_offset,
		   &ra_offset) != 10 ||
	    row.map >= snapshot->maps)
		return snapshot_odd(line);
	row.rule.cfa = (__u8)cfa;
	row.rule.base = (__u8)base;
	row.rule.fp = (__u8)fp;
	row.rule.ra = (__u8)ra;
	row.rule.fp_offset = (__s16)fp_offset;
	row.rule.ra_offset = (__s16)ra_offset;
	TRY(ARRAY_RESERVE(snapshot->row, snapshot->row_room, snapshot->rows, 1, SNAPSHOT_ROWS,
			  "rows in a snapshot"));
	snapshot->row[snapshot->rows++] = row;
	return NULL;
}

static inline struct error *snapshot_add_thread(struct snapshot *snapshot, const char *line)
{
	struct snapshot_thread thread;
	unsigned long long word[4 + UNWIND_REGISTERS];
	int used = 0, step;

	if (snapshot->threads == SNAPSHOT_THREADS ||
	    sscanf(line, "%" SCNx32 "%n", &thread.tid, &used) != 1)
		return snapshot_odd(line);
	for (size_t i = 0; i < ARRAY_COUNT(word); i++, used += step)
		if (sscanf(line + used, " %llx%n", &word[i], &step) != 1)
			return snapshot_odd(line);
	thread.fs_base = word[0];
	thread.at = (struct walk_state){.pc = word[1], .sp = word[2], .fp = word[3]};
	for (size_t i = 0; i < UNWIND_REGISTERS; i++)
		thread.at.reg[i] = word[4 + i];
	snapshot->thread[snapshot->threads++] = thread;
	return NULL;
}

/* SIZE bytes at ADDR; DATA is consumed on success. */
static inline struct error *snapshot_add_bytes(struct snapshot *snapshot, uint64_t addr,
					       uint8_t *data, size_t size)
{
	TRY(ARRAY_RESERVE(snapshot->piece, snapshot->piece_room, snapshot->pieces, 1,
			  SNAPSHOT_PIECES, "pieces of memory in a snapshot"));
	snapshot->piece[snapshot->pieces++] = (struct snapshot_piece){addr, size, data};
	return NULL;
}

static inline struct error *snapshot_add_memory(struct snapshot *snapshot, const char *line)
{
	uint64_t addr;
	int used = 0;

	if (sscanf(line, "%" SCNx64 " %n", &addr, &used) != 1 || !used)
		return snapshot_odd(line);
	size_t size = strspn(line + used, "0123456789abcdef") / 2;
	_cleanup_free_ uint8_t *data = malloc(size + 1);
	if (!data)
		return error_oom();
	for (size_t i = 0; i < size; i++)
		if (sscanf(line + used + 2 * i, "%2" SCNx8, &data[i]) != 1)
			return snapshot_odd(line);
	TRY(snapshot_add_bytes(snapshot, addr, data, size));
	(void)take(data);
	return NULL;
}

static inline struct error *snapshot_add_told(struct snapshot *snapshot, const char *line)
{
	return strbuf_addf(&snapshot->told, "%s\n", line);
}

static inline struct error *snapshot_add_expected(struct snapshot *snapshot, const char *line)
{
	return strbuf_addf(&snapshot->expected, "%s\n", line);
}

static inline struct error *snapshot_add_line(struct snapshot *snapshot, char *line)
{
	static const struct {
		const char *word;
		struct error *(*add)(struct snapshot *snapshot, const char *line);
	} kinds[] = {
		{"object ", snapshot_add_object}, {"eval ", snapshot_add_eval},
		{"map ", snapshot_add_map},       {"row ", snapshot_add_row},
		{"thread ", snapshot_add_thread}, {"told ", snapshot_add_told},
		{"memory ", snapshot_add_memory}, {"expect ", snapshot_add_expected},
	};

	line[strcspn(line, "\n")] = 0;
	if (!line[0] || line[0] == '#')
		return NULL;
	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
		if (str_starts(line, kinds[i].word))
			return kinds[i].add(snapshot, line + strlen(kinds[i].word));
	return snapshot_odd(line);
}

/* SNAPSHOT is empty; on failure it is to be freed as well. */
static inline struct error *snapshot_read(const char *path, struct snapshot *snapshot)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	char line[SNAPSHOT_LINE];

	if (!file)
		return error_errno("open %s", path);
	while (fgets(line, sizeof(line), file)) {
		struct error *err = snapshot_add_line(snapshot, line);
		if (err)
			return error_wrap(err, "%s", path);
	}
	return NULL;
}

static inline int snapshot_read_bytes(void *context, uint64_t addr, void *to, size_t size)
{
	const struct snapshot *snapshot = context;
	size_t low = 0, high = snapshot->pieces;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct snapshot_piece *piece = &snapshot->piece[middle];
		if (addr < piece->addr) {
			high = middle;
		} else if (addr - piece->addr >= piece->size) {
			low = middle + 1;
		} else {
			if (size > piece->size - (addr - piece->addr))
				return -1;
			memcpy(to, piece->data + (addr - piece->addr), size);
			return 0;
		}
	}
	return -1;
}

static inline struct memory snapshot_memory(const struct snapshot *snapshot)
{
	return (struct memory){.read = snapshot_read_bytes, .context = (void *)snapshot};
}

/* --- the tables that a walk needs */

struct snapshot_tables {
	struct unwind_module *modules; /* owned, as the next two */
	struct unwind_rule *rules;
	struct unwind_segment *segment;
	struct store *store; /* owned */
	struct counters counters;
	struct host_tables tables;
};

static inline void snapshot_tables_deinit(struct snapshot_tables *tables)
{
	store_free(tables->store);
	free(tables->modules);
	free(tables->rules);
	free(tables->segment);
}

static inline struct error *snapshot_new_segment(void *context, unsigned number,
						 struct unwind_segment **ret)
{
	struct snapshot_tables *tables = context;

	if (number)
		return error_new("the rows of a snapshot take more than a segment");
	TRY(ARRAY_NEW(tables->segment, 1));
	*ret = tables->segment;
	return NULL;
}

/* Load the rows of mapping NUMBER as a module of its own. */
static inline struct error *snapshot_load_map(struct snapshot_tables *tables,
					      const struct snapshot *snapshot, uint32_t number)
{
	_cleanup_free_ struct row *row = NULL;
	_cleanup_free_ struct unwind_rule *rule = NULL;
	struct rows rows = ROWS_INIT;
	uint32_t module;

	TRY(store_add_module(tables->store, &module));
	if (module != snapshot->map[number].module)
		return error_new("modules of a snapshot are not in order");
	TRY(ARRAY_NEW(row, 2 * snapshot->rows + 1));
	TRY(ARRAY_NEW(rule, snapshot->rows + 1));
	rows.rule_count = 1; // the first is a gap
	for (size_t i = 0; i < snapshot->rows; i++) {
		const struct snapshot_row *from = &snapshot->row[i];
		if (from->map != number)
			continue;
		// A row holds at its address and nowhere else.
		if (rows.count && row[rows.count - 1].addr == from->addr)
			rows.count--;
		rule[rows.rule_count] = from->rule;
		row[rows.count++] = (struct row){from->addr, (uint32_t)rows.rule_count++};
		row[rows.count++] = (struct row){from->addr + 1, 0};
	}
	if (!rows.count)
		return NULL;
	rows.row = row;
	rows.rules = rule;
	rows.text_start = row[0].addr;
	rows.text_end = row[rows.count - 1].addr;
	return store_load(tables->store, module, &rows);
}

/* TABLES is empty; on failure it is to be freed as well, and SNAPSHOT is borrowed. */
static inline struct error *snapshot_load(struct snapshot_tables *tables,
					  const struct snapshot *snapshot)
{
	struct store_options options = {
		.segments_max = 1,
		.segment = snapshot_new_segment,
		.context = tables,
		.counters = &tables->counters,
	};

	TRY(ARRAY_NEW(tables->modules, STORE_MODULES_MAX));
	TRY(ARRAY_NEW(tables->rules, UNWIND_RULES_MAX));
	options.modules = tables->modules;
	options.rules = tables->rules;
	TRY(store_new(&options, &tables->store));
	for (uint32_t i = 0; i < snapshot->maps; i++)
		if (snapshot->map[i].module >= UNWIND_MODULE_first)
			TRY(snapshot_load_map(tables, snapshot, i));
	tables->tables = store_tables(tables->store);
	tables->tables.mapping = snapshot->map;
	tables->tables.mappings = snapshot->maps;
	return NULL;
}

/* --- what is done with one */

/* A stack in the words of a sample, and where its frames are. */
struct snapshot_stack {
	uint64_t word[2 * SNAPSHOT_DEPTH], place[2 * SNAPSHOT_DEPTH];
	size_t words;
	enum walk_end end;
};

/* STATE: the thread's, if it is known. */
static inline void snapshot_walk(const struct snapshot_thread *thread,
				 const struct host_tables *tables, const struct memory *memory,
				 uint64_t state, struct snapshot_stack *ret)
{
	struct host_walk walk = {
		.tables = tables,
		.memory = *memory,
		.words = ret->word,
		.places = ret->place,
		.thread_state = state,
		.walk = {.at = thread->at,
			 .flags = WALK_leaf,
			 .depth = SNAPSHOT_DEPTH,
			 .fs_base = thread->fs_base,
			 .mappings = (uint32_t)tables->mappings,
			 .python = {.process = tables->python != NULL}},
	};

	host_walk(&walk);
	ret->words = walk.walk.words;
	ret->end = (enum walk_end)walk.walk.end;
}

struct snapshot_look {
	const struct snapshot *snapshot;
	const struct python_instance *instance;
	const struct memory *memory;
	FILE *out;
};

static inline bool snapshot_print_local(void *context, const struct python_local *local)
{
	const struct snapshot_look *look = context;
	const struct python_values values = {look->memory, &look->instance->at, &python_value_line};
	char text[256];

	python_value_print(&values, local->value, text, sizeof(text));
	fprintf(look->out, "      %s = %s\n", local->name, text);
	return true;
}

/* The frame in two words, whose address is PLACE. */
static inline struct error *snapshot_print_python(const struct snapshot_look *look,
						  const uint64_t word[2], uint64_t place)
{
	const struct python_codes codes = {look->memory, &look->instance->at,
					   look->instance->code_type};
	_cleanup_(python_code_deinit) struct python_code code = PYTHON_CODE_INIT;
	struct python_frame frame = {place, word[0] & ((1ull << SAMPLE_RUNTIME_SHIFT) - 1)};
	enum python_code_outcome outcome;

	if (!frame.code) {
		fprintf(look->out, "    lost %" PRIu64 "\n", word[1] & 0xffffffff);
		return NULL;
	}
	TRY(python_code_read(&codes, frame.code, &outcome, &code));
	if (outcome != PYTHON_CODE_read) {
		fprintf(look->out, "    python ?\n");
		return NULL;
	}
	fprintf(look->out, "    python %s | %s | %u | %u%s\n", code.function, code.file,
		code.first_line, python_code_line(&code, (uint32_t)word[1]),
		word[1] >> 32 == code.cookie ? "" : " | another cookie");
	// What can be read of them alone is printed, whatever the outcome says.
	(void)python_locals(
		&(struct python_values){look->memory, &look->instance->at, &python_value_line},
		&frame, false, snapshot_print_local, (void *)look);
	return NULL;
}

static inline void snapshot_print_machine(const struct snapshot_look *look, uint64_t word)
{
	uint64_t pc = word & ~SAMPLE_EXACT_PC;

	for (size_t i = 0; i < look->snapshot->maps; i++) {
		const struct unwind_mapping *map = &look->snapshot->map[i];
		if (pc < map->start || pc > map->end)
			continue;
		fprintf(look->out, "    %s+0x%" PRIx64 "\n", look->snapshot->map_name[i],
			(uint64_t)(pc - map->bias));
		return;
	}
	fprintf(look->out, "    unknown code\n");
}

static inline size_t snapshot_frame_words(uint64_t word)
{
	return sample_is_runtime(word) ? 2 : 1;
}

static inline struct error *snapshot_print_stack(const struct snapshot_look *look,
						 const struct snapshot_stack *stack)
{
	for (size_t i = 0; i < stack->words; i += snapshot_frame_words(stack->word[i]))
		if (sample_is_runtime(stack->word[i]))
			TRY(snapshot_print_python(look, stack->word + i, stack->place[i]));
		else
			snapshot_print_machine(look, stack->word[i]);
	fprintf(look->out, "  end: %s\n", walk_end_text(stack->end));
	return NULL;
}

/* Names that threading gave, of all interpreters. */
static inline struct error *snapshot_read_names(const struct snapshot_look *look,
						const struct python_threads *threads,
						struct python_thread_names *names)
{
	const struct python_offsets *at = &look->instance->at;
	enum python_thread_names_outcome outcome;
	uint64_t modules, last = 0;

	for (size_t i = 0; i < threads->count; i++) {
		uint64_t interpreter = threads->thread[i].interpreter;
		if (interpreter == last ||
		    memory_read_u64(look->memory, interpreter + at->interpreter_modules, &modules))
			continue;
		last = interpreter;
		TRY(python_thread_names_read(look->memory, at, modules, &outcome, names));
	}
	return NULL;
}

static inline struct error *snapshot_print_thread(const struct snapshot_look *look,
						  const struct snapshot_thread *thread,
						  const struct host_tables *tables,
						  const struct python_threads *threads)
{
	_cleanup_free_ struct snapshot_stack *stack = NULL;

	fprintf(look->out, "thread %x\n", thread->tid);
	for (size_t i = 0; i < threads->count; i++)
		if (threads->thread[i].thread_id == thread->fs_base)
			fprintf(look->out, "  state of interpreter %" PRId64 "%s%s\n",
				threads->thread[i].interpreter_id,
				threads->thread[i].frame ? "" : ", without frames",
				threads->thread[i].holds_gil ? ", holds the lock" : "");
	TRY(ARRAY_NEW(stack, 1));
	snapshot_walk(thread, tables, look->memory, 0, stack);
	return snapshot_print_stack(look, stack);
}

/* All that a snapshot holds, read from MEMORY, as text. */
static inline struct error *snapshot_run(const struct snapshot *snapshot,
					 const struct snapshot_tables *from,
					 const struct memory *memory, FILE *out)
{
	_cleanup_(python_thread_names_deinit) struct python_thread_names names = {0};
	_cleanup_(python_threads_deinit) struct python_threads threads = PYTHON_THREADS_INIT;
	struct host_tables tables = from->tables;
	char reason[PYTHON_REASON_MAX];
	struct python_instance instance;
	struct snapshot_look look = {snapshot, &instance, memory, out};

	if (python_attach(&snapshot->object, snapshot->bias, memory, &instance, reason) !=
	    PYTHON_ATTACH_ok) {
		fprintf(out, "not attached: %s\n", reason);
		return NULL;
	}
	fprintf(out, "attached: version %x, build %u\n", instance.at.version, instance.at.build);
	tables.python = &instance.process;
	tables.layout = &instance.layout;
	TRY(python_threads(&instance, memory, &threads));
	TRY(snapshot_read_names(&look, &threads, &names));
	for (size_t i = 0; i < names.count; i++)
		fprintf(out, "name %" PRIx64 " %s\n", names.names[i].id, names.names[i].name);
	for (size_t i = 0; i < snapshot->threads; i++)
		TRY(snapshot_print_thread(&look, &snapshot->thread[i], &tables, &threads));
	return NULL;
}
