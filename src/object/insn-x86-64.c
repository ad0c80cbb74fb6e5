/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of x86-64, as far as stack and control flow go (Intel SDM volume 2, appendix A). */
#include "object/insn.h"

#include <string.h>

enum {
	LENGTH_MAX = 15,
	PREFIXES_MAX = 14,
	RSP = 4, /* numbers as instructions encode them */
	RBP = 5,
	NOWHERE = 0xff,
};

/*
 * What follows an opcode, one letter each:
 *
 *   .  nothing            m  ModRM             b  ModRM, 1 byte      z  ModRM, 2 or 4 bytes
 *   1  1 byte             2  2 bytes           4  2 or 4 bytes       v  2, 4 or 8 bytes
 *   j  1 byte, relative   J  4 bytes, relative o  an address         e  enter: 3 bytes
 *   t  ModRM, 1 byte if test  T  ModRM, 2 or 4 bytes if test         x  no instruction here
 */
static const char one_byte[] = "mmmm14xxmmmm14xx"  // 00; 0f is an escape
			       "mmmm14xxmmmm14xx"  // 10
			       "mmmm14xxmmmm14xx"  // 20; 26, 2e, 36, 3e are prefixes
			       "mmmm14xxmmmm14xx"  // 30
			       "xxxxxxxxxxxxxxxx"  // 40: REX
			       "................"  // 50
			       "xxxmxxxx4z1b...."  // 60; 62 is EVEX; 64-67 are prefixes
			       "jjjjjjjjjjjjjjjj"  // 70
			       "bzxbmmmmmmmmmmmm"  // 80
			       "..........x....."  // 90
			       "oooo....14......"  // a0
			       "11111111vvvvvvvv"  // b0
			       "bb2.xxbze.2..1x."  // c0; c4, c5 are VEX
			       "mmmmxxx.mmmmmmmm"  // d0
			       "jjjj1111JJxj...."  // e0
			       "x.xx..tT......mm"; // f0; f0, f2, f3 are prefixes

static const char two_byte[] = "mmmmx.....x.xm.b"  // 00
			       "mmmmmmmmmmmmmmmm"  // 10
			       "mmmmxxxxmmmmmmmm"  // 20
			       "......x.xxxxxxxx"  // 30; 38 and 3a are escapes
			       "mmmmmmmmmmmmmmmm"  // 40
			       "mmmmmmmmmmmmmmmm"  // 50
			       "mmmmmmmmmmmmmmmm"  // 60
			       "bbbbmmm.mmxxmmmm"  // 70
			       "JJJJJJJJJJJJJJJJ"  // 80
			       "mmmmmmmmmmmmmmmm"  // 90
			       "...mbmxx...mbmmm"  // a0
			       "mmmmmmmmmmbmmmmm"  // b0
			       "mmbmbbbm........"  // c0
			       "mmmmmmmmmmmmmmmm"  // d0
			       "mmmmmmmmmmmmmmmm"  // e0
			       "mmmmmmmmmmmmmmmm"; // f0

/*
 * Which general register an opcode writes, of those that could be rsp or rbp: r the ModRM register,
 * m the ModRM operand, b both, o the one in the opcode, . none. Capitals: byte registers. "?" needs
 * a look at the opcode's extension.
 */
static const char one_byte_writes[] = "MmRr....MmRr...."  // 00
				      "MmRr....MmRr...."  // 10
				      "MmRr....MmRr...."  // 20
				      "MmRr............"  // 30; 38-3d compare
				      "................"  // 40
				      "................"  // 50: push and pop, see below
				      "...r.....r.r...."  // 60
				      "................"  // 70
				      "??.?..BbMmRrmr.?"  // 80; 84, 85 test
				      "oooooooo........"  // 90
				      "................"  // a0
				      "OOOOOOOOoooooooo"  // b0
				      "Mm....Mm........"  // c0
				      "MmMm............"  // d0
				      "................"  // e0
				      "......??......??"; // f0

static const char two_byte_writes[] =
	"..rr............"  // 00
	"................"  // 10
	"m.m.........??.."  // 20; 20, 22 are moves from and to control registers
	"................"  // 30
	"rrrrrrrrrrrrrrrr"  // 40
	"r..............."  // 50
	"................"  // 60
	"..............?."  // 70
	"................"  // 80
	"MMMMMMMMMMMMMMMM"  // 90
	"....mm.....mmmmr"  // a0
	"Mmrmrrrrr.mmrrrr"  // b0
	"Bb...r.moooooooo"  // c0
	".......r........"  // d0
	"................"  // e0
	"................"; // f0

