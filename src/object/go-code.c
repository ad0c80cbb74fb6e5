/* SPDX-License-Identifier: Apache-2.0 */
#include "object/go-code.h"

#include <endian.h>
#include <string.h>

#include "base/array.h"

enum {
	/* ModRM: register fields of rsp and rbp, and "an SIB byte follows" */
	RSP = 4,
	RBP = 5,
	SIB = 4,
	SIB_RSP = 0x24,     /* base rsp, no index */
	SIB_NOTHING = 0x25, /* neither: an absolute address */
};

static uint32_t u32_at(const uint8_t *code)
{
	uint32_t value;

	memcpy(&value, code, sizeof(value));
	return le32toh(value);
}

/* Length of OPCODE with %rbp as register and DISPLACEMENT(%rsp) as memory at CODE. 0: it is not
 * that. */
static size_t rbp_at_rsp(const uint8_t *code, size_t size, uint8_t opcode, uint32_t displacement)
{
	if (size < 4 || code[0] != 0x48 || code[1] != opcode || code[3] != SIB_RSP)
		return 0;
	if (code[2] == (RBP << 3 | SIB) && displacement == 0)
		return 4;
	if (size >= 5 && code[2] == (0x40 | RBP << 3 | SIB) && code[4] == displacement)
		return 5;
	if (size >= 8 && code[2] == (0x80 | RBP << 3 | SIB) && u32_at(code + 4) == displacement)
		return 8;
	return 0;
}

struct go_frame go_code_frame(const uint8_t *code, size_t size, uint32_t delta)
{
	static const uint8_t push_and_move[] = {0x55, 0x48, 0x89, 0xe5};
	struct go_frame frame = {0};

	if (size < GO_FRAME_BEFORE)
		return frame;
	if (delta == 8 && size >= sizeof(push_and_move) &&
	    memcmp(code, push_and_move, sizeof(push_and_move)) == 0)
		return (struct go_frame){.kept = true, .by_push = true, .set = 3};

	code += GO_FRAME_BEFORE;
	size -= GO_FRAME_BEFORE;
	if (delta < 8)
		return frame;
	size_t store = rbp_at_rsp(code, size, 0x89, delta - 8);
	if (!store)
		return frame;
	size_t set = rbp_at_rsp(code + store, size - store, 0x8d, delta - 8);
	if (!set)
		return frame;
	return (struct go_frame){
		.kept = true, .saved = (uint8_t)store, .set = (uint8_t)(store + set)};
}

size_t go_code_leave(const uint8_t *code, size_t size)
{
	const uint8_t *end = code + size;

	// add $imm8,%rsp; sub $-128,%rsp for 128; add $imm32,%rsp
	if (size >= 4 && end[-4] == 0x48 && end[-3] == 0x83 &&
	    (end[-2] == 0xc4 || (end[-2] == 0xec && end[-1] == 0x80)))
		return 4;
	if (size >= 7 && end[-7] == 0x48 && end[-6] == 0x81 && end[-5] == 0xc4)
		return 7;
	return 0;
}

/* Bytes that ModRM and what follows it take at CODE. 0: more than SIZE. */
static size_t operand_length(const uint8_t *code, size_t size)
{
	uint8_t mode = code[0] >> 6, base = code[0] & 7;
	size_t length = 1;

	if (mode == 3)
		return 1;
	if (base == SIB)
		length++;
	if (mode == 1)
		length += 1;
	if (mode == 2 || (mode == 0 && base == 5))
		length += 4;
	return length <= size ? length : 0;
}

