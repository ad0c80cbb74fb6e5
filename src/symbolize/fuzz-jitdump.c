/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a jitdump file, read in two pieces: what is found holds the pc it was found by. */
#include "symbolize/jitdump.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct jitdump *dump)
{
	struct jitdump_found found;

	for (size_t i = 0; i < dump->count && i < 1000; i++) {
		const struct jitdump_function *function = &dump->function[i];
		uint64_t last = function->start + function->size - 1;
		if (jitdump_find(dump, last, 0, &found) && found.start > last)
			__builtin_trap();
		// As long as it is not moved away it is there itself, or what came later is.
		if (function->until_ns == UINT64_MAX && function->from_ns < UINT64_MAX - 1 &&
		    dump->count < 100 && !jitdump_find(dump, last, 0, &found))
			__builtin_trap();
		if (jitdump_find(dump, function->start, function->from_ns, &found) &&
		    strlen(found.name) > JITDUMP_NAME_BYTES)
			__builtin_trap();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(jitdump_deinit) struct jitdump dump = JITDUMP_INIT;
	_cleanup_close_ int fd = memfd_create("jitdump", MFD_CLOEXEC);

	for (int half = 0; half < 2; half++) {
		size_t from = half ? size / 2 : 0, until = half ? size : size / 2;
		if (write(fd, data + from, until - from) != (ssize_t)(until - from))
			return 0;
		error_free(jitdump_update(&dump, fd, "input"));
		check(&dump);
	}
	return 0;
}
