/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks below those that wait for them, for printing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "capture/dump.h"

struct task_node {
	long parent, child, next; /* numbers of tasks; -1: none */
	bool in_circle;           /* its parent waits for it in the end, and was taken away */
};

struct task_tree {
	struct task_node *node; /* owned; as many as there are tasks */
	long first;             /* of the tasks that nobody waits for; -1: there are none */
};

void task_tree_deinit(struct task_tree *tree);

/* Of those tasks of DUMP that belong to thread TID; 0: whose thread is not known. */
struct error *task_tree_build(const struct dump *dump, pid_t tid, struct task_tree *ret);

/* The task that is printed behind NUMBER, -1 behind the last. *DEPTH goes with it. */
long task_tree_next(const struct task_tree *tree, long number, unsigned *depth);
