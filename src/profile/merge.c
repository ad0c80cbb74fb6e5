/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of the one profile are turned into ids of the other, each kind in a table of its own, so that
 * every text is hashed once however many samples refer to it. */
#include "profile/merge.h"

#include <string.h>

#include "base/array.h"

struct merge {
	struct profile *into;
	const struct profile *from;
	string_id *strings; /* by id in FROM: the id in INTO */
	frame_id *frames;
	stack_id *stacks;
	uint32_t *processes;
};

static void merge_deinit(struct merge *merge)
{
	free(merge->strings);
	free(merge->frames);
	free(merge->stacks);
	free(merge->processes);
}

static struct error *merge_strings(struct merge *merge)
{
	TRY(ARRAY_NEW(merge->strings, profile_strings(merge->from)));
	for (string_id id = 0; id < profile_strings(merge->from); id++) {
		size_t length;
		const char *text = profile_text(merge->from, id, &length);
		TRY(profile_string(merge->into, text, length, &merge->strings[id]));
	}
	return NULL;
}

static struct error *merge_frames(struct merge *merge)
{
	TRY(ARRAY_NEW(merge->frames, profile_frames(merge->from)));
	for (frame_id id = 0; id < profile_frames(merge->from); id++) {
		struct frame frame = *profile_frame_at(merge->from, id);
		frame.function = merge->strings[frame.function];
		frame.file = merge->strings[frame.file];
		frame.object = merge->strings[frame.object];
		TRY(profile_frame(merge->into, &frame, &merge->frames[id]));
	}
	return NULL;
}

static struct error *merge_stacks(struct merge *merge)
{
	TRY(ARRAY_NEW(merge->stacks, profile_stacks(merge->from)));
	for (stack_id id = STACK_EMPTY + 1; id < profile_stacks(merge->from); id++)
		TRY(profile_stack(merge->into, merge->stacks[profile_stack_parent(merge->from, id)],
				  merge->frames[profile_stack_frame(merge->from, id)],
				  &merge->stacks[id]));
	return NULL;
}

static struct error *merge_processes(struct merge *merge)
{
	TRY(ARRAY_NEW(merge->processes, profile_processes(merge->from)));
	for (uint32_t i = 0; i < profile_processes(merge->from); i++) {
		struct process process = *profile_process_at(merge->from, i);
		process.name = merge->strings[process.name];
		process.container = merge->strings[process.container];
		process.application = merge->strings[process.application];
		TRY(profile_process(merge->into, &process, &merge->processes[i]));
	}
	return NULL;
}

static struct error *merge_samples(struct merge *merge)
{
	for (size_t i = 0; i < profile_samples(merge->from); i++) {
		struct profile_sample sample = *profile_sample_at(merge->from, i);
		sample.stack = merge->stacks[sample.stack];
		sample.process = merge->processes[sample.process];
		TRY(profile_add(merge->into, &sample));
	}
	return NULL;
}

static void merge_cut(struct session_facts *into, const struct profile_cut *cut)
{
	for (size_t i = 0; i < into->cut_count; i++) {
		if (strcmp(into->cuts[i].reason, cut->reason) != 0)
			continue;
		into->cuts[i].samples += cut->samples;
		return;
	}
	// There are no more reasons than places: both are bounded by the number of walk ends.
	if (into->cut_count < ARRAY_COUNT(into->cuts))
		into->cuts[into->cut_count++] = *cut;
}

static void merge_note(struct session_facts *into, string_id note)
{
	for (size_t i = 0; i < into->note_count; i++)
		if (into->notes[i] == note)
			return;
	if (into->note_count < ARRAY_COUNT(into->notes))
		into->notes[into->note_count++] = note;
}

/* What both say, if they say the same; what the one says, if INTO was empty. */
static void agree(uint32_t *into, uint32_t from, bool empty)
{
	if (empty && !*into)
		*into = from;
	else if (*into != from)
		*into = 0;
}

static void merge_facts(struct merge *merge, bool empty)
{
	struct session_facts *into = profile_facts(merge->into);
	const struct session_facts *from = profile_facts_const(merge->from);
	const struct {
		string_id *into, from;
	} texts[] = {
		{&into->title, from->title},     {&into->command, from->command},
		{&into->version, from->version}, {&into->event, from->event},
		{&into->host, from->host},       {&into->system, from->system},
		{&into->kernel, from->kernel},   {&into->kernel_build, from->kernel_build},
		{&into->machine, from->machine},
	};

	for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
		agree(texts[i].into, merge->strings[texts[i].from], empty);
	agree(&into->rate_hz, from->rate_hz, empty);
	if (empty)
		into->period = from->period;
	else if (into->period != from->period)
		into->period = 0;
	agree(&into->cpus, from->cpus, empty);
	if (!into->start_realtime_ns ||
	    (from->start_realtime_ns && from->start_realtime_ns < into->start_realtime_ns))
		into->start_realtime_ns = from->start_realtime_ns;
	if (from->end_realtime_ns > into->end_realtime_ns)
		into->end_realtime_ns = from->end_realtime_ns;
	into->samples += from->samples;
	into->lost += from->lost;
	counters_merge(&into->counters, &from->counters);
	for (size_t i = 0; i < from->cut_count; i++)
		merge_cut(into, &from->cuts[i]);
	for (size_t i = 0; i < from->note_count; i++)
		merge_note(into, merge->strings[from->notes[i]]);
}

struct error *profile_merge(struct profile *into, const struct profile *from)
{
	_cleanup_(merge_deinit) struct merge merge = {.into = into, .from = from};
	bool empty = !profile_samples(into);

	TRY(merge_strings(&merge));
	TRY(merge_frames(&merge));
	TRY(merge_stacks(&merge));
	TRY(merge_processes(&merge));
	TRY(merge_samples(&merge));
	merge_facts(&merge, empty);
	return NULL;
}
