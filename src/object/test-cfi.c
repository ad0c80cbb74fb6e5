/* SPDX-License-Identifier: Apache-2.0 */
/* Call frame information made for the test, odd and damaged. test-oracle.c has real libraries. */
#include "object/cfi.h"

#include <dwarf.h>

#include "base/array.h"
#include "object/cfi-expr.h"
#include "object/cfi-run.h"
#include "object/object.h"
#include "object/rows.h"
#include "object/test-elf.h"

#include "unit.h"

enum { F = MAKE_TEXT }; /* where the function under test is */

/* The rows of a file with FRAMES in .eh_frame. */
static void compile(const struct writer *frames, struct rows *ret)
{
	_cleanup_(made_deinit) struct made m;
	_cleanup_object_ struct object *object = NULL;

	made_usual(&m, frames);
	made_finish(&m);
	ASSERT_OK(object_open_memory(m.data, m.size, "test", &object));
	ASSERT_OK(rows_compile(object, ret));
}

/* The rows of one function of 0x100 bytes with PROGRAM. */
static void compile_program(const char *program, size_t size, struct rows *ret)
{
	struct cfi_make c = {.addr = MAKE_FRAMES, .eh = true};
	cfi_make_usual_cie(&c);

	cfi_make_fde(&c, F, 0x100, program, size);
	compile(&c.out, ret);
}

/* What is said of ADDR. Frame pointers fill the gaps of an object that has little else: nothing. */
static struct unwind_rule rule_at(const struct rows *rows, uint64_t addr)
{
	const struct unwind_rule *rule = rows_find(rows, addr);

	if (!rule || rule->cfa == UNWIND_CFA_frame_ptr)
		return (struct unwind_rule){.cfa = UNWIND_CFA_none};
	return *rule;
}

#define RULE(...) ((struct unwind_rule){.ra_offset = -8, __VA_ARGS__})
#define REG(register, n) .cfa = UNWIND_CFA_reg, .base = (register), .offset = (n)
#define FP_AT(n) .fp = UNWIND_FP_cfa, .fp_offset = (n)