/* An instruction taken apart. */
struct parts {
	struct bytes b;
	bool operand_16, rep, repne, lock, address_32, vector;
	uint8_t rex; /* 0: none */
	uint8_t map; /* 0: one byte; 1: 0f; 2: 0f 38; 3: 0f 3a */
	uint8_t opcode;
	bool has_modrm;
	bool relative;        /* the memory operand is relative to rip */
	uint8_t mod, reg, rm; /* with REX bits */
	uint8_t extra;        /* a third register of VEX and EVEX; NOWHERE */
	uint8_t base;         /* of a memory operand, with REX bits; NOWHERE: none, or not plain */
	int64_t displacement;
	int64_t immediate;
};

enum {
	REX_B = 1,
	REX_X = 2,
	REX_R = 4,
	REX_W = 8,
};

static bool next(struct parts *p, uint8_t *ret)
{
	if (p->b.at == p->b.end)
		return false;
	*ret = *p->b.at++;
	return true;
}

/* A signed number of WIDTH bytes. */
static bool number(struct parts *p, unsigned width, int64_t *ret)
{
	uint64_t value = 0;

	if (bytes_left(&p->b) < width)
		return false;
	for (unsigned i = 0; i < width; i++)
		value |= (uint64_t)*p->b.at++ << (8 * i);
	*ret = width ? (int64_t)(value << (64 - 8 * width)) >> (64 - 8 * width) : 0;
	return true;
}

static bool is_prefix(struct parts *p, uint8_t byte)
{
	switch (byte) {
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64:
	case 0x65:
		return true;
	case 0x66:
		return p->operand_16 = true;
	case 0x67:
		return p->address_32 = true;
	case 0xf0:
		return p->lock = true;
	case 0xf2:
		return p->repne = true;
	case 0xf3:
		return p->rep = true;
	}
	return false;
}

/* Read VEX or EVEX; the opcode behind it is of MAP. */
static bool read_vector(struct parts *p, uint8_t escape)
{
	uint8_t first, second = 0, third = 0;

	static const bool rep_of[4] = {false, false, true, false};

	p->vector = true;
	p->rex = 0x40;
	if (!next(p, &first) || (escape != 0xc5 && !next(p, &second)) ||
	    (escape == 0x62 && !next(p, &third)))
		return false;
	// The bits are inverted.
	p->rex |= first & 0x80 ? 0 : REX_R;
	if (escape == 0xc5) {
		p->map = 1;
		p->extra = ~(first >> 3) & 15;
		p->rep = rep_of[first & 3];
		return true;
	}
	p->rex |= (first & 0x40 ? 0 : REX_X) | (first & 0x20 ? 0 : REX_B);
	p->map = first & (escape == 0x62 ? 7 : 31);
	p->extra = ~(second >> 3) & 15;
	p->rep = rep_of[second & 3];
	return p->map >= 1 && (p->map <= 3 || (escape == 0x62 && (p->map == 5 || p->map == 6)));
}

static bool read_opcode(struct parts *p)
{
	uint8_t byte;
	unsigned prefixes = 0;

	for (;;) {
		if (!next(p, &byte) || prefixes++ > PREFIXES_MAX)
			return false;
		if (!is_prefix(p, byte))
			break;
	}
	if ((byte & 0xf0) == 0x40) {
		p->rex = byte;
		if (!next(p, &byte))
			return false;
	}
	if (byte == 0xc4 || byte == 0xc5 || byte == 0x62)
		return read_vector(p, byte) && next(p, &p->opcode);
	p->opcode = byte;
	if (byte != 0x0f)
		return true;
	p->map = 1;
	if (!next(p, &p->opcode))
		return false;
	if (p->opcode == 0x38 || p->opcode == 0x3a) {
		p->map = p->opcode == 0x38 ? 2 : 3;
		return next(p, &p->opcode);
	}
	return true;
}

