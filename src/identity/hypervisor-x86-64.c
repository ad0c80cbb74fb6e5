/* SPDX-License-Identifier: Apache-2.0 */
/* CPUID: bit 31 of leaf 1's ECX says that leaf 0x40000000 has a hypervisor's name. */
#include "identity/hypervisor.h"

#include <cpuid.h>
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void hypervisor_read(char *ret, size_t room)
{
	uint32_t eax, ebx, ecx, edx;
	char name[13] = "";

	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx >> 31)) {
		snprintf(ret, room, "NONE");
		return;
	}
	__cpuid(0x40000000, eax, ebx, ecx, edx);
	memcpy(name, &ebx, sizeof(ebx));
	memcpy(name + 4, &ecx, sizeof(ecx));
	memcpy(name + 8, &edx, sizeof(edx));
	size_t length = 0;
	while (isprint((unsigned char)name[length]))
		length++;
	name[length] = 0;
	snprintf(ret, room, "%s", length ? name : "VM-UNKNOWN");
}