/* Programs, and the rule that holds at F + 8 after them. */
static const struct {
	const char *name, *program;
	size_t size;
	struct unwind_rule rule;
} programs[] = {
#define PROGRAM(name, text, ...)                                                                   \
	{                                                                                          \
		name, text, sizeof(text) - 1, __VA_ARGS__                                          \
	}
	PROGRAM("nothing", "", RULE(REG(UNWIND_RSP, 8))),
	PROGRAM("push", "\x41\x0e\x10\x86\x02", RULE(REG(UNWIND_RSP, 16), FP_AT(-16))),
	PROGRAM("frame pointer", "\x41\x0e\x10\x86\x02\x43\x0d\x06",
		RULE(REG(UNWIND_RBP, 16), FP_AT(-16))),
	PROGRAM("remember and restore", "\x41\x0e\x10\x0a\x41\x0e\x18\x41\x0b",
		RULE(REG(UNWIND_RSP, 16))),
	PROGRAM("restore rbp", "\x86\x02\x41\xc6", RULE(REG(UNWIND_RSP, 8))),
	PROGRAM("restore_extended rbp", "\x86\x02\x41\x06\x06", RULE(REG(UNWIND_RSP, 8))),
	PROGRAM("offset_extended_sf", "\x11\x06\x02", RULE(REG(UNWIND_RSP, 8), FP_AT(-16))),
	PROGRAM("negative_offset_extended", "\x2f\x06\x02", RULE(REG(UNWIND_RSP, 8), FP_AT(16))),
	PROGRAM("def_cfa_sf", "\x12\x07\x7e", RULE(REG(UNWIND_RSP, 16))),
	PROGRAM("def_cfa_offset_sf", "\x13\x7d", RULE(REG(UNWIND_RSP, 24))),
	PROGRAM("args_size and window_save", "\x2e\x80\x01\x2d\x0e\x20", RULE(REG(UNWIND_RSP, 32))),
	PROGRAM("advance_loc1, 2, 4", "\x02\x01\x03\x01\x00\x04\x01\x00\x00\x00\x0e\x30",
		RULE(REG(UNWIND_RSP, 48))),
	PROGRAM("MIPS_advance_loc8", "\x1d\x01\0\0\0\0\0\0\0\x0e\x30", RULE(REG(UNWIND_RSP, 48))),
	PROGRAM("undefined rbp", "\x07\x06", RULE(REG(UNWIND_RSP, 8), .fp = UNWIND_FP_undefined)),
	PROGRAM("same_value rbp", "\x86\x02\x08\x06", RULE(REG(UNWIND_RSP, 8))),
	PROGRAM("rbp in a register", "\x09\x06\x00",
		RULE(REG(UNWIND_RSP, 8), .fp = UNWIND_FP_undefined)),
	PROGRAM("val_offset rbp", "\x14\x06\x01",
		RULE(REG(UNWIND_RSP, 8), .fp = UNWIND_FP_undefined)),
	PROGRAM("far frame pointer", "\x05\x06\x80\x80\x02",
		RULE(REG(UNWIND_RSP, 8), .fp = UNWIND_FP_undefined)),
	PROGRAM("undefined return address", "\x07\x10", {.cfa = UNWIND_CFA_root}),
	PROGRAM("return address in rdi", "\x09\x10\x05",
		{.cfa = UNWIND_CFA_reg,
		 .base = UNWIND_RSP,
		 .offset = 8,
		 .ra = UNWIND_RA_reg,
		 .ra_offset = UNWIND_RDI}),
	PROGRAM("same return address", "\x08\x10", {.cfa = UNWIND_CFA_none}),
	PROGRAM("return address in no register", "\x09\x10\x20", {.cfa = UNWIND_CFA_none}),
	PROGRAM("CFA by r10", "\x0c\x0a\x00", RULE(REG(UNWIND_R10, 0))),
	PROGRAM("CFA by no register", "\x0c\x20\x00", {.cfa = UNWIND_CFA_none}),
	PROGRAM("CFA too far", "\x0e\x80\x80\x80\x80\x10", {.cfa = UNWIND_CFA_none}),
	PROGRAM("*(rbp - 8)", "\x0f\x03\x76\x78\x06",
		RULE(.cfa = UNWIND_CFA_deref, .base = UNWIND_RBP, .offset = -8)),
	PROGRAM("*(rsp + 152) + 8", "\x0f\x06\x77\x98\x01\x06\x23\x08",
		RULE(.cfa = UNWIND_CFA_deref, .base = UNWIND_RSP, .offset = 152, .aux = 8)),
	PROGRAM("*(rsp + r9 * 8) + 8", "\x0f\x0a\x77\x00\x79\x00\x38\x1e\x22\x06\x23\x08",
		RULE(.cfa = UNWIND_CFA_scaled, .base = UNWIND_RSP, .aux = UNWIND_R9 << 16 | 8)),
	PROGRAM("*(rsp + (r9 << 3) + 5) - 8",
		"\x0f\x0d\x77\x00\x79\x00\x33\x24\x22\x23\x05\x06\x38\x1c\x96",
		RULE(.cfa = UNWIND_CFA_scaled, .base = UNWIND_RSP, .offset = 5,
		     .aux = UNWIND_R9 << 16 | 0xfff8)),
	PROGRAM("jump stubs", "\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22",
		RULE(.cfa = UNWIND_CFA_plt, .base = UNWIND_RSP, .offset = 8, .aux = 11)),
	PROGRAM("jump stubs of IBT", "\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x39\x2a\x33\x24\x22",
		RULE(.cfa = UNWIND_CFA_plt, .base = UNWIND_RSP, .offset = 8, .aux = 9)),
	PROGRAM("jump stubs of 32 bytes",
		"\x0f\x0c\x77\x08\x80\x00\x08\x1f\x1a\x39\x2a\x33\x24\x22",
		{.cfa = UNWIND_CFA_none}),
	PROGRAM("CFA by an expression without end", "\x0f\x02\x77\x80", {.cfa = UNWIND_CFA_none}),
	PROGRAM("CFA by an empty expression", "\x0f\x00", {.cfa = UNWIND_CFA_none}),
	PROGRAM("rbp at *(rbp + 0)", "\x10\x06\x02\x76\x00",
		RULE(REG(UNWIND_RSP, 8), .fp = UNWIND_FP_reg)),
	PROGRAM("rbp at *(CFA - 32)", "\x10\x06\x04\x08\x20\x1c\x96",
		RULE(REG(UNWIND_RSP, 8), FP_AT(-32))),
	PROGRAM("rbp at *(rsp + 8)", "\x10\x06\x02\x77\x08",
		RULE(REG(UNWIND_RSP, 8), .fp = UNWIND_FP_undefined)),
	PROGRAM("rbp by val_expression", "\x16\x06\x02\x76\x00",
		RULE(REG(UNWIND_RSP, 8), .fp = UNWIND_FP_undefined)),
	PROGRAM("expression for rbx", "\x10\x03\x01\x06\x0e\x10", RULE(REG(UNWIND_RSP, 16))),
	PROGRAM("register behind an expression", "\x0f\x03\x76\x78\x06\x41\x0d\x07",
		RULE(REG(UNWIND_RSP, 8))),
	PROGRAM("unknown instruction", "\x3f", {.cfa = UNWIND_CFA_none}),
	PROGRAM("restore without remember", "\x0b", {.cfa = UNWIND_CFA_none}),
	PROGRAM("instruction cut short", "\x0c\x07", {.cfa = UNWIND_CFA_none}),
	PROGRAM("number without end", "\x0e\x80\x80", {.cfa = UNWIND_CFA_none}),
	PROGRAM("advance too far", "\x04\xff\xff\xff\xff\x0e\x10", {.cfa = UNWIND_CFA_none}),
};

