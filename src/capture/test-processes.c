/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes by the events that tell of them, with a kernel side of our own: a table of entries,
 * which the fork program copies from parent to child, as bpf/sample.bpf.c does. Numbers of
 * processes are larger than any real one, but where a real one is needed.
 */
#include "capture/processes.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "proc/maps.h"
#include "starved.h"
#include "unit.h"

enum {
	MAPPINGS = 256,
	ROWS = 8,
	PARENT = 5000000, /* above the kernel's PID_MAX_LIMIT, 2^22 */
	CHILD,
	OTHER,
	PAGE = 4096,
	CODE = 0x10000,
	WAITS_MAX = 200,
};

/* --- a kernel side */

struct kernel_row {
	uint32_t pid;
	struct process_entry entry;
};

struct kernel_side {
	struct unwind_mapping mapping[MAPPINGS];
	struct kernel_row row[ROWS];
	size_t rows, room;
};

struct unwind_mapping *kernel_mappings(struct kernel_side *kernel)
{
	return kernel->mapping;
}

static struct kernel_row *row_of(struct kernel_side *kernel, uint32_t pid)
{
	for (size_t i = 0; i < kernel->rows; i++)
		if (kernel->row[i].pid == pid)
			return &kernel->row[i];
	return NULL;
}

struct error *kernel_set_process(struct kernel_side *kernel, uint32_t pid,
				 const struct process_entry *entry)
{
	struct kernel_row *row = row_of(kernel, pid);

	if (!row && kernel->rows == kernel->room)
		return error_new("the table of processes is full");
	if (!row)
		row = &kernel->row[kernel->rows++];
	*row = (struct kernel_row){pid, *entry};
	return NULL;
}

void kernel_await_program(struct kernel_side *kernel, uint32_t pid)
{
}

void kernel_remove_process(struct kernel_side *kernel, uint32_t pid)
{
	struct kernel_row *row = row_of(kernel, pid);

	if (row)
		*row = kernel->row[--kernel->rows];
}

/* --- a world around it */

struct world {
	struct kernel_side kernel;
	struct counters counters;
	struct unwind_module *modules; /* owned, as the next four */
	struct unwind_rule *rules;
	struct unwind_segment *segment;
	struct python_process *python_processes;
	struct python_layout *layouts;
	struct store *store;
	struct objects *objects;
	struct pythons *pythons;
	struct processes *processes;
	uint64_t now_ns;
};

static struct error *new_segment(void *context, unsigned number, struct unwind_segment **ret)
{
	struct world *world = context;

	TRY(ARRAY_NEW(world->segment, 1));
	*ret = world->segment;
	return NULL;
}

static struct error *init(struct world *world, uint32_t mapping_room)
{
	struct store_options store = {.segments_max = 1,
				      .segment = new_segment,
				      .context = world,
				      .counters = &world->counters};
	struct pythons_options pythons = {.counters = &world->counters};
	struct processes_options options = {.kernel = &world->kernel,
					    .counters = &world->counters,
					    .mapping_room = mapping_room};

	*world = (struct world){.kernel = {.room = ROWS}};
	TRY(ARRAY_NEW(world->modules, STORE_MODULES_MAX));
	TRY(ARRAY_NEW(world->rules, UNWIND_RULES_MAX));
	TRY(ARRAY_NEW(world->python_processes, TABLE_PYTHONS));
	TRY(ARRAY_NEW(world->layouts, TABLE_PYTHON_LAYOUTS));
	store.modules = world->modules;
	store.rules = world->rules;
	TRY(store_new(&store, &world->store));
	TRY(objects_new(world->store, &world->counters, &world->objects));
	pythons.processes = world->python_processes;
	pythons.layouts = world->layouts;
	pythons.objects = options.objects = world->objects;
	TRY(pythons_new(&pythons, &world->pythons));
	options.pythons = world->pythons;
	TRY(processes_new(&options, &world->processes));
	world->now_ns = clock_monotonic_ns();
	return NULL;
}

static void deinit(struct world *world)
{
	processes_free(world->processes);
	pythons_free(world->pythons);
	objects_free(world->objects);
	store_free(world->store);
	free(world->modules);
	free(world->rules);
	free(world->segment);
	free(world->python_processes);
	free(world->layouts);
}

/* An event that happens now. */
static struct error *happen(struct world *world, struct side_event event)
{
	event.time_ns = world->now_ns = clock_monotonic_ns();
	return processes_apply(world->processes, &event);
}

