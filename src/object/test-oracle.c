/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows against elfutils: on real libraries, at the first and the last byte of every row, what the
 * rule computes is compared with what libdw's own interpreter says, as numbers, with invented
 * registers and an invented memory.
 *
 * CAIRN_TEST_ELF may name further files, separated by colons.
 */
#include "object/object.h"
#include "object/rows.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>

#include "base/hash.h"
#include "base/str.h"

#include "unit.h"

enum { STACK = 16, RIP = 16 };

struct machine {
	uint64_t reg[RIP + 1];
	uint64_t cfa;
};

/* A machine whose registers differ from each other, stopped at PC. */
static struct machine machine_at(uint64_t pc)
{
	struct machine m;

	for (unsigned i = 0; i < RIP; i++)
		m.reg[i] = hash_u64(i + 1) & 0x7ffffffffff8;
	m.reg[RIP] = pc;
	m.cfa = 0;
	return m;
}

static uint64_t memory(uint64_t addr)
{
	return hash_u64(addr);
}

struct stack {
	uint64_t value[STACK];
	unsigned depth;
};

static uint64_t pop(struct stack *s)
{
	return s->depth ? s->value[--s->depth] : 0;
}

static uint64_t binary(unsigned op, uint64_t a, uint64_t b)
{
	switch (op) {
	case DW_OP_plus:
		return a + b;
	case DW_OP_minus:
		return a - b;
	case DW_OP_and:
		return a & b;
	case DW_OP_mul:
		return a * b;
	case DW_OP_shl:
		return a << (b & 63);
	case DW_OP_ge:
		return (int64_t)a >= (int64_t)b;
	}
	fail_msg("operation 0x%x", op);
	return 0;
}

/* The value that OP pushes by itself; false: it takes values from the stack. */
static bool pushes(const struct machine *m, const Dwarf_Op *op, uint64_t *ret)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		*ret = op->atom - DW_OP_lit0;
	else if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg16)
		*ret = m->reg[op->atom - DW_OP_breg0] + op->number;
	else if (op->atom == DW_OP_bregx && op->number <= RIP)
		*ret = m->reg[op->number] + op->number2;
	else if (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts)
		*ret = op->number;
	else if (op->atom == DW_OP_call_frame_cfa)
		*ret = m->cfa;
	else
		return false;
	return true;
}

static uint64_t evaluate(const struct machine *m, const Dwarf_Op *ops, size_t count)
{
	struct stack s = {.depth = 0};

	for (size_t i = 0; i < count; i++) {
		uint64_t value;
		if (!pushes(m, &ops[i], &value)) {
			if (ops[i].atom == DW_OP_plus_uconst) {
				value = pop(&s) + ops[i].number;
			} else if (ops[i].atom == DW_OP_deref) {
				value = memory(pop(&s));
			} else {
				uint64_t b = pop(&s);
				value = binary(ops[i].atom, pop(&s), b);
			}
		}
		assert_true(s.depth < STACK);
		s.value[s.depth++] = value;
	}
	return pop(&s);
}

/* Where a register of the caller is, or its value, as one comparable number. */
struct place {
	enum { PLACE_lost, PLACE_same, PLACE_memory, PLACE_register } kind;
	uint64_t where;
};

static struct place libdw_place(const struct machine *m, Dwarf_Frame *frame, int reg)
{
	Dwarf_Op scratch[3], *ops;
	size_t count;

	assert_int_equal(dwarf_frame_register(frame, reg, scratch, &ops, &count), 0);
	if (!count)
		return (struct place){ops ? PLACE_lost : PLACE_same, 0};
	if (ops[0].atom == DW_OP_regx)
		return (struct place){PLACE_register, ops[0].number};
	if (ops[count - 1].atom == DW_OP_stack_value)
		return (struct place){PLACE_lost, 0};
	return (struct place){PLACE_memory, evaluate(m, ops, count)};
}