TEST(every_instruction_has_its_meaning)
{
	for (size_t i = 0; i < ARRAY_COUNT(programs); i++) {
		_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
		compile_program(programs[i].program, programs[i].size, &rows);
		struct unwind_rule rule = rule_at(&rows, F + 8);
		if (memcmp(&rule, &programs[i].rule, sizeof(rule)) != 0)
			fail_msg("%s: kind %u base %u offset %d aux 0x%x, fp %u %d, ra %u %d",
				 programs[i].name, rule.cfa, rule.base, rule.offset, rule.aux,
				 rule.fp, rule.fp_offset, rule.ra, rule.ra_offset);
	}
}

TEST(states_are_remembered_up_to_a_limit)
{
	_cleanup_(rows_deinit) struct rows most = ROWS_INIT, more = ROWS_INIT;
	struct writer program = {.size = 0};

	for (int i = 0; i < CFI_REMEMBER_MAX; i++)
		put(&program, DW_CFA_remember_state, 1);
	compile_program((const char *)program.data, program.size, &most);
	ASSERT_EQ(most.facts.damaged, 0);
	put(&program, DW_CFA_remember_state, 1);
	compile_program((const char *)program.data, program.size, &more);
	ASSERT_EQ(more.facts.damaged, 1);
}

TEST(rows_before_the_damage_stay)
{
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;

	compile_program("\x44\x0e\x10\x44\x3f", 5, &rows);
	ASSERT_EQ(rule_at(&rows, F).offset, 8);
	ASSERT_EQ(rule_at(&rows, F + 4).offset, 16);
	ASSERT_EQ(rule_at(&rows, F + 8).cfa, UNWIND_CFA_none);
	ASSERT_EQ(rows.facts.damaged, 1);
}