/* The write to the stack pointer at CODE, which has 3 bytes at least. 0: there is none. */
static size_t write_length(const uint8_t *code, size_t size, enum go_write_kind *ret)
{
	uint8_t prefix = code[0], opcode = code[1], operand = code[2];
	uint8_t mode = operand >> 6, reg = operand >> 3 & 7, base = operand & 7;

	if (prefix < 0x48 || prefix > 0x4d)
		return 0;
	// mov %reg,%rsp: 89 with any source, 8b with any source
	if (opcode == 0x89 && mode == 3 && base == RSP && !(prefix & 1)) {
		*ret = GO_WRITE_move;
		return 3;
	}
	if (prefix & 4)
		return 0;
	if (opcode == 0x8b && reg == RSP) {
		size_t length = operand_length(code + 2, size - 2);
		*ret = mode == 3 ? GO_WRITE_move : GO_WRITE_load;
		return length ? 2 + length : 0;
	}
	*ret = GO_WRITE_other;
	if (prefix == 0x48 && opcode == 0x83 && operand == 0xe4 && size >= 4)
		return 4; // and $imm8,%rsp
	// lea off a register that is not the stack pointer itself
	if (opcode == 0x8d && reg == RSP && mode != 3 && base != SIB) {
		size_t length = operand_length(code + 2, size - 2);
		return length ? 2 + length : 0;
	}
	return 0;
}

size_t go_code_writes(const uint8_t *code, size_t size, struct go_write ret[GO_WRITES_MAX])
{
	size_t count = 0;

	for (size_t at = 0; size - at >= 3 && count < GO_WRITES_MAX;) {
		enum go_write_kind kind;
		size_t length = write_length(code + at, size - at, &kind);
		if (length)
			ret[count++] =
				(struct go_write){.kind = kind, .start = at, .end = at + length};
		at += length ? length : 1;
	}
	return count;
}

bool go_code_has(const uint8_t *code, size_t size, const uint8_t *bytes, size_t count,
		 size_t *ret_at)
{
	const uint8_t *found = memmem(code, size, bytes, count);

	if (!found)
		return false;
	if (ret_at)
		*ret_at = (size_t)(found - code);
	return true;
}

bool go_code_tls(const uint8_t *code, size_t size, int32_t *ret)
{
	for (size_t at = 0; at + 4 <= size; at++) {
		// mov %fs:displacement,%reg
		if (code[at] != 0x64 || (code[at + 1] & 0xfb) != 0x48 || code[at + 2] != 0x8b)
			continue;
		if (at + 9 <= size && (code[at + 3] & 0xc7) == SIB && code[at + 4] == SIB_NOTHING) {
			*ret = (int32_t)u32_at(code + at + 5);
			return true;
		}
		// mov $displacement,%rcx; mov %fs:(%rcx),%reg: position-independent code, relaxed
		// by the linker
		static const uint8_t constant[] = {0x48, 0xc7, 0xc1};
		if ((code[at + 3] & 0xc7) == 1 && at >= 7 &&
		    memcmp(code + at - 7, constant, sizeof(constant)) == 0) {
			*ret = (int32_t)u32_at(code + at - 4);
			return true;
		}
	}
	return false;
}

static const struct go_layout layouts[] = {
#define GO_LAYOUT(first, last, m, curg, sp, bp) {m, curg, sp, bp},
#include "object/go-layouts.def"
#undef GO_LAYOUT
};

const struct go_layout *go_code_layout(const uint8_t *code, size_t size)
{
	for (size_t i = 0; i < ARRAY_COUNT(layouts); i++) {
		const struct go_layout *layout = &layouts[i];
		// mov m(%rax),%rbx; cmp curg(%rbx),%rax
		uint8_t m[] = {0x48, 0x8b, 0x58, (uint8_t)layout->m};
		uint8_t curg[] = {
			0x48, 0x3b, 0x83, (uint8_t)layout->curg, (uint8_t)(layout->curg >> 8),
			0,    0};
		if (go_code_has(code, size, m, sizeof(m), NULL) &&
		    go_code_has(code, size, curg, sizeof(curg), NULL))
			return layout;
	}
	return NULL;
}

bool go_code_saves(const uint8_t *code, size_t size, const struct go_layout *layout)
{
	// mov %rbp,disp8(%reg), reg being any of the eight but rsp
	for (uint8_t reg = 0; reg < 8; reg++) {
		uint8_t bp[] = {0x48, 0x89, (uint8_t)(0x40 | RBP << 3 | reg),
				(uint8_t)(layout->sp + layout->bp)};
		if (reg != SIB && go_code_has(code, size, bp, sizeof(bp), NULL))
			return true;
	}
	return false;
}
