// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python/attach.h"

#include <fcntl.h>
#include <inttypes.h>
#include <time.h>

#include "object/object.h"
#include "proc/maps.h"
#include "runtimes/python/test-interpreters.h"
#include "runtimes/python/version.h"

enum {
	TOLD_MAX = 16,
	WAITS_MAX = 1000, /* of 1 ms */
	LOOKS_MAX = 20000,
	ALTERED_MAX = 100,
};

/* What a process tells of itself. */
struct told {
	uint64_t ident[TOLD_MAX], native[TOLD_MAX];
	size_t threads, interpreters;
	char version[PYTHON_VERSION_TEXT_MAX];
};

static struct told told_by(struct target *target)
{
	struct told told = {0};
	char line[200];

	while (fgets(line, sizeof(line), target->told) && strcmp(line, "ready\n") != 0) {
		if (told.threads < TOLD_MAX &&
		    sscanf(line, "thread %" SCNu64 " %" SCNu64, &told.ident[told.threads],
			   &told.native[told.threads]) == 2)
			told.threads++;
		sscanf(line, "interpreters %zu", &told.interpreters);
		sscanf(line, "version %31s", told.version);
	}
	ASSERT_TRUE(told.threads && told.interpreters);
	return told;
}

/* The first object of a process in which there is an interpreter. */
struct python_in {
	struct python_object object;
	uint64_t bias;
	bool found;
};

static struct python_in look_in(const struct map *map)
{
	struct python_in in = {0};
	_cleanup_object_ struct object *object = NULL;
	_cleanup_close_ int fd = open(map->path, O_RDONLY | O_CLOEXEC);
	uint64_t addr;

	if (fd < 0)
		return in;
	struct error *err = object_open(fd, map->path, &object);
	if (err) {
		error_free(err); // a map of something else
		return in;
	}
	take_fd(&fd);
	if (!object_addr_of_offset(object, map->offset, &addr) ||
	    !python_object_find(object, &in.object))
		return in;
	in.bias = map->start - addr;
	in.found = true;
	return in;
}

static struct python_in find_python(pid_t pid)
{
	_cleanup_(maps_deinit) struct maps maps = MAPS_INIT;
	struct python_in in = {0};

	ASSERT_OK(maps_read(pid, MAPS_executable, &maps));
	for (size_t i = 0; i < maps.count && !in.found; i++)
		if (map_is_file(&maps.map[i]))
			in = look_in(&maps.map[i]);
	return in;
}

/* Memory of which one read fails or is altered. */
struct odd_memory {
	struct memory real;
	unsigned reads, bad;
	bool altered;
	uint32_t random;
};

static int read_odd(void *context, uint64_t addr, void *to, size_t size)
{
	struct odd_memory *odd = context;

	if (odd->reads++ != odd->bad)
		return memory_read(&odd->real, addr, to, size);
	if (!odd->altered || memory_read(&odd->real, addr, to, size))
		return -1;
	for (size_t i = 0; i < size; i++) {
		odd->random = odd->random * 1103515245 + 12345;
		if (odd->random >> 30 == 0)
			((uint8_t *)to)[i] ^= odd->random >> 16;
	}
	return 0;
}

struct attached {
	struct target target;
	struct told told;
	struct process_memory *process;
	struct memory memory;
	struct python_in in;
};

static void attached_stop(struct attached *a)
{
	process_memory_close(a->process);
	target_stop(&a->target);
}

static struct attached start(const char *interpreter)
{
	struct attached a = {.target = target_start(interpreter, "targets/attach.py")};
	enum process_memory_look look;

	a.told = told_by(&a.target);
	ASSERT_OK(process_memory_open(a.target.pid, &look, &a.process));
	ASSERT_EQ(look, PROCESS_MEMORY_opened);
	a.memory = process_memory_reader(a.process);
	a.in = find_python(a.target.pid);
	ASSERT_TRUE(a.in.found);
	return a;
}

static enum python_attach attach(const struct attached *a, const struct memory *memory,
				 struct python_instance *ret)
{
	char reason[PYTHON_REASON_MAX];
	enum python_attach outcome = python_attach(&a->in.object, a->in.bias, memory, ret, reason);

	if (outcome == PYTHON_ATTACH_refused && memory->read != read_odd)
		print_message("%s\n", reason);
	return outcome;
}

/* The state of the thread IDENT in the main interpreter: it has one in each that it made, too. */
static const struct python_thread *thread_find(const struct python_threads *threads, uint64_t ident)
{
	for (size_t i = 0; i < threads->count; i++)
		if (threads->thread[i].thread_id == ident && !threads->thread[i].interpreter_id)
			return &threads->thread[i];
	return NULL;
}

