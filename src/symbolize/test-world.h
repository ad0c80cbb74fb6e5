/* SPDX-License-Identifier: Apache-2.0 */
/* A directory that stands for the root of a target, programs built in it, and a symbolizer that
 * looks at one of them. */
#pragma once

#include <stdlib.h>

#include "symbolize/symbolizer.h"
#include "symbolize/test-helpers.h"

struct world {
	char root[32]; /* where the opener finds "/" */
	struct symbolizer *symbolizer;
	struct object *object;
	struct symbol_object *symbols;
	struct symbol found[SYMBOLS_MAX];
	size_t count;
	unsigned opened; /* by the symbolizer */
};

static inline int open_in_world(void *context, uint32_t pid, const char *path)
{
	struct world *world = context;
	_cleanup_free_ char *full = NULL;

	if (pid != 7) // nothing is taken from this machine's own root
		return -1;
	ASSERT_OK(str_format(&full, "%s%s", world->root, path));
	int fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	world->opened += fd >= 0;
	return fd;
}

/* Run a command in the world's root. False: it failed. */
__attribute__((format(printf, 2, 3))) static inline bool run(const struct world *world,
							     const char *format, ...)
{
	_cleanup_free_ char *command = NULL;
	_cleanup_free_ char *full = NULL;
	va_list args;

	va_start(args, format);
	ASSERT_TRUE(vasprintf(&command, format, args) >= 0);
	va_end(args);
	ASSERT_OK(str_format(&full, "cd '%s' && ( %s ) >out.txt 2>&1", world->root, command));
	return system(full) == 0;
}

#define MUST_RUN(...) ASSERT_TRUE(run(__VA_ARGS__))

static inline void write_file(const struct world *world, const char *name, const char *text)
{
	_cleanup_free_ char *path = NULL;

	ASSERT_OK(str_format(&path, "%s/%s", world->root, name));
	_cleanup_fclose_ FILE *f = fopen(path, "we");
	ASSERT_TRUE(f != NULL);
	fputs(text, f);
}

static inline void world_begin(struct world *world)
{
	*world = (struct world){.root = "/tmp/cairn-test-XXXXXX"};
	ASSERT_TRUE(mkdtemp(world->root) != NULL);
}

static inline void close_program(struct world *world)
{
	symbolizer_free(take(world->symbolizer));
	object_free(take(world->object));
}

static inline void world_end(struct world *world)
{
	close_program(world);
	ASSERT_TRUE(str_starts(world->root, "/tmp/cairn-test-"));
	run(world, "rm -rf %s", world->root);
}

/* Open the file NAME of the world's root as the program to symbolize. */
static inline void open_program(struct world *world, const char *name, bool lines)
{
	struct symbolizer_options options = {
		.open = open_in_world, .context = world, .lines = lines};
	_cleanup_free_ char *full = NULL;
	_cleanup_free_ char *path = NULL;

	close_program(world);
	ASSERT_OK(str_format(&path, "/%s", name));
	ASSERT_OK(str_format(&full, "%s%s", world->root, path));
	int fd = open(full, O_RDONLY | O_CLOEXEC);
	ASSERT_TRUE(fd >= 0);
	ASSERT_OK(object_open(fd, name, &world->object));
	ASSERT_OK(symbolizer_new(&options, &world->symbolizer));
	struct symbol_place place = {.path = path, .pid = 7};
	ASSERT_OK(symbolizer_object(world->symbolizer, world->object, &place, &world->symbols));
}

static inline const char *name_at(struct world *world, uint64_t addr)
{
	ASSERT_OK(symbolize_object(world->symbols, addr, false, world->found, &world->count));
	ASSERT_TRUE(world->count >= 1);
	return world->found[world->count - 1].function;
}

/* The address nm gives for NAME. */
static inline uint64_t addr_of(struct world *world, const char *file, const char *name)
{
	_cleanup_free_ char *path = NULL;
	unsigned long long addr = 0;

	MUST_RUN(world, "nm %s | awk '$3 == \"%s\" { print $1 }' >addr.txt", file, name);
	ASSERT_OK(str_format(&path, "%s/addr.txt", world->root));
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	ASSERT_TRUE(f && fscanf(f, "%llx", &addr) == 1);
	return addr;
}
