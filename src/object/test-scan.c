/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules read off instructions, against the rules that the compiler wrote down: every function of
 * real libraries is scanned as if it had no unwind information.
 */
#include "object/scan.h"

#include <elf.h>
#include <fcntl.h>

#include "object/arch.h"
#include "object/object.h"
#include "object/rows.h"

#include "unit.h"

struct tally {
	unsigned long functions, understood, checked, other_base, fp, different;
};

/* Where rbx is, the scan does not ask. */
static bool same_rule(const struct unwind_rule *a, const struct unwind_rule *b)
{
	struct unwind_rule x = *a, y = *b;

	if (x.cfa == UNWIND_CFA_reg)
		x.aux &= UNWIND_OTHER_STACK;
	if (y.cfa == UNWIND_CFA_reg)
		y.aux &= UNWIND_OTHER_STACK;
	return memcmp(&x, &y, sizeof(x)) == 0;
}

/*
 * Compare what is said with what was scanned. Where there is a frame pointer the compiler says so
 * and the scan prefers the stack pointer: the two are counted and cannot be compared.
 */
static void compare_piece(const struct rows *rows, const struct rows_piece *piece,
			  struct tally *tally)
{
	for (uint64_t addr = piece->start; addr < piece->end; addr++) {
		const struct unwind_rule *said = rows_find(rows, addr);
		if (!said || said->cfa == UNWIND_CFA_none || piece->rule.cfa == UNWIND_CFA_none)
			continue;
		tally->checked++;
		if (same_rule(said, &piece->rule))
			continue;
		if (said->cfa == UNWIND_CFA_reg && piece->rule.cfa == UNWIND_CFA_reg &&
		    said->base != piece->rule.base) {
			tally->other_base++;
			continue;
		}
		// Behind the pop the register is the caller's again, and the slot, which compilers
		// go on naming, lies below the stack pointer.
		struct unwind_rule other = piece->rule;
		if (said->fp == UNWIND_FP_cfa && other.fp == UNWIND_FP_same &&
		    other.offset < -said->fp_offset) {
			other.fp = said->fp;
			other.fp_offset = said->fp_offset;
			if (same_rule(said, &other))
				continue;
		}
		other.fp = said->fp;
		other.fp_offset = said->fp_offset;
		if (same_rule(said, &other)) {
			if (!tally->fp++)
				print_message("first other frame pointer at 0x%lx: %u %d, scanned "
					      "%u %d\n",
					      addr, said->fp, said->fp_offset, piece->rule.fp,
					      piece->rule.fp_offset);
			continue;
		}
		if (!tally->different++)
			print_message("first difference at 0x%lx: CFA kind %u base %u offset %d, "
				      "scanned %u %u %d\n",
				      addr, said->cfa, said->base, said->offset, piece->rule.cfa,
				      piece->rule.base, piece->rule.offset);
	}
}

/* Is there the start of a function at START, and not of one's cold part? */
static bool is_function(const struct rows *rows, uint64_t start)
{
	const struct unwind_rule *rule = rows_find(rows, start);

	return rule && rule->cfa == UNWIND_CFA_reg && rule->base == UNWIND_RSP && rule->offset == 8;
}

static void scan_all(struct object *object, const struct rows *rows, struct tally *tally)
{
	_cleanup_scanner_ struct scanner *scanner = NULL;
	_cleanup_(rows_pieces_deinit) struct rows_pieces pieces = ROWS_PIECES_INIT;
	_cleanup_free_ uint8_t *code = malloc(SCAN_FUNCTION_MAX);

	assert_non_null(code);
	ASSERT_OK(scanner_new(arch_find(object_machine(object))->decode, &scanner));
	for (size_t i = 0; i + 1 < rows->start_count; i++) {
		struct scan_result result;
		size_t size = rows->starts[i + 1] - rows->starts[i];
		if (size > SCAN_FUNCTION_MAX || !is_function(rows, rows->starts[i]) ||
		    !object_read(object, rows->starts[i], code, size))
			continue;
		struct scan_function function = {.code = bytes_over(code, size, "code"),
						 .addr = rows->starts[i],
						 .start = scan_state_at_entry()};
		pieces.count = 0;
		ASSERT_OK(scan_function(scanner, &function, &pieces, &result));
		tally->functions++;
		tally->understood += result.understood;
		for (size_t k = 0; k < pieces.count; k++)
			compare_piece(rows, &pieces.piece[k], tally);
	}
}