static size_t count_interpreters(const struct python_threads *threads)
{
	size_t count = 0;

	for (size_t i = 0; i < threads->count; i++)
		count += !i || threads->thread[i].interpreter != threads->thread[i - 1].interpreter;
	return count;
}

static void check_threads(const struct attached *a)
{
	_cleanup_(python_threads_deinit) struct python_threads threads = PYTHON_THREADS_INIT;
	struct python_instance instance;

	ASSERT_EQ(attach(a, &a->memory, &instance), PYTHON_ATTACH_ok);
	ASSERT_OK(python_threads(&instance, &a->memory, &threads));
	ASSERT_TRUE(threads.whole);
	for (size_t i = 0; i < a->told.threads; i++) {
		const struct python_thread *thread = thread_find(&threads, a->told.ident[i]);
		ASSERT_TRUE(thread);
		ASSERT_TRUE(thread->frame);
		if (instance.at.thread_native_id != PYTHON_ABSENT)
			ASSERT_EQ(thread->native_id, a->told.native[i]);
		// All wait: for the input or an event.
		ASSERT_FALSE(thread->holds_gil);
	}
	// An interpreter that is made and runs nothing may have no thread state (3.13).
	ASSERT_TRUE(count_interpreters(&threads) <= a->told.interpreters);
	if (a->told.interpreters > 1 && instance.at.version < 0x030d)
		ASSERT_EQ(count_interpreters(&threads), a->told.interpreters);
}

/* Call EACH with every interpreter of the machine. */
static void with_each(void (*each)(struct attached *a))
{
	_cleanup_(interpreters_deinit) struct interpreters found = interpreters_find();

	ASSERT_TRUE(found.count);
	for (size_t i = 0; i < found.count; i++) {
		print_message("%s\n", found.path[i]);
		_cleanup_(attached_stop) struct attached a = start(found.path[i]);
		each(&a);
	}
}

/* The version as the object tells it, and as the interpreter's memory does. */
static void check_version(const struct attached *a)
{
	char text[PYTHON_VERSION_TEXT_MAX];
	struct python_instance instance;

	ASSERT_EQ(attach(a, &a->memory, &instance), PYTHON_ATTACH_ok);
	python_version_text(&instance, &a->memory, text);
	ASSERT_STREQ(text, a->told.version);
	ASSERT_EQ(instance.version_hex != 0, instance.at.version >= 0x030b);
	instance.version_hex = 0;
	python_version_text(&instance, &a->memory, text);
	ASSERT_STREQ(text, a->told.version);
}

static void check_all(struct attached *a)
{
	check_threads(a);
	check_version(a);
}

TEST(a_version_that_cannot_be_read_is_told_without_its_release)
{
	struct odd_memory nothing = {0};
	const struct memory memory = {.read = read_odd, .context = &nothing};
	struct python_instance instance = {.at.version = 0x030a};
	char text[PYTHON_VERSION_TEXT_MAX];

	python_version_text(&instance, &memory, text);
	ASSERT_STREQ(text, "3.10");
	instance.version_hex = 0x030e00a4;
	instance.at.version = 0x030e;
	python_version_text(&instance, &memory, text);
	ASSERT_STREQ(text, "3.14.0a4");
	instance.version_hex = 0x030e02c1;
	python_version_text(&instance, &memory, text);
	ASSERT_STREQ(text, "3.14.2rc1");
}

TEST(every_interpreter_is_attached_to_and_its_threads_are_listed)
{
	with_each(check_all);
}

