/* SPDX-License-Identifier: Apache-2.0 */
/* Saved registers in the order of DWARF's numbers. x86-64. */
#include "proc/registers.h"

enum {
	WORD_RAX = 10,
	WORD_ORIG_RAX = 15,
	WORD_RIP = 16,
	WORD_CS = 17,
	USER_CS = 0x33,
};

/* Where each register by DWARF number is among the words. */
static const uint8_t word_of[UNWIND_REGISTERS] = {
	[UNWIND_RAX] = WORD_RAX, [UNWIND_RDX] = 12, [UNWIND_RCX] = 11, [UNWIND_RBX] = 5,
	[UNWIND_RSI] = 13,       [UNWIND_RDI] = 14, [UNWIND_RBP] = 4,  [UNWIND_RSP] = 19,
	[UNWIND_R8] = 9,         [UNWIND_R9] = 8,   [UNWIND_R10] = 7,  [UNWIND_R11] = 6,
	[UNWIND_R12] = 3,        [UNWIND_R13] = 2,  [UNWIND_R14] = 1,  [UNWIND_R15] = 0,
};

void registers_set(const uint64_t word[REGISTERS_WORDS], uint64_t fs_base,
		   struct thread_registers *ret)
{
	*ret = (struct thread_registers){
		.known = REGISTERS_all,
		.fs_base = fs_base,
		// CS is 16 bits wide: with FRED other things are above it (Linux
		// 14619d912b65, 6.9).
		.compat = (word[WORD_CS] & 0xffff) != USER_CS,
		.syscall = (int64_t)word[WORD_ORIG_RAX] < 0 ? -1 : (int64_t)word[WORD_ORIG_RAX],
		.result = (int64_t)word[WORD_RAX],
	};
	for (int i = 0; i < UNWIND_REGISTERS; i++)
		ret->at.reg[i] = word[word_of[i]];
	ret->at.pc = word[WORD_RIP];
	ret->at.sp = ret->at.reg[UNWIND_RSP];
	ret->at.fp = ret->at.reg[UNWIND_RBP];
}
