/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts from facts. How the facts are found is facts.c. */
#include "cli/checks.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"

#define AS_ROOT "run as root: sudo cairn ..."

enum { PERF_MLOCK_KB_WANTED = 516 }; /* one ring of 512 KiB and its control page */

static void say(struct finding *ret, enum verdict verdict, const char *more, const char *format,
		...) __attribute__((format(printf, 4, 5)));

static void say(struct finding *ret, enum verdict verdict, const char *more, const char *format,
		...)
{
	va_list args;

	ret->verdict = verdict;
	ret->more = more;
	va_start(args, format);
	vsnprintf(ret->text, sizeof(ret->text), format, args);
	va_end(args);
}

static bool has(const struct facts *facts, int capability)
{
	return facts->capabilities >> capability & 1;
}

static bool has_or_admin(const struct facts *facts, int capability)
{
	return has(facts, capability) || has(facts, CAP_SYS_ADMIN);
}

static void judge_privileges(const struct facts *facts, struct finding *ret)
{
	static const struct {
		int capability;
		bool admin_instead, needed;
		const char *name;
	} wanted[] = {
		{CAP_BPF, true, true, "CAP_BPF"},
		{CAP_PERFMON, true, true, "CAP_PERFMON"},
		{CAP_SYS_PTRACE, false, false, "CAP_SYS_PTRACE"},
		{CAP_DAC_READ_SEARCH, false, false, "CAP_DAC_READ_SEARCH"},
		{CAP_SYSLOG, false, false, "CAP_SYSLOG"},
		{CAP_CHECKPOINT_RESTORE, true, false, "CAP_CHECKPOINT_RESTORE"},
	};
	char missing[120] = "";
	bool needed = false;

	for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
		int capability = wanted[i].capability;
		bool is_there = wanted[i].admin_instead ? has_or_admin(facts, capability)
							: has(facts, capability);
		size_t length = strlen(missing);
		if (is_there)
			continue;
		snprintf(missing + length, sizeof(missing) - length, "%s%s", length ? ", " : "",
			 wanted[i].name);
		needed |= wanted[i].needed;
	}
	const char *who = facts->root ? "root" : "not root";
	if (!*missing)
		say(ret, VERDICT_ok, NULL, "%s, with every capability that capture uses", who);
	else
		say(ret, needed ? VERDICT_no : VERDICT_less,
		    facts->root ? "give the container these capabilities, or run it privileged"
				: AS_ROOT,
		    "%s, without %s", who, missing);
}

static void judge_kernel(const struct facts *facts, struct finding *ret)
{
	say(ret, VERDICT_ok, NULL, "Linux %s on %s", facts->kernel, facts->machine);
}

static void judge_types(const struct facts *facts, struct finding *ret)
{
	if (facts->type_information)
		say(ret, VERDICT_ok, NULL, "/sys/kernel/btf/vmlinux describes the kernel's types");
	else
		say(ret, VERDICT_no, "use a kernel built with CONFIG_DEBUG_INFO_BTF=y",
		    "/sys/kernel/btf/vmlinux cannot be read: programs cannot be fitted to this "
		    "kernel");
}

static void judge_lockdown(const struct facts *facts, struct finding *ret)
{
	if (facts->lockdown == LOCKDOWN_confidentiality)
		say(ret, VERDICT_no, "boot without lockdown=confidentiality",
		    "the kernel is locked down to confidentiality: nothing may read its memory");
	else
		say(ret, VERDICT_ok, NULL, "lockdown does not forbid reading kernel memory");
}

static void judge_pid_namespace(const struct facts *facts, struct finding *ret)
{
	if (facts->own_pid_namespace)
		say(ret, VERDICT_no, "start the container with --pid=host (hostPID: true)",
		    "this is not the machine's PID namespace: only this container's processes have "
		    "numbers here");
	else
		say(ret, VERDICT_ok, NULL, "this is the machine's own");
}

static void judge_perf_events(const struct facts *facts, struct finding *ret)
{
	int error = facts->machine_clock_error;

	if (!error)
		say(ret, VERDICT_ok, NULL, "every CPU's clock can be sampled, kernel included");
	else if (error == ENOENT || error == ENOSYS)
		say(ret, VERDICT_no, "use a kernel built with CONFIG_PERF_EVENTS=y",
		    "this kernel has no cpu-clock event");
	else if (has_or_admin(facts, CAP_PERFMON))
		say(ret, VERDICT_no,
		    "allow perf_event_open in the container's seccomp profile, or run it "
		    "privileged",
		    "sampling every CPU was refused although the capability is there: %s",
		    strerror(error));
	else
		say(ret, facts->own_clock_error ? VERDICT_no : VERDICT_less,
		    "sudo sysctl kernel.perf_event_paranoid=-1",
		    "sampling every CPU: %s; one's own processes: %s", strerror(error),
		    facts->own_clock_error ? strerror(facts->own_clock_error) : "allowed");
}

