/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts are sorted once and from then on compared as ranks. A walk over the trie of stacks, callees
 * by rank, numbers the stacks, so that two stacks are compared in one step however deep they are.
 */
#include "formats/order.h"

#include <string.h>

#include "base/array.h"

struct order {
	const struct profile *profile; /* borrowed */
	uint32_t *rank;                /* by string */
	stack_id *sorted;              /* stacks but the empty one, by parent and rank */
	uint32_t *where;               /* by stack: its place in sorted */
	uint32_t *first;  /* by stack: place of its first callee in sorted, plus 1; 0: none */
	uint32_t *number; /* by stack: when the walk comes to it */
};

static void order_deinit(struct order *order)
{
	free(order->rank);
	free(order->sorted);
	free(order->where);
	free(order->first);
	free(order->number);
}

static int compare_numbers(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

static int compare_texts(const void *a, const void *b, void *context)
{
	size_t left_length, right_length;
	const char *left = profile_text(context, *(const string_id *)a, &left_length);
	const char *right = profile_text(context, *(const string_id *)b, &right_length);
	int by_text = memcmp(left, right, left_length < right_length ? left_length : right_length);

	return by_text ? by_text : (left_length > right_length) - (left_length < right_length);
}

static struct error *rank_texts(struct order *order)
{
	size_t count = profile_strings(order->profile);
	_cleanup_free_ string_id *ids = NULL;

	TRY(ARRAY_NEW(ids, count));
	TRY(ARRAY_NEW(order->rank, count));
	for (uint32_t i = 0; i < count; i++)
		ids[i] = i;
	qsort_r(ids, count, sizeof(*ids), compare_texts, (void *)order->profile);
	for (uint32_t i = 0; i < count; i++)
		order->rank[ids[i]] = i;
	return NULL;
}

static uint32_t stack_rank(const struct order *order, stack_id id)
{
	frame_id frame = profile_stack_frame(order->profile, id);

	return order->rank[profile_frame_at(order->profile, frame)->function];
}

static int compare_stacks(const void *a, const void *b, void *context)
{
	const struct order *order = context;
	stack_id left = *(const stack_id *)a, right = *(const stack_id *)b;
	int by_parent = compare_numbers(profile_stack_parent(order->profile, left),
					profile_stack_parent(order->profile, right));

	if (by_parent)
		return by_parent;
	int by_rank = compare_numbers(stack_rank(order, left), stack_rank(order, right));
	return by_rank ? by_rank : compare_numbers(left, right);
}

static struct error *sort_stacks(struct order *order)
{
	size_t count = profile_stacks(order->profile);

	TRY(ARRAY_NEW(order->sorted, count));
	TRY(ARRAY_NEW(order->where, count));
	TRY(ARRAY_NEW(order->first, count));
	for (stack_id id = 1; id < count; id++)
		order->sorted[id - 1] = id;
	qsort_r(order->sorted, count - 1, sizeof(*order->sorted), compare_stacks, order);
	for (uint32_t i = 0; i < count - 1; i++) {
		stack_id parent = profile_stack_parent(order->profile, order->sorted[i]);
		order->where[order->sorted[i]] = i;
		if (!order->first[parent])
			order->first[parent] = i + 1;
	}
	return NULL;
}

/* The callee that follows ID under the same caller; STACK_EMPTY when it is the last. */
static stack_id next_callee(const struct order *order, stack_id id)
{
	uint32_t next = order->where[id] + 1;

	if (next >= profile_stacks(order->profile) - 1)
		return STACK_EMPTY;
	stack_id other = order->sorted[next];
	bool siblings = profile_stack_parent(order->profile, other) ==
			profile_stack_parent(order->profile, id);
	return siblings ? other : STACK_EMPTY;
}

/* The stack behind ID in the walk: its first callee, else the next one of the nearest caller that
 * has any. STACK_EMPTY at the end. */
static stack_id next_stack(const struct order *order, stack_id id)
{
	stack_id next = STACK_EMPTY;

	if (order->first[id])
		return order->sorted[order->first[id] - 1];
	for (; id != STACK_EMPTY; id = profile_stack_parent(order->profile, id)) {
		next = next_callee(order, id);
		if (next != STACK_EMPTY)
			break;
	}
	return next;
}

static struct error *number_stacks(struct order *order)
{
	stack_id id = STACK_EMPTY;
	uint32_t number = 0;

	TRY(ARRAY_NEW(order->number, profile_stacks(order->profile)));
	do {
		order->number[id] = number++;
		id = next_stack(order, id);
	} while (id != STACK_EMPTY);
	return NULL;
}

static int compare_samples(const void *a, const void *b, void *context)
{
	const struct order *order = context;
	uint32_t left_index = *(const uint32_t *)a, right_index = *(const uint32_t *)b;
	const struct profile_sample *left = profile_sample_at(order->profile, left_index);
	const struct profile_sample *right = profile_sample_at(order->profile, right_index);
	const struct process *of_left = profile_process_at(order->profile, left->process);
	const struct process *of_right = profile_process_at(order->profile, right->process);

	int by = compare_numbers(order->rank[of_left->container], order->rank[of_right->container]);
	if (!by)
		by = compare_numbers(order->rank[of_left->name], order->rank[of_right->name]);
	if (!by)
		by = compare_numbers(order->rank[of_left->application],
				     order->rank[of_right->application]);
	if (!by)
		by = compare_numbers(order->number[left->stack], order->number[right->stack]);
	return by ? by : compare_numbers(left_index, right_index);
}

struct error *order_samples(const struct profile *profile, uint32_t **ret)
{
	_cleanup_(order_deinit) struct order order = {.profile = profile};
	_cleanup_free_ uint32_t *samples = NULL;
	size_t count = profile_samples(profile);

	TRY(rank_texts(&order));
	TRY(sort_stacks(&order));
	TRY(number_stacks(&order));
	TRY(ARRAY_NEW(samples, count));
	for (uint32_t i = 0; i < count; i++)
		samples[i] = i;
	qsort_r(samples, count, sizeof(*samples), compare_samples, &order);
	*ret = take(samples);
	return NULL;
}
