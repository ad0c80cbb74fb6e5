/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Unwind rows as BPF programs and the host walker read them, from the same memory.
 *
 *   segment  UNWIND_SEGMENT_WORDS words; row storage comes in as many as the memory budget allows
 *   row      one word: low 16 bits of the address above, rule number below. It holds from its
 *            address (that within a 64 KiB page) to that of the next row
 *   page     two words in a segment: word number of its first row, number of rows. Every page of
 *            an object's text has one and begins with a row at address 0, so that a lookup never
 *            looks back
 *   module   where the pages of one object are
 *   rule     how to find the caller
 *
 * A "word number" counts words over all segments: segment = number / UNWIND_SEGMENT_WORDS. Rows of
 * one page, and the page table of one module, never cross a segment.
 *
 * Sorted intervals and a table of distinct rules follow the kernel's ORC unwinder (Linux
 * ee9f8fce9964, "x86/unwind: Add the ORC unwinder", 4.14).
 */
#pragma once

#include <linux/types.h>

enum {
	UNWIND_SEGMENT_BITS = 18,
	UNWIND_SEGMENT_WORDS = 1 << UNWIND_SEGMENT_BITS, /* 1 MiB */
	UNWIND_PAGE_BITS = 16,
	UNWIND_RULES_MAX = 16384,
};

struct unwind_segment {
	__u32 word[UNWIND_SEGMENT_WORDS];
};

/* Registers by DWARF number; x86-64 here, 16 of them. A rule's base is one of these. */
enum unwind_register {
	UNWIND_RAX,
	UNWIND_RDX,
	UNWIND_RCX,
	UNWIND_RBX,
	UNWIND_RSI,
	UNWIND_RDI,
	UNWIND_RBP,
	UNWIND_RSP,
	UNWIND_R8,
	UNWIND_R9,
	UNWIND_R10,
	UNWIND_R11,
	UNWIND_R12,
	UNWIND_R13,
	UNWIND_R14,
	UNWIND_R15,
	UNWIND_REGISTERS = 16,
};

/* How to find the canonical frame address (CFA): what the stack pointer is in the caller, after the
 * return. */
enum unwind_cfa {
	UNWIND_CFA_none = 0,  /* gap: no unwind information here; the walk ends as END_no_rows */
	UNWIND_CFA_reg,       /* base + offset */
	UNWIND_CFA_deref,     /* *(base + offset) + aux */
	UNWIND_CFA_plt,       /* rsp + offset + ((pc & 15) >= aux ? 8 : 0) */
	UNWIND_CFA_scaled,    /* *(base + offset + 8 * register[aux >> 16]) + (__s16)aux */
	UNWIND_CFA_root,      /* outermost frame: the walk ends here as END_root */
	UNWIND_CFA_frame_ptr, /* rbp + 16, unless the instruction at pc is in a prologue or epilogue
				 (looked at in memory) */
	UNWIND_CFA_signal,    /* rt_sigframe: all registers come from the ucontext at rsp */
	/* Go, on a stack of the thread: continue where the goroutine's saved context says. offset:
	 * place of m in g | of curg in m << 16; aux: of sched.sp in g, pc behind it; fp_offset: of
	 * bp behind sched.sp; ra_offset: of g from the thread pointer. */
	UNWIND_CFA_go_switch,
	UNWIND_CFA_kinds
};

/* Where the caller's frame pointer is. */
enum unwind_fp {
	UNWIND_FP_same = 0,  /* unchanged */
	UNWIND_FP_cfa,       /* saved at CFA + fp_offset */
	UNWIND_FP_reg,       /* saved at *(rbp + fp_offset): functions that realign the stack */
	UNWIND_FP_undefined, /* lost: a rule that needs it further out cannot be trusted */
};

/* Where the return address is. */
enum unwind_ra {
	UNWIND_RA_cfa = 0, /* saved at CFA + ra_offset; -8 nearly everywhere */
	UNWIND_RA_reg,     /* in register number ra_offset (vfork keeps it in rdi) */
};

/*
 * aux of UNWIND_CFA_reg. Where the caller's rbx is, is said only in objects that have frames based
 * on it (the dynamic loader's lazy binding); a rule that says nothing loses it.
 */
enum unwind_aux {
	UNWIND_OTHER_STACK = 1, /* the frame may be below this one as well as above */
	UNWIND_RBX_same = 2,    /* unchanged */
	UNWIND_RBX_cfa = 4,     /* saved at CFA + (aux >> 16) */
};

/* 16 bytes; rules that are equal are one rule. Unused fields are zero. */
struct unwind_rule {
	__u8 cfa;  /* enum unwind_cfa */
	__u8 base; /* enum unwind_register */
	__u8 fp;   /* enum unwind_fp */
	__u8 ra;   /* enum unwind_ra */
	__s32 offset;
	__s32 aux;
	__s16 fp_offset;
	__s16 ra_offset;
};
_Static_assert(sizeof(struct unwind_rule) == 16, "rules are 16 bytes on both sides");

/* One object's rows, by module number. pages == 0: none loaded (not yet, evicted, or a module that
 * has none). */
struct unwind_module {
	__u32 page_table; /* word number of the first page's two words */
	__u32 pages;      /* pages in the table */
	__u64 start; /* object address (as in its ELF program headers) of page 0, a multiple of 64
			KiB */
};

/*
 * One executable mapping of a process. Tables of mappings are sorted by start and do not overlap.
 * Address in the object = pc - bias.
 */
struct unwind_mapping {
	__u64 start, end; /* in the process; end is exclusive */
	__u64 bias;
	__u32 module; /* module number; UNWIND_MODULE_frame_ptr or UNWIND_MODULE_none */
	__u32 flags;  /* zero */
};

enum {
	UNWIND_MODULE_none = 0,      /* nothing is known of the code here */
	UNWIND_MODULE_frame_ptr = 1, /* walk by frame pointer: JIT code, objects without any rows */
	UNWIND_MODULE_no_walker =
		2, /* made at run time by a runtime that keeps no frame pointers */
	UNWIND_MODULE_first = 3,
};
