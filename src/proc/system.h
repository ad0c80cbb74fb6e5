/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of this machine: the facts a profile carries about where it was taken. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/utsname.h>

#include "base/error.h"

/* Sized as struct utsname's members are. */
enum { SYSTEM_TEXT = sizeof(((struct utsname *)0)->release) };

struct system_facts {
	char host[SYSTEM_TEXT];
	char name[SYSTEM_TEXT];    /* "Linux" */
	char release[SYSTEM_TEXT]; /* "6.1.0-18-amd64" */
	char version[SYSTEM_TEXT]; /* "#1 SMP PREEMPT_DYNAMIC ..." */
	char machine[SYSTEM_TEXT]; /* "x86_64" */
	uint32_t cpus;             /* online now */
};

struct error *system_read(struct system_facts *ret);

/*
 * The number that was given to the newest process or thread in our PID namespace. False: the kernel
 * does not say. Where /proc/loadavg is not the kernel's own (lxcfs), it may be any number.
 */
bool system_read_last_pid(uint32_t *ret);

/* Do processes have other numbers here than the kernel gave them? (Or it cannot be found out.) */
bool system_has_own_pid_namespace(void);