static void pause_1_ms(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void check_busy(struct attached *a)
{
	struct python_instance instance;
	uint64_t main_thread = a->told.ident[a->told.threads - 1];
	bool held = false;

	ASSERT_EQ(write(a->target.hold, "busy\n", 5), 5);
	for (int i = 0; i < WAITS_MAX && !held; i++) {
		_cleanup_(python_threads_deinit) struct python_threads threads =
			PYTHON_THREADS_INIT;
		pause_1_ms();
		ASSERT_EQ(attach(a, &a->memory, &instance), PYTHON_ATTACH_ok);
		// Without a lock nobody holds it.
		if (instance.at.build == PYTHON_BUILD_FREE)
			return;
		ASSERT_OK(python_threads(&instance, &a->memory, &threads));
		const struct python_thread *thread = thread_find(&threads, main_thread);
		held = thread && thread->holds_gil &&
		       python_holder(&instance, &a->memory, thread->interpreter) == thread->state;
	}
	ASSERT_TRUE(held);
}

TEST(the_thread_that_runs_holds_the_lock)
{
	with_each(check_busy);
}

static void check_failing_reads(struct attached *a)
{
	struct odd_memory odd = {.real = a->memory};
	const struct memory memory = {read_odd, &odd};
	enum python_attach outcome;

	do {
		struct python_instance instance = {.bias = 7};
		_cleanup_(python_threads_deinit) struct python_threads threads =
			PYTHON_THREADS_INIT;
		odd.reads = 0;
		outcome = attach(a, &memory, &instance);
		ASSERT_EQ(instance.bias == 7, outcome != PYTHON_ATTACH_ok);
		ASSERT_TRUE(outcome != PYTHON_ATTACH_refused && outcome != PYTHON_ATTACH_later);
		if (outcome == PYTHON_ATTACH_ok)
			ASSERT_OK(python_threads(&instance, &memory, &threads));
	} while (odd.bad++ < odd.reads);
	ASSERT_TRUE(odd.bad > 10);
}

TEST(each_read_that_fails_has_an_outcome)
{
	with_each(check_failing_reads);
}

static void check_altered_reads(struct attached *a)
{
	struct odd_memory odd = {.real = a->memory, .altered = true, .random = 1};
	const struct memory memory = {read_odd, &odd};

	for (unsigned i = 0; i < ALTERED_MAX; i++) {
		struct python_instance instance;
		_cleanup_(python_threads_deinit) struct python_threads threads =
			PYTHON_THREADS_INIT;
		odd.reads = 0;
		odd.bad = i;
		if (attach(a, &memory, &instance) != PYTHON_ATTACH_ok)
			continue;
		odd.reads = 0;
		ASSERT_OK(python_threads(&instance, &memory, &threads));
	}
}

TEST(memory_that_changes_harms_nobody)
{
	with_each(check_altered_reads);
}

/* Look at a process again and again until it can be attached to, or cannot be read any more. */
static enum python_attach look_until(struct target *target, enum python_attach wanted)
{
	enum python_attach outcome = PYTHON_ATTACH_later;
	enum process_memory_look look = PROCESS_MEMORY_gone;

	for (int i = 0; i < LOOKS_MAX && outcome != wanted; i++) {
		_cleanup_process_memory_ struct process_memory *process = NULL;
		ASSERT_OK(process_memory_open(target->pid, &look, &process));
		if (look != PROCESS_MEMORY_opened)
			return PYTHON_ATTACH_unreadable;
		struct attached a = {.in = find_python(target->pid)};
		struct python_instance instance;
		if (!a.in.found)
			continue;
		a.memory = process_memory_reader(process);
		outcome = attach(&a, &a.memory, &instance);
		ASSERT_TRUE(outcome != PYTHON_ATTACH_refused);
	}
	return outcome;
}

TEST(an_interpreter_that_starts_or_ends_is_not_refused)
{
	_cleanup_(interpreters_deinit) struct interpreters found = interpreters_find();

	for (size_t i = 0; i < found.count; i++) {
		print_message("%s\n", found.path[i]);
		_cleanup_(target_stop) struct target target =
			target_start(found.path[i], "targets/attach.py");
		ASSERT_EQ(look_until(&target, PYTHON_ATTACH_ok), PYTHON_ATTACH_ok);
		told_by(&target);
		close(target.hold);
		target.hold = -1;
		ASSERT_EQ(look_until(&target, PYTHON_ATTACH_unreadable), PYTHON_ATTACH_unreadable);
	}
}

TEST(an_interpreter_that_ends_is_attached_to_while_it_runs_code)
{
	_cleanup_(interpreters_deinit) struct interpreters found = interpreters_find();

	for (size_t i = 0; i < found.count; i++) {
		print_message("%s\n", found.path[i]);
		_cleanup_(attached_stop) struct attached a = {
			.target = target_start(found.path[i], "targets/python-ends.py")};
		_cleanup_(python_threads_deinit) struct python_threads threads =
			PYTHON_THREADS_INIT;
		enum process_memory_look look;
		struct python_instance instance;
		char line[8];
		ASSERT_TRUE(fgets(line, sizeof(line), a.target.told));
		ASSERT_OK(process_memory_open(a.target.pid, &look, &a.process));
		a.memory = process_memory_reader(a.process);
		a.in = find_python(a.target.pid);
		ASSERT_TRUE(a.in.found);
		ASSERT_EQ(attach(&a, &a.memory, &instance), PYTHON_ATTACH_ok);
		ASSERT_OK(python_threads(&instance, &a.memory, &threads));
		ASSERT_TRUE(threads.count && threads.thread[0].frame);
	}
}

RUN_TESTS(UNIT_TEST(every_interpreter_is_attached_to_and_its_threads_are_listed),
	  UNIT_TEST(a_version_that_cannot_be_read_is_told_without_its_release),
	  UNIT_TEST(the_thread_that_runs_holds_the_lock),
	  UNIT_TEST(each_read_that_fails_has_an_outcome),
	  UNIT_TEST(memory_that_changes_harms_nobody),
	  UNIT_TEST(an_interpreter_that_starts_or_ends_is_not_refused),
	  UNIT_TEST(an_interpreter_that_ends_is_attached_to_while_it_runs_code))
