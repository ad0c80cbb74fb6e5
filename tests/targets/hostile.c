/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that changes while it is read. As a program: two threads, one that waits and one that
 * runs, whose stacks a third writes over all the time. As a library, for hostile.py: words that
 * change all the time.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { DEPTH = 30, WORDS_MAX = 256, VALUES_MAX = 16 };

/* From the innermost frame's to the outermost one's. */
struct stack {
	volatile uint64_t *low, *high;
	int spins;
	pthread_barrier_t *ready;
};

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Never returns, nor do its callers: nobody needs what is on the stack. */
__attribute__((noinline)) static void descend(struct stack *stack, int depth)
{
	volatile uint64_t here = (uint64_t)depth;

	if (depth) {
		descend(stack, depth - 1);
		here++;
		return;
	}
	stack->low = &here + 8;
	int spins = stack->spins;
	pthread_barrier_wait(stack->ready);
	while (spins)
		__asm__ volatile("");
	for (;;)
		pause();
}

static void *victim(void *argument)
{
	volatile uint64_t here = 0;
	struct stack *stack = argument;

	stack->high = &here;
	descend(stack, DEPTH);
	return NULL;
}

static uint64_t any_value(const struct stack *stack, uint64_t *state)
{
	uint64_t random = next(state), words = (uint64_t)(stack->high - stack->low);

	switch (random >> 60) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX - (random & 0xff);
	case 2: // what stands in a stack for a frame of an interpreter
		return 1ull << 62 | 1ull << 56 | (random & 0xffffff);
	case 3:
		return random;
	case 4:
	case 5:
	case 6:
	case 7:
		return (uint64_t)(uintptr_t)&descend + (random & 0xff);
	case 8:
		return (uint64_t)(uintptr_t)stack->low - (random & 0xffff);
	default:
		return (uint64_t)(uintptr_t)(stack->low + random % words);
	}
}

int main(void)
{
	static struct stack stacks[2];
	pthread_barrier_t ready;
	pthread_t thread;
	uint64_t state = 88172645463325252ull;

	pthread_barrier_init(&ready, NULL, 3);
	for (int i = 0; i < 2; i++) {
		stacks[i] = (struct stack){.spins = i, .ready = &ready};
		pthread_create(&thread, NULL, victim, &stacks[i]);
	}
	pthread_barrier_wait(&ready);
	// The one that waits has to get there.
	sleep(1);
	puts("ready");
	fflush(stdout);
	for (unsigned i = 0;; i++) {
		const struct stack *stack = &stacks[i & 1];
		uint64_t words = (uint64_t)(stack->high - stack->low);
		stack->low[next(&state) % words] = any_value(stack, &state);
	}
}

/* --- for hostile.py */

static volatile uint64_t *words[WORDS_MAX];
static uint64_t values[VALUES_MAX];
static unsigned word_count, value_count;

void flip(uint64_t address);
void flip_to(uint64_t value);
void flip_for_ever(void);

/* One more word that changes. */
void flip(uint64_t address)
{
	if (word_count < WORDS_MAX)
		words[word_count++] = (volatile uint64_t *)(uintptr_t)address;
}

/* One more value that words take, beside those that they have. */
void flip_to(uint64_t value)
{
	if (value_count < VALUES_MAX)
		values[value_count++] = value;
}

static void *flip_words(void *unused)
{
	uint64_t right[WORDS_MAX], state = 88172645463325252ull;

	for (unsigned i = 0; i < word_count; i++)
		right[i] = *words[i];
	for (;;) {
		uint64_t random = next(&state);
		unsigned word = (unsigned)(random >> 32) % word_count;
		unsigned value = (unsigned)random % (2 * value_count);
		*words[word] = value < value_count ? values[value] : right[word];
	}
	return NULL;
}

void flip_for_ever(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, flip_words, NULL);
}
