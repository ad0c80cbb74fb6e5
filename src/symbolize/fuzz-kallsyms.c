/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as /proc/kallsyms: sorted entries, each of which is found. */
#include "symbolize/kallsyms.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(kallsyms_deinit) struct kallsyms symbols = KALLSYMS_INIT;
	_cleanup_close_ int fd = memfd_create("kallsyms", MFD_CLOEXEC);
	uint64_t start;

	if (write(fd, data, size) != (ssize_t)size)
		return 0;
	error_free(kallsyms_read(fd, &symbols)); // refused with a reason
	for (size_t i = 0; i < symbols.count; i++) {
		uint64_t addr = symbols.entry[i].addr;
		const char *name = kallsyms_find(&symbols, addr, &start);
		if (i && symbols.entry[i - 1].addr >= addr)
			__builtin_trap();
		if (name && (!*name || start != addr || strlen(name) >= size))
			__builtin_trap();
	}
	(void)kallsyms_find(&symbols, 0, &start);
	(void)kallsyms_find(&symbols, UINT64_MAX, &start);
	return 0;
}
