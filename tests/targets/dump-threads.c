/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads in known places: the first one in pause(), "locked-N" in pthread_mutex_lock(), "reader"
 * in read() from a pipe, "sleeper" in nanosleep(), "spinner" in its own code. Prints a line when
 * all are where they should be. Counts calls that were interrupted, and exits with 1 at the end of
 * its input if there were any.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { LOCKED = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int interrupted;
static volatile unsigned long spun;
static int nothing[2];

static void name_thread(const char *name)
{
	prctl(PR_SET_NAME, name);
}

__attribute__((noinline)) static void wait_for_lock(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

static void *locked(void *number)
{
	char name[16];

	snprintf(name, sizeof(name), "locked-%d", *(int *)number);
	name_thread(name);
	wait_for_lock();
	return NULL;
}

static void *reader(void *unused)
{
	char byte;

	name_thread("reader");
	while (read(nothing[0], &byte, 1) < 0 && errno == EINTR)
		interrupted++;
	return unused;
}

static void *sleeper(void *unused)
{
	struct timespec long_time = {.tv_sec = 600};

	name_thread("sleeper");
	while (nanosleep(&long_time, &long_time) < 0 && errno == EINTR)
		interrupted++;
	return unused;
}

__attribute__((noinline)) static void spin_here(void)
{
	for (;;)
		spun++;
}

static void *spinner(void *unused)
{
	name_thread("spinner");
	spin_here();
	return unused;
}

/* The end of standard input ends the program. */
static void *watcher(void *unused)
{
	char byte;

	name_thread("watcher");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	_exit(interrupted ? EXIT_FAILURE : EXIT_SUCCESS);
	return unused; // for the compiler
}

int main(void)
{
	static int number[LOCKED];
	pthread_t thread;

	if (pipe(nothing) < 0)
		return EXIT_FAILURE;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < LOCKED; i++) {
		number[i] = i;
		pthread_create(&thread, NULL, locked, &number[i]);
	}
	pthread_create(&thread, NULL, reader, NULL);
	pthread_create(&thread, NULL, sleeper, NULL);
	pthread_create(&thread, NULL, spinner, NULL);
	pthread_create(&thread, NULL, watcher, NULL);
	usleep(200000);
	puts("ready");
	fflush(stdout);
	for (;;) {
		pause();
		interrupted++;
	}
}
