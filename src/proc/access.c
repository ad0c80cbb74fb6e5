/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of the checks is that of __ptrace_may_access() and of Yama's and the capability
 * module's hooks below it (the kernel's kernel/ptrace.c, security/yama/yama_lsm.c,
 * security/commoncap.c; ptrace(2), "Ptrace access mode checking"). A cause that shows nowhere in
 * /proc is left to the last sentence.
 */
#include "proc/access.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/str.h"
#include "proc/process.h"

enum {
	STATUS_BYTES_MAX = 1 << 20,
	SMALL_BYTES_MAX = 64,
	PARENTS_MAX = 1024,
	KINDS = 3, /* of ids in /proc/PID/status: real, effective, saved */
};

/* Who somebody is, from /proc/PID/status. */
struct who {
	bool known;
	uid_t uid[KINDS];
	gid_t gid[KINDS];
	uint64_t permitted, effective; /* capabilities, in their own user namespace */
};

static bool parse_ids(const char *text, const char *name, uint32_t *ret)
{
	const char *line = strstr(text, name);
	unsigned real, effective, saved;

	if (!line || sscanf(line + strlen(name), "%u %u %u", &real, &effective, &saved) != KINDS)
		return false;
	ret[0] = real;
	ret[1] = effective;
	ret[2] = saved;
	return true;
}

static bool parse_set(const char *text, const char *name, uint64_t *ret)
{
	const char *line = strstr(text, name);
	unsigned long long set;

	if (!line || sscanf(line + strlen(name), "%llx", &set) != 1)
		return false;
	*ret = set;
	return true;
}

/* Unknown: the process is gone, or hidden from us. */
static struct who read_who(pid_t pid)
{
	_cleanup_free_ char *text = NULL;
	char path[32];
	size_t size;
	struct who who = {0};

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	struct error *err = file_read(AT_FDCWD, path, STATUS_BYTES_MAX, &text, &size);
	if (err) {
		error_free(err); // then nothing is known of it
		return who;
	}
	// A newline in the name is escaped there, so that no name can hold such a line.
	who.known = parse_ids(text, "\nUid:", who.uid) && parse_ids(text, "\nGid:", who.gid) &&
		    parse_set(text, "\nCapPrm:", &who.permitted) &&
		    parse_set(text, "\nCapEff:", &who.effective);
	return who;
}

/* kernel.yama.ptrace_scope; 0 where there is no Yama. */
static unsigned yama_scope(void)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	uint64_t scope = 0;

	struct error *err = file_read(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope",
				      SMALL_BYTES_MAX, &text, &size);
	if (err) {
		error_free(err); // no Yama
		return 0;
	}
	text[strcspn(text, "\n")] = 0;
	return str_parse_u64(text, 0, 3, &scope) ? (unsigned)scope : 0;
}

/* Is PID our child, grandchild, ...? */
static bool descends_from_us(pid_t pid)
{
	struct process_status status;

	for (int i = 0; i < PARENTS_MAX && pid > 1; i++) {
		enum process_look look = PROCESS_gone;
		struct error *err = process_read_status(pid, &look, &status);
		if (err || look == PROCESS_gone) {
			error_free(err); // it ended meanwhile
			return false;
		}
		pid = status.parent_pid;
		if (pid == getpid())
			return true;
	}
	return false;
}

enum namespace_answer {
	NAMESPACE_same,
	NAMESPACE_other,
	NAMESPACE_unknown, /* it takes the right to trace PID to see its namespaces */
};

static enum namespace_answer user_namespace(pid_t pid)
{
	char path[32];
	struct stat ours, theirs;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	if (stat("/proc/self/ns/user", &ours) < 0 || stat(path, &theirs) < 0)
		return NAMESPACE_unknown;
	bool same = ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
	return same ? NAMESPACE_same : NAMESPACE_other;
}

