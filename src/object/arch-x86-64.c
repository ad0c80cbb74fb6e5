/* SPDX-License-Identifier: Apache-2.0 */
/* x86-64: register numbers (psABI 3.6.2), procedure linkage tables, signal trampolines. */
#include "object/arch.h"

#include <elf.h>
#include <string.h>

#include "base/array.h"

enum {
	DWARF_RIP = 16,
	PLT_ENTRY = 16,
	PLT_HEAD_PUSH = 6, /* length of "push *GOT+8(%rip)" that opens a lazy .plt */
};

/* Bytes that a stub may begin with, and where in it the relocation index is on the stack. */
struct stub_shape {
	uint8_t code[8];
	uint8_t length; /* of code that has to match */
	uint8_t push;   /* offset of the push of the index; 0: none */
	uint8_t pushed; /* offset behind it */
};

static const struct stub_shape stub_shapes[] = {
	/* jmp *slot(%rip); push $index; jmp head */
	{{0xff, 0x25}, 2, 6, 11},
	/* endbr64; push $index; [bnd] jmp head */
	{{0xf3, 0x0f, 0x1e, 0xfa, 0x68}, 5, 4, 9},
	/* [bnd] jmp *slot(%rip) */
	{{0xf2, 0xff, 0x25}, 3, 0, 0},
	/* endbr64; [bnd] jmp *slot(%rip): .plt.sec */
	{{0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25}, 7, 0, 0},
	{{0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25}, 6, 0, 0},
};

static bool find_shape(const struct bytes *code, struct stub_shape *ret)
{
	for (size_t i = 0; i < ARRAY_COUNT(stub_shapes); i++) {
		const struct stub_shape *shape = &stub_shapes[i];
		if (bytes_left(code) < PLT_ENTRY / 2 ||
		    memcmp(code->at, shape->code, shape->length) != 0)
			continue;
		*ret = *shape;
		// Stubs of 8 bytes (.plt.got) are the jump alone.
		if (shape->push && (bytes_left(code) < PLT_ENTRY || code->at[shape->push] != 0x68))
			ret->push = 0;
		return true;
	}
	return false;
}

static size_t x86_64_stub_rows(struct bytes code, uint64_t addr, struct stub_row ret[STUB_ROWS_MAX])
{
	static const uint8_t head[] = {0xff, 0x35}; // push *GOT+8(%rip)
	struct stub_shape shape;
	struct unwind_rule rule = {
		.cfa = UNWIND_CFA_reg, .base = UNWIND_RSP, .offset = 8, .ra_offset = -8};
	size_t count = 0;

	if (bytes_left(&code) > PLT_ENTRY && memcmp(code.at, head, sizeof(head)) == 0) {
		// The head is jumped to with the index pushed, and pushes one word more.
		ret[0] = (struct stub_row){0, rule};
		ret[0].rule.offset = 16;
		ret[1] = (struct stub_row){PLT_HEAD_PUSH, rule};
		ret[1].rule.offset = 24;
		count = 2;
		code.at += PLT_ENTRY;
	}
	if (!find_shape(&code, &shape))
		return 0;
	if (shape.push && (addr & (PLT_ENTRY - 1)) == 0) {
		rule.cfa = UNWIND_CFA_plt;
		rule.aux = shape.pushed;
	}
	ret[count] = (struct stub_row){count ? PLT_ENTRY : 0, rule};
	return count + 1;
}

