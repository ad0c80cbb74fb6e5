/* SPDX-License-Identifier: Apache-2.0 */
/* The same objects, row storage and names as a capture uses, over one process. */
#include "machine.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/array.h"
#include "proc/maps.h"

static struct error *new_segment(void *context, unsigned number, struct unwind_segment **ret)
{
	struct machine *machine = context;

	TRY(ARRAY_NEW(machine->segment[number], 1));
	*ret = machine->segment[number];
	return NULL;
}

/* Debug files and their like: the targets are of this machine. */
static int open_here(void *context, uint32_t pid, const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static struct error *machine_init(struct machine *machine)
{
	TRY(ARRAY_NEW(machine->modules, STORE_MODULES_MAX));
	TRY(ARRAY_NEW(machine->rules, UNWIND_RULES_MAX));
	TRY(ARRAY_NEW(machine->mapping, MACHINE_MAPPINGS));
	TRY(ARRAY_NEW(machine->object, MACHINE_MAPPINGS));
	TRY(ARRAY_NEW(machine->symbols, STORE_MODULES_MAX));
	TRY(ARRAY_NEW(machine->starts, STORE_MODULES_MAX));
	struct store_options options = {
		.segments_max = MACHINE_SEGMENTS,
		.segment = new_segment,
		.context = machine,
		.modules = machine->modules,
		.rules = machine->rules,
		.counters = &machine->counters,
	};
	struct symbolizer_options naming = {.open = open_here};
	TRY(store_new(&options, &machine->store));
	TRY(objects_new(machine->store, &machine->counters, &machine->objects));
	TRY(symbolizer_new(&naming, &machine->symbolizer));
	return machine_refresh(machine);
}

struct error *machine_new(pid_t pid, struct machine **ret)
{
	struct machine *machine;

	TRY(ARRAY_NEW(machine, 1));
	machine->pid = pid;
	struct error *err = machine_init(machine);
	if (err) {
		machine_free(machine);
		return err;
	}
	*ret = machine;
	return NULL;
}

void machine_free(struct machine *machine)
{
	if (!machine)
		return;
	symbolizer_free(machine->symbolizer);
	for (size_t i = 0; machine->starts && i < STORE_MODULES_MAX; i++)
		rows_deinit(&machine->starts[i]);
	objects_free(machine->objects);
	store_free(machine->store);
	for (size_t i = 0; i < MACHINE_SEGMENTS; i++)
		free(machine->segment[i]);
	free(machine->modules);
	free(machine->rules);
	free(machine->mapping);
	free(machine->object);
	free(machine->symbols);
	free(machine->starts);
	free(machine);
}

static struct error *find_object(struct machine *machine, const struct map *map, uint32_t *ret)
{
	*ret = OBJECT_NONE;
	if (!strcmp(map->path, "[vdso]"))
		return objects_find_vdso(machine->objects, ret);
	if (!map_is_file(map))
		return NULL;
	struct object_source source = {
		.path = map->path,
		.pid = (uint32_t)machine->pid,
		.start = map->start,
		.end = map->end,
		.inode = map->inode,
	};
	return objects_find(machine->objects, &source, ret);
}

static struct error *add_mapping(struct machine *machine, const struct map *map)
{
	struct unwind_mapping to = {.start = map->start, .end = map->end};
	uint32_t object;
	uint64_t addr;

	if (machine->mappings == MACHINE_MAPPINGS)
		return error_new("more than %d executable mappings", MACHINE_MAPPINGS);
	TRY(find_object(machine, map, &object));
	if (object == OBJECT_NONE)
		to.module = UNWIND_MODULE_frame_ptr;
	else if (objects_addr_of_offset(machine->objects, object, map->offset, &addr)) {
		to.bias = map->start - addr;
		to.module = objects_module(machine->objects, object);
	}
	machine->object[machine->mappings] = object;
	machine->mapping[machine->mappings++] = to;
	return NULL;
}

struct error *machine_refresh(struct machine *machine)
{
	_cleanup_(maps_deinit) struct maps maps = MAPS_INIT;

	TRY(maps_read(machine->pid, MAPS_executable, &maps));
	machine->mappings = 0;
	for (size_t i = 0; i < maps.count; i++)
		if (strcmp(maps.map[i].path, "[vsyscall]") != 0)
			TRY(add_mapping(machine, &maps.map[i]));
	return NULL;
}

bool machine_read(const struct machine *machine, uint64_t addr, void *to, size_t size)
{
	struct iovec local = {.iov_base = to, .iov_len = size};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = size};

	return process_vm_readv(machine->pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static int read_target(void *context, uint64_t addr, void *to, size_t size)
{
	return machine_read(context, addr, to, size) ? 0 : -1;
}

static struct walk_state state_of(const struct user_regs_struct *regs)
{
	return (struct walk_state){
		.pc = regs->rip,
		.sp = regs->rsp,
		.fp = regs->rbp,
		.reg = {[UNWIND_RAX] = regs->rax,
			[UNWIND_RDX] = regs->rdx,
			[UNWIND_RCX] = regs->rcx,
			[UNWIND_RBX] = regs->rbx,
			[UNWIND_RSI] = regs->rsi,
			[UNWIND_RDI] = regs->rdi,
			[UNWIND_RBP] = regs->rbp,
			[UNWIND_RSP] = regs->rsp,
			[UNWIND_R8] = regs->r8,
			[UNWIND_R9] = regs->r9,
			[UNWIND_R10] = regs->r10,
			[UNWIND_R11] = regs->r11,
			[UNWIND_R12] = regs->r12,
			[UNWIND_R13] = regs->r13,
			[UNWIND_R14] = regs->r14,
			[UNWIND_R15] = regs->r15},
	};
}

/* The mapping of PC; -1: there is none. */
static ptrdiff_t mapping_at(const struct machine *machine, uint64_t pc)
{
	for (size_t i = 0; i < machine->mappings; i++)
		if (pc >= machine->mapping[i].start && pc < machine->mapping[i].end)
			return (ptrdiff_t)i;
	return -1;
}

struct error *machine_walk(struct machine *machine, const struct user_regs_struct *regs,
			   unsigned depth, uint64_t *frames, struct host_walk *ret)
{
	struct host_tables tables;
	bool again;

	do {
		tables = store_tables(machine->store);
		tables.mapping = machine->mapping;
		tables.mappings = machine->mappings;
		*ret = (struct host_walk){
			.tables = &tables,
			.memory = {read_target, machine},
			.words = frames,
			.walk = {.at = state_of(regs),
				 .flags = WALK_leaf,
				 .depth = depth,
				 .fs_base = regs->fs_base,
				 .mappings = (uint32_t)machine->mappings},
		};
		host_walk_native(ret);
		ptrdiff_t at = -1;
		if (ret->walk.end == END_not_loaded)
			at = mapping_at(machine,
					ret->walk.at.pc - (ret->walk.flags & WALK_call ? 1 : 0));
		again = at >= 0 && machine->object[at] != OBJECT_NONE &&
			!store_loaded(machine->store, machine->mapping[at].module);
		if (again)
			TRY(objects_load(machine->objects, machine->object[at]));
	} while (again);
	ret->tables = NULL;
	return NULL;
}

static struct error *symbols_of(struct machine *machine, uint32_t number,
				struct symbol_object **ret)
{
	if (!machine->symbols[number]) {
		TRY(objects_load(machine->objects, number));
		TRY(objects_starts(machine->objects, number, &machine->starts[number]));
		struct symbol_place place = {
			.path = objects_path(machine->objects, number),
			.pid = (uint32_t)machine->pid,
			.rows = &machine->starts[number],
		};
		TRY(symbolizer_object(machine->symbolizer, objects_object(machine->objects, number),
				      &place, &machine->symbols[number]));
	}
	*ret = machine->symbols[number];
	return NULL;
}

struct error *machine_place(struct machine *machine, uint64_t pc, bool return_address,
			    struct machine_place *ret)
{
	ptrdiff_t at = mapping_at(machine, pc - return_address);
	struct symbol_object *from;
	struct symbol symbol[SYMBOLS_MAX];
	size_t count;

	*ret = (struct machine_place){.object = "[anonymous]", .function = "?", .addr = pc};
	if (at < 0 || machine->object[at] == OBJECT_NONE)
		return NULL;
	ret->object = objects_path(machine->objects, machine->object[at]);
	ret->addr = pc - machine->mapping[at].bias;
	if (!objects_is_code(machine->objects, machine->object[at]))
		return NULL;
	TRY(symbols_of(machine, machine->object[at], &from));
	TRY(symbolize_object(from, ret->addr, return_address, symbol, &count));
	ret->function = symbol[count - 1].function;
	ret->named = symbol[count - 1].named;
	ret->start = symbol[count - 1].start;
	return NULL;
}