static void judge_paranoid(const struct facts *facts, struct finding *ret)
{
	if (facts->perf_paranoid == FACT_UNKNOWN)
		say(ret, VERDICT_no, "use a kernel built with CONFIG_PERF_EVENTS=y",
		    "there is no kernel.perf_event_paranoid: this kernel has no perf events");
	else if (has_or_admin(facts, CAP_PERFMON))
		say(ret, VERDICT_ok, NULL, "kernel.perf_event_paranoid is %d and does not bind us",
		    facts->perf_paranoid);
	else if (facts->perf_paranoid > 2)
		say(ret, VERDICT_less, "sudo sysctl kernel.perf_event_paranoid=1",
		    "kernel.perf_event_paranoid is %d: no perf events without privileges",
		    facts->perf_paranoid);
	else if (facts->perf_paranoid == 2)
		say(ret, VERDICT_less, "sudo sysctl kernel.perf_event_paranoid=1",
		    "kernel.perf_event_paranoid is 2: no kernel frames without privileges");
	else if (facts->perf_paranoid >= 1)
		say(ret, VERDICT_less, "sudo sysctl kernel.perf_event_paranoid=0",
		    "kernel.perf_event_paranoid is 1: one's own processes only without privileges");
	else
		say(ret, VERDICT_ok, NULL, "kernel.perf_event_paranoid is %d",
		    facts->perf_paranoid);
}

static void judge_programs(const struct facts *facts, struct finding *ret)
{
	if (!facts->program_error)
		say(ret, VERDICT_ok, NULL, "a program for perf events was loaded");
	else if (facts->program_error == EPERM && !has_or_admin(facts, CAP_BPF))
		say(ret, VERDICT_no, AS_ROOT, "loading a program needs privileges");
	else if (facts->program_error == EPERM)
		say(ret, VERDICT_no,
		    "allow bpf() in the container's seccomp profile, or run it privileged",
		    "loading a program was refused although the capability is there");
	else
		say(ret, VERDICT_no, "use a kernel built with CONFIG_BPF_SYSCALL=y",
		    "loading a program: %s", strerror(facts->program_error));
}

static void judge_attach(const struct facts *facts, struct finding *ret)
{
	if (!facts->attach_error)
		say(ret, VERDICT_ok, NULL, "a program can run at the clock tick of a CPU");
	else if (facts->program_error || facts->machine_clock_error)
		say(ret, VERDICT_no, NULL, "not tried: it needs a program and a perf event");
	else
		say(ret, VERDICT_no, "use a kernel built with CONFIG_BPF_EVENTS=y",
		    "a program at the clock tick of a CPU: %s", strerror(facts->attach_error));
}

/* Kernel features that are there, are not, or could not be asked for. */
static void judge_feature(enum probe probe, const struct finding *there,
			  const struct finding *missing, struct finding *ret)
{
	switch (probe) {
	case PROBE_yes:
		*ret = *there;
		return;
	case PROBE_no:
		*ret = *missing;
		return;
	case PROBE_refused:
		say(ret, missing->verdict, AS_ROOT,
		    "not known: asking the kernel needs privileges");
		return;
	}
}

static void judge_ring(const struct facts *facts, struct finding *ret)
{
	judge_feature(facts->ring,
		      &(struct finding){VERDICT_ok, "samples travel through a ring buffer", NULL},
		      &(struct finding){VERDICT_no,
					"this kernel has no BPF ring buffer (Linux 5.8)",
					"use a newer kernel"},
		      ret);
}

static void judge_loop(const struct facts *facts, struct finding *ret)
{
	judge_feature(
		facts->loop,
		&(struct finding){VERDICT_ok, "bpf_loop walks deep stacks in one program", NULL},
		&(struct finding){VERDICT_less,
				  "this kernel has no bpf_loop (Linux 5.17): stacks are walked "
				  "with tail calls, which ends sooner",
				  "use a newer kernel"},
		ret);
}

static void judge_task_registers(const struct facts *facts, struct finding *ret)
{
	judge_feature(
		facts->task_registers,
		&(struct finding){VERDICT_ok,
				  "user registers are at hand when the tick hits the kernel", NULL},
		&(struct finding){VERDICT_less,
				  "this kernel has no bpf_task_pt_regs (Linux 5.15): they are "
				  "looked for on the kernel stack",
				  "use a newer kernel"},
		ret);
}

