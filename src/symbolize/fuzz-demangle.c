/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a mangled name: no form of it is longer than the limit and its suffixes. */
#include "symbolize/demangle.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *name = malloc(size + 1);
	_cleanup_free_ char *readable = NULL;

	if (!name)
		return 0;
	memcpy(name, data, size);
	name[size] = 0;
	struct error *err = demangle_name(name, &readable);
	if (!err && readable && strlen(readable) > DEMANGLE_OUTPUT_MAX + 16 * strlen(name) + 64)
		__builtin_trap();
	error_free(err);
	return 0;
}
