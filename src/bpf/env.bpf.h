/* SPDX-License-Identifier: GPL-2.0-only */
/* The walkers' environment inside the kernel. The cursor is the one in a CPU's scratch space. */
#pragma once

#include "bpf/maps.bpf.h"

#define WALK_INLINE static __always_inline
#define WALK_UNROLL _Pragma("clang loop unroll(full)")

#define read_user(w, to, addr) bpf_probe_read_user((to), sizeof(*(to)), (const void *)(addr))

WALK_INLINE int env_mapping(const struct walk *w, __u32 number, struct unwind_mapping *ret)
{
	const struct unwind_mapping *mapping = bpf_map_lookup_elem(&mappings, &number);

	if (!mapping)
		return -1;
	*ret = *mapping;
	return 0;
}

WALK_INLINE int env_module(const struct walk *w, __u32 number, struct unwind_module *ret)
{
	const struct unwind_module *module = bpf_map_lookup_elem(&modules, &number);

	if (!module)
		return -1;
	*ret = *module;
	return 0;
}

WALK_INLINE const struct unwind_segment *env_segment(const struct walk *w, __u32 number)
{
	__u32 zero = 0;
	void *segment = bpf_map_lookup_elem(&segments, &number);

	return segment ? bpf_map_lookup_elem(segment, &zero) : 0;
}

WALK_INLINE int env_rule(const struct walk *w, __u32 number, struct unwind_rule *ret)
{
	const struct unwind_rule *rule = bpf_map_lookup_elem(&rules, &number);

	if (!rule)
		return -1;
	*ret = *rule;
	return 0;
}

WALK_INLINE const struct python_process *env_python(const struct walk *w)
{
	__u32 number = w->python.process - 1;

	return bpf_map_lookup_elem(&pythons, &number);
}

WALK_INLINE const struct python_layout *env_layout(const struct walk *w, __u32 number)
{
	return bpf_map_lookup_elem(&python_layouts, &number);
}

WALK_INLINE __u64 env_thread_state(const struct walk *w)
{
	struct thread_key key = {.pid = bpf_get_current_pid_tgid() >> 32, .fs_base = w->fs_base};
	const __u64 *state = bpf_map_lookup_elem(&thread_states, &key);

	return state ? *state : 0;
}

/* It is from an earlier sample. */
WALK_INLINE int env_state_is_innermost(const struct walk *w)
{
	return 0;
}

WALK_INLINE void env_keep_state(const struct walk *w, __u64 state)
{
	struct thread_key key = {.pid = bpf_get_current_pid_tgid() >> 32, .fs_base = w->fs_base};

	// No room: the next sample of the thread searches again.
	bpf_map_update_elem(&thread_states, &key, &state, BPF_ANY);
}

WALK_INLINE int env_keeps(const struct walk *w)
{
	return 1;
}

WALK_INLINE int env_kept(const struct walk *w, struct python_kept *ret, __u64 *previous)
{
	return -1;
}

/* The cursor is the first member of its scratch space. */
WALK_INLINE __u64 *next_word(struct walk *w)
{
	struct scratch *scratch = (struct scratch *)w;
	__u32 at = scratch->frame_base + w->words++;

	return &scratch->data[at & (SCRATCH_FRAME_WORDS - 1)];
}

WALK_INLINE int push(struct walk *w, __u64 pc)
{
	if (w->frames >= w->depth)
		return -1;
	w->frames++;
	*next_word(w) = pc;
	return 0;
}

WALK_INLINE int push_runtime(struct walk *w, __u64 head, __u64 rest, __u64 place)
{
	if (w->frames >= w->depth)
		return -1;
	w->frames++;
	*next_word(w) = head;
	*next_word(w) = rest;
	return 0;
}

/* Behind the frames: all words of a frame of a runtime, those of what is kept, and the kernel's fit
 * together. */
_Static_assert(SAMPLE_KERNEL_FRAMES + PYTHON_KEPT_WORDS * (SAMPLE_USER_FRAMES + 1) <=
		       SCRATCH_FRAME_WORDS,
	       "no frame is written over another");

WALK_INLINE int env_keep(struct walk *w, const struct python_kept *frame)
{
	struct scratch *scratch = (struct scratch *)w;
	__u32 at = scratch->frame_base + w->words + PYTHON_KEPT_WORDS * (1 + w->python.kept);

	if (w->frames + w->python.kept >= w->depth)
		return -1;
	w->python.kept++;
	scratch->data[at++ & (SCRATCH_FRAME_WORDS - 1)] = frame->at;
	scratch->data[at++ & (SCRATCH_FRAME_WORDS - 1)] = frame->code;
	scratch->data[at & (SCRATCH_FRAME_WORDS - 1)] = frame->rest;
	return 0;
}