static bool read_modrm(struct parts *p)
{
	uint8_t modrm, sib;
	bool plain = true; // base and displacement alone

	if (!next(p, &modrm))
		return false;
	p->has_modrm = true;
	p->mod = modrm >> 6;
	p->reg = (modrm >> 3 & 7) | (p->rex & REX_R ? 8 : 0);
	p->rm = modrm & 7;
	uint8_t base = p->rm;
	if (p->mod == 3) {
		p->rm |= p->rex & REX_B ? 8 : 0;
		return true;
	}
	p->relative = p->mod == 0 && base == RBP;
	if (base == RSP) {
		if (!next(p, &sib))
			return false;
		base = sib & 7;
		plain = (sib >> 3 & 7) == RSP && !(p->rex & REX_X);
	}
	// Base 5 without displacement means a displacement alone, relative to rip or absolute.
	if (base == RBP && p->mod == 0) {
		plain = false;
		if (!number(p, 4, &p->displacement))
			return false;
	}
	if (!number(p, p->mod == 1 ? 1 : p->mod == 2 ? 4 : 0, &p->immediate))
		return false;
	if (p->mod != 0)
		p->displacement = p->immediate;
	if (plain && !p->address_32)
		p->base = base | (p->rex & REX_B ? 8 : 0);
	return true;
}

static char layout_of(const struct parts *p)
{
	switch (p->map) {
	case 0:
		return one_byte[p->opcode];
	case 1:
		return two_byte[p->opcode];
	case 3:
		return 'b';
	}
	return 'm';
}

/* Read what follows the opcode. */
static bool read_operands(struct parts *p)
{
	char layout = layout_of(p);
	unsigned wide = p->operand_16 && !(p->rex & REX_W) ? 2 : 4;

	if (strchr("mbztT", layout) && !read_modrm(p))
		return false;
	bool test = (p->reg & 7) <= 1;
	switch (layout) {
	case '.':
	case 'm':
		return true;
	case '1':
	case 'j':
	case 'b':
		return number(p, 1, &p->immediate);
	case '2':
		return number(p, 2, &p->immediate);
	case 'J':
		// Intel and AMD disagree on the length of near jumps with an operand prefix.
		return !p->operand_16 && number(p, 4, &p->immediate);
	case '4':
	case 'z':
		return number(p, wide, &p->immediate);
	case 'v':
		return number(p, p->rex & REX_W ? 8 : wide, &p->immediate);
	case 'o':
		return number(p, p->address_32 ? 4 : 8, &p->immediate);
	case 'e':
		return number(p, 3, &p->immediate);
	case 't':
		return number(p, test ? 1 : 0, &p->immediate);
	case 'T':
		return number(p, test ? wide : 0, &p->immediate);
	}
	return false;
}

/* Which operand an opcode with an extension in its ModRM byte writes. */
static char extension_writes(const struct parts *p)
{
	unsigned extension = p->reg & 7;

	switch (p->opcode) {
	case 0x80:
	case 0x81:
	case 0x83: // all but cmp
		return extension == 7 ? '.' : p->opcode == 0x80 ? 'M' : 'm';
	case 0x8f: // pop; the rest is XOP
		return 'm';
	case 0xf6:
	case 0xf7: // not and neg; mul and div write rax and rdx
		return extension == 2 || extension == 3 ? (p->opcode == 0xf6 ? 'M' : 'm') : '.';
	}
	// 0xfe and 0xff: inc and dec.
	return extension <= 1 ? (p->opcode == 0xfe ? 'M' : 'm') : '.';
}

/* The same for two-byte opcodes that are vector instructions with some prefixes. */
static char prefixed_writes(const struct parts *p)
{
	if (p->opcode == 0x7e) // movd to a general register; movq between vector registers
		return p->rep ? '.' : 'm';
	return p->rep || p->repne ? 'r' : '.'; // conversions; without prefix to MMX registers
}

/* Which operand a VEX or EVEX instruction writes, if it may be a general register. */
static char vector_writes(const struct parts *p)
{
	if (p->map == 1 && p->opcode == 0x7e)
		return p->rep ? '.' : 'm';
	if (p->map == 1)
		return memchr("\x2c\x2d\x50\x93\xc5\xd7", p->opcode, 6) ? 'r' : '.';
	if (p->map == 2)
		return p->opcode >= 0xf0 ? '3' : '.';
	if (p->opcode >= 0x14 && p->opcode <= 0x17)
		return 'm';
	return p->opcode == 0xf0 ? 'r' : '.';
}