static struct error *map(struct world *world, uint32_t pid, uint64_t start, uint64_t end)
{
	return happen(world, (struct side_event){.kind = SIDE_map,
						 .pid = pid,
						 .tid = pid,
						 .start = start,
						 .end = end,
						 .text = "//anon"});
}

static struct error *exec(struct world *world, uint32_t pid)
{
	return happen(world, (struct side_event){
				     .kind = SIDE_exec, .pid = pid, .tid = pid, .text = "program"});
}

/* The fork program copies the parent's entry before the child runs. */
static struct error *fork_from(struct world *world, uint32_t parent, uint32_t child)
{
	const struct kernel_row *row = row_of(&world->kernel, parent);

	if (row)
		TRY(kernel_set_process(&world->kernel, child, &row->entry));
	return happen(world,
		      (struct side_event){
			      .kind = SIDE_fork, .pid = child, .tid = child, .parent_pid = parent});
}

static struct error *end(struct world *world, uint32_t pid, uint32_t tid)
{
	return happen(world, (struct side_event){.kind = SIDE_exit, .pid = pid, .tid = tid});
}

static struct error *publish(struct world *world)
{
	return processes_publish(world->processes, clock_monotonic_ns());
}

static struct process_state *get(struct world *world, uint32_t pid)
{
	struct process_state *process = NULL;

	ASSERT_OK(processes_get(world->processes, pid, clock_monotonic_ns(), &process));
	return process;
}

/* The entry of PID; as_of_ns 0: there is none. */
static struct process_entry entry_of(struct world *world, uint32_t pid)
{
	const struct kernel_row *row = row_of(&world->kernel, pid);

	return row ? row->entry : (struct process_entry){0};
}

/* The kernel's table says that PID has exactly this mapping. */
static void check_mapped(struct world *world, uint32_t pid, uint64_t start, uint64_t end)
{
	struct process_entry entry = entry_of(world, pid);

	ASSERT_TRUE(entry.as_of_ns);
	ASSERT_EQ(entry.mappings, 1);
	ASSERT_EQ(world->kernel.mapping[entry.first_mapping].start, start);
	ASSERT_EQ(world->kernel.mapping[entry.first_mapping].end, end);
}

#define WITH_WORLD(name)                                                                           \
	_cleanup_(deinit) struct world name;                                                       \
	ASSERT_OK(init(&(name), MAPPINGS))

static void start_parent(struct world *world)
{
	ASSERT_OK(exec(world, PARENT));
	ASSERT_OK(map(world, PARENT, CODE, CODE + PAGE));
	ASSERT_OK(publish(world));
}

/* --- exec, map, fork, exit */

TEST(a_process_is_published_with_what_it_mapped)
{
	WITH_WORLD(world);

	start_parent(&world);
	check_mapped(&world, PARENT, CODE, CODE + PAGE);
	ASSERT_EQ(world.kernel.mapping[entry_of(&world, PARENT).first_mapping].module,
		  UNWIND_MODULE_frame_ptr);
	ASSERT_EQ(process_code(get(&world, PARENT), CODE + 8).kind, CODE_jit);
	ASSERT_EQ(process_code(get(&world, PARENT), CODE + PAGE).kind, CODE_none);
	ASSERT_EQ(world.counters.value[COUNTER_processes], 1);
}

TEST(an_exec_is_published_once_more_with_the_events_behind_it)
{
	WITH_WORLD(world);
	uint64_t now_ns = clock_monotonic_ns();

	start_parent(&world);
	ASSERT_TRUE(entry_of(&world, PARENT).as_of_ns >= now_ns);
	ASSERT_OK(exec(&world, PARENT));
	for (uint64_t i = 1; i <= 3; i++)
		ASSERT_OK(processes_publish(world.processes, now_ns + i));
	ASSERT_EQ(entry_of(&world, PARENT).as_of_ns, now_ns + 2);
}

