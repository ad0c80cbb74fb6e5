/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack of a given depth, for ever: frames DEPTH. "descend" is there DEPTH times, "spin" above
 * it. The empty asm statements keep the compiler from making loops of calls.
 */
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned long turns = 1; // never 0 again in anybody's lifetime

__attribute__((noinline, noclone)) static int spin(void)
{
	while (turns)
		turns = turns + 1;
	return 0;
}

__attribute__((noinline, noclone)) static int descend(long left)
{
	int result = left > 1 ? descend(left - 1) : spin();

	__asm__ volatile("" : "+r"(result)); // work behind the call: it is no tail call
	return result + 1;
}

int main(int argc, char **argv)
{
	long depth = argc == 2 ? strtol(argv[1], NULL, 10) : 0;

	if (depth < 1 || depth > 1000) {
		fprintf(stderr, "usage: frames DEPTH, 1 to 1000\n");
		return 2;
	}
	int result = descend(depth);
	__asm__ volatile("" : "+r"(result));
	return result;
}
