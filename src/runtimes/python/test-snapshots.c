/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of real interpreters at a known stack, replayed (test-snapshot.h): as it was, then with
 * every read failing in turn, alone or with all that follow, then with a read that gives something
 * else: where there are more than a test has time for, with every so many-th.
 */
#include "runtimes/python/test-snapshot.h"

#include <glob.h>
#include <limits.h>

#include "unit.h"

enum {
	ALTERED_MAX = 100, /* replays of one phase of one snapshot with one kind of altered read */
	WALK_READS_MAX = 64 * SNAPSHOT_DEPTH,
	LIST_READS_MAX = PYTHON_THREADS_MAX + 4 * PYTHON_INTERPRETERS_MAX,
	NAME_READS_MAX = 10000,
	FRAMES_MAX = 2 * SNAPSHOT_DEPTH,
};

/* --- the snapshots */

struct replay {
	struct snapshot snapshot;
	struct snapshot_tables tables;
	struct memory memory;
	/* As it was: */
	struct python_instance instance;
	struct python_threads threads;
	struct host_tables host;
	FILE *nowhere; /* owned */
	/* What is looked at: */
	const struct snapshot_thread *thread; /* borrowed from the snapshot */
	const uint64_t *word, *place;         /* a frame of Python; borrowed */
};

static void replay_deinit(struct replay *replay)
{
	fclose(replay->nowhere);
	python_threads_deinit(&replay->threads);
	snapshot_tables_deinit(&replay->tables);
	snapshot_deinit(&replay->snapshot);
}

static void replay_init(struct replay *replay, const char *path)
{
	char reason[PYTHON_REASON_MAX];

	*replay = (struct replay){0};
	replay->nowhere = fopen("/dev/null", "we");
	ASSERT_TRUE(replay->nowhere);
	ASSERT_OK(snapshot_read(path, &replay->snapshot));
	ASSERT_OK(snapshot_load(&replay->tables, &replay->snapshot));
	replay->memory = snapshot_memory(&replay->snapshot);
	ASSERT_EQ(python_attach(&replay->snapshot.object, replay->snapshot.bias, &replay->memory,
				&replay->instance, reason),
		  PYTHON_ATTACH_ok);
	ASSERT_OK(python_threads(&replay->instance, &replay->memory, &replay->threads));
	replay->host = replay->tables.tables;
	replay->host.python = &replay->instance.process;
	replay->host.layout = &replay->instance.layout;
}

/* Call EACH for every snapshot. */
static void with_each(void (*each)(struct replay *replay))
{
	static struct replay replay;
	char pattern[PATH_MAX];
	glob_t paths = {0};

	snprintf(pattern, sizeof(pattern), "%s/snapshots/python-*.txt", getenv("CAIRN_TESTS"));
	ASSERT_EQ(glob(pattern, 0, NULL, &paths), 0);
	for (size_t i = 0; i < paths.gl_pathc; i++) {
		print_message("%s\n", strrchr(paths.gl_pathv[i], '/') + 1);
		replay_init(&replay, paths.gl_pathv[i]);
		each(&replay);
		replay_deinit(&replay);
	}
	globfree(&paths);
}

/* --- as it was */

/* The lines of TEXT that say who a thread is and what Python frames it has. */
static char *python_lines(const char *text)
{
	size_t room = strlen(text) + 1, length = 0;
	char *ret = calloc(1, room);

	ASSERT_TRUE(ret);
	while (*text) {
		size_t line = strcspn(text, "\n") + 1;
		if (str_starts(text, "thread ") || str_starts(text, "    python ")) {
			memcpy(ret + length, text, line);
			length += line;
		}
		text += line;
	}
	return ret;
}

static void check_stacks(struct replay *replay)
{
	const struct snapshot *snapshot = &replay->snapshot;
	_cleanup_free_ char *text = NULL, *python = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ASSERT_TRUE(out);
	ASSERT_OK(snapshot_run(snapshot, &replay->tables, &replay->memory, out));
	fclose(out);
	ASSERT_STREQ(text, snapshot->expected.text);
	python = python_lines(text);
	ASSERT_STREQ(python, snapshot->told.text);
	for (size_t i = 0; i < snapshot->threads; i++) {
		static struct snapshot_stack stack;
		snapshot_walk(&snapshot->thread[i], &replay->host, &replay->memory, 0, &stack);
		ASSERT_EQ(stack.end, END_root);
	}
}

TEST(a_snapshot_gives_the_stacks_that_the_program_told)
{
	with_each(check_stacks);
}