static char table_writes(const struct parts *p)
{
	char what = '.';

	if (p->vector)
		return vector_writes(p);
	if (p->map == 0)
		what = one_byte_writes[p->opcode];
	else if (p->map == 1)
		what = two_byte_writes[p->opcode];
	else if (p->map == 2)
		what = p->opcode >= 0xf0 ? 'r' : '.';
	else if (p->opcode >= 0x14 && p->opcode <= 0x17)
		what = 'm';
	if (what == '?')
		what = p->map == 0 ? extension_writes(p) : prefixed_writes(p);
	return what;
}

/* Does the instruction write REG as a general register, by its tables? */
static bool writes(const struct parts *p, uint8_t reg)
{
	uint8_t in_opcode = (p->opcode & 7) | (p->rex & REX_B ? 8 : 0);
	uint8_t operand = p->mod == 3 ? p->rm : NOWHERE;
	char what = table_writes(p);
	bool narrow = what >= 'A' && what <= 'Z';

	// Without REX, byte registers 4 to 7 are the second bytes of the first four.
	if (narrow && !p->rex)
		return false;
	switch (narrow ? what - 'A' + 'a' : what) {
	case 'r':
		return p->reg == reg;
	case 'm':
		return operand == reg;
	case 'b':
		return p->reg == reg || operand == reg;
	case 'o':
		return in_opcode == reg;
	case '3': // either of two, by the opcode
		return p->reg == reg || p->extra == reg;
	}
	return false;
}

/* DWARF numbers of the registers as instructions number them. */
static uint8_t number_in_dwarf(uint8_t reg)
{
	static const uint8_t low[8] = {0, 2, 1, 3, 7, 6, 4, 5};

	return reg < 8 ? low[reg] : reg;
}

static bool is_nop(const struct parts *p)
{
	if (p->map == 0)
		return (p->opcode == 0x90 && !(p->rex & REX_B)) || p->opcode == 0xcc;
	// 0f 1f: nop with an operand; f3 0f 1e fa: endbr64 is none, code may begin with it
	return p->map == 1 && p->opcode == 0x1f && !p->vector;
}

static struct insn relative(const struct parts *p, enum insn_kind kind, uint64_t end)
{
	return (struct insn){.kind = kind, .target = end + (uint64_t)p->immediate};
}

/* Opcodes that move words between stack and registers, or enter and leave functions. */
static bool stack_or_flow(const struct parts *p, uint64_t end, struct insn *ret)
{
	uint8_t op = p->opcode, reg = (op & 7) | (p->rex & REX_B ? 8 : 0);

	if (op >= 0x50 && op <= 0x5f)
		*ret = (struct insn){.kind = op < 0x58 ? INSN_push : INSN_pop,
				     .reg = number_in_dwarf(reg)};
	else if (op == 0x68 || op == 0x6a || op == 0x9c)
		*ret = (struct insn){.kind = INSN_push, .reg = INSN_NO_REG};
	else if (op == 0x9d || (op == 0x8f && p->mod != 3))
		*ret = (struct insn){.kind = INSN_pop, .reg = INSN_NO_REG};
	else if ((op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3))
		*ret = relative(p, INSN_branch, end);
	else if (op == 0xe8)
		*ret = relative(p, INSN_call, end);
	else if (op == 0xe9 || op == 0xeb)
		*ret = relative(p, INSN_jump, end);
	else if (op == 0xc3)
		ret->kind = INSN_return;
	else if (op == 0xc9)
		ret->kind = INSN_leave;
	else if (op == 0xf4)
		ret->kind = INSN_stop;
	else if (op == 0xff && (p->reg & 7) == 2)
		ret->kind = INSN_call;
	else if (op == 0xff && (p->reg & 7) == 4)
		ret->kind = INSN_jump_indirect;
	else if (op == 0xff && (p->reg & 7) == 6)
		*ret = (struct insn){.kind = INSN_push, .reg = INSN_NO_REG};
	else
		return false;
	return true;
}

/* Opcodes whose effect on the stack nobody needs: ret n, far calls, enter, interrupts. */
static bool is_strange(const struct parts *p)
{
	static const uint8_t one[] = {0xc2, 0xc8, 0xca, 0xcb, 0xcd, 0xcf, 0xf1};

	if (p->map == 0)
		return memchr(one, p->opcode, sizeof(one)) ||
		       (p->opcode == 0x8f && (p->reg & 7) != 0) ||
		       (p->opcode == 0xff && ((p->reg & 7) == 3 || (p->reg & 7) == 5));
	return p->map == 1 && !p->vector &&
	       (p->opcode == 0x07 || p->opcode == 0x35 || p->opcode == 0xaa);
}

