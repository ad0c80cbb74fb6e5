/* SPDX-License-Identifier: Apache-2.0 */
/* What the processor says of the hypervisor below it; a file per architecture. */
#pragma once

#include <stddef.h>

/* Its name, "KVMKVMKVM", or "NONE". */
void hypervisor_read(char *ret, size_t room);
