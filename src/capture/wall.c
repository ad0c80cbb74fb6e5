/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_DOMAIN "wall"
#include "capture/wall.h"

#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "capture/thread-iterator.h"
#include "proc/process-memory.h"
#include "unwind/walk.h"

enum {
	THREADS_MAX = 1 << 20,
	WINDOW_BYTES = 64 << 10, /* of a stack, copied before it is walked */
	WORDS_MAX_BYTES = 64 << 20,
	STACK_MAX_BYTES = (2 * SAMPLE_USER_FRAMES + 1) * sizeof(uint64_t),
};

/* A thread and what its stack was. */
struct seen {
	uint32_t tid;
	bool has_stack;
	uint64_t turns;          /* it had run that often by then */
	struct stacks_kept kept; /* in the present session */
};

/* The user's side of a thread's stack, in the look that is under way. */
struct walked {
	const struct thread_record *record; /* borrowed from wall.records */
	struct host_stack stack;            /* its words are in wall.words */
};

struct wall {
	struct wall_options options;
	uint32_t *tids; /* owned copy */
	struct thread_iterator *iterator;
	struct seen *seen;
	size_t seen_count, seen_room;
	struct hash_index by_tid;
	uint64_t due_ns, period_ns;
	/* The look that is under way. */
	struct thread_records records;
	struct walked *walked; /* ascending by tid */
	uint32_t *asked;       /* their tids */
	size_t walked_count, walked_room, asked_room;
	struct arena words;
	uint32_t pid;                  /* whose memory is open */
	struct process_memory *memory; /* NULL: none */
	struct memory_window window;
};

struct error *wall_open(const struct wall_options *options, struct wall **ret)
{
	struct wall *wall = calloc(1, sizeof(*wall));

	if (!wall)
		return error_oom();
	wall->options = *options;
	wall->period_ns = 1000000000ull / options->hz;
	wall->due_ns = clock_monotonic_ns();
	wall->words.max_bytes = WORDS_MAX_BYTES;
	struct error *err = thread_iterator_open(&wall->iterator);
	if (!err)
		err = ARRAY_NEW(wall->tids, options->tid_count + 1);
	if (err) {
		wall_close(wall);
		return error_wrap(err, "wall-clock mode looks at threads with a BPF iterator");
	}
	if (options->tid_count)
		memcpy(wall->tids, options->tids, options->tid_count * sizeof(*wall->tids));
	*ret = wall;
	return NULL;
}

static void close_memory(struct wall *wall)
{
	memory_window_deinit(&wall->window);
	wall->window = (struct memory_window)MEMORY_WINDOW_INIT;
	process_memory_close(wall->memory);
	wall->memory = NULL;
	wall->pid = 0;
}

void wall_close(struct wall *wall)
{
	if (!wall)
		return;
	close_memory(wall);
	thread_iterator_close(wall->iterator);
	thread_records_deinit(&wall->records);
	hash_index_deinit(&wall->by_tid);
	arena_deinit(&wall->words);
	free(wall->walked);
	free(wall->asked);
	free(wall->seen);
	free(wall->tids);
	free(wall);
}

uint64_t wall_due_ns(const struct wall *wall)
{
	return wall->due_ns;
}

void wall_end_session(struct wall *wall)
{
	wall->seen_count = 0;
	hash_index_clear(&wall->by_tid);
}

/* --- which threads */

static bool wanted(const struct wall *wall, const struct thread_record *record)
{
	struct thread_registers registers;

	// Those that run are met by the ticks; the kernel's own threads sleep for ever, those that
	// it adds to processes too.
	if (record->flags & (THREAD_on_cpu | THREAD_no_user))
		return false;
	if (record->flags & THREAD_words && !thread_record_registers(record, &registers))
		return false;
	if (!wall->options.tid_count)
		return kernel_is_target(wall->options.kernel, record->pid);
	for (size_t i = 0; i < wall->options.tid_count; i++)
		if (wall->tids[i] == record->tid)
			return true;
	return false;
}