TEST(every_version_has_a_snapshot)
{
	static const char *const kinds[] = {"2.7",
					    "3.5",
					    "3.6",
					    "3.7",
					    "3.8",
					    "3.9",
					    "3.10",
					    "3.11",
					    "3.12",
					    "3.13",
					    "3.14",
					    "3.13t",
					    "3.13d",
					    "3.14d",
					    "3.13-with-musl",
					    "3.9-subinterpreter",
					    "3.11-subinterpreter",
					    "3.14-subinterpreter"};
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
		snprintf(path, sizeof(path), "%s/snapshots/python-%s.txt", getenv("CAIRN_TESTS"),
			 kinds[i]);
		print_message("%s\n", path);
		ASSERT_EQ(access(path, R_OK), 0);
	}
}

/* --- memory with faults */

enum fault {
	FAULT_one,     /* one read fails */
	FAULT_rest,    /* one and all that follow fail */
	FAULT_flipped, /* one gives other bits, here and there */
	FAULT_zeros,   /* one gives zeros */
	FAULT_ones,    /* one gives 0xff */
	FAULT_other,   /* one gives what stands elsewhere */
	FAULT_KINDS,
};

struct faulty {
	struct memory below;
	enum fault fault;
	unsigned reads, bad; /* so far; the one that is bad, UINT_MAX: none */
	uint32_t random;
};

static void alter(struct faulty *faulty, uint8_t *to, size_t size)
{
	const struct snapshot *snapshot = faulty->below.context;

	faulty->random = faulty->random * 1103515245 + 12345;
	for (size_t i = 0; i < size; i++) {
		if (faulty->fault == FAULT_zeros || faulty->fault == FAULT_ones)
			to[i] = faulty->fault == FAULT_zeros ? 0 : 0xff;
		if (faulty->fault != FAULT_flipped)
			continue;
		faulty->random = faulty->random * 1103515245 + 12345;
		if (faulty->random >> 30 == 0)
			to[i] ^= faulty->random >> 16;
	}
	if (faulty->fault != FAULT_other)
		return;
	const struct snapshot_piece *piece =
		&snapshot->piece[(faulty->random >> 8) % snapshot->pieces];
	memcpy(to, piece->data, size < piece->size ? size : piece->size);
}

static int read_faulty(void *context, uint64_t addr, void *to, size_t size)
{
	struct faulty *faulty = context;
	unsigned number = faulty->reads++;
	bool bad = number == faulty->bad || (number > faulty->bad && faulty->fault == FAULT_rest);

	if (bad && faulty->fault <= FAULT_rest) {
		// What a failed read leaves behind may be anything.
		memset(to, 0xa5, size);
		return -1;
	}
	if (memory_read(&faulty->below, addr, to, size))
		return -1;
	if (bad)
		alter(faulty, to, size);
	return 0;
}

/* One thing that is done with a snapshot, on memory that has a fault. */
typedef void phase_fn(struct replay *replay, const struct memory *memory, bool fails);

/* PHASE with each of its reads bad in turn, in each way. */
static void with_faults(struct replay *replay, phase_fn *phase, unsigned reads_max)
{
	struct faulty faulty = {.below = replay->memory, .bad = UINT_MAX};
	const struct memory memory = {.read = read_faulty, .context = &faulty};

	phase(replay, &memory, true);
	const unsigned reads = faulty.reads;
	ASSERT_TRUE(reads);
	for (int fault = 0; fault < FAULT_KINDS; fault++) {
		const unsigned step = fault <= FAULT_rest ? 1 : reads / ALTERED_MAX + 1;
		faulty.fault = (enum fault)fault;
		for (unsigned bad = (unsigned)fault % step; bad < reads; bad += step) {
			faulty.random = bad;
			faulty.bad = bad;
			faulty.reads = 0;
			phase(replay, &memory, fault <= FAULT_rest);
			ASSERT_TRUE(faulty.reads <= reads_max);
		}
	}
}

/* --- attaching, and the lists of threads */

static void attach(struct replay *replay, const struct memory *memory, bool fails)
{
	struct python_instance instance = {.bias = 1};
	char reason[PYTHON_REASON_MAX] = "";
	enum python_attach outcome = python_attach(&replay->snapshot.object, replay->snapshot.bias,
						   memory, &instance, reason);

	if (outcome != PYTHON_ATTACH_ok) {
		ASSERT_EQ(instance.bias, 1);
		ASSERT_TRUE(reason[0] && strlen(reason) < sizeof(reason));
		// What cannot be read is no other version.
		ASSERT_TRUE(!fails || outcome == PYTHON_ATTACH_unreadable);
		return;
	}
	ASSERT_TRUE(instance.process.evals <= PYTHON_EVALS);
	if (fails)
		ASSERT_EQ(instance.code_type, replay->instance.code_type);
}

