/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registers of a thread on its user side, whoever read them: ptrace, a BPF iterator, a core
 * file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/sample.h"

/*
 * How many words x86-64's struct pt_regs, struct user_regs_struct and the registers of a core
 * file's NT_PRSTATUS begin with alike: r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx,
 * rdx, rsi, rdi, orig_rax, rip, cs, eflags, rsp, ss (arch/x86/include/asm/user_64.h).
 */
enum { REGISTERS_WORDS = 21 };

enum registers_known {
	REGISTERS_none,  /* nothing is known: the thread runs */
	REGISTERS_pc_sp, /* at.pc, at.sp */
	REGISTERS_all,   /* all of them, and fs_base */
};

struct thread_registers {
	enum registers_known known;
	struct walk_state at; /* what is not known is zero */
	uint64_t fs_base;     /* where the thread's TLS is; 0: not known */
	bool compat;          /* the thread runs 32-bit code */
	int64_t syscall;      /* number of the system call it is in; -1: in none, or not known */
	int64_t result;       /* rax: what a system call returned, if it was behind one */
};

/* From words in the order above. */
void registers_set(const uint64_t word[REGISTERS_WORDS], uint64_t fs_base,
		   struct thread_registers *ret);
