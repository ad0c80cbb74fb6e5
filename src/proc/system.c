/* SPDX-License-Identifier: Apache-2.0 */
/* uname() and the list of CPUs. Cloud and distribution facts are identity/'s. */
#include "proc/system.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "proc/cpus.h"

/* The machine's own PID namespace: PROC_PID_INIT_INO in Linux' include/linux/proc_ns.h (3.8). */
static const ino_t machine_pid_namespace = 0xeffffffc;

struct error *system_read(struct system_facts *ret)
{
	_cleanup_(cpus_deinit) struct cpus cpus = CPUS_INIT;
	struct system_facts facts = {0};
	struct utsname name;

	if (uname(&name) < 0)
		return error_errno("uname");
	TRY(cpus_read_online(&cpus));
	memcpy(facts.host, name.nodename, sizeof(facts.host));
	memcpy(facts.name, name.sysname, sizeof(facts.name));
	memcpy(facts.release, name.release, sizeof(facts.release));
	memcpy(facts.version, name.version, sizeof(facts.version));
	memcpy(facts.machine, name.machine, sizeof(facts.machine));
	facts.cpus = (uint32_t)cpus.count;
	*ret = facts;
	return NULL;
}

bool system_read_last_pid(uint32_t *ret)
{
	char text[128];
	uint64_t number;

	_cleanup_close_ int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (length <= 0)
		return false;
	text[length] = 0;
	text[strcspn(text, "\n")] = 0;
	const char *last = strrchr(text, ' ');
	if (!last || !str_parse_u64(last + 1, 1, UINT32_MAX, &number))
		return false;
	*ret = (uint32_t)number;
	return true;
}

bool system_has_own_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) || st.st_ino != machine_pid_namespace;
}
