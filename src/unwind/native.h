/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The native step: from one machine frame to its caller by unwind rows. Compiled for BPF and for
 * the host from this text.
 *
 * Worst case of one step: one binary search over mappings (14 reads), one over the rows of a 64 KiB
 * page (17 reads), 3 reads of target memory (17 more words in a signal frame).
 */
#pragma once

#include "unwind/arch-x86-64.h"
#include "unwind/env.h"

enum {
	WALK_MAPPING_STEPS = 14, /* 16,384 mappings in one process */
	WALK_ROW_STEPS = 17,
};

/* Number of the last of COUNT sorted mappings that starts at or below PC; -1: none does. */
WALK_INLINE int native_find_mapping(struct walk *w, __u64 pc)
{
	__u32 base = 0, length = w->mappings;
	struct unwind_mapping map;

	if (!length)
		return -1;
	for (int i = 0; i < WALK_MAPPING_STEPS && length > 1; i++) {
		__u32 half = length >> 1;
		if (env_mapping(w, w->first_mapping + base + half, &map))
			return -1;
		base += map.start <= pc ? half : 0;
		length -= half;
	}
	if (env_mapping(w, w->first_mapping + base, &w->in) || pc < w->in.start ||
	    pc >= w->in.end) {
		w->in.end = 0;
		return -1;
	}
	return 0;
}

/* The rule for object address ADDR in MODULE. Not END_none: why there is none. */
WALK_INLINE enum walk_end native_find_rule(struct walk *w, __u32 number, __u64 addr,
					   struct unwind_rule *ret)
{
	struct unwind_module module;

	if (env_module(w, number, &module) || !module.pages)
		return END_not_loaded;
	__u64 page = (addr - module.start) >> UNWIND_PAGE_BITS;
	if (addr < module.start || page >= module.pages)
		return END_no_rows;

	__u32 at = module.page_table + 2 * (__u32)page;
	const struct unwind_segment *segment = env_segment(w, at >> UNWIND_SEGMENT_BITS);
	if (!segment)
		return END_not_loaded;
	__u32 first = segment->word[at & (UNWIND_SEGMENT_WORDS - 1)];
	__u32 length = segment->word[(at + 1) & (UNWIND_SEGMENT_WORDS - 1)];
	if (!length)
		return END_no_rows;

	segment = env_segment(w, first >> UNWIND_SEGMENT_BITS);
	if (!segment)
		return END_not_loaded;
	// The last row whose address is at or below ours. Without branches on the rows, so that the
	// verifier sees one path through each step.
	__u32 key = (__u32)(addr & 0xffff) << 16 | 0xffff;
	for (int i = 0; i < WALK_ROW_STEPS && length > 1; i++) {
		__u32 half = length >> 1;
		__u32 row = segment->word[(first + half) & (UNWIND_SEGMENT_WORDS - 1)];
		__s64 above = (__s64)key - (__s64)row;
		first += half & ~(__u32)(above >> 63);
		length -= half;
	}
	__u32 rule = segment->word[first & (UNWIND_SEGMENT_WORDS - 1)] & 0xffff;
	if (env_rule(w, rule, ret))
		return END_not_loaded;
	return END_none;
}

/* Value of register NUMBER in the present frame; non-zero: it is not known any more. */
WALK_INLINE int native_register(const struct walk *w, __u32 number, __u64 *ret)
{
	if (number == UNWIND_RSP) {
		*ret = w->at.sp;
		return 0;
	}
	if (number == UNWIND_RBP) {
		*ret = w->at.fp;
		return w->at.fp == WALK_FP_LOST;
	}
	if (!(w->flags & WALK_leaf) && !(number == UNWIND_RBX && w->flags & WALK_rbx))
		return -1;
	*ret = w->at.reg[number & (UNWIND_REGISTERS - 1)];
	return 0;
}

/* Canonical frame address by RULE. */
WALK_INLINE enum walk_end native_cfa(struct walk *w, const struct unwind_rule *rule, __u64 *ret)
{
	__u64 base, index = 0, cfa;

	if (native_register(w, rule->base, &base))
		return END_no_register;
	cfa = base + (__s64)rule->offset;
	if (rule->cfa == UNWIND_CFA_plt && (__s32)(w->at.pc & 15) >= rule->aux)
		cfa += 8;
	if (rule->cfa == UNWIND_CFA_scaled) {
		if (native_register(w, (__u32)rule->aux >> 16, &index))
			return END_no_register;
		cfa += 8 * index;
	}
	if (rule->cfa == UNWIND_CFA_deref || rule->cfa == UNWIND_CFA_scaled) {
		if (read_user(w, &base, cfa))
			return END_unreadable;
		cfa = base +
		      (rule->cfa == UNWIND_CFA_deref ? (__s64)rule->aux : (__s64)(__s16)rule->aux);
	}
	*ret = cfa;
	return END_none;
}

