/* SPDX-License-Identifier: Apache-2.0 */
/* The linker sends allocations of our own code here (--wrap): they are counted, and may fail. */
#include "starved.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

enum {
	SLOTS = 1 << 20, /* a power of two; of blocks that are in use at a time */
	STEPS = 16,      /* beyond the last that each fail: one in so many */
	LEAKS_SHOWN = 5,
	CALLERS = 8,
};

struct block {
	void *at;
	void *caller[CALLERS];
	unsigned long number; /* of the allocation, of all that there were */
};

/* Blocks that our own code has, hashed by address with the next free slot. */
static struct block blocks[SLOTS];
static size_t live;
static unsigned long count, fails_at; /* allocations of this try; the one that fails, 0: none */
static unsigned long total, count_before;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void *__real_malloc(size_t size);
void *__real_calloc(size_t items, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *block);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
int __real_vasprintf(char **ret, const char *format, va_list args);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t items, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *block);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t size);
int __wrap_vasprintf(char **ret, const char *format, va_list args);
int __wrap_asprintf(char **ret, const char *format, ...) __attribute__((format(printf, 2, 3)));

static size_t slot_of(const void *at)
{
	return (size_t)(((uintptr_t)at >> 4) * 0x9e3779b97f4a7c15ull >> 20) & (SLOTS - 1);
}

static void add_locked(struct block block)
{
	size_t i = slot_of(block.at);

	if (live == SLOTS / 2)
		abort();
	while (blocks[i].at)
		i = (i + 1) & (SLOTS - 1);
	blocks[i] = block;
	live++;
}

/* Blocks that a library made and we free are none of ours. */
static void remove_locked(const void *at)
{
	size_t i = slot_of(at);

	while (blocks[i].at && blocks[i].at != at)
		i = (i + 1) & (SLOTS - 1);
	if (!blocks[i].at)
		return;
	live--;
	blocks[i].at = NULL;
	// What stands behind the hole may have wanted to stand in it.
	for (i = (i + 1) & (SLOTS - 1); blocks[i].at; i = (i + 1) & (SLOTS - 1)) {
		struct block moved = blocks[i];
		blocks[i].at = NULL;
		live--;
		add_locked(moved);
	}
}

/* Is this the allocation that fails? */
static bool starve(void)
{
	return __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) == fails_at;
}

static void *enter(void *at)
{
	struct block block = {.at = at};

	if (!at)
		return NULL;
	(void)backtrace(block.caller, CALLERS);
	pthread_mutex_lock(&lock);
	block.number = ++total;
	add_locked(block);
	pthread_mutex_unlock(&lock);
	return at;
}

static void leave(const void *at)
{
	pthread_mutex_lock(&lock);
	if (at)
		remove_locked(at);
	pthread_mutex_unlock(&lock);
}

void *__wrap_malloc(size_t size)
{
	return starve() ? NULL : enter(__real_malloc(size));
}

void *__wrap_calloc(size_t items, size_t size)
{
	return starve() ? NULL : enter(__real_calloc(items, size));
}

void *__wrap_realloc(void *old, size_t size)
{
	if (starve())
		return NULL;
	// Before it is freed: another thread may get the block at once.
	leave(old);
	return enter(__real_realloc(old, size));
}

void __wrap_free(void *block)
{
	leave(block);
	__real_free(block);
}

char *__wrap_strdup(const char *text)
{
	return starve() ? NULL : enter(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t size)
{
	return starve() ? NULL : enter(__real_strndup(text, size));
}

int __wrap_vasprintf(char **ret, const char *format, va_list args)
{
	int length = starve() ? -1 : __real_vasprintf(ret, format, args);

	if (length >= 0)
		enter(*ret);
	return length;
}

int __wrap_asprintf(char **ret, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	int length = starve() ? -1 : __real_vasprintf(ret, format, args);
	va_end(args);
	if (length >= 0)
		enter(*ret);
	return length;
}

/* --- trying */

/* For addr2line. */
static void show_callers(const struct block *block)
{
	for (int i = 0; i < CALLERS && block->caller[i]; i++) {
		Dl_info info = {0};
		dladdr(block->caller[i], &info);
		print_message("  %s+0x%zx\n", info.dli_fname,
			      (size_t)((char *)block->caller[i] - (char *)info.dli_fbase));
	}
}

/* Where blocks that were made since count_before came from. */
static void show_blocks(void)
{
	int shown = 0;

	for (size_t i = 0; i < SLOTS && shown < LEAKS_SHOWN; i++) {
		if (!blocks[i].at || blocks[i].number <= count_before)
			continue;
		print_message("in use: %p, made by\n", blocks[i].at);
		show_callers(&blocks[i]);
		shown++;
	}
}

/* Run FN with allocation number FAILS. False: it has less. */
static bool try_one(starved_fn *fn, void *context, unsigned long fails)
{
	const size_t before = live;

	count = 0;
	count_before = total;
	fails_at = fails;
	struct error *err = fn(context);
	const bool reached = fails && count >= fails;
	fails_at = 0;
	if (err && (!reached || (!strstr(error_text(err), "out of memory") &&
				 !strstr(error_text(err), strerror(ENOMEM))))) {
		print_error("allocation %lu: %s\n", fails, error_text(err));
		error_free(err);
		fail();
	}
	error_free(err);
	if (live != before) {
		print_error("allocation %lu: %zu blocks left behind\n", fails, live - before);
		show_blocks();
		fail();
	}
	return reached;
}

void starved_try(starved_fn *fn, void *context, unsigned long each)
{
	unsigned long fails = 1;

	try_one(fn, context, 0);
	while (try_one(fn, context, fails))
		fails += fails < each ? 1 : 1 + fails / STEPS;
	print_message("%lu allocations\n", count);
}
