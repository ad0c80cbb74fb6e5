/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /proc says about processes: who they are, their threads, their names. A process may end at
 * any moment; that is no failure here but an outcome, or an empty answer.
 */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum {
	PROCESS_COMM = 64, /* names of kernel workers are longer than the usual 15 characters */
	PROCESS_NAMESPACES_MAX = 33, /* the kernel nests pid namespaces 32 deep below the first */
	PIDS_MAX = 4 << 20,          /* PID_MAX_LIMIT of 64-bit kernels */
};

enum process_look {
	PROCESS_there,
	PROCESS_gone,
};

struct process_status {
	pid_t pid, parent_pid;
	uid_t uid; /* effective */
	uint64_t
		start_ticks; /* since boot, in clock ticks; with the pid it tells processes apart */
	char state;          /* 'R', 'S', 'D', 'Z', ... */
	bool kernel_thread;
	char comm[PROCESS_COMM];
	/* The pid in each namespace from ours inwards; the last is what the process calls itself.
	 */
	pid_t ns_pid[PROCESS_NAMESPACES_MAX];
	size_t ns_count;
};

/* RET is set only with PROCESS_there. */
struct error *process_read_status(pid_t pid, enum process_look *ret_look,
				  struct process_status *ret);

/* The path of the program in the process's own view, as the kernel gives it (" (deleted)" may
 * stand behind it). "" for a kernel thread and for a process that has ended. The caller frees it.
 */
struct error *process_read_exe(pid_t pid, char **ret);

/*
 * The command line with blanks between its words, at most PROCESS_COMMAND_BYTES of it. "" for a
 * kernel thread and for a process that has ended. It is whatever the process has put there. The
 * caller frees it.
 */
enum { PROCESS_COMMAND_BYTES = 4096 };
struct error *process_read_command(pid_t pid, char **ret);

/*
 * The process's control group below the root of the hierarchy ("/system.slice/x.service"): that of
 * cgroup v2 unless it is the root there, else the first of v1 that is not the root. "" for a
 * process that has ended. The caller frees it.
 */
struct error *process_read_cgroup(pid_t pid, char **ret);

enum process_bits {
	PROCESS_bits_unknown, /* a kernel thread, gone, not readable for us, no ELF file */
	PROCESS_bits_32,
	PROCESS_bits_64,
};

/* The word size of the program that PID runs. */
enum process_bits process_read_bits(pid_t pid);

/* Ascending. */
struct pids {
	pid_t *pid;
	size_t count, room;
};

#define PIDS_INIT                                                                                  \
	{                                                                                          \
		0                                                                                  \
	}

void pids_deinit(struct pids *pids);

/* All processes there are. */
struct error *processes_list(struct pids *ret);

/* The thread ids of PID; none when it has ended. */
struct error *process_list_threads(pid_t pid, struct pids *ret);

/* The process that thread TID belongs to. */
struct error *process_of_thread(pid_t tid, enum process_look *ret_look, pid_t *ret);

/*
 * Does NAME match the process's comm, or the last path component of its argv[0]? Processes often
 * rename themselves in the one place or the other. False for one that has ended.
 */
bool process_matches(pid_t pid, const regex_t *name);

/* The processes that match the extended regular expression PATTERN. One that is no expression is a
 * failure that says what is wrong with it. */
struct error *processes_find(const char *pattern, struct pids *ret);
