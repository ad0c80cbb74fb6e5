/* SPDX-License-Identifier: Apache-2.0 */
/* The text files below /proc/PID, proc(5). Their text is partly the target's own (its name, its
 * arguments), so nothing is taken for granted. */
#include "proc/process.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "proc/proctext.h"

enum {
	CGROUP_BYTES_MAX = 256 * 1024,
	ARGUMENT_BYTES = 4096,
	PF_KTHREAD = 0x00200000, /* include/linux/sched.h */
};

void pids_deinit(struct pids *pids)
{
	free(pids->pid);
	*pids = (struct pids)PIDS_INIT;
}

/* All of /proc/PID/NAME; a NULL text when the process is gone. */
static struct error *read_text(pid_t pid, const char *name, size_t max, char **ret)
{
	_cleanup_free_ char *path = NULL;

	TRY(str_format(&path, "/proc/%d/%s", pid, name));
	return proctext_read(path, max, ret);
}

static struct error *parse_stat(const char *text, struct process_status *status)
{
	uint64_t parent, flags, start;

	const char *after = proctext_stat_name(text, status->comm, sizeof(status->comm));
	if (!after)
		return error_new("/proc/%d/stat: no name in it", status->pid);
	const char *state = proctext_skip_blanks(after);
	if (!*state || !proctext_stat_number(after, 4, &parent) ||
	    !proctext_stat_number(after, 9, &flags) || !proctext_stat_number(after, 22, &start))
		return error_new("/proc/%d/stat: fields missing", status->pid);
	status->state = *state;
	status->parent_pid = (pid_t)parent;
	status->kernel_thread = flags & PF_KTHREAD;
	status->start_ticks = start;
	return NULL;
}

static struct error *parse_status(const char *text, struct process_status *status)
{
	const char *at = proctext_line(text, "Uid");
	uint64_t number;

	// Real, effective, saved, file system.
	if (!at || !proctext_number(at, &number, &at) ||
	    !proctext_number(proctext_skip_blanks(at), &number, &at))
		return error_new("/proc/%d/status: no uid in it", status->pid);
	status->uid = (uid_t)number;

	// NSpid is there since Linux 4.1, if the kernel has pid namespaces.
	at = proctext_line(text, "NSpid");
	while (at && status->ns_count < PROCESS_NAMESPACES_MAX &&
	       proctext_number(at, &number, &at)) {
		status->ns_pid[status->ns_count++] = (pid_t)number;
		at = proctext_skip_blanks(at);
	}
	if (!status->ns_count)
		status->ns_pid[status->ns_count++] = status->pid;
	return NULL;
}

struct error *process_read_status(pid_t pid, enum process_look *ret_look,
				  struct process_status *ret)
{
	struct process_status status = {.pid = pid};
	_cleanup_free_ char *stat_text = NULL;
	_cleanup_free_ char *status_text = NULL;

	TRY(read_text(pid, "stat", PROCTEXT_STAT_BYTES, &stat_text));
	TRY(read_text(pid, "status", PROCTEXT_STATUS_BYTES, &status_text));
	if (!stat_text || !status_text) {
		*ret_look = PROCESS_gone;
		return NULL;
	}
	TRY(parse_stat(stat_text, &status));
	TRY(parse_status(status_text, &status));
	*ret = status;
	*ret_look = PROCESS_there;
	return NULL;
}

struct error *process_read_exe(pid_t pid, char **ret)
{
	_cleanup_free_ char *path = NULL;
	char target[PATH_MAX + 16]; // with " (deleted)"

	TRY(str_format(&path, "/proc/%d/exe", pid));
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	if (length < 0 && !proctext_is_gone(errno))
		return error_errno("read link %s", path);
	target[length < 0 ? 0 : length] = 0;
	return str_copy(ret, target);
}

/* "ID:CONTROLLERS:PATH"; the path, cut off at the newline, and whether it is cgroup v2's. */
static bool parse_cgroup_line(char *line, const char **ret_path, bool *ret_v2)
{
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!path)
		return false;
	*ret_v2 = str_starts(line, "0::");
	*ret_path = path + 1;
	return true;
}

struct error *process_read_cgroup(pid_t pid, char **ret)
{
	_cleanup_free_ char *text = NULL;
	const char *found = "", *path;
	char *rest, *line;
	bool v2;

	TRY(read_text(pid, "cgroup", CGROUP_BYTES_MAX, &text));
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		if (!parse_cgroup_line(line, &path, &v2))
			continue;
		bool better = !found[0] || !strcmp(found, "/") || (v2 && strcmp(path, "/"));
		found = better ? path : found;
	}
	return str_copy(ret, found);
}

