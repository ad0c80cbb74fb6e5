/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of every shape that a C compiler makes. Built several times: see TARGETS of step.py. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile long sink;

NOINLINE static long recurse(int depth)
{
	volatile char pad[24];

	pad[0] = (char)depth;
	return depth ? recurse(depth - 1) + pad[0] : 1;
}

NOINLINE static long variable_array(int count)
{
	volatile char array[count];

	for (int i = 0; i < count; i++)
		array[i] = (char)i;
	return recurse(2) + array[count - 1];
}

NOINLINE static long big_frame(int with)
{
	volatile char array[70000];

	array[with] = 1;
	array[69999] = 2;
	return recurse(1) + array[with];
}

NOINLINE static long tail_last(long value)
{
	sink += value;
	return value * 3;
}

NOINLINE static long tail_first(long value)
{
	sink -= value;
	return tail_last(value + 1);
}

typedef double vector __attribute__((vector_size(32)));

/* A local that needs 32 bytes of alignment: the stack pointer is rounded down. */
NOINLINE static double aligned(double by)
{
	volatile vector v = {by, by * 2, by * 3, by * 4};

	sink += recurse(1);
	return v[0] + v[3];
}

NOINLINE static double aligned_array(int count, double by)
{
	volatile vector v = {by, by, by, by};
	volatile char array[count];

	array[0] = 1;
	sink += recurse(1) + array[0];
	return v[1];
}

NOINLINE static double sum(int count, ...)
{
	va_list list;
	double all = 0;

	va_start(list, count);
	for (int i = 0; i < count; i++)
		all += va_arg(list, double);
	va_end(list);
	return all;
}

NOINLINE static long many(long a, long b, long c, long d, long e, long f, long g, long h)
{
	return recurse(1) + a + b + c + d + e + f + g + h;
}

static jmp_buf back;

NOINLINE static void jump_from(int depth)
{
	if (!depth)
		longjmp(back, 3);
	jump_from(depth - 1);
	sink++;
}

static void on_signal(int number)
{
	sink += recurse(1) + number;
}

static void on_signal_jump(int number)
{
	siglongjmp(back, number);
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static long (*const table[])(int) = {variable_array, big_frame, recurse};

NOINLINE static void through_pointers(void)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		sink += table[i](17);
}

NOINLINE static void jumps(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	static char stack[65536];
	stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};

	if (!setjmp(back))
		jump_from(3);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	sigaltstack(&other, NULL);
	action.sa_flags = SA_ONSTACK | SA_SIGINFO;
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	action.sa_handler = on_signal_jump;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &action, NULL);
	if (!sigsetjmp(back, 1))
		raise(SIGUSR2);
}

int main(void)
{
	int numbers[] = {5, 3, 9, 1, 7, 2};
	char text[128];

	sink = recurse(5);
	through_pointers();
	sink += tail_first(4);
	sink += (long)(aligned(1.5) + aligned_array(9, 2.5) + sum(3, 1.0, 2.0, 3.0));
	sink += many(1, 2, 3, 4, 5, 6, 7, 8);
	jumps();
	qsort(numbers, sizeof(numbers) / sizeof(numbers[0]), sizeof(numbers[0]), compare);
	snprintf(text, sizeof(text), "%f %ld %s %g", sqrt((double)sink), sink, "text", pow(1.1, 3));
	sink += (long)strlen(text);
	return 0;
}
