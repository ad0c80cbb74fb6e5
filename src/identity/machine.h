/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of the machine that does not change while it runs. Files are the machine's own
 * (identity/host.h), names and addresses those of process 1's namespaces, where cairn may enter
 * them. A text that is not known is "".
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum { MACHINE_TEXT = 256 };

struct machine {
	char host[MACHINE_TEXT], mac[24], ip[48];
	char cpu_model[MACHINE_TEXT], cpu_codename[8];
	char *cpu_flags;               /* owned */
	char hypervisor[MACHINE_TEXT]; /* "NONE" without one */
	uint64_t memory_mib;
	char os_name[MACHINE_TEXT], os_release[MACHINE_TEXT], os_codename[MACHINE_TEXT];
	char libc_type[16], libc_version[32];
	char big_data[16], big_data_version[MACHINE_TEXT]; /* the platform; "": none */
};

#define MACHINE_INIT                                                                               \
	{                                                                                          \
		0                                                                                  \
	}

void machine_deinit(struct machine *machine);

/* ROOT_FD is the machine's root directory. */
struct error *machine_read(int root_fd, struct machine *ret);

/* The parts that are files, for machine_read() and its tests. */
struct error *machine_read_files(int root_fd, struct machine *machine);
