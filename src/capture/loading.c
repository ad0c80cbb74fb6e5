/* SPDX-License-Identifier: Apache-2.0 */
/* What libbpf says while it loads programs, and what its refusals mean. */
#define LOG_DOMAIN "capture"
#include "capture/loading.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"

static int print_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[512];

	if (!log_enabled(LOG_DEBUG, LOG_DOMAIN))
		return 0;
	int length = vsnprintf(line, sizeof(line), format, args);
	if (length > 0 && (size_t)length < sizeof(line) && line[length - 1] == '\n')
		line[length - 1] = 0;
	log_debug("%s", line);
	return length;
}

void loading_log_libbpf(void)
{
	libbpf_set_print(print_libbpf);
}

struct error *loading_error(int code)
{
	if (code == -EPERM)
		return error_new("load BPF programs: not permitted; run as root, or with CAP_BPF, "
				 "CAP_PERFMON and CAP_SYS_PTRACE (cairn doctor says more)");
	if (code == -ESRCH || code == -ENOENT)
		return error_new(
			"load BPF programs: the kernel has no BTF (/sys/kernel/btf/vmlinux), "
			"which tells where its structures are; use a kernel built with "
			"CONFIG_DEBUG_INFO_BTF");
	errno = -code;
	return error_errno("load BPF programs");
}
