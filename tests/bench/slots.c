/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clock made of functions: in the n-th SLOT_MS of its life it is inside slot_n(). A profile then
 * says when its first sample was taken, without the profiler having to tell.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { SLOT_MS = 5 };

static uint64_t begin_ns;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// The number is an operand of the asm statement, so no two functions are the same to the compiler.
#define SLOT(n)                                                                                    \
	__attribute__((noinline, noclone)) static void slot_##n(void)                              \
	{                                                                                          \
		while ((now_ns() - begin_ns) / 1000000 / SLOT_MS <= 1##n - 10000)                  \
			__asm__ volatile("" : : "i"(1##n));                                        \
	}
#define TEN(OF, n)                                                                                 \
	OF(n##0)                                                                                   \
	OF(n##1)                                                                                   \
	OF(n##2)                                                                                   \
	OF(n##3) OF(n##4) OF(n##5) OF(n##6) OF(n##7) OF(n##8) OF(n##9)
#define HUNDRED(OF, n)                                                                             \
	TEN(OF, n##0)                                                                              \
	TEN(OF, n##1)                                                                              \
	TEN(OF, n##2)                                                                              \
	TEN(OF, n##3)                                                                              \
	TEN(OF, n##4) TEN(OF, n##5) TEN(OF, n##6) TEN(OF, n##7) TEN(OF, n##8) TEN(OF, n##9)
#define ALL(OF)                                                                                    \
	HUNDRED(OF, 00)                                                                            \
	HUNDRED(OF, 01)                                                                            \
	HUNDRED(OF, 02)                                                                            \
	HUNDRED(OF, 03) HUNDRED(OF, 04) HUNDRED(OF, 05) HUNDRED(OF, 06) HUNDRED(OF, 07)

ALL(SLOT)

#define CALL(n) slot_##n();

int main(void)
{
	begin_ns = now_ns();
	printf("%llu %d\n", (unsigned long long)begin_ns, SLOT_MS);
	fflush(stdout);
	ALL(CALL)
	return 0;
}
