/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread waits in, in words, from its system call and that call's arguments. Who holds what
 * it waits for is waits/'s question.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "proc/threads.h"

/* x86-64's name of a system call; NULL: no kernel that we know has it. */
const char *syscall_name(uint64_t number);

/* Which argument of it is a file (or the directory where its path begins); -1: none is. */
int syscall_descriptor(uint64_t number);

/*
 * THREAD, read with THREADS_everything: "running", "epoll_wait on 7", "read from 3 (pipe:[123])",
 * "futex 0x7f2c004008c8", "wait4 for 17", "nanosleep", "stopped". What a descriptor leads to is
 * looked up now, and left out if that is not permitted or the thread has ended. One line without
 * control characters, however odd the file's name; not longer than WAITING_BYTES. The caller frees
 * it.
 */
enum { WAITING_BYTES = 512 };
struct error *thread_waiting_text(const struct thread *thread, char **ret);