/* Moves and additions that compute sp or fp from one another. */
static bool frame_arithmetic(const struct parts *p, struct insn *ret)
{
	bool store = p->opcode == 0x89, load = p->opcode == 0x8b;
	uint8_t from = store ? p->reg : p->rm, to = store ? p->rm : p->reg;

	if (!(p->rex & REX_W) || !p->has_modrm || p->lock)
		return false;
	if ((p->opcode == 0x81 || p->opcode == 0x83) && p->mod == 3 && p->rm == RSP &&
	    ((p->reg & 7) == 0 || (p->reg & 7) == 5))
		*ret = (struct insn){.kind = INSN_sp_add,
				     .value = p->reg & 7 ? -p->immediate : p->immediate};
	else if ((store || load) && p->mod == 3 && from == RSP && to == RBP)
		ret->kind = INSN_fp_from_sp;
	else if ((store || load) && p->mod == 3 && from == RBP && to == RSP)
		ret->kind = INSN_sp_from_fp;
	else if (p->opcode == 0x8d && p->base == RSP && p->reg == RSP)
		*ret = (struct insn){.kind = INSN_sp_add, .value = p->displacement};
	else if (p->opcode == 0x8d && p->base == RBP && p->reg == RSP)
		*ret = (struct insn){.kind = INSN_sp_from_fp, .value = p->displacement};
	else if (p->opcode == 0x8d && p->base == RSP && p->reg == RBP)
		*ret = (struct insn){.kind = INSN_fp_from_sp, .value = p->displacement};
	else if (store && p->base == RSP && p->reg == RBP)
		*ret = (struct insn){.kind = INSN_fp_store, .value = p->displacement};
	else if (load && p->base == RSP && p->reg == RBP)
		*ret = (struct insn){.kind = INSN_fp_load, .value = p->displacement};
	else
		return false;
	return true;
}

/* Two-byte opcodes that matter. */
static bool two_byte_effect(const struct parts *p, uint64_t end, struct insn *ret)
{
	uint8_t op = p->opcode;

	if (op >= 0x80 && op <= 0x8f)
		*ret = relative(p, INSN_branch, end);
	else if (op == 0x0b)
		ret->kind = INSN_stop;
	else if (op == 0xa0 || op == 0xa8)
		*ret = (struct insn){.kind = INSN_push, .reg = INSN_NO_REG};
	else if (op == 0xa1 || op == 0xa9)
		*ret = (struct insn){.kind = INSN_pop, .reg = INSN_NO_REG};
	else
		return false;
	return true;
}

static bool effect(const struct parts *p, uint64_t end, struct insn *ret)
{
	bool found = false;

	if (is_strange(p))
		return false;
	if (is_nop(p)) {
		ret->kind = INSN_padding;
		return true;
	}
	if (p->map == 0)
		found = stack_or_flow(p, end, ret) || frame_arithmetic(p, ret);
	else if (p->map == 1 && !p->vector)
		found = two_byte_effect(p, end, ret);
	if (found) // pushes and pops of 2 bytes are none that a compiler makes
		return !p->operand_16 || (ret->kind != INSN_push && ret->kind != INSN_pop);
	if (writes(p, RSP))
		ret->kind = INSN_sp_lost;
	else if (writes(p, RBP))
		ret->kind = INSN_fp_lost;
	else if (p->map == 0 && p->opcode == 0x8d && p->relative)
		ret->target = end + (uint64_t)p->displacement;
	return true;
}

bool insn_decode_x86_64(const struct bytes *b, uint64_t addr, struct insn *ret)
{
	struct parts p = {.b = *b, .extra = NOWHERE, .base = NOWHERE};
	struct insn insn = {.kind = INSN_other};

	if (bytes_left(&p.b) > LENGTH_MAX)
		p.b.end = p.b.at + LENGTH_MAX;
	if (!read_opcode(&p) || !read_operands(&p))
		return false;
	uint8_t length = (uint8_t)(p.b.at - b->at);
	if (!effect(&p, addr + length, &insn))
		return false;
	insn.length = length;
	*ret = insn;
	return true;
}