static uint64_t rule_cfa(const struct machine *m, const struct unwind_rule *rule)
{
	uint64_t base = m->reg[rule->base] + (uint64_t)(int64_t)rule->offset;

	switch ((enum unwind_cfa)rule->cfa) {
	case UNWIND_CFA_reg:
		return base;
	case UNWIND_CFA_deref:
		return memory(base) + (uint64_t)(int64_t)rule->aux;
	case UNWIND_CFA_plt:
		return base + ((m->reg[RIP] & 15) >= (uint32_t)rule->aux ? 8 : 0);
	case UNWIND_CFA_scaled:
		return memory(base + 8 * m->reg[rule->aux >> 16]) +
		       (uint64_t)(int16_t)(rule->aux & 0xffff);
	case UNWIND_CFA_none:
	case UNWIND_CFA_root:
	case UNWIND_CFA_frame_ptr:
	case UNWIND_CFA_signal:
	case UNWIND_CFA_go_switch:
	case UNWIND_CFA_kinds:
		break;
	}
	fail_msg("rule kind %u has no CFA", rule->cfa);
	return 0;
}

static struct place rule_fp(const struct machine *m, const struct unwind_rule *rule)
{
	switch ((enum unwind_fp)rule->fp) {
	case UNWIND_FP_same:
		return (struct place){PLACE_same, 0};
	case UNWIND_FP_cfa:
		return (struct place){PLACE_memory, m->cfa + (uint64_t)(int64_t)rule->fp_offset};
	case UNWIND_FP_reg:
		return (struct place){PLACE_memory,
				      m->reg[UNWIND_RBP] + (uint64_t)(int64_t)rule->fp_offset};
	case UNWIND_FP_undefined:
		break;
	}
	return (struct place){PLACE_lost, 0};
}

static struct place rule_ra(const struct machine *m, const struct unwind_rule *rule)
{
	if (rule->ra == UNWIND_RA_reg)
		return (struct place){PLACE_register, (uint64_t)rule->ra_offset};
	return (struct place){PLACE_memory, m->cfa + (uint64_t)(int64_t)rule->ra_offset};
}

static bool same_place(struct place a, struct place b)
{
	return a.kind == b.kind && a.where == b.where;
}

struct tally {
	unsigned long equal, gaps, special, not_said, different;
};

/* Why RULE is not what FRAME says at PC; NULL: it is. */
static const char *difference(const struct unwind_rule *rule, Dwarf_Frame *frame, uint64_t pc)
{
	struct machine m = machine_at(pc);
	Dwarf_Op *ops;
	size_t count;

	assert_int_equal(dwarf_frame_cfa(frame, &ops, &count), 0);
	m.cfa = evaluate(&m, ops, count);
	if (rule_cfa(&m, rule) != m.cfa)
		return "CFA";
	if (!same_place(rule_ra(&m, rule), libdw_place(&m, frame, RIP)))
		return "return address";
	if (!same_place(rule_fp(&m, rule), libdw_place(&m, frame, UNWIND_RBP)))
		return "frame pointer";
	return NULL;
}

/* Does FRAME know a frame pointer that RULE gives up? */
static bool fp_not_said(const struct unwind_rule *rule, Dwarf_Frame *frame, uint64_t pc)
{
	struct machine m = machine_at(pc);

	return rule->cfa <= UNWIND_CFA_scaled && rule->fp == UNWIND_FP_undefined &&
	       libdw_place(&m, frame, UNWIND_RBP).kind != PLACE_lost;
}

static void compare(const struct unwind_rule *rule, Dwarf_CFI *cfi, uint64_t pc,
		    struct tally *tally)
{
	_cleanup_free_ Dwarf_Frame *frame = NULL;
	bool signal = false;
	Dwarf_Op *ops;
	size_t count;