static void judge_jit(const struct facts *facts, struct finding *ret)
{
	if (facts->bpf_jit == 0)
		say(ret, VERDICT_less, "sudo sysctl net.core.bpf_jit_enable=1",
		    "net.core.bpf_jit_enable is 0: programs are interpreted, a sample costs more");
	else
		say(ret, VERDICT_ok, NULL, "programs are compiled");
}

static void judge_memory(const struct facts *facts, struct finding *ret)
{
	bool limited = facts->memlock_bytes != UINT64_MAX && !has(facts, CAP_SYS_RESOURCE);

	if (facts->charged_memory == PROBE_refused)
		say(ret, VERDICT_less, AS_ROOT, "not known: asking the kernel needs privileges");
	else if (facts->charged_memory == PROBE_yes)
		say(ret, VERDICT_ok, NULL, "maps are charged to the control group");
	else if (limited)
		say(ret, VERDICT_less, "ulimit -l unlimited",
		    "maps count against the limit of locked memory, %ju KiB here",
		    (uintmax_t)facts->memlock_bytes / 1024);
	else
		say(ret, VERDICT_ok, NULL,
		    "maps count against the limit of locked memory, which we can lift");
}

static void judge_statistics(const struct facts *facts, struct finding *ret)
{
	if (facts->bpf_stats > 0)
		say(ret, VERDICT_ok, NULL, "the kernel times programs already");
	else if (!facts->stats_error)
		say(ret, VERDICT_ok, NULL, "the kernel can time programs while we measure");
	else
		say(ret, VERDICT_less, "sudo sysctl kernel.bpf_stats_enabled=1",
		    "what programs cost cannot be measured: %s", strerror(facts->stats_error));
}

static void judge_kernel_names(const struct facts *facts, struct finding *ret)
{
	if (facts->kernel_names)
		say(ret, VERDICT_ok, NULL, "/proc/kallsyms shows addresses");
	else if (facts->kptr_restrict > 1)
		say(ret, VERDICT_less, "sudo sysctl kernel.kptr_restrict=1",
		    "kernel.kptr_restrict is %d: kernel frames have no names, not even for root",
		    facts->kptr_restrict);
	else
		say(ret, VERDICT_less, AS_ROOT,
		    "/proc/kallsyms hides its addresses: kernel frames have no names");
}

static void judge_other_processes(const struct facts *facts, struct finding *ret)
{
	if (has(facts, CAP_SYS_PTRACE))
		say(ret, VERDICT_ok, NULL, "mappings and memory of every process can be read");
	else if (facts->ptrace_scope == FACT_UNKNOWN || facts->ptrace_scope == 0)
		say(ret, VERDICT_less, AS_ROOT,
		    "without CAP_SYS_PTRACE only one's own processes can be read");
	else
		say(ret, VERDICT_less, "sudo sysctl kernel.yama.ptrace_scope=0",
		    "kernel.yama.ptrace_scope is %d: not even all of one's own processes can be "
		    "read",
		    facts->ptrace_scope);
}

static void judge_hidden_pids(const struct facts *facts, struct finding *ret)
{
	if (!facts->hidden_pids)
		say(ret, VERDICT_ok, NULL, "/proc lists all processes");
	else if (has(facts, CAP_SYS_PTRACE))
		say(ret, VERDICT_ok, NULL, "/proc has hidepid, which does not bind us");
	else
		say(ret, VERDICT_less, "sudo mount -o remount,hidepid=0 /proc",
		    "/proc is mounted with hidepid: other users' processes are not listed");
}

static void judge_hardware(const struct facts *facts, struct finding *ret)
{
	if (!facts->cycles_error)
		say(ret, VERDICT_ok, NULL, "the CPU counts cycles");
	else if (facts->cycles_error == ENOENT || facts->cycles_error == EOPNOTSUPP)
		say(ret, VERDICT_less, NULL,
		    "no hardware counters here (a virtual machine?): the clock is sampled instead");
	else
		say(ret, VERDICT_less, AS_ROOT,
		    "hardware counters: %s; the clock is sampled instead",
		    strerror(facts->cycles_error));
}

static void judge_sample_rate(const struct facts *facts, struct finding *ret)
{
	if (facts->sample_rate == FACT_UNKNOWN)
		say(ret, VERDICT_less, NULL, "kernel.perf_event_max_sample_rate cannot be read");
	else if (facts->sample_rate < 100)
		say(ret, VERDICT_less, "sudo sysctl kernel.perf_event_max_sample_rate=100000",
		    "kernel.perf_event_max_sample_rate allows only %d samples a second",
		    facts->sample_rate);
	else
		say(ret, VERDICT_ok, NULL, "up to %d samples a second on each CPU",
		    facts->sample_rate);
}

