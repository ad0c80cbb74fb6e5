/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine and this process allow a profiler, as found by trying. Judging is checks.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/captures.h"

enum { FACT_UNKNOWN = INT32_MIN }; /* a setting that this kernel does not have or show */

enum { WHY_MAX = 180 };

enum lockdown {
	LOCKDOWN_none, /* also where the kernel has no such thing */
	LOCKDOWN_integrity,
	LOCKDOWN_confidentiality,
};

/* Could the kernel be asked, and what did it say? */
enum probe {
	PROBE_no,
	PROBE_yes,
	PROBE_refused,
};

struct facts {
	char kernel[65], machine[65];
	bool root;
	uint64_t capabilities; /* effective, a bit each */
	bool type_information; /* /sys/kernel/btf/vmlinux can be read */
	enum lockdown lockdown;
	bool own_pid_namespace;
	bool kernel_names;      /* /proc/kallsyms has addresses */
	bool hidden_pids;       /* /proc is mounted with hidepid */
	bool debug_files;       /* /usr/lib/debug/.build-id has something in it */
	uint64_t memlock_bytes; /* UINT64_MAX: no limit */

	/* Settings below /proc/sys. */
	int32_t perf_paranoid, kptr_restrict, ptrace_scope;
	int32_t sample_rate, perf_mlock_kb, bpf_jit, bpf_stats;

	/* errno of an attempt; 0: it worked */
	int machine_clock_error; /* cpu-clock of CPU 0, every process, kernel included */
	int own_clock_error;     /* cpu-clock of this process, user side only */
	int cycles_error;        /* the CPU's cycle counter */
	int program_error;       /* loading a program for perf events */
	int attach_error;        /* attaching it to the machine's cpu-clock */
	int stats_error;         /* having the kernel time BPF programs */

	/* By id of captures.def: why samples cannot be taken so; "": they can. */
	char why_not[CAPTURE_IDS][WHY_MAX];
	char parent_why_not[WHY_MAX]; /* why the process that started us cannot be looked at */

	enum probe ring, loop, task_registers, charged_memory;
};

/* Try everything. Attempts that are refused are facts, not failures. */
struct error *facts_gather(struct facts *ret);