static bool x86_64_is_signal_return(const struct bytes *b, size_t *ret_size)
{
	// mov $15,%rax or %eax; syscall. 15 is rt_sigreturn.
	static const uint8_t wide[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t narrow[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};

	if (bytes_left(b) >= sizeof(wide) && memcmp(b->at, wide, sizeof(wide)) == 0) {
		*ret_size = sizeof(wide);
		return true;
	}
	if (bytes_left(b) >= sizeof(narrow) && memcmp(b->at, narrow, sizeof(narrow)) == 0) {
		*ret_size = sizeof(narrow);
		return true;
	}
	return false;
}

static bool x86_64_is_thread_start(const struct bytes *b, size_t *ret_size)
{
	// The child's side of musl's clone() (1.0 to 1.2, src/thread/x86_64/clone.s), which has no
	// unwind information: xor %ebp,%ebp; pop %rdi; call *%r9; mov %eax,%edi; xor %eax,%eax;
	// mov $60,%al; syscall. 60 is exit.
	static const uint8_t musl[] = {0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1, 0x89,
				       0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05};

	if (bytes_left(b) < sizeof(musl) || memcmp(b->at, musl, sizeof(musl)) != 0)
		return false;
	*ret_size = sizeof(musl);
	return true;
}

static size_t x86_64_loader_entry(struct bytes code)
{
	// glibc's RTLD_START: mov %rsp,%rdi; call _dl_start; mov %rax,%r12; ... jmp *%r12
	static const uint8_t call[] = {0x48, 0x89, 0xe7, 0xe8};
	static const uint8_t back[] = {0x49, 0x89, 0xc4};
	static const uint8_t jump[] = {0x41, 0xff, 0xe4};
	size_t behind = sizeof(call) + sizeof(uint32_t);

	if (bytes_left(&code) < behind + sizeof(back) || memcmp(code.at, call, sizeof(call)) != 0 ||
	    memcmp(code.at + behind, back, sizeof(back)) != 0)
		return 0;
	for (size_t i = behind; i + sizeof(jump) <= bytes_left(&code); i++)
		if (memcmp(code.at + i, jump, sizeof(jump)) == 0)
			return i + sizeof(jump);
	return 0;
}

static size_t x86_64_count_frames(struct bytes code)
{
	static const uint8_t set_up[2][4] = {{0x55, 0x48, 0x89, 0xe5}, {0x55, 0x48, 0x8b, 0xec}};
	size_t count = 0;

	// push %rbp; mov %rsp,%rbp, in its two encodings
	for (; bytes_left(&code) >= sizeof(set_up[0]); code.at++)
		count += memcmp(code.at, set_up[0], sizeof(set_up[0])) == 0 ||
			 memcmp(code.at, set_up[1], sizeof(set_up[1])) == 0;
	return count;
}

static bool x86_64_returned_variable(struct bytes code, uint64_t addr, uint64_t *ret)
{
	// mov variable(%rip),%rax, perhaps behind endbr64 and a frame that is set up.
	static const uint8_t load[] = {0x48, 0x8b, 0x05};
	enum { BEFORE_MAX = 3 };

	for (int i = 0; i <= BEFORE_MAX; i++) {
		struct insn insn;
		uint64_t end = addr + bytes_offset(&code) + sizeof(load) + sizeof(int32_t);
		int32_t distance;
		if (bytes_left(&code) < sizeof(load) + sizeof(distance))
			return false;
		if (memcmp(code.at, load, sizeof(load)) == 0) {
			memcpy(&distance, code.at + sizeof(load), sizeof(distance));
			*ret = end + (uint64_t)(int64_t)distance;
			return true;
		}
		if (!insn_decode_x86_64(&code, addr + bytes_offset(&code), &insn))
			return false;
		code.at += insn.length;
	}
	return false;
}

static const struct arch arch_x86_64 = {
	.machine = EM_X86_64,
	.registers = UNWIND_REGISTERS,
	.sp = UNWIND_RSP,
	.fp = UNWIND_RBP,
	.base = UNWIND_RBX,
	.ra = DWARF_RIP,
	.pc = DWARF_RIP,
	.relative_relocation = R_X86_64_RELATIVE,
	.stub_rows = x86_64_stub_rows,
	.decode = insn_decode_x86_64,
	.count_frames = x86_64_count_frames,
	.loader_entry = x86_64_loader_entry,
	.is_signal_return = x86_64_is_signal_return,
	.is_thread_start = x86_64_is_thread_start,
	.returned_variable = x86_64_returned_variable,
};

const struct arch *arch_find(unsigned machine)
{
	return machine == EM_X86_64 ? &arch_x86_64 : NULL;
}