/* Is the first user namespace of the machine ours? It maps every uid to itself. */
static bool in_first_namespace(void)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	unsigned first = 1, same = 1, count = 0;

	struct error *err =
		file_read(AT_FDCWD, "/proc/self/uid_map", STATUS_BYTES_MAX, &text, &size);
	if (err) {
		error_free(err); // a kernel without user namespaces
		return true;
	}
	return sscanf(text, "%u %u %u", &first, &same, &count) == 3 && !first && !same &&
	       count == UINT32_MAX;
}

static bool same_ids(const struct who *who)
{
	uid_t uid = getuid();
	gid_t gid = getgid();

	for (size_t i = 0; i < KINDS; i++)
		if (who->uid[i] != uid || who->gid[i] != gid)
			return false;
	return true;
}

/* The files of a process that is not "dumpable" belong to root, unlike its directory (the kernel's
 * task_dump_owner()). */
static bool dumpable(pid_t pid, const struct who *who)
{
	char path[32];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return stat(path, &st) < 0 || st.st_uid == who->uid[1];
}

static struct error *explain_privileged(pid_t pid, char **ret)
{
	if (user_namespace(pid) == NAMESPACE_other || !in_first_namespace())
		return str_copy(ret,
				"it belongs to another user namespace, where cairn's "
				"CAP_SYS_PTRACE does not count: run cairn outside the container");
	return str_copy(ret, "cairn has CAP_SYS_PTRACE, so that a security module (AppArmor, "
			     "SELinux) or a seccomp filter forbids it");
}

static struct error *explain_ids(pid_t pid, const struct who *who, char **ret)
{
	if (who->uid[1] != getuid())
		return str_format(ret,
				  "it runs as uid %u and cairn as uid %u: run as that user or with "
				  "CAP_SYS_PTRACE",
				  who->uid[1], getuid());
	return str_format(ret,
			  "it changed its user or group (uid %u %u %u, gid %u %u %u; cairn's are "
			  "%u and %u): that needs CAP_SYS_PTRACE",
			  who->uid[0], who->uid[1], who->uid[2], who->gid[0], who->gid[1],
			  who->gid[2], getuid(), getgid());
}

static struct error *explain_same_user(pid_t pid, const struct who *them, const struct who *us,
				       char **ret)
{
	unsigned scope = yama_scope();

	if (!dumpable(pid, them))
		return str_copy(ret, "it is not dumpable (a set-user-id program, or one that asked "
				     "for it by prctl()): that needs CAP_SYS_PTRACE");
	if (them->permitted & ~us->permitted)
		return str_copy(ret, "it has capabilities that cairn lacks: that needs "
				     "CAP_SYS_PTRACE");
	if (scope == 2)
		return str_copy(ret, "kernel.yama.ptrace_scope is 2: that needs CAP_SYS_PTRACE");
	if (scope == 1 && !descends_from_us(pid))
		return str_copy(ret, "kernel.yama.ptrace_scope is 1 and cairn did not start it: "
				     "that needs CAP_SYS_PTRACE, or sysctl "
				     "kernel.yama.ptrace_scope=0");
	if (user_namespace(pid) == NAMESPACE_other)
		return str_copy(ret, "it belongs to another user namespace: that needs "
				     "CAP_SYS_PTRACE there");
	return str_copy(ret, "a security module (AppArmor, SELinux) or a seccomp filter forbids "
			     "it");
}

struct error *access_explain(pid_t pid, char **ret)
{
	struct who us = read_who(getpid()), them = read_who(pid);
	bool privileged = us.effective & (1ull << CAP_SYS_PTRACE);

	if (!them.known && kill(pid, 0) < 0 && errno == ESRCH)
		return str_copy(ret, "there is no such process");
	if (!them.known)
		return str_copy(ret, "/proc hides it (mounted with hidepid): that needs "
				     "CAP_SYS_PTRACE, or the group that the mount lets in");
	if (yama_scope() == 3)
		return str_copy(ret, "kernel.yama.ptrace_scope is 3: nobody may until the next "
				     "boot");
	if (privileged)
		return explain_privileged(pid, ret);
	if (!same_ids(&them))
		return explain_ids(pid, &them, ret);
	return explain_same_user(pid, &them, &us, ret);
}
