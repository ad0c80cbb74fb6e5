/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core file: the memory, the threads and the mappings of a process at one moment. Written by the
 * kernel, by gdb's gcore, or compressed by systemd-coredump; x86-64. Everything in it is hostile.
 *
 * By default the kernel leaves pages out that stand in files anyway (core(5), "coredump_filter":
 * 0x33), so that the code of a program is not in its core. Such reads are answered from the mapped
 * files, if what the core holds of them does not prove them to be others.
 *
 * A core that was cut (a full disk, a limit) gives what it holds, and says what it lacks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/sample.h"
#include "base/error.h"
#include "proc/maps.h"
#include "proc/memory.h"
#include "proc/root.h"

enum {
	CORE_THREADS_MAX = 1 << 16,
	CORE_NAME = 16,
	CORE_ARGUMENTS = 80,
	CORE_REMARKS_MAX = 64,
};

#define CORE_UNPACKED_MAX (64ull << 30)

/* What the reader of a core asks of its caller: this layer opens no path. */
struct core_options {
	/*
	 * Open the file that the process knew as PATH; as root_open(), which does it for a core of
	 * this machine. NULL: no file is to be had.
	 */
	struct error *(*open)(void *context, const char *path, enum root_outcome *ret, int *ret_fd);
	/*
	 * A new empty file without a name, open for reading and writing: a compressed core is
	 * unpacked into it. NULL: compressed cores are refused.
	 */
	struct error *(*temporary)(void *context, int *ret_fd);
	void *context;         /* borrowed, for as long as the core is open */
	uint64_t unpacked_max; /* bytes; 0: CORE_UNPACKED_MAX. What lies beyond is missing */
};

struct core;

/*
 * Open the core in FD, which is consumed (on failure it is the caller's as ever). NAME is for
 * messages and is copied; so are OPTIONS.
 */
struct error *core_open(int fd, const char *name, const struct core_options *options,
			struct core **ret);
void core_close(struct core *core);

static inline void cleanup_core(struct core **core)
{
	core_close(*core);
}
#define _cleanup_core_ _cleanup_(cleanup_core)

struct core_facts {
	pid_t pid, parent_pid; /* 0: not known */
	uid_t uid;
	char name[CORE_NAME + 1];           /* of the program, cut to 15 characters; may be "" */
	char arguments[CORE_ARGUMENTS + 1]; /* the command line, cut */
	/* The signal that ended the process; 0: it was not ended by one (gcore). */
	int signal, signal_code;
	uint64_t signal_addr;          /* what SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP met */
	pid_t signal_tid;              /* the thread that got it */
	uint64_t entry, headers, vdso; /* addresses from the auxiliary vector; 0: not known */
	uint64_t size_bytes;           /* of the core, unpacked */
	uint64_t missing_bytes;        /* of memory that should be in it and is not: it was cut */
	uint64_t missing_ranges;
};

const struct core_facts *core_facts(const struct core *core);

struct core_thread {
	pid_t tid;
	struct walk_state state; /* all registers hold */
	uint64_t fs_base;
	int64_t syscall; /* number of the system call it is in; -1: none */
};

/* In the order of the file: the one that got the signal comes first. */
const struct core_thread *core_threads(const struct core *core, size_t *ret_count);

/*
 * All mappings, as maps_read() gives them for a live process, borrowed. Devices are not known, and
 * inode says no more than whether a file is behind it. "[vdso]" and "[vsyscall]" are named.
 * Mappings that only the list of files has count as readable and executable.
 */
const struct maps *core_maps(const struct core *core);

/* The path of the program, as the process knew it; "" when the core does not tell. */
const char *core_exe(const struct core *core);

/*
 * Take FD for the program's file instead of asking for core_exe() (`--core FILE EXE`). It is
 * checked like any other. FD is consumed on success. Fails when the core does not tell which
 * mappings are the program's.
 */
struct error *core_set_exe(struct core *core, int fd);

/* The memory: what the core holds, else what the files hold. Valid as long as CORE. */
struct memory core_memory(struct core *core);

enum core_file {
	CORE_FILE_same,      /* opened; its build id or its first page is that in the core */
	CORE_FILE_unproven,  /* opened; it is large enough, the core holds nothing to tell it by */
	CORE_FILE_other,     /* not the file that was mapped: not used */
	CORE_FILE_no_object, /* no file behind the mapping, or one that is not ELF */
	CORE_FILE_absent,
	CORE_FILE_denied,
};

/*
 * Open the file behind MAP, one of core_maps(). RET_FD is set with CORE_FILE_same and
 * CORE_FILE_unproven, and is the caller's. What was found otherwise is among the remarks.
 */
struct error *core_open_file(struct core *core, const struct map *map, enum core_file *ret,
			     int *ret_fd);

/*
 * Sentences for the user about what is missing or was not used; more of them appear as memory is
 * read and files are opened. Borrowed.
 */
const char *const *core_remarks(const struct core *core, size_t *ret_count);