/* The caller's frame pointer by RULE, into FP. */
WALK_INLINE enum walk_end native_frame_pointer(struct walk *w, const struct unwind_rule *rule,
					       __u64 cfa, __u64 *fp)
{
	__u64 addr = 0;

	if (rule->fp == UNWIND_FP_cfa)
		addr = cfa + (__s64)rule->fp_offset;
	else if (rule->fp == UNWIND_FP_reg)
		addr = w->at.fp + (__s64)rule->fp_offset;
	if (addr && read_user(w, fp, addr))
		return END_unreadable;
	if (rule->fp == UNWIND_FP_undefined)
		*fp = WALK_FP_LOST;
	return END_none;
}

/*
 * Move to the caller that has PC, SP and FP. A caller's frame lies above its callee's; only a leaf
 * may have taken its return address off the stack already (vfork).
 */
WALK_INLINE enum walk_end native_to_caller(struct walk *w, __u64 pc, __u64 sp, __u64 fp)
{
	if (sp < w->at.sp + (w->flags & WALK_leaf ? 0 : 8) || (sp & 7))
		return END_bad_frame;
	// A return address of zero is how a start routine marks that nobody called it.
	if (!pc)
		return END_root;
	w->at.pc = pc;
	w->at.sp = sp;
	w->at.fp = fp;
	w->flags = (w->flags & ~WALK_leaf) | WALK_call;
	return END_none;
}

/* Code without rows that is known to keep frame pointers. */
WALK_INLINE enum walk_end native_by_frame_pointer(struct walk *w)
{
	enum arch_position position = ARCH_body;
	__u64 code, pc, fp = w->at.fp, sp = w->at.fp + 16;

	if (w->flags & WALK_leaf) {
		// A page of code that cannot be read is as good as the middle of a function.
		if (!read_user(w, &code, w->at.pc))
			position = arch_position(code);
		if (position == ARCH_entry)
			sp = w->at.sp + 8;
		else if (position == ARCH_pushed)
			sp = w->at.sp + 16;
	}
	// The ABI marks the outermost frame by a frame pointer of zero (x86-64 psABI 3.4.1).
	if (position == ARCH_body && !w->at.fp)
		return w->flags & WALK_leaf ? END_no_frame_ptr : END_root;
	if (position == ARCH_body && (w->at.fp < w->at.sp || (w->at.fp & 7)))
		return END_no_frame_ptr;
	if (read_user(w, &pc, sp - 8))
		return END_unreadable;
	if (position != ARCH_entry && read_user(w, &fp, sp - 16))
		return END_unreadable;
	// Code that uses rbp for something else finds zeros often, and a start routine of its own
	// that is the leaf as good as never: this is no root.
	if (position == ARCH_body && !pc && (w->flags & WALK_leaf))
		return END_no_frame_ptr;
	return native_to_caller(w, pc, sp, fp);
}

/* Through the frame that the kernel built to run a signal handler. */
WALK_INLINE enum walk_end native_signal(struct walk *w)
{
	static const __u8 order[ARCH_SIGNAL_PC] = ARCH_SIGNAL_ORDER;
	__u64 word[ARCH_SIGNAL_WORDS];

	if (read_user(w, &word, w->at.sp + ARCH_SIGNAL_REGISTERS))
		return END_unreadable;
	WALK_UNROLL
	for (int i = 0; i < ARCH_SIGNAL_PC; i++)
		w->at.reg[order[i]] = word[i];
	w->at.pc = word[ARCH_SIGNAL_PC];
	w->at.sp = w->at.reg[UNWIND_RSP];
	w->at.fp = w->at.reg[UNWIND_RBP];
	// The interrupted instruction itself, with all its registers: a leaf again.
	w->flags = (w->flags & ~WALK_call) | WALK_leaf;
	return END_none;
}

/*
 * Go runs some work on a stack of the thread (systemstack, C calls). The goroutine's own stack
 * goes on where its saved context says. The rule carries the offsets: see abi/unwind.h.
 */
