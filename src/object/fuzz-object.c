/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an ELF object: its identity, its sections, its rows. */
#include "object/test-check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_object(data, size);
	return 0;
}