enum process_bits process_read_bits(pid_t pid)
{
	unsigned char ident[EI_NIDENT];
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, ident, sizeof(ident)) != sizeof(ident) ||
	    memcmp(ident, ELFMAG, SELFMAG) != 0)
		return PROCESS_bits_unknown;
	switch (ident[EI_CLASS]) {
	case ELFCLASS32:
		return PROCESS_bits_32;
	case ELFCLASS64:
		return PROCESS_bits_64;
	default:
		return PROCESS_bits_unknown;
	}
}

static int compare_pids(const void *a, const void *b)
{
	pid_t left = *(const pid_t *)a, right = *(const pid_t *)b;

	return (left > right) - (left < right);
}

/* The entries of the directory PATH that are numbers; none if it is gone. */
static struct error *list_numbers(const char *path, struct pids *ret)
{
	_cleanup_(pids_deinit) struct pids pids = PIDS_INIT;
	_cleanup_closedir_ DIR *directory = opendir(path);
	struct dirent *entry;
	uint64_t number;

	if (!directory && !proctext_is_gone(errno))
		return error_errno("open %s", path);
	while (directory && (errno = 0, entry = readdir(directory))) {
		if (!str_parse_u64(entry->d_name, 1, INT_MAX, &number))
			continue;
		TRY(ARRAY_RESERVE(pids.pid, pids.room, pids.count, 1, PIDS_MAX, "processes"));
		pids.pid[pids.count++] = (pid_t)number;
	}
	if (directory && errno && !proctext_is_gone(errno))
		return error_errno("read %s", path);
	if (pids.count)
		qsort(pids.pid, pids.count, sizeof(*pids.pid), compare_pids);
	*ret = take_struct(pids);
	return NULL;
}

struct error *processes_list(struct pids *ret)
{
	return list_numbers("/proc", ret);
}

struct error *process_list_threads(pid_t pid, struct pids *ret)
{
	_cleanup_free_ char *path = NULL;

	TRY(str_format(&path, "/proc/%d/task", pid));
	return list_numbers(path, ret);
}

struct error *process_of_thread(pid_t tid, enum process_look *ret_look, pid_t *ret)
{
	_cleanup_free_ char *text = NULL;
	const char *line, *end;
	uint64_t number;

	*ret_look = PROCESS_gone;
	TRY(read_text(tid, "status", PROCTEXT_STATUS_BYTES, &text));
	line = text ? proctext_line(text, "Tgid") : NULL;
	if (!line || !proctext_number(line, &number, &end) || number > INT_MAX)
		return NULL;
	*ret_look = PROCESS_there;
	*ret = (pid_t)number;
	return NULL;
}

/* The beginning of /proc/PID/NAME up to the first zero byte, or "". */
static void read_head(pid_t pid, const char *name, char *ret, size_t room)
{
	char path[32];

	ret[0] = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, ret, room - 1);
	ret[length < 0 ? 0 : length] = 0;
}

struct error *process_read_command(pid_t pid, char **ret)
{
	char path[64], text[PROCESS_COMMAND_BYTES + 1];

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	while (length > 0 && !text[length - 1])
		length--;
	for (ssize_t i = 0; i < length; i++)
		text[i] = text[i] ? text[i] : ' ';
	text[length > 0 ? length : 0] = 0;
	return str_copy(ret, text);
}

bool process_matches(pid_t pid, const regex_t *name)
{
	char comm[PROCESS_COMM + 1], argument[ARGUMENT_BYTES];

	read_head(pid, "comm", comm, sizeof(comm));
	comm[strcspn(comm, "\n")] = 0;
	if (comm[0] && !regexec(name, comm, 0, NULL, 0))
		return true;

	read_head(pid, "cmdline", argument, sizeof(argument));
	const char *slash = strrchr(argument, '/');
	const char *base = slash ? slash + 1 : argument;
	return base[0] && !regexec(name, base, 0, NULL, 0);
}

static void keep_matching(const regex_t *name, struct pids *pids)
{
	size_t kept = 0;

	for (size_t i = 0; i < pids->count; i++)
		if (process_matches(pids->pid[i], name))
			pids->pid[kept++] = pids->pid[i];
	pids->count = kept;
}

struct error *processes_find(const char *pattern, struct pids *ret)
{
	_cleanup_(pids_deinit) struct pids pids = PIDS_INIT;
	char reason[128];
	regex_t name;

	TRY(processes_list(&pids));
	int code = regcomp(&name, pattern, REG_EXTENDED | REG_NOSUB);
	if (code) {
		regerror(code, &name, reason, sizeof(reason));
		return error_new("process name \"%s\": %s", pattern, reason);
	}
	keep_matching(&name, &pids);
	regfree(&name);
	*ret = take_struct(pids);
	return NULL;
}