/* CIEs that differ from the usual one, and whether their FDE can be used. */
static const struct {
	uint8_t version;
	const char *letters, *data; /* augmentation data with its size */
	size_t size;
	bool usable, signal;
} cies[] = {
#define CIE(version, letters, data, ...)                                                           \
	{                                                                                          \
		version, letters, data, sizeof(data) - 1, __VA_ARGS__                              \
	}
	CIE(1, "zR", "\x01\x1b", true, false),
	CIE(3, "zR", "\x01\x1b", true, false),
	CIE(4, "zR", "\x01\x1b", true, false),
	CIE(1, "zPLR", "\x07\x9b\x01\x02\x03\x04\x1b\x1b", true, false),
	CIE(1, "zRS", "\x01\x1b", true, true),
	CIE(1, "zRBG", "\x01\x1b", true, false),
	CIE(1, "zRx", "\x01\x1b", false, false),
	CIE(1, "zxR", "\x02\x00\x1b", false, false),
	CIE(1, "R", "\x1b", false, false),
	CIE(2, "zR", "\x01\x1b", false, false),
	CIE(5, "zR", "\x01\x1b", false, false),
	CIE(1, "zR", "\x01\xff", false, false),
	CIE(1, "zR", "\x01\x9b", false, false),
	CIE(1, "zR", "\x01\x4b", false, false),
	CIE(1, "zR", "\x7f\x1b", false, false),
};

TEST(common_records_are_understood_or_left_out)
{
	for (size_t i = 0; i < ARRAY_COUNT(cies); i++) {
		_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
		struct cfi_make c = {.addr = MAKE_FRAMES, .eh = true};
		cfi_make_cie(&c, cies[i].version, cies[i].letters);
		put_bytes(&c.out, cies[i].data, cies[i].size);
		cfi_make_entry_state(&c);
		cfi_make_end(&c);
		cfi_make_fde(&c, F + 16, 0x100, "", 0);
		compile(&c.out, &rows);
		enum unwind_cfa want = cies[i].signal ? UNWIND_CFA_signal : UNWIND_CFA_reg;
		if (!cies[i].usable)
			want = UNWIND_CFA_none;
		if (rule_at(&rows, F + 16).cfa != want)
			fail_msg("CIE %zu: \"%s\" version %u gives kind %u", i, cies[i].letters,
				 cies[i].version, rule_at(&rows, F + 16).cfa);
		ASSERT_EQ(rows.facts.damaged > 0, !cies[i].usable);
	}
}

TEST(a_signal_frame_begins_one_byte_early)
{
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
	struct cfi_make c = {.addr = MAKE_FRAMES, .eh = true};

	cfi_make_usual_cie(&c);
	cfi_make_fde(&c, F, 0x20, "", 0);
	cfi_make_cie(&c, 1, "zRS");
	put_bytes(&c.out, "\x01\x1b", 2);
	cfi_make_end(&c);
	cfi_make_fde(&c, F + 0x20, 0x10, "", 0);
	compile(&c.out, &rows);
	ASSERT_EQ(rule_at(&rows, F + 0x1e).cfa, UNWIND_CFA_reg);
	ASSERT_EQ(rule_at(&rows, F + 0x1f).cfa, UNWIND_CFA_signal);
	ASSERT_EQ(rule_at(&rows, F + 0x2f).cfa, UNWIND_CFA_signal);
}

