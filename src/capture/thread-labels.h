/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threading calls the threads of processes that are sampled: looked up once for each, soon
 * after it was seen first.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "runtimes/python/attach.h"

struct thread_labels;

struct error *thread_labels_new(struct thread_labels **ret);
void thread_labels_free(struct thread_labels *labels);

/* A thread, and the interpreter that its process runs. */
struct thread_label_of {
	uint32_t pid, tid;
	const struct python_instance *instance; /* borrowed during the call */
};

/* The name of a thread; NULL: threading does not know it, or it has ended. It holds until LABELS
 * goes. */
struct error *thread_labels_find(struct thread_labels *labels, const struct thread_label_of *of,
				 const char **ret);