static void judge_perf_memory(const struct facts *facts, struct finding *ret)
{
	if (has(facts, CAP_IPC_LOCK))
		say(ret, VERDICT_ok, NULL, "perf rings are not limited for us");
	else if (facts->perf_mlock_kb == FACT_UNKNOWN)
		say(ret, VERDICT_less, NULL, "kernel.perf_event_mlock_kb cannot be read");
	else if (facts->perf_mlock_kb < PERF_MLOCK_KB_WANTED)
		say(ret, VERDICT_less, "sudo sysctl kernel.perf_event_mlock_kb=516",
		    "kernel.perf_event_mlock_kb is %d: perf rings are small and lose samples",
		    facts->perf_mlock_kb);
	else
		say(ret, VERDICT_ok, NULL, "perf rings of %d KiB for each CPU",
		    facts->perf_mlock_kb);
}

static void judge_debug_files(const struct facts *facts, struct finding *ret)
{
	if (facts->debug_files)
		say(ret, VERDICT_ok, NULL, "/usr/lib/debug has debug files");
	else
		say(ret, VERDICT_less, "install your distribution's -dbgsym or -debuginfo packages",
		    "no debug files in /usr/lib/debug: stripped programs have few names and no "
		    "lines");
}

static void judge_capture(const struct facts *facts, unsigned id, const char *help,
			  struct finding *ret)
{
	if (!facts->why_not[id][0])
		say(ret, VERDICT_ok, NULL, "%s", help);
	else
		say(ret, id == capture_row_at(0)->id ? VERDICT_no : VERDICT_less, NULL, "%s",
		    facts->why_not[id]);
}

#define CAPTURE(name, id, help)                                                                    \
	static void judge_capture_##name(const struct facts *facts, struct finding *ret)           \
	{                                                                                          \
		judge_capture(facts, id, help, ret);                                               \
	}
#include "capture/captures.def"
#undef CAPTURE

static void judge_live(const struct facts *facts, struct finding *ret)
{
	if (!facts->parent_why_not[0])
		say(ret, VERDICT_ok, NULL,
		    "processes that cairn did not start can be looked at, and dumped");
	else
		say(ret, VERDICT_less, NULL, "%s", facts->parent_why_not);
}

static const struct check checks[] = {
	{"privileges", "capabilities of this process", judge_privileges},
	{"kernel", "version, for the record; nothing is decided by it", judge_kernel},
	{"kernel types", "type information that programs are fitted with", judge_types},
	{"lockdown", "what the kernel forbids even to root", judge_lockdown},
	{"PID namespace", "whose process numbers we see", judge_pid_namespace},
	{"perf events", "sampling the clock of a CPU", judge_perf_events},
	{"perf paranoia", "what perf allows without privileges", judge_paranoid},
	{"BPF programs", "a trial load", judge_programs},
	{"BPF at a tick", "a trial attach", judge_attach},
	{"BPF ring", "how samples reach us", judge_ring},
	{"BPF loop", "how far a stack is walked", judge_loop},
	{"BPF registers", "where a walk begins under the kernel", judge_task_registers},
	{"BPF compiler", "what a program costs", judge_jit},
	{"BPF memory", "what maps count against", judge_memory},
	{"BPF statistics", "whether our cost can be measured", judge_statistics},
	{"kernel names", "names for kernel frames", judge_kernel_names},
	{"processes", "reading other processes", judge_other_processes},
	{"process list", "seeing other processes", judge_hidden_pids},
	{"hardware", "counters of the CPU", judge_hardware},
	{"sample rate", "the kernel's limit", judge_sample_rate},
	{"perf memory", "the kernel's limit for rings", judge_perf_memory},
	{"debug files", "names and lines of stripped programs", judge_debug_files},
	{"live processes", "stacks of a process at this moment", judge_live},
#define CAPTURE(name, id, help) {"capture " #name, help, judge_capture_##name},
#include "capture/captures.def"
#undef CAPTURE
};

const struct check *check_at(size_t index)
{
	return index < ARRAY_COUNT(checks) ? &checks[index] : NULL;
}

bool checks_best(const struct capture_row *row)
{
	return row == capture_row_at(0);
}

const struct capture_row *checks_capture(const struct facts *facts)
{
	const struct capture_row *row;
	struct finding finding = {0};
	bool best = !facts->machine_clock_error;

	for (size_t i = 0; i < ARRAY_COUNT(checks); i++) {
		checks[i].judge(facts, &finding);
		best &= finding.verdict != VERDICT_no;
	}
	for (size_t i = 0; (row = capture_row_at(i)); i++)
		if (checks_best(row) ? best : !facts->why_not[row->id][0])
			return row;
	return NULL;
}
