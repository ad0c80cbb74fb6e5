/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out what is allowed by trying it: nothing is concluded from a kernel version. */
#include "cli/facts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "proc/access.h"
#include "proc/process-memory.h"
#include "proc/system.h"

enum { TEXT_MAX = 1 << 20 }; /* larger than any mountinfo or setting that we read */

/* All of PATH; NULL if it cannot be read, which is a fact like any other. The caller frees it. */
static void read_text(const char *path, char **ret)
{
	size_t size;

	*ret = NULL;
	error_free(file_read(AT_FDCWD, path, TEXT_MAX, ret, &size));
}

static int32_t read_setting(const char *path)
{
	_cleanup_free_ char *text = NULL;
	uint64_t value;

	read_text(path, &text);
	if (!text)
		return FACT_UNKNOWN;
	text[strcspn(text, "\n")] = 0;
	bool negative = *text == '-';
	if (!str_parse_u64(text + negative, 0, INT32_MAX, &value))
		return FACT_UNKNOWN;
	return negative ? -(int32_t)value : (int32_t)value;
}

static uint64_t read_capabilities(void)
{
	_cleanup_free_ char *text = NULL;

	read_text("/proc/self/status", &text);
	const char *line = text ? strstr(text, "\nCapEff:") : NULL;

	return line ? strtoull(line + strlen("\nCapEff:"), NULL, 16) : 0;
}

static enum lockdown read_lockdown(void)
{
	_cleanup_free_ char *text = NULL;

	read_text("/sys/kernel/security/lockdown", &text);
	if (text && strstr(text, "[confidentiality]"))
		return LOCKDOWN_confidentiality;
	return text && strstr(text, "[integrity]") ? LOCKDOWN_integrity : LOCKDOWN_none;
}

/* kallsyms is megabytes; the first line tells whether addresses are hidden as zeros. */
static bool read_kernel_names(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/kallsyms", "re");
	char line[256];

	// The first symbols of x86 are per-CPU offsets, the very first of them honestly zero.
	for (int i = 0; file && i < 100 && fgets(line, sizeof(line), file); i++)
		if (strspn(line, "0") < 16)
			return true;
	return false;
}

/* Does this line of mountinfo mount /proc with hidepid? */
static bool line_hides_pids(const char *line)
{
	const char *option = strstr(line, "hidepid=");

	if (!option || !strstr(line, " /proc ") || !strstr(line, " - proc "))
		return false;
	option += strlen("hidepid=");
	return !str_starts(option, "0") && !str_starts(option, "off");
}

static bool read_hidden_pids(void)
{
	_cleanup_free_ char *text = NULL;

	read_text("/proc/self/mountinfo", &text);
	for (char *line = text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		if (line_hides_pids(line))
			return true;
	}
	return false;
}

static bool has_entries(const char *path)
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			return true;
	return false;
}

static uint64_t read_memlock(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return 0;
	return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

/* A descriptor, or -errno. */
static int open_event(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int try_event(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	_cleanup_close_ int fd = open_event(attr, pid, cpu);

	return fd < 0 ? -fd : 0;
}

static const struct perf_event_attr clock_attr = {
	.type = PERF_TYPE_SOFTWARE,
	.size = sizeof(clock_attr),
	.config = PERF_COUNT_SW_CPU_CLOCK,
	.sample_freq = 99,
	.freq = 1,
	.disabled = 1,
};

static void try_events(struct facts *facts)
{
	struct perf_event_attr own = clock_attr, cycles = clock_attr;

	own.exclude_kernel = 1;
	cycles.type = PERF_TYPE_HARDWARE;
	cycles.config = PERF_COUNT_HW_CPU_CYCLES;
	facts->machine_clock_error = try_event(&clock_attr, -1, 0);
	facts->own_clock_error = try_event(&own, 0, -1);
	facts->cycles_error = try_event(&cycles, facts->machine_clock_error ? 0 : -1,
					facts->machine_clock_error ? -1 : 0);
	if (facts->cycles_error == EACCES || facts->cycles_error == EPERM) {
		cycles.exclude_kernel = 1;
		facts->cycles_error = try_event(&cycles, 0, -1);
	}
}

/* "return 0" at a clock tick: the least that the BPF capture needs. */
static void try_program(struct facts *facts)
{
	static const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts);
	_cleanup_close_ int program = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "cairn_trial", "GPL",
						    insns, sizeof(insns) / sizeof(*insns), &opts);

	facts->program_error = program < 0 ? -program : 0;
	_cleanup_close_ int event = open_event(&clock_attr, -1, 0);
	if (program < 0 || event < 0)
		facts->attach_error = program < 0 ? -program : -event;
	else
		facts->attach_error = ioctl(event, PERF_EVENT_IOC_SET_BPF, program) ? errno : 0;
}

