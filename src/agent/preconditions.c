/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/preconditions.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lock.h"
#include "proc/process.h"

bool preconditions_in_container(void)
{
	static const char *const variables[] = {"GPROFILER_IN_CONTAINER", "GPROFILER_IN_K8S",
						"CAIRN_IN_CONTAINER", "CAIRN_IN_K8S"};

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
		if (getenv(variables[i])) // also if it says "0", as with gProfiler
			return true;
	return false;
}

/* The kernel's first threads have numbers in the first PID namespace alone: 2 is kthreadd. */
static struct error *check_pid_namespace(void)
{
	struct process_status status;
	enum process_look look;

	TRY(process_read_status(2, &look, &status));
	if (look == PROCESS_there && !strcmp(status.comm, "kthreadd"))
		return NULL;
	return error_new("Please run me in the init PID namespace! In Docker, make sure you pass "
			 "'--pid=host'. In Kubernetes, add 'hostPID: true' in the Pod spec. You "
			 "can disable this check with --disable-pidns-check.");
}

struct error *preconditions_check(const struct preconditions *wanted, int *ret_lock)
{
	_cleanup_close_ int lock = -1;
	bool root = !geteuid();

	if (!root && !wanted->rootless)
		return error_new("Not running as root, rerun with --rootless or as root.");
	if (root && wanted->rootless)
		return error_new("Running as root, rerun without --rootless or not as root.");
	if (!wanted->any_pidns)
		TRY(check_pid_namespace());
	if (!wanted->several)
		TRY(lock_take(&lock));
	if (wanted->log_usage && !wanted->in_container)
		return error_new("--log-usage is available only when run as a container!");
	*ret_lock = take_fd(&lock);
	return NULL;
}