TEST(a_mapping_takes_the_place_of_others)
{
	WITH_WORLD(world);
	struct process_entry entry;

	start_parent(&world);
	ASSERT_OK(map(&world, PARENT, CODE, CODE + 8 * PAGE));
	ASSERT_OK(map(&world, PARENT, CODE + 2 * PAGE, CODE + 3 * PAGE));
	ASSERT_OK(publish(&world));
	entry = entry_of(&world, PARENT);
	ASSERT_EQ(entry.mappings, 3);
	const struct unwind_mapping *at = &world.kernel.mapping[entry.first_mapping];
	ASSERT_EQ(at[0].end, CODE + 2 * PAGE);
	ASSERT_EQ(at[1].start, CODE + 2 * PAGE);
	ASSERT_EQ(at[2].start, CODE + 3 * PAGE);
	ASSERT_EQ(at[2].end, CODE + 8 * PAGE);
}

TEST(a_child_shares_what_its_parent_has_mapped)
{
	WITH_WORLD(world);

	start_parent(&world);
	ASSERT_OK(fork_from(&world, PARENT, CHILD));
	ASSERT_OK(publish(&world));
	check_mapped(&world, CHILD, CODE, CODE + PAGE);
	ASSERT_EQ(entry_of(&world, CHILD).first_mapping, entry_of(&world, PARENT).first_mapping);
	ASSERT_EQ(process_code(get(&world, CHILD), CODE).kind, CODE_jit);
}

TEST(a_child_that_maps_changes_nothing_of_its_parent)
{
	WITH_WORLD(world);

	start_parent(&world);
	ASSERT_OK(fork_from(&world, PARENT, CHILD));
	ASSERT_OK(map(&world, CHILD, CODE, CODE + 2 * PAGE));
	ASSERT_OK(publish(&world));
	check_mapped(&world, CHILD, CODE, CODE + 2 * PAGE);
	check_mapped(&world, PARENT, CODE, CODE + PAGE);
	ASSERT_EQ(process_code(get(&world, PARENT), CODE + PAGE).kind, CODE_none);
}

TEST(a_child_of_a_parent_that_was_not_published_is)
{
	WITH_WORLD(world);

	ASSERT_OK(exec(&world, PARENT));
	ASSERT_OK(map(&world, PARENT, CODE, CODE + PAGE));
	ASSERT_OK(fork_from(&world, PARENT, CHILD));
	ASSERT_EQ(entry_of(&world, CHILD).as_of_ns, 0);
	ASSERT_OK(publish(&world));
	check_mapped(&world, CHILD, CODE, CODE + PAGE);
}

TEST(a_child_of_a_parent_that_changed_is_published_anew)
{
	WITH_WORLD(world);

	start_parent(&world);
	ASSERT_OK(publish(&world));
	ASSERT_OK(map(&world, PARENT, CODE, CODE + 2 * PAGE));
	ASSERT_OK(fork_from(&world, PARENT, CHILD));
	check_mapped(&world, CHILD, CODE, CODE + PAGE); // of before
	ASSERT_OK(publish(&world));
	check_mapped(&world, CHILD, CODE, CODE + 2 * PAGE);
}

TEST(an_exec_leaves_nothing_of_what_was_mapped)
{
	WITH_WORLD(world);

	start_parent(&world);
	ASSERT_OK(fork_from(&world, PARENT, CHILD));
	ASSERT_OK(exec(&world, CHILD));
	ASSERT_OK(map(&world, CHILD, 5 * PAGE, 6 * PAGE));
	ASSERT_OK(publish(&world));
	check_mapped(&world, CHILD, 5 * PAGE, 6 * PAGE);
	check_mapped(&world, PARENT, CODE, CODE + PAGE);
}

TEST(a_process_that_ended_stays_for_the_samples_of_its_last_moments)
{
	WITH_WORLD(world);

	start_parent(&world);
	ASSERT_OK(end(&world, PARENT, PARENT + 7)); // another of its threads
	ASSERT_OK(publish(&world));
	ASSERT_OK(publish(&world));
	ASSERT_EQ(processes_count(world.processes), 1);
	ASSERT_OK(end(&world, PARENT, PARENT));
	ASSERT_OK(publish(&world));
	ASSERT_EQ(processes_count(world.processes), 1);
	ASSERT_OK(publish(&world));
	ASSERT_EQ(processes_count(world.processes), 0);
	ASSERT_EQ(entry_of(&world, PARENT).as_of_ns, 0);
}