static bool same_thread(const struct python_thread *one, const struct python_thread *other)
{
	return one->state == other->state && one->interpreter == other->interpreter &&
	       one->thread_id == other->thread_id && one->native_id == other->native_id &&
	       (one->frame == other->frame || !one->frame) && one->holds_gil <= other->holds_gil;
}

static void list_threads(struct replay *replay, const struct memory *memory, bool fails)
{
	_cleanup_(python_threads_deinit) struct python_threads threads = PYTHON_THREADS_INIT;

	ASSERT_OK(python_threads(&replay->instance, memory, &threads));
	if (!fails)
		return;
	ASSERT_TRUE(threads.count <= replay->threads.count);
	ASSERT_TRUE(!threads.whole || threads.count == replay->threads.count);
	// Those of an interpreter that cannot be read are missing.
	for (size_t i = 0, k = 0; i < threads.count; i++) {
		while (k < replay->threads.count &&
		       !same_thread(&threads.thread[i], &replay->threads.thread[k]))
			k++;
		ASSERT_TRUE(k++ < replay->threads.count);
	}
}

static void fault_lists(struct replay *replay)
{
	with_faults(replay, attach, LIST_READS_MAX);
	with_faults(replay, list_threads, LIST_READS_MAX);
}

TEST(whatever_is_not_readable_attaching_has_an_outcome)
{
	with_each(fault_lists);
}

/* --- walks */

/* The frames of one kind of a stack; words of those of Python are two. */
static size_t frames_of(const struct snapshot_stack *stack, bool python, uint64_t ret[])
{
	size_t count = 0;

	for (size_t i = 0; i < stack->words; i += snapshot_frame_words(stack->word[i])) {
		if (sample_is_runtime(stack->word[i]) != python)
			continue;
		ret[count++] = stack->word[i];
		if (python)
			ret[count++] = stack->word[i + 1];
	}
	return count;
}

/* Machine frames are those that there are, from the leaf on. */
static bool check_machine(const struct snapshot_stack *all, const struct snapshot_stack *got)
{
	static uint64_t expected[FRAMES_MAX], found[FRAMES_MAX];
	size_t most = frames_of(all, false, expected), count = frames_of(got, false, found);

	return count <= most && !memcmp(expected, found, count * sizeof(*found)) &&
	       (got->end == END_unreadable || (got->end == all->end && count == most));
}

/* Is this frame, in two words, that one? It may lack its cookie. */
static bool same_frame(const uint64_t expected[2], const uint64_t found[2])
{
	return expected[0] == found[0] && (uint32_t)expected[1] == (uint32_t)found[1] &&
	       (expected[1] >> 32 == found[1] >> 32 || found[1] >> 32 == PYTHON_COOKIE_NONE);
}

/* Those of Python, too; where they end before their time a frame says so. */
static bool check_python(const struct snapshot_stack *all, const struct snapshot_stack *got)
{
	static uint64_t expected[FRAMES_MAX], found[FRAMES_MAX];
	size_t most = frames_of(all, true, expected), count = frames_of(got, true, found);

	for (size_t i = 0; i < count; i += 2) {
		if (!(found[i] & ((1ull << SAMPLE_RUNTIME_SHIFT) - 1)))
			return i == count - 2 && found[i + 1] == PYTHON_LOST_memory;
		if (i == most || !same_frame(expected + i, found + i))
			return false;
	}
	return count == most || got->end == END_unreadable;
}

static uint64_t state_of(const struct replay *replay, uint64_t fs_base)
{
	for (size_t i = 0; i < replay->threads.count; i++)
		if (replay->threads.thread[i].thread_id == fs_base)
			return replay->threads.thread[i].state;
	return 0;
}

static void walk(struct replay *replay, const struct memory *memory, bool fails)
{
	static struct snapshot_stack all, got;
	const struct faulty *faulty = memory->context;
	uint64_t state = faulty->bad % 2 ? state_of(replay, replay->thread->fs_base) : 0;

	snapshot_walk(replay->thread, &replay->host, &replay->memory, 0, &all);
	snapshot_walk(replay->thread, &replay->host, memory, state, &got);
	ASSERT_TRUE(got.words <= 2 * SNAPSHOT_DEPTH && got.end > END_none && got.end < END_MAX);
	if (fails && (!check_machine(&all, &got) || !check_python(&all, &got))) {
		print_message("thread %x, read %u: %s\n", replay->thread->tid, faulty->bad,
			      walk_end_text(got.end));
		fail();
	}
}

