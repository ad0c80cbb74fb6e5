/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's stack in the kernel, as the kernel tells it to whoever may ask. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "capture/dump.h"

/*
 * Add the kernel frames of THREAD of PID to its frames, which are empty. Where they are not to be
 * had the dump has a note that says why.
 */
struct error *dump_kernel_stack(struct dump *dump, pid_t pid, struct dump_thread *thread);

/* The same of the text of /proc/PID/stack. */
struct error *dump_kernel_parse(struct dump *dump, struct bytes text, struct dump_thread *thread);
