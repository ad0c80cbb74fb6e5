/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an object that may hold CPython: what is found of it is of use. */
#include <stdlib.h>

#include "object/object.h"
#include "runtimes/python/find.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_object_ struct object *object = NULL;
	_cleanup_error_ struct error *err = object_open_memory(data, size, "input", &object);
	struct python_object found;

	if (err || !python_object_find(object, &found))
		return 0;
	if (!found.version || found.evals > PYTHON_EVALS || (!found.runtime && !found.interpreters))
		abort();
	for (uint32_t i = 0; i < found.evals; i++)
		if (found.eval[i].start >= found.eval[i].end)
			abort();
	return 0;
}
