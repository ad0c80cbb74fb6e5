/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/checks.h"

#include <errno.h>

#include "base/array.h"

#include "unit.h"

/* A machine where everything is allowed. */
static const struct facts all_allowed = {
	.kernel = "6.1.0",
	.machine = "x86_64",
	.root = true,
	.capabilities = ~0ull,
	.type_information = true,
	.kernel_names = true,
	.debug_files = true,
	.memlock_bytes = UINT64_MAX,
	.perf_paranoid = 2,
	.sample_rate = 100000,
	.perf_mlock_kb = 516,
	.bpf_jit = 1,
	.ring = PROBE_yes,
	.loop = PROBE_yes,
	.task_registers = PROBE_yes,
	.charged_memory = PROBE_yes,
};

/* A user on the same machine, with Debian's settings. */
static const struct facts plain_user = {
	.kernel = "6.1.0",
	.machine = "x86_64",
	.type_information = true,
	.memlock_bytes = 8 << 20,
	.perf_paranoid = 3,
	.kptr_restrict = 1,
	.sample_rate = 100000,
	.perf_mlock_kb = 100,
	.bpf_jit = 1,
	.machine_clock_error = EACCES,
	.own_clock_error = EACCES,
	.cycles_error = EACCES,
	.program_error = EPERM,
	.attach_error = EPERM,
	.stats_error = EPERM,
	.ring = PROBE_refused,
	.loop = PROBE_refused,
	.task_registers = PROBE_refused,
	.charged_memory = PROBE_refused,
};

static struct finding judged(const char *name, const struct facts *facts)
{
	struct finding finding = {0};

	for (size_t i = 0; check_at(i); i++)
		if (!strcmp(check_at(i)->name, name)) {
			check_at(i)->judge(facts, &finding);
			return finding;
		}
	fail_msg("no check is called %s", name);
	return finding;
}

TEST(where_everything_is_allowed_every_verdict_is_ok)
{
	size_t i = 0;

	for (; check_at(i); i++) {
		struct finding finding = {.verdict = VERDICT_no};
		check_at(i)->judge(&all_allowed, &finding);
		if (finding.verdict != VERDICT_ok)
			fail_msg("%s: %s", check_at(i)->name, finding.text);
		ASSERT_TRUE(finding.text[0] && !finding.more);
		ASSERT_TRUE(check_at(i)->help[0]);
	}
	ASSERT_TRUE(i >= 20);
	ASSERT_TRUE(checks_best(checks_capture(&all_allowed)));
}

TEST(each_fact_alone_gives_its_verdict_and_the_way_out)
{
	struct facts f[24];
	for (size_t i = 0; i < ARRAY_COUNT(f); i++)
		f[i] = all_allowed;
	f[0].type_information = false;
	f[1].lockdown = LOCKDOWN_confidentiality;
	f[2].own_pid_namespace = true;
	f[3].machine_clock_error = EPERM;
	f[4].machine_clock_error = ENOENT;
	f[5].program_error = EPERM;
	f[6].program_error = ENOSYS;
	f[7].attach_error = EINVAL;
	f[8].ring = PROBE_no;
	f[9].loop = PROBE_no;
	f[10].task_registers = PROBE_no;
	f[11].bpf_jit = 0;
	f[12].charged_memory = PROBE_no;
	f[12].capabilities = ~(1ull << 24); // CAP_SYS_RESOURCE
	f[12].memlock_bytes = 65536;
	f[13].stats_error = EPERM;
	f[14].kernel_names = false;
	f[14].kptr_restrict = 2;
	f[15].capabilities = ~(1ull << 19); // CAP_SYS_PTRACE
	f[16].capabilities = ~(1ull << 19);
	f[16].hidden_pids = true;
	f[17].cycles_error = ENOENT;
	f[18].sample_rate = 50;
	f[19].capabilities = ~(1ull << 14); // CAP_IPC_LOCK
	f[19].perf_mlock_kb = 16;
	f[20].debug_files = false;
	f[21].capabilities = ~(1ull << 34); // CAP_SYSLOG
	f[22].perf_paranoid = FACT_UNKNOWN;
	f[23].lockdown = LOCKDOWN_integrity;
	static const struct {
		const char *check;
		enum verdict verdict;
		const char *text, *more;
	} cases[ARRAY_COUNT(f)] = {
		{"kernel types", VERDICT_no, "/sys/kernel/btf/vmlinux", "CONFIG_DEBUG_INFO_BTF"},
		{"lockdown", VERDICT_no, "confidentiality", "boot without"},
		{"PID namespace", VERDICT_no, "not the machine's", "--pid=host"},
		{"perf events", VERDICT_no, "although the capability is there", "seccomp"},
		{"perf events", VERDICT_no, "no cpu-clock", "CONFIG_PERF_EVENTS"},
		{"BPF programs", VERDICT_no, "although the capability is there", "seccomp"},
		{"BPF programs", VERDICT_no, "not implemented", "CONFIG_BPF_SYSCALL"},
		{"BPF at a tick", VERDICT_no, "Invalid argument", "CONFIG_BPF_EVENTS"},
		{"BPF ring", VERDICT_no, "no BPF ring buffer", "newer kernel"},
		{"BPF loop", VERDICT_less, "tail calls", "newer kernel"},
		{"BPF registers", VERDICT_less, "kernel stack", "newer kernel"},
		{"BPF compiler", VERDICT_less, "interpreted", "bpf_jit_enable=1"},
		{"BPF memory", VERDICT_less, "64 KiB", "ulimit -l"},
		{"BPF statistics", VERDICT_less, "not permitted", "bpf_stats_enabled=1"},
		{"kernel names", VERDICT_less, "kptr_restrict is 2", "kptr_restrict=1"},
		{"processes", VERDICT_less, "CAP_SYS_PTRACE", "root"},
		{"process list", VERDICT_less, "hidepid", "remount"},
		{"hardware", VERDICT_less, "virtual machine", NULL},
		{"sample rate", VERDICT_less, "only 50", "max_sample_rate="},
		{"perf memory", VERDICT_less, "is 16", "mlock_kb=516"},
		{"debug files", VERDICT_less, "/usr/lib/debug", "dbgsym"},
		{"privileges", VERDICT_less, "root, without CAP_SYSLOG", "container"},
		{"perf paranoia", VERDICT_no, "no perf events", "CONFIG_PERF_EVENTS"},
		{"lockdown", VERDICT_ok, "does not forbid", NULL},
	};

	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct finding finding = judged(cases[i].check, &f[i]);
		if (finding.verdict != cases[i].verdict || !strstr(finding.text, cases[i].text))
			fail_msg("case %zu, %s: %d %s", i, cases[i].check, finding.verdict,
				 finding.text);
		ASSERT_EQ(!finding.more, !cases[i].more);
		ASSERT_TRUE(!cases[i].more || strstr(finding.more, cases[i].more));
		// Whatever forbids the BPF capture must show in the last line, and nothing else.
		ASSERT_EQ(checks_best(checks_capture(&f[i])), cases[i].verdict != VERDICT_no);
	}
}