static enum probe probe_of(int answer)
{
	if (answer < 0)
		return PROBE_refused;
	return answer ? PROBE_yes : PROBE_no;
}

/* Whether the kernel knows a helper is what the verifier says to a program that calls it. */
static enum probe probe_helper(enum bpf_prog_type type, enum bpf_func_id helper)
{
	return probe_of(libbpf_probe_bpf_helper(type, helper, NULL));
}

static void try_features(struct facts *facts)
{
	// The verifier's answers are meaningless where nothing at all may be loaded.
	if (facts->program_error) {
		facts->ring = facts->loop = facts->task_registers = PROBE_refused;
		facts->charged_memory = PROBE_refused;
		facts->stats_error = facts->program_error;
		return;
	}
	facts->ring = probe_of(libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL));
	facts->loop = probe_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop);
	facts->task_registers = probe_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_task_pt_regs);
	// Charging maps to control groups came with this helper in 5.11 and cannot be asked for.
	facts->charged_memory =
		probe_helper(BPF_PROG_TYPE_SOCKET_FILTER, BPF_FUNC_ktime_get_coarse_ns);

	_cleanup_close_ int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	facts->stats_error = stats < 0 ? errno : 0;
}

static void read_settings(struct facts *facts)
{
	facts->perf_paranoid = read_setting("/proc/sys/kernel/perf_event_paranoid");
	facts->kptr_restrict = read_setting("/proc/sys/kernel/kptr_restrict");
	facts->ptrace_scope = read_setting("/proc/sys/kernel/yama/ptrace_scope");
	facts->sample_rate = read_setting("/proc/sys/kernel/perf_event_max_sample_rate");
	facts->perf_mlock_kb = read_setting("/proc/sys/kernel/perf_event_mlock_kb");
	facts->bpf_jit = read_setting("/proc/sys/net/core/bpf_jit_enable");
	facts->bpf_stats = read_setting("/proc/sys/kernel/bpf_stats_enabled");
}

/* What a failure says, or nothing. */
static void keep_reason(struct error *says, char ret[WHY_MAX])
{
	(void)snprintf(ret, WHY_MAX, "%s", says ? error_text(says) : "");
	error_free(says); // it is a fact now
}

static void try_captures(struct facts *facts)
{
	const struct capture_row *row;

	for (size_t i = 0; (row = capture_row_at(i)); i++)
		keep_reason(row->source->probe(), facts->why_not[row->id]);
}

/* A live process that cairn did not start: the shell, as a rule. */
static struct error *try_parent(void)
{
	_cleanup_process_memory_ struct process_memory *memory = NULL;
	enum process_memory_look look;
	_cleanup_free_ char *why = NULL;

	TRY(process_memory_open(getppid(), &look, &memory));
	if (look != PROCESS_MEMORY_denied)
		return NULL;
	TRY(access_explain(getppid(), &why));
	return error_new("process %d, which started cairn, cannot be looked at: %s", getppid(),
			 why);
}

struct error *facts_gather(struct facts *ret)
{
	struct facts facts = {0};
	struct utsname name;

	if (uname(&name))
		return error_errno("uname");
	snprintf(facts.kernel, sizeof(facts.kernel), "%s", name.release);
	snprintf(facts.machine, sizeof(facts.machine), "%s", name.machine);
	facts.root = !geteuid();
	facts.capabilities = read_capabilities();
	facts.type_information = !access("/sys/kernel/btf/vmlinux", R_OK);
	facts.lockdown = read_lockdown();
	facts.own_pid_namespace = system_has_own_pid_namespace();
	facts.kernel_names = read_kernel_names();
	facts.hidden_pids = read_hidden_pids();
	facts.debug_files = has_entries("/usr/lib/debug/.build-id");
	facts.memlock_bytes = read_memlock();
	read_settings(&facts);
	try_events(&facts);
	try_program(&facts);
	try_features(&facts);
	try_captures(&facts);
	keep_reason(try_parent(), facts.parent_why_not);
	*ret = facts;
	return NULL;
}