TEST(a_number_that_is_used_again_is_another_process)
{
	WITH_WORLD(world);

	start_parent(&world);
	ASSERT_OK(fork_from(&world, PARENT, CHILD));
	ASSERT_OK(map(&world, CHILD, CODE, CODE + 2 * PAGE));
	ASSERT_OK(end(&world, CHILD, CHILD));
	ASSERT_OK(publish(&world));
	// Its end is known and it is still here.
	ASSERT_OK(fork_from(&world, PARENT, CHILD));
	ASSERT_OK(publish(&world));
	ASSERT_OK(publish(&world));
	ASSERT_EQ(processes_count(world.processes), 2);
	ASSERT_EQ(process_code(get(&world, CHILD), CODE + PAGE).kind, CODE_none);
}

TEST(a_thread_that_execs_takes_the_place_of_its_process)
{
	WITH_WORLD(world);

	start_parent(&world);
	ASSERT_OK(end(&world, PARENT, PARENT));
	ASSERT_OK(exec(&world, PARENT));
	ASSERT_OK(map(&world, PARENT, 5 * PAGE, 6 * PAGE));
	for (int i = 0; i < 3; i++)
		ASSERT_OK(publish(&world));
	check_mapped(&world, PARENT, 5 * PAGE, 6 * PAGE);
}

TEST(a_thread_is_no_process)
{
	WITH_WORLD(world);

	start_parent(&world);
	ASSERT_OK(happen(&world, (struct side_event){.kind = SIDE_fork,
						     .pid = PARENT,
						     .tid = PARENT + 1,
						     .parent_pid = PARENT}));
	ASSERT_EQ(processes_count(world.processes), 1);
}

TEST(a_child_of_a_stranger_is_not_known)
{
	WITH_WORLD(world);

	ASSERT_OK(fork_from(&world, PARENT, CHILD));
	ASSERT_EQ(processes_count(world.processes), 0);
	ASSERT_TRUE(!get(&world, CHILD));
	// What it maps is.
	ASSERT_OK(map(&world, CHILD, CODE, CODE + PAGE));
	ASSERT_OK(publish(&world));
	check_mapped(&world, CHILD, CODE, CODE + PAGE);
}

/* --- tables that are full, records that are lost */

TEST(a_process_that_finds_the_table_of_mappings_full_has_no_entry)
{
	_cleanup_(deinit) struct world world;

	ASSERT_OK(init(&world, 1));
	start_parent(&world);
	ASSERT_OK(publish(&world));
	ASSERT_OK(fork_from(&world, PARENT, CHILD));
	ASSERT_OK(map(&world, CHILD, 5 * PAGE, 6 * PAGE));
	ASSERT_OK(publish(&world));
	ASSERT_EQ(entry_of(&world, CHILD).as_of_ns, 0);
	ASSERT_EQ(world.counters.value[COUNTER_mappings_full], 2);
	check_mapped(&world, PARENT, CODE, CODE + PAGE);
	// The host knows it all the same.
	ASSERT_EQ(process_code(get(&world, CHILD), 5 * PAGE).kind, CODE_jit);
}

TEST(a_process_that_finds_the_table_of_processes_full_is_counted)
{
	WITH_WORLD(world);

	start_parent(&world);
	ASSERT_OK(publish(&world));
	world.kernel.room = 1;
	ASSERT_OK(exec(&world, OTHER));
	ASSERT_OK(map(&world, OTHER, CODE, CODE + PAGE));
	ASSERT_OK(publish(&world));
	ASSERT_EQ(entry_of(&world, OTHER).as_of_ns, 0);
	ASSERT_EQ(world.counters.value[COUNTER_processes_skipped], 1);
}

TEST(a_missed_entry_is_made_again)
{
	WITH_WORLD(world);

	start_parent(&world);
	ASSERT_OK(publish(&world));
	kernel_remove_process(&world.kernel, PARENT);
	// It has been published since that sample.
	ASSERT_OK(processes_missed(world.processes, get(&world, PARENT), 1));
	ASSERT_OK(publish(&world));
	ASSERT_EQ(entry_of(&world, PARENT).as_of_ns, 0);
	ASSERT_OK(processes_missed(world.processes, get(&world, PARENT), clock_monotonic_ns()));
	ASSERT_OK(publish(&world));
	check_mapped(&world, PARENT, CODE, CODE + PAGE);
}

TEST(an_end_that_was_lost_is_found_by_the_sweep)
{
	WITH_WORLD(world);

	start_parent(&world);
	ASSERT_OK(processes_sweep(world.processes));
	ASSERT_EQ(processes_count(world.processes), 1);
	counter_add(&world.counters, COUNTER_side_band_lost, 1);
	ASSERT_OK(processes_sweep(world.processes));
	ASSERT_OK(publish(&world));
	ASSERT_OK(publish(&world));
	ASSERT_EQ(processes_count(world.processes), 0);
}

