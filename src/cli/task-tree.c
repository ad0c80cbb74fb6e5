/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/task-tree.h"

#include <stdlib.h>

#include "base/array.h"

void task_tree_deinit(struct task_tree *tree)
{
	free(tree->node);
	*tree = (struct task_tree){0};
}

/* Tasks may wait for each other: each such circle is opened at the task where it is met first. */
static struct error *open_circles(struct task_node *node, size_t count)
{
	_cleanup_free_ size_t *met = NULL; /* by the way up from which task, counted from 1 */

	TRY(ARRAY_NEW(met, count + 1));
	for (size_t i = 0; i < count; i++) {
		long at = (long)i;
		while (at >= 0 && !met[at]) {
			met[at] = i + 1;
			at = node[at].parent;
		}
		if (at < 0 || met[at] != i + 1)
			continue;
		node[at].parent = -1;
		node[at].in_circle = true;
	}
	return NULL;
}

struct error *task_tree_build(const struct dump *dump, pid_t tid, struct task_tree *ret)
{
	_cleanup_(task_tree_deinit) struct task_tree tree = {.first = -1};

	TRY(ARRAY_NEW(tree.node, dump->tasks + 1));
	for (size_t i = 0; i < dump->tasks; i++) {
		long by = dump->task[i].awaited_by;
		bool together = by >= 0 && dump->task[by].tid == dump->task[i].tid;
		tree.node[i] = (struct task_node){together ? by : -1, -1, -1, false};
	}
	TRY(open_circles(tree.node, dump->tasks));
	// From the last on, so that the first of each comes first.
	for (size_t i = dump->tasks; i-- > 0;) {
		struct task_node *node = &tree.node[i];
		if (dump->task[i].tid != tid)
			continue;
		long *head = node->parent < 0 ? &tree.first : &tree.node[node->parent].child;
		node->next = *head;
		*head = (long)i;
	}
	*ret = take_struct(tree);
	return NULL;
}

long task_tree_next(const struct task_tree *tree, long number, unsigned *depth)
{
	const struct task_node *node = &tree->node[number];

	if (node->child >= 0) {
		++*depth;
		return node->child;
	}
	while (node->next < 0 && node->parent >= 0) {
		--*depth;
		node = &tree->node[node->parent];
	}
	return node->next;
}