TEST(functions_are_found_in_any_order_and_the_first_wins)
{
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
	struct cfi_make c = {.addr = MAKE_FRAMES, .eh = true};
	cfi_make_usual_cie(&c);
	uint64_t start;

	cfi_make_fde(&c, F + 0x200, 0x40, "\x0e\x20", 2);
	cfi_make_fde(&c, F + 0x100, 0x40, "\x0e\x30", 2);
	cfi_make_fde(&c, F + 0x120, 0x40, "\x0e\x40", 2); // half of it is taken
	cfi_make_fde(&c, F + 0x110, 0x10, "\x0e\x50", 2); // all of it is
	cfi_make_fde(&c, F + 0x168, 0x20, "\x0e\x60", 2); // 8 bytes of padding before
	cfi_make_fde(&c, 0x100000, 0x20, "", 0);          // in no segment
	compile(&c.out, &rows);
	ASSERT_EQ(rule_at(&rows, F + 0x100).offset, 0x30);
	ASSERT_EQ(rule_at(&rows, F + 0x13f).offset, 0x30);
	ASSERT_EQ(rule_at(&rows, F + 0x140).offset, 0x40);
	ASSERT_EQ(rule_at(&rows, F + 0x167).offset, 0x40);
	ASSERT_EQ(rule_at(&rows, F + 0x168).offset, 0x60);
	ASSERT_EQ(rule_at(&rows, F + 0x190).cfa, UNWIND_CFA_none);
	ASSERT_EQ(rule_at(&rows, F + 0x200).offset, 0x20);
	ASSERT_EQ(rows.facts.overlapping, 2);
	ASSERT_EQ(rows.facts.outside, 1);
	ASSERT_TRUE(rows_find_start(&rows, F + 0x23f, &start) && start == F + 0x200);
	ASSERT_TRUE(rows_find_start(&rows, F + 0x130, &start) && start == F + 0x120);
	ASSERT_FALSE(rows_find_start(&rows, F + 0x1f0, &start));
	ASSERT_FALSE(rows_find_start(&rows, F, &start));
}

TEST(records_of_64_bit_dwarf_and_terminators_between_them_are_read)
{
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
	struct cfi_make c = {.addr = MAKE_FRAMES, .eh = true, .wide = true};
	cfi_make_usual_cie(&c);

	cfi_make_fde(&c, F, 0x20, "\x0e\x20", 2);
	put(&c.out, 0, 4);
	c.wide = false;
	cfi_make_usual_cie(&c);
	cfi_make_fde(&c, F + 0x20, 0x20, "\x0e\x30", 2);
	compile(&c.out, &rows);
	ASSERT_EQ(rule_at(&rows, F).offset, 0x20);
	ASSERT_EQ(rule_at(&rows, F + 0x20).offset, 0x30);
	ASSERT_EQ(rows.facts.damaged, 0);
}

/* What an FDE's pointer to its CIE leads to: itself, another FDE, outside, into the middle. */
TEST(an_fde_whose_cie_is_none_is_left_out)
{
	for (int i = 0; i < 4; i++) {
		_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
		struct cfi_make c = {.addr = MAKE_FRAMES, .eh = true};
		cfi_make_usual_cie(&c);
		size_t fde = c.out.size;
		cfi_make_fde(&c, F, 0x20, "\x0e\x20", 2);
		size_t other = c.out.size;
		const size_t at[4] = {other, fde, 0x7fffffff, c.cie + 1};
		c.cie = at[i];
		cfi_make_fde(&c, F + 0x20, 0x20, "\x0e\x30", 2);
		compile(&c.out, &rows);
		ASSERT_EQ(rule_at(&rows, F).offset, 0x20);
		ASSERT_EQ(rule_at(&rows, F + 0x20).cfa, UNWIND_CFA_none);
		ASSERT_EQ(rows.facts.damaged, 1);
	}
}

TEST(a_record_that_is_longer_than_the_section_ends_it)
{
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
	struct cfi_make c = {.addr = MAKE_FRAMES, .eh = true};
	cfi_make_usual_cie(&c);

	cfi_make_fde(&c, F, 0x20, "\x0e\x20", 2);
	size_t last = c.out.size;
	cfi_make_fde(&c, F + 0x20, 0x20, "\x0e\x30", 2);
	set_at(&c.out, last, 0x7fffff00, 4);
	compile(&c.out, &rows);
	ASSERT_EQ(rule_at(&rows, F).offset, 0x20);
	ASSERT_EQ(rule_at(&rows, F + 0x20).cfa, UNWIND_CFA_none);
	ASSERT_EQ(rows.facts.damaged, 1);
}