TEST(what_is_forgotten_is_gone_at_once)
{
	WITH_WORLD(world);

	start_parent(&world);
	processes_forget(world.processes, OTHER);
	processes_forget(world.processes, PARENT);
	ASSERT_EQ(processes_count(world.processes), 0);
	ASSERT_EQ(entry_of(&world, PARENT).as_of_ns, 0);
	// Lists of what is to be done may still have it.
	ASSERT_OK(publish(&world));
}

/* --- real processes */

TEST(a_process_that_nobody_announced_is_read_now_and_then)
{
	WITH_WORLD(world);
	uint32_t self = (uint32_t)getpid();
	struct process_state *process = get(&world, self);
	uint64_t now_ns = clock_monotonic_ns();
	bool read;

	ASSERT_TRUE(process);
	ASSERT_EQ(process_code(process, (uintptr_t)getpid).kind, CODE_object);
	ASSERT_OK(publish(&world));
	ASSERT_TRUE(entry_of(&world, self).mappings > 1);
	ASSERT_OK(processes_refresh(world.processes, process, now_ns, &read));
	ASSERT_TRUE(read);
	ASSERT_OK(processes_refresh(world.processes, process, now_ns + 1, &read));
	ASSERT_FALSE(read);
	ASSERT_EQ(world.counters.value[COUNTER_maps_backoff], 1);
	ASSERT_OK(processes_refresh(world.processes, process, now_ns + 60 * 1000000000ull, &read));
	ASSERT_TRUE(read);
	ASSERT_EQ(world.counters.value[COUNTER_maps_reads], 3);
}