	if (dwarf_cfi_addrframe(cfi, pc, &frame) != 0 || dwarf_frame_cfa(frame, &ops, &count)) {
		// Nothing is known to libdw: a gap, padding, or what we know from elsewhere. It
		// also gives up where a register alone is stated after an expression.
		tally->gaps++;
		return;
	}
	(void)dwarf_frame_info(frame, NULL, NULL, &signal);
	// What no rule can say is a gap, or a frame pointer that is lost.
	if (rule->cfa == UNWIND_CFA_none || fp_not_said(rule, frame, pc)) {
		tally->not_said++;
		return;
	}
	if (rule->cfa == UNWIND_CFA_root || rule->cfa == UNWIND_CFA_signal) {
		struct machine m = machine_at(pc);
		bool right = rule->cfa == UNWIND_CFA_signal
				     ? signal
				     : libdw_place(&m, frame, RIP).kind == PLACE_lost;
		tally->special += right;
		tally->different += !right;
		return;
	}
	const char *why = difference(rule, frame, pc);
	if (why && !tally->different)
		print_message("first difference at 0x%lx: %s\n", pc, why);
	tally->equal += !why;
	tally->different += why != NULL;
}

/* Compare all rows of the file at PATH. False: there is no such file. */
static bool compare_file(const char *path, struct tally *ret)
{
	_cleanup_object_ struct object *object = NULL;
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	ASSERT_OK(object_open(fd, path, &object));
	ASSERT_OK(rows_compile(object, &rows));
	Dwarf_CFI *cfi = dwarf_getcfi_elf(object_elf(object));
	assert_non_null(cfi);
	for (size_t i = 0; i + 1 < rows.count; i++) {
		const struct unwind_rule *rule = &rows.rules[rows.row[i].rule];
		compare(rule, cfi, rows.row[i].addr, ret);
		compare(rule, cfi, rows.row[i + 1].addr - 1, ret);
	}
	dwarf_cfi_end(cfi);
	print_message("%s: %zu rows, %lu equal, %lu unknown to libdw, %lu start or signal, "
		      "%lu not said, %lu different\n",
		      path, rows.count, ret->equal, ret->gaps, ret->special, ret->not_said,
		      ret->different);
	return true;
}

/* Libraries that every Debian has; not all tests run on one. MIN: rows known to be there. */
static const struct {
	const char *path;
	unsigned long min;
} libraries[] = {
	{"/lib/x86_64-linux-gnu/libc.so.6", 20000},
	{"/lib64/ld-linux-x86-64.so.2", 1500},
	{"/usr/lib/x86_64-linux-gnu/libcrypto.so.3", 60000},
	{"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 20000},
};

TEST(rows_of_system_libraries_are_what_libdw_computes)
{
	unsigned found = 0;

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		struct tally tally = {0};
		if (!compare_file(libraries[i].path, &tally))
			continue;
		found++;
		ASSERT_EQ(tally.different, 0);
		// Frame pointers kept in a register or relative to the stack pointer, in assembly.
		ASSERT_TRUE(tally.not_said <= 8);
		ASSERT_TRUE(tally.equal > libraries[i].min);
	}
	if (!found)
		SKIP("none of the libraries is here");
}

TEST(rows_of_files_named_in_the_environment_are_what_libdw_computes)
{
	const char *named = getenv("CAIRN_TEST_ELF");
	_cleanup_free_ char *list = NULL;
	unsigned long different = 0;
	char *rest;

	if (!named)
		SKIP("CAIRN_TEST_ELF names none");
	ASSERT_OK(str_copy(&list, named));
	rest = list;
	for (char *path = strsep(&rest, ":"); path; path = strsep(&rest, ":")) {
		struct tally tally = {0};
		ASSERT_TRUE(compare_file(path, &tally));
		different += tally.different;
	}
	ASSERT_EQ(different, 0);
}

RUN_TESTS(UNIT_TEST(rows_of_system_libraries_are_what_libdw_computes),
	  UNIT_TEST(rows_of_files_named_in_the_environment_are_what_libdw_computes))
