/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 200 threads: 48 each in pthread_cond_wait(), epoll_wait(), nanosleep() and read(), named "futex",
 * "epoll", "sleep" and "read", and 7 that execute their own code, named "spin", which take all
 * signals. Prints a line when all are there. At the end of its input it prints how many calls were
 * interrupted and how many times SIGRTMIN came.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { EACH = 48, SPINNERS = 7 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static atomic_int interrupted, signals, there;
static int nothing[2];

static void count_signal(int number)
{
	signals++;
}

static void *wait_in_futex(void *unused)
{
	prctl(PR_SET_NAME, "futex");
	pthread_mutex_lock(&lock);
	there++;
	for (;;)
		pthread_cond_wait(&never, &lock);
	return unused;
}

static void *wait_in_epoll(void *unused)
{
	struct epoll_event event;
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	prctl(PR_SET_NAME, "epoll");
	there++;
	for (;;)
		interrupted += epoll_wait(epoll, &event, 1, -1) < 0 && errno == EINTR;
	return unused;
}

static void *wait_in_sleep(void *unused)
{
	const struct timespec long_time = {.tv_sec = 600};

	prctl(PR_SET_NAME, "sleep");
	there++;
	for (;;)
		interrupted += nanosleep(&long_time, NULL) < 0 && errno == EINTR;
	return unused;
}

static void *wait_in_read(void *unused)
{
	char byte;

	prctl(PR_SET_NAME, "read");
	there++;
	for (;;)
		interrupted += read(nothing[0], &byte, 1) < 0 && errno == EINTR;
	return unused;
}

static void *spin(void *unused)
{
	static atomic_ulong rounds;
	sigset_t none;

	prctl(PR_SET_NAME, "spin");
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	there++;
	for (;;)
		rounds++;
	return unused;
}

static int start(void *(*run)(void *), int count)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (int i = 0; i < count; i++)
		if (pthread_create(&thread, &attr, run, NULL))
			return -1;
	return 0;
}

int main(void)
{
	struct sigaction action = {.sa_handler = count_signal};
	sigset_t all;
	char byte;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	sigaction(SIGRTMIN, &action, NULL);
	if (pipe(nothing) || start(wait_in_futex, EACH) || start(wait_in_epoll, EACH) ||
	    start(wait_in_sleep, EACH) || start(wait_in_read, EACH) || start(spin, SPINNERS))
		return 2;
	while (there < 4 * EACH + SPINNERS)
		usleep(1000);
	usleep(100000);
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	usleep(100000);
	printf("%d %d\n", interrupted, signals);
	return 0;
}