static void fault_walks(struct replay *replay)
{
	for (size_t i = 0; i < replay->snapshot.threads; i++) {
		replay->thread = &replay->snapshot.thread[i];
		with_faults(replay, walk, WALK_READS_MAX);
	}
}

TEST(whatever_is_not_readable_a_stack_keeps_what_is_and_says_so)
{
	with_each(fault_walks);
}

/* --- names */

static void read_code(const struct replay *replay, const struct memory *memory,
		      enum python_code_outcome *ret_outcome, struct python_code *ret)
{
	const struct python_codes codes = {memory, &replay->instance.at,
					   replay->instance.code_type};

	ASSERT_OK(python_code_read(&codes, replay->word[0] & ((1ull << SAMPLE_RUNTIME_SHIFT) - 1),
				   ret_outcome, ret));
}

/* Texts are those that there are, or missing. */
static bool is_text(const char *found, const char *expected)
{
	return !*found || !strcmp(found, expected);
}

static void name_frame(struct replay *replay, const struct memory *memory, bool fails)
{
	_cleanup_(python_code_deinit) struct python_code code = PYTHON_CODE_INIT;
	_cleanup_(python_code_deinit) struct python_code right = PYTHON_CODE_INIT;
	const uint32_t position = (uint32_t)replay->word[1];
	enum python_code_outcome outcome;

	read_code(replay, &replay->memory, &outcome, &right);
	ASSERT_EQ(outcome, PYTHON_CODE_read);
	read_code(replay, memory, &outcome, &code);
	if (outcome != PYTHON_CODE_read)
		return;
	uint32_t line = python_code_line(&code, position);
	if (!fails)
		return;
	ASSERT_EQ(code.cookie, right.cookie);
	ASSERT_TRUE(is_text(code.function, right.function) || !strcmp(code.function, right.name));
	ASSERT_TRUE(is_text(code.file, right.file));
	ASSERT_TRUE(line == right.first_line || line == python_code_line(&right, position));
}

static void print_locals(struct replay *replay, const struct memory *memory, bool fails)
{
	const struct python_values values = {memory, &replay->instance.at, &python_value_line};
	struct python_frame frame = {*replay->place,
				     replay->word[0] & ((1ull << SAMPLE_RUNTIME_SHIFT) - 1)};
	struct snapshot_look look = {&replay->snapshot, &replay->instance, memory, replay->nowhere};

	(void)python_locals(&values, &frame, false, snapshot_print_local, &look);
}

static void name_threads(struct replay *replay, const struct memory *memory, bool fails)
{
	_cleanup_(python_thread_names_deinit) struct python_thread_names names = {0}, right = {0};
	struct snapshot_look look = {&replay->snapshot, &replay->instance, &replay->memory, NULL};

	ASSERT_OK(snapshot_read_names(&look, &replay->threads, &right));
	look.memory = memory;
	ASSERT_OK(snapshot_read_names(&look, &replay->threads, &names));
	for (size_t i = 0; fails && i < names.count; i++) {
		const char *name = python_thread_name_find(&right, names.names[i].id);
		ASSERT_TRUE(name);
		ASSERT_TRUE(is_text(names.names[i].name, name));
	}
}

static void fault_names(struct replay *replay)
{
	static struct snapshot_stack stack;

	with_faults(replay, name_threads, NAME_READS_MAX);
	for (size_t i = 0; i < replay->snapshot.threads; i++) {
		snapshot_walk(&replay->snapshot.thread[i], &replay->host, &replay->memory, 0,
			      &stack);
		for (size_t k = 0; k < stack.words; k += snapshot_frame_words(stack.word[k])) {
			replay->word = stack.word + k;
			replay->place = stack.place + k;
			if (!sample_is_runtime(stack.word[k]))
				continue;
			with_faults(replay, name_frame, NAME_READS_MAX);
			with_faults(replay, print_locals, NAME_READS_MAX);
		}
	}
}

TEST(whatever_is_not_readable_a_name_is_right_or_missing)
{
	with_each(fault_names);
}

RUN_TESTS(UNIT_TEST(every_version_has_a_snapshot),
	  UNIT_TEST(a_snapshot_gives_the_stacks_that_the_program_told),
	  UNIT_TEST(whatever_is_not_readable_attaching_has_an_outcome),
	  UNIT_TEST(whatever_is_not_readable_a_stack_keeps_what_is_and_says_so),
	  UNIT_TEST(whatever_is_not_readable_a_name_is_right_or_missing))
