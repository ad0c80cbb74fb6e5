/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that hardly live: forks RATE SECONDS PROGRAM... starts RATE programs a second, one
 * after the other from the list, and waits for each. Every 16th is a copy of this program that
 * forks again without exec. Prints how many were started, and how many it was late by at the most.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GRANDCHILD = 16 };

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void be_child(char *program, int again)
{
	char *words[] = {program, NULL};

	if (again) {
		pid_t child = fork();
		if (child == 0)
			_exit(0);
		if (child > 0)
			waitpid(child, NULL, 0);
		_exit(0);
	}
	// What the programs print is of no interest.
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	execv(program, words);
	_exit(127);
}

int main(int argc, char **argv)
{
	double rate = argc > 3 ? strtod(argv[1], NULL) : 0,
	       seconds = argc > 3 ? strtod(argv[2], NULL) : 0;
	long started = 0, failed = 0, reaped = 0, late = 0;

	if (rate <= 0 || seconds <= 0) {
		fprintf(stderr, "usage: forks RATE SECONDS PROGRAM...\n");
		return 2;
	}
	for (double begin = now(), t = begin; t < begin + seconds; t = now()) {
		long due = (long)((t - begin) * rate) - started - failed;
		late = due > late ? due : late;
		for (; due > 0; due--) {
			long n = started + failed;
			pid_t child = fork();
			if (child == 0)
				be_child(argv[3 + n % (argc - 3)], n % GRANDCHILD == 0);
			child > 0 ? started++ : failed++;
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			reaped++;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		reaped++;
	printf("%ld %ld %ld %ld\n", started, failed, reaped, late);
	return 0;
}