/* A Python that stands still at its very first instruction, or at the end of its input. */
static pid_t start_python(int *ret_in, FILE **ret_out, bool stopped)
{
	static const char program[] = "import sys\nprint('up', flush=True)\nsys.stdin.read()";
	int in[2], out[2], status;

	ASSERT_EQ(pipe2(in, O_CLOEXEC), 0);
	ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execl("/usr/bin/python3", "python3", "-S", "-c", program, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	*ret_in = in[1];
	*ret_out = fdopen(out[0], "r");
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_TRUE(WIFSTOPPED(status));
	if (!stopped)
		ptrace(PTRACE_DETACH, pid, 0, 0);
	return pid;
}

static void stop_python(pid_t pid, int in, FILE *out)
{
	close(in);
	fclose(out);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void wait_up(FILE *out)
{
	char line[16];

	ASSERT_TRUE(fgets(line, sizeof(line), out));
}

/* What the side band tells of PID: its exec, and its mappings. */
static void tell(struct world *world, pid_t pid)
{
	_cleanup_(maps_deinit) struct maps maps = MAPS_INIT;

	ASSERT_OK(maps_read(pid, MAPS_executable, &maps));
	ASSERT_OK(exec(world, (uint32_t)pid));
	for (size_t i = 0; i < maps.count; i++)
		ASSERT_OK(happen(world, (struct side_event){.kind = SIDE_map,
							    .pid = (uint32_t)pid,
							    .tid = (uint32_t)pid,
							    .start = maps.map[i].start,
							    .end = maps.map[i].end,
							    .offset = maps.map[i].offset,
							    .inode = maps.map[i].inode,
							    .text = maps.map[i].path}));
}

TEST(an_interpreter_is_found_inherited_and_lost_with_an_exec)
{
	WITH_WORLD(world);
	FILE *out;
	int in;

	if (access("/usr/bin/python3", X_OK))
		SKIP("no /usr/bin/python3");
	pid_t pid = start_python(&in, &out, false);
	wait_up(out);
	tell(&world, pid);
	ASSERT_OK(publish(&world));
	struct process_entry entry = entry_of(&world, (uint32_t)pid);
	ASSERT_TRUE(entry.python);
	ASSERT_TRUE(process_python(get(&world, (uint32_t)pid)));
	ASSERT_TRUE(world.python_processes[entry.python - 1].interpreters);

	ASSERT_OK(publish(&world));
	ASSERT_OK(fork_from(&world, (uint32_t)pid, CHILD));
	ASSERT_OK(publish(&world));
	ASSERT_EQ(entry_of(&world, CHILD).python, entry.python);
	// The program ends, its child goes on.
	processes_forget(world.processes, (uint32_t)pid);
	ASSERT_TRUE(world.python_processes[entry.python - 1].interpreters);
	ASSERT_OK(exec(&world, CHILD));
	ASSERT_OK(publish(&world));
	ASSERT_EQ(entry_of(&world, CHILD).python, 0);
	ASSERT_FALSE(world.python_processes[entry.python - 1].interpreters);
	stop_python(pid, in, out);
}

TEST(an_interpreter_that_is_starting_is_looked_at_again)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	WITH_WORLD(world);
	FILE *out;
	int in;

	if (access("/usr/bin/python3", X_OK))
		SKIP("no /usr/bin/python3");
	pid_t pid = start_python(&in, &out, true);
	tell(&world, pid);
	// However much it maps before it begins.
	for (int i = 0; i < 20; i++) {
		ASSERT_OK(publish(&world));
		ASSERT_EQ(entry_of(&world, (uint32_t)pid).python, 0);
		ASSERT_OK(map(&world, (uint32_t)pid, CODE, CODE + PAGE));
	}
	ptrace(PTRACE_DETACH, pid, 0, 0);
	wait_up(out);
	for (int i = 0; i < WAITS_MAX && !entry_of(&world, (uint32_t)pid).python; i++) {
		nanosleep(&pause, NULL);
		ASSERT_OK(publish(&world));
	}
	ASSERT_TRUE(entry_of(&world, (uint32_t)pid).python);
	ASSERT_EQ(world.counters.value[COUNTER_pythons_refused], 0);
	stop_python(pid, in, out);
}

/* --- memory that runs out */

static struct error *live(struct world *world)
{
	TRY(init(world, MAPPINGS));
	TRY(exec(world, PARENT));
	TRY(map(world, PARENT, CODE, CODE + PAGE));
	TRY(publish(world));
	TRY(fork_from(world, PARENT, CHILD));
	TRY(map(world, CHILD, CODE, CODE + 2 * PAGE));
	TRY(fork_from(world, CHILD, OTHER));
	TRY(exec(world, CHILD));
	TRY(publish(world));
	TRY(end(world, PARENT, PARENT));
	TRY(publish(world));
	TRY(publish(world));
	return processes_sweep(world->processes);
}

static struct error *live_and_die(void *context)
{
	_cleanup_(deinit) struct world world = {0};

	return live(&world);
}

TEST(events_are_applied_or_memory_ran_out)
{
	starved_try(live_and_die, NULL, 1000);
}

RUN_TESTS(UNIT_TEST(a_process_is_published_with_what_it_mapped),
	  UNIT_TEST(an_exec_is_published_once_more_with_the_events_behind_it),
	  UNIT_TEST(a_mapping_takes_the_place_of_others),
	  UNIT_TEST(a_child_shares_what_its_parent_has_mapped),
	  UNIT_TEST(a_child_that_maps_changes_nothing_of_its_parent),
	  UNIT_TEST(a_child_of_a_parent_that_was_not_published_is),
	  UNIT_TEST(a_child_of_a_parent_that_changed_is_published_anew),
	  UNIT_TEST(an_exec_leaves_nothing_of_what_was_mapped),
	  UNIT_TEST(a_process_that_ended_stays_for_the_samples_of_its_last_moments),
	  UNIT_TEST(a_number_that_is_used_again_is_another_process),
	  UNIT_TEST(a_thread_that_execs_takes_the_place_of_its_process),
	  UNIT_TEST(a_thread_is_no_process), UNIT_TEST(a_child_of_a_stranger_is_not_known),
	  UNIT_TEST(a_process_that_finds_the_table_of_mappings_full_has_no_entry),
	  UNIT_TEST(a_process_that_finds_the_table_of_processes_full_is_counted),
	  UNIT_TEST(a_missed_entry_is_made_again),
	  UNIT_TEST(an_end_that_was_lost_is_found_by_the_sweep),
	  UNIT_TEST(what_is_forgotten_is_gone_at_once),
	  UNIT_TEST(a_process_that_nobody_announced_is_read_now_and_then),
	  UNIT_TEST(an_interpreter_is_found_inherited_and_lost_with_an_exec),
	  UNIT_TEST(an_interpreter_that_is_starting_is_looked_at_again),
	  UNIT_TEST(events_are_applied_or_memory_ran_out))