static bool scan_file(const char *path, struct tally *ret)
{
	_cleanup_object_ struct object *object = NULL;
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	ASSERT_OK(object_open(fd, path, &object));
	ASSERT_OK(rows_compile(object, &rows));
	scan_all(object, &rows, ret);
	print_message(
		"%s: %lu functions, %lu understood, %lu bytes of code checked: %lu by another "
		"register, %lu differ in the frame pointer, %lu in the CFA\n",
		path, ret->functions, ret->understood, ret->checked, ret->other_base, ret->fp,
		ret->different);
	return true;
}

/*
 * Of those that differ, the scan is right as far as anyone has looked: glibc's __mpn_mul_1 pushes
 * without saying so, OpenSSL's Keccak returns before it says that it has cleaned up. Landing pads
 * in libstdc++ are what it cannot know: only the exception handler jumps there.
 */
TEST(scanned_rules_are_those_that_the_compiler_states)
{
	static const char *const paths[] = {"/lib/x86_64-linux-gnu/libc.so.6",
					    "/lib64/ld-linux-x86-64.so.2",
					    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
					    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"};
	unsigned found = 0;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct tally tally = {0};
		if (!scan_file(paths[i], &tally))
			continue;
		found++;
		ASSERT_TRUE(tally.understood * 100 > tally.functions * 98);
		ASSERT_TRUE(tally.different * 2000 < tally.checked);
		ASSERT_TRUE(tally.fp * 500 < tally.checked);
	}
	if (!found)
		SKIP("none of the libraries is here");
}

/* As musl's clone(): the child has no caller, not even while it calls. */
TEST(a_call_loses_a_return_address_that_is_in_a_register)
{
	static const uint8_t code[] = {
		0x5f,                   // pop %rdi
		0x90,                   // nop
		0x41, 0xff, 0xd1,       // call *%r9
		0x89, 0xc7, 0x0f, 0x0b, // mov %eax,%edi; ud2
	};
	static const uint64_t start = 0x1000, nop = 0x1001, call = 0x1002;
	_cleanup_scanner_ struct scanner *scanner = NULL;
	_cleanup_(rows_pieces_deinit) struct rows_pieces pieces = ROWS_PIECES_INIT;
	struct scan_function function = {.code = bytes_over(code, sizeof(code), "code"),
					 .addr = start,
					 .start = scan_state_at_entry()};
	struct scan_result result;

	ASSERT_OK(scanner_new(arch_find(EM_X86_64)->decode, &scanner));
	ASSERT_OK(scan_function(scanner, &function, &pieces, &result));
	ASSERT_TRUE(result.understood);
	ASSERT_EQ(pieces.count, 3);
	ASSERT_EQ(pieces.piece[0].rule.ra, UNWIND_RA_cfa);
	ASSERT_EQ(pieces.piece[1].start, nop);
	ASSERT_EQ(pieces.piece[1].rule.ra, UNWIND_RA_reg);
	ASSERT_EQ(pieces.piece[2].start, call);
	ASSERT_EQ(pieces.piece[2].rule.cfa, UNWIND_CFA_root);
}

TEST(scanned_rules_of_a_file_named_in_the_environment)
{
	const char *named = getenv("CAIRN_TEST_ELF");
	struct tally tally = {0};

	if (!named)
		SKIP("CAIRN_TEST_ELF names none");
	ASSERT_TRUE(scan_file(named, &tally));
	ASSERT_TRUE(tally.different * 1000 < tally.checked);
}

RUN_TESTS(UNIT_TEST(scanned_rules_are_those_that_the_compiler_states),
	  UNIT_TEST(a_call_loses_a_return_address_that_is_in_a_register),
	  UNIT_TEST(scanned_rules_of_a_file_named_in_the_environment))