TEST(a_plain_user_is_told_what_each_setting_would_give)
{
	struct facts user = plain_user;

	ASSERT_STREQ(checks_capture(&user)->name, "poll");
	ASSERT_EQ(judged("privileges", &user).verdict, VERDICT_no);
	ASSERT_TRUE(strstr(judged("privileges", &user).text, "not root, without CAP_BPF") != NULL);
	ASSERT_TRUE(strstr(judged("BPF programs", &user).more, "sudo") != NULL);
	ASSERT_TRUE(strstr(judged("perf paranoia", &user).more, "paranoid=1") != NULL);

	user.own_clock_error = 0;
	user.perf_paranoid = 2;
	ASSERT_TRUE(strstr(judged("perf paranoia", &user).text, "no kernel frames") != NULL);

	user.perf_paranoid = 1;
	ASSERT_TRUE(strstr(judged("perf paranoia", &user).more, "paranoid=0") != NULL);

	user.perf_paranoid = -1;
	user.machine_clock_error = 0;
	ASSERT_EQ(judged("perf paranoia", &user).verdict, VERDICT_ok);
}

TEST(a_capture_that_does_not_work_says_why_and_the_next_is_taken)
{
	struct facts facts = plain_user;
	const struct capture_row *row;

	for (size_t i = 0; (row = capture_row_at(i)); i++) {
		char name[32];
		ASSERT_TRUE(row->id < CAPTURE_IDS);
		ASSERT_TRUE(checks_capture(&facts) != NULL);
		snprintf(facts.why_not[row->id], WHY_MAX, "nobody lets %s", row->name);
		snprintf(name, sizeof(name), "capture %s", row->name);
		struct finding finding = judged(name, &facts);
		ASSERT_EQ(finding.verdict, checks_best(row) ? VERDICT_no : VERDICT_less);
		ASSERT_STREQ(finding.text, facts.why_not[row->id]);
	}
	ASSERT_TRUE(checks_capture(&facts) == NULL);
}

TEST(a_process_that_cannot_be_looked_at_is_told_with_the_reason)
{
	struct facts facts = all_allowed;

	snprintf(facts.parent_why_not, WHY_MAX, "process 7 is not yours");
	ASSERT_EQ(judged("live processes", &facts).verdict, VERDICT_less);
	ASSERT_STREQ(judged("live processes", &facts).text, "process 7 is not yours");
	ASSERT_TRUE(checks_best(checks_capture(&facts)));
}

RUN_TESTS(UNIT_TEST(where_everything_is_allowed_every_verdict_is_ok),
	  UNIT_TEST(each_fact_alone_gives_its_verdict_and_the_way_out),
	  UNIT_TEST(a_plain_user_is_told_what_each_setting_would_give),
	  UNIT_TEST(a_capture_that_does_not_work_says_why_and_the_next_is_taken),
	  UNIT_TEST(a_process_that_cannot_be_looked_at_is_told_with_the_reason))