static uint64_t turns_of(uint32_t flags, uint64_t turns, uint64_t switches)
{
	return flags & THREAD_has_turns ? turns : switches;
}

static uint64_t turns(const struct thread_record *record)
{
	return turns_of(record->flags, record->turns, record->switches);
}

struct tid_key {
	const struct seen *seen;
	uint32_t tid;
};

static bool tid_equal(const void *context, uint32_t item)
{
	const struct tid_key *key = context;

	return key->seen[item].tid == key->tid;
}

static struct error *find_seen(struct wall *wall, uint32_t tid, struct seen **ret)
{
	struct tid_key key = {wall->seen, tid};
	uint32_t item;

	if (hash_find(&wall->by_tid, hash_u64(tid), tid_equal, &key, &item)) {
		*ret = &wall->seen[item];
		return NULL;
	}
	TRY(ARRAY_RESERVE(wall->seen, wall->seen_room, wall->seen_count, 1, THREADS_MAX,
			  "threads in a session"));
	TRY(hash_add(&wall->by_tid, hash_u64(tid), (uint32_t)wall->seen_count));
	*ret = &wall->seen[wall->seen_count++];
	**ret = (struct seen){.tid = tid};
	return NULL;
}

/* --- stacks */

static struct error *open_memory(struct wall *wall, uint32_t pid)
{
	enum process_memory_look look;

	if (wall->pid == pid)
		return NULL;
	close_memory(wall);
	wall->pid = pid;
	TRY(process_memory_open((pid_t)pid, &look, &wall->memory));
	if (look != PROCESS_MEMORY_opened)
		return NULL;
	struct memory memory = process_memory_reader(wall->memory);
	return memory_window_init(&wall->window, &memory, WINDOW_BYTES);
}

/* Whose stack it is, as samples say it. */
static struct sample head_of(const struct wall *wall, const struct thread_record *record)
{
	const struct thread_record *first = thread_records_find(&wall->records, (pid_t)record->pid);
	struct sample head = {
		.time_ns = clock_monotonic_ns(),
		.pid = record->pid,
		.tid = record->tid,
	};

	memcpy(head.comm, first ? first->comm : record->comm, sizeof(head.comm));
	memcpy(head.thread_comm, record->comm, sizeof(head.thread_comm));
	return head;
}

/*
 * Walk the thread of RECORD, and keep what was found until it is known not to have moved. With too
 * many threads in one look the rest has no stack in it, and is walked in the next.
 */
static struct error *walk_thread(struct wall *wall, const struct thread_record *record)
{
	struct walked walked = {.record = record};
	struct thread_registers registers;

	if (wall->walked_count == THREADS_ASKED_MAX ||
	    wall->words.used_bytes > WORDS_MAX_BYTES - STACK_MAX_BYTES ||
	    !thread_record_registers(record, &registers))
		return NULL;
	TRY(open_memory(wall, record->pid));
	if (!wall->memory)
		return NULL;
	memory_window_fill(&wall->window, registers.at.sp - SAMPLE_RED_ZONE, WINDOW_BYTES);
	struct memory memory = memory_window_memory(&wall->window);
	const struct stacks_from from = {
		.pid = record->pid, .registers = &registers, .memory = &memory};
	TRY(stacks_walk(wall->options.stacks, &from, &walked.stack));
	uint64_t *words;
	TRY(arena_alloc(&wall->words, (walked.stack.words + 1) * sizeof(*words), &words));
	memcpy(words, walked.stack.word, walked.stack.words * sizeof(*words));
	walked.stack.word = words;
	TRY(ARRAY_RESERVE(wall->walked, wall->walked_room, wall->walked_count, 1, THREADS_ASKED_MAX,
			  "threads that moved"));
	TRY(ARRAY_RESERVE(wall->asked, wall->asked_room, wall->walked_count, 1, THREADS_ASKED_MAX,
			  "threads that moved"));
	wall->asked[wall->walked_count] = record->tid;
	wall->walked[wall->walked_count++] = walked;
	return NULL;
}

