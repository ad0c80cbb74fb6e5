/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the native walker has to know of x86-64: where a signal frame keeps registers, and what
 * prologues and epilogues look like. Nothing else in unwind/ asks which machine this is.
 */
#pragma once

#include <linux/types.h>

#include "abi/unwind.h"

/*
 * rt_sigframe as the handler's return finds it: rsp points at the ucontext, whose sigcontext
 * begins at 40 with r8..r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip
 * (arch/x86/include/uapi/asm/sigcontext.h).
 */
enum {
	ARCH_SIGNAL_REGISTERS = 40,
	ARCH_SIGNAL_WORDS = 17,
	ARCH_SIGNAL_PC = 16,
};

/* DWARF number of each register word of the sigcontext before rip. */
#define ARCH_SIGNAL_ORDER                                                                          \
	{                                                                                          \
		UNWIND_R8, UNWIND_R9, UNWIND_R10, UNWIND_R11, UNWIND_R12, UNWIND_R13, UNWIND_R14,  \
			UNWIND_R15, UNWIND_RDI, UNWIND_RSI, UNWIND_RBP, UNWIND_RBX, UNWIND_RDX,    \
			UNWIND_RAX, UNWIND_RCX, UNWIND_RSP                                         \
	}

/* System calls that replace the program, and free its stack while they run. */
enum { ARCH_EXECVE = 59, ARCH_EXECVEAT = 322 };

/* Where a function that keeps a frame pointer is, told by the instruction about to run. */
enum arch_position {
	ARCH_body,   /* the frame pointer is this function's */
	ARCH_entry,  /* it is the caller's, and the stack pointer is at the return address */
	ARCH_pushed, /* it is the caller's and has just been pushed */
};

static inline __attribute__((always_inline)) enum arch_position arch_position(__u64 code)
{
	// endbr64 stands before the prologue of functions built with -fcf-protection.
	if ((code & 0xffffffff) == 0xfa1e0ff3)
		code >>= 32;
	if ((code & 0xff) == 0x55) // push %rbp
		return ARCH_entry;
	if ((code & 0xffffff) == 0xe58948 || (code & 0xffffff) == 0xec8b48) // mov %rsp,%rbp
		return ARCH_pushed;
	// ret; repz ret; ret $n; bnd ret: the frame pointer was popped already.
	if ((code & 0xff) == 0xc3 || (code & 0xffff) == 0xc3f3 || (code & 0xff) == 0xc2 ||
	    (code & 0xffff) == 0xc3f2)
		return ARCH_entry;
	return ARCH_body;
}