WALK_INLINE enum walk_end native_go_switch(struct walk *w, const struct unwind_rule *rule)
{
	__u32 m_in_g = (__u32)rule->offset & 0xffff, curg_in_m = (__u32)rule->offset >> 16;
	__u64 g, m, current, context, pc, sp, fp;

	if (!w->fs_base)
		return END_no_register;
	if (read_user(w, &g, w->fs_base + (__s64)rule->ra_offset) || read_user(w, &m, g + m_in_g) ||
	    read_user(w, &current, m + curg_in_m))
		return END_unreadable;
	// No goroutine: the scheduler itself, whose stack ends here.
	if (!current)
		return END_root;
	context = current + (__s64)rule->aux;
	if (read_user(w, &sp, context) || read_user(w, &pc, context + 8) ||
	    read_user(w, &fp, context + (__s64)rule->fp_offset))
		return END_unreadable;
	if (!pc || (sp & 7))
		return END_bad_frame;
	w->at.pc = pc;
	w->at.sp = sp;
	w->at.fp = fp;
	w->flags &= ~(WALK_leaf | WALK_call);
	return END_none;
}

/* The caller's rbx, as far as RULE tells. */
WALK_INLINE enum walk_end native_rbx(struct walk *w, const struct unwind_rule *rule, __u64 cfa)
{
	__u32 aux = rule->cfa == UNWIND_CFA_reg ? (__u32)rule->aux : 0;
	int known = w->flags & (WALK_leaf | WALK_rbx);

	w->flags &= ~WALK_rbx;
	if (aux & UNWIND_RBX_same && known)
		w->flags |= WALK_rbx;
	if (!(aux & UNWIND_RBX_cfa))
		return END_none;
	if (read_user(w, &w->at.reg[UNWIND_RBX], cfa + (__s64)(rule->aux >> 16)))
		return END_unreadable;
	w->flags |= WALK_rbx;
	return END_none;
}

/* To the caller by RULE, which gives a CFA. */
WALK_INLINE enum walk_end native_by_rule(struct walk *w, const struct unwind_rule *rule)
{
	__u64 cfa, pc, fp = w->at.fp;
	enum walk_end end = native_cfa(w, rule, &cfa);

	if (end == END_none)
		end = native_frame_pointer(w, rule, cfa, &fp);
	if (end != END_none)
		return end;
	if (rule->ra == UNWIND_RA_reg) {
		if (native_register(w, (__u32)rule->ra_offset, &pc))
			return END_no_register;
	} else if (read_user(w, &pc, cfa + (__s64)rule->ra_offset)) {
		return END_unreadable;
	}
	// On another stack "above" means nothing; what bounds the walk there is its depth.
	if (rule->cfa == UNWIND_CFA_reg && rule->aux & UNWIND_OTHER_STACK)
		w->at.sp = 0;
	end = native_rbx(w, rule, cfa);
	if (end != END_none)
		return end;
	return native_to_caller(w, pc, cfa, fp);
}

/* One frame outwards. END_none: w->at is the caller. Otherwise w->at stays and the walk is over. */
WALK_INLINE enum walk_end native_step(struct walk *w)
{
	__u64 pc = w->at.pc - (w->flags & WALK_call ? 1 : 0);
	struct unwind_rule rule = {0};

	if ((pc < w->in.start || pc >= w->in.end) && native_find_mapping(w, pc) < 0)
		return END_unknown_pc;
	if (w->in.module == UNWIND_MODULE_frame_ptr)
		return native_by_frame_pointer(w);
	if (w->in.module == UNWIND_MODULE_no_walker)
		return END_no_walker;
	if (w->in.module == UNWIND_MODULE_none)
		return END_no_rows;

	enum walk_end end = native_find_rule(w, w->in.module, pc - w->in.bias, &rule);
	if (end != END_none)
		return end;
	switch ((enum unwind_cfa)rule.cfa) {
	case UNWIND_CFA_reg:
	case UNWIND_CFA_deref:
	case UNWIND_CFA_plt:
	case UNWIND_CFA_scaled:
		return native_by_rule(w, &rule);
	case UNWIND_CFA_root:
		return END_root;
	case UNWIND_CFA_frame_ptr:
		return native_by_frame_pointer(w);
	case UNWIND_CFA_signal:
		return native_signal(w);
	case UNWIND_CFA_go_switch:
		return native_go_switch(w, &rule);
	case UNWIND_CFA_none:
	case UNWIND_CFA_kinds:
		break;
	}
	return END_no_rows;
}

/* Push the present frame. Non-zero: there is no room for it, and the walk is over. */
WALK_INLINE int native_push(struct walk *w)
{
	// Any return address may stand on a stack; none passes for a frame of a runtime.
	__u64 pc = w->flags & WALK_call ? w->at.pc & ~SAMPLE_RUNTIME : w->at.pc | SAMPLE_EXACT_PC;

	if (!push(w, pc))
		return 0;
	w->end = END_depth;
	return 1;
}

/* Push the present frame and step. Non-zero: the walk is over, w->end says why. */
WALK_INLINE int native_walk_one(struct walk *w)
{
	if (native_push(w))
		return 1;
	w->end = native_step(w);
	return w->end != END_none;
}