static int by_tid(const void *key, const void *item)
{
	const uint32_t *tid = key;
	const struct walked *walked = item;

	return (*tid > walked->record->tid) - (*tid < walked->record->tid);
}

/* The kernel's side of a thread that was walked: if it did not run meanwhile, that is its stack. */
static struct error *keep(void *context, const struct thread_stack *kernel)
{
	struct wall *wall = context;
	const struct walked *walked =
		bsearch(&kernel->tid, wall->walked, wall->walked_count, sizeof(*walked), by_tid);
	struct seen *seen;

	if (!walked || kernel->flags & THREAD_on_cpu ||
	    turns_of(kernel->flags, kernel->turns, kernel->switches) != turns(walked->record))
		return NULL;
	TRY(find_seen(wall, kernel->tid, &seen));
	const struct stacks_thread thread = {
		.head = head_of(wall, walked->record),
		.kernel = kernel,
		.stack = walked->stack,
	};
	TRY(stacks_keep(wall->options.stacks, &thread, &seen->kept));
	seen->turns = turns(walked->record);
	seen->has_stack = true;
	return NULL;
}

/* Walk those that ran since they were seen last. */
static struct error *walk_moved(struct wall *wall)
{
	struct seen *seen;

	wall->walked_count = 0;
	for (size_t i = 0; i < wall->records.count; i++) {
		const struct thread_record *record = &wall->records.record[i];
		if (!wanted(wall, record))
			continue;
		TRY(find_seen(wall, record->tid, &seen));
		if (seen->has_stack && seen->turns == turns(record))
			continue;
		seen->has_stack = false;
		TRY(walk_thread(wall, record));
	}
	// An exec between two looks would leave the old program's memory open.
	close_memory(wall);
	return NULL;
}

/* In the place of a stack that could not be had: the thread ran. */
static struct error *add_moved(struct wall *wall, const struct thread_record *record)
{
	static const struct thread_stack no_kernel;
	uint64_t no_words[1] = {0};
	const struct stacks_thread thread = {
		.head = head_of(wall, record),
		.kernel = &no_kernel,
		.stack = {.word = no_words, .end = END_moved},
	};
	struct stacks_kept kept;

	counter_add(wall->options.counters, COUNTER_wall_moved, 1);
	TRY(stacks_keep(wall->options.stacks, &thread, &kept));
	stacks_repeat(wall->options.stacks, &kept);
	return NULL;
}

static struct error *add_all(struct wall *wall)
{
	struct seen *seen;

	for (size_t i = 0; i < wall->records.count; i++) {
		const struct thread_record *record = &wall->records.record[i];
		if (!wanted(wall, record))
			continue;
		TRY(find_seen(wall, record->tid, &seen));
		if (seen->has_stack)
			stacks_repeat(wall->options.stacks, &seen->kept);
		else
			TRY(add_moved(wall, record));
	}
	return NULL;
}

struct error *wall_look(struct wall *wall, uint64_t now_ns)
{
	if (now_ns < wall->due_ns)
		return NULL;
	uint64_t late = (now_ns - wall->due_ns) / wall->period_ns;
	counter_add(wall->options.counters, COUNTER_wall_late, late);
	wall->due_ns += (late + 1) * wall->period_ns;
	thread_records_deinit(&wall->records);
	TRY(thread_iterator_read(wall->iterator, 0, &wall->records));
	TRY(walk_moved(wall));
	if (wall->walked_count)
		TRY(thread_iterator_stacks(wall->iterator, wall->asked, wall->walked_count, keep,
					   wall));
	arena_deinit(&wall->words);
	return add_all(wall);
}