/* Add .debug_frame to M, behind the rest. */
static void add_debug_frame(struct made *m, bool wide)
{
	struct cfi_make c = {.wide = wide};
	cfi_make_usual_cie(&c);

	cfi_make_fde(&c, F, 0x20, "\x0e\x70", 2);        // known to .eh_frame already
	cfi_make_fde(&c, F + 0x80, 0x20, "\x0e\x40", 2); // new
	made_section(m, ".debug_frame", 0x3000, c.out.data, c.out.size)->sh_flags = 0;
}

TEST(debug_frame_fills_what_eh_frame_leaves_open)
{
	for (int wide = 0; wide < 2; wide++) {
		_cleanup_(made_deinit) struct made m;
		_cleanup_object_ struct object *object = NULL;
		_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
		struct cfi_make c = {.addr = MAKE_FRAMES, .eh = true};
		cfi_make_usual_cie(&c);
		cfi_make_fde(&c, F, 0x20, "\x0e\x20", 2);
		made_usual(&m, &c.out);
		add_debug_frame(&m, wide);
		made_finish(&m);
		ASSERT_OK(object_open_memory(m.data, m.size, "test", &object));
		ASSERT_OK(rows_compile(object, &rows));
		ASSERT_EQ(rule_at(&rows, F).offset, 0x20);
		ASSERT_EQ(rule_at(&rows, F + 0x80).offset, 0x40);
	}
}

/* The table is found without sections, whether or not its search table is there. */
TEST(frames_are_found_by_the_program_headers_alone)
{
	static const uint8_t headers[][8] = {{1, 0x1b, 0xff, 0xff}, {1, 0x1b, 0x03, 0x3b}};

	for (size_t i = 0; i < ARRAY_COUNT(headers); i++) {
		_cleanup_(made_deinit) struct made m;
		_cleanup_object_ struct object *object = NULL;
		_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
		struct cfi_make c = {.addr = MAKE_FRAMES + 8, .eh = true};
		struct writer out = {.size = 0};
		put_bytes(&out, headers[i], 4);
		put(&out, 4, 4); // the frames begin 4 bytes behind here
		cfi_make_usual_cie(&c);
		cfi_make_fde(&c, F, 0x20, "\x0e\x20", 2);
		put(&c.out, 0, 4);
		put(&c.out, 0x12345678, 4); // whatever follows in the segment
		put_bytes(&out, c.out.data, c.out.size);
		made_usual(&m, &out);
		made_segment(&m, PT_GNU_EH_FRAME, PF_R, MAKE_FRAMES, 8);
		m.no_sections = true;
		made_finish(&m);
		ASSERT_OK(object_open_memory(m.data, m.size, "test", &object));
		ASSERT_OK(rows_compile(object, &rows));
		ASSERT_EQ(rule_at(&rows, F).offset, 0x20);
		ASSERT_EQ(rows.facts.damaged, 0);
	}
}

RUN_TESTS(UNIT_TEST(every_instruction_has_its_meaning),
	  UNIT_TEST(states_are_remembered_up_to_a_limit), UNIT_TEST(rows_before_the_damage_stay),
	  UNIT_TEST(common_records_are_understood_or_left_out),
	  UNIT_TEST(a_signal_frame_begins_one_byte_early),
	  UNIT_TEST(functions_are_found_in_any_order_and_the_first_wins),
	  UNIT_TEST(records_of_64_bit_dwarf_and_terminators_between_them_are_read),
	  UNIT_TEST(an_fde_whose_cie_is_none_is_left_out),
	  UNIT_TEST(a_record_that_is_longer_than_the_section_ends_it),
	  UNIT_TEST(debug_frame_fills_what_eh_frame_leaves_open),
	  UNIT_TEST(frames_are_found_by_the_program_headers_alone))
