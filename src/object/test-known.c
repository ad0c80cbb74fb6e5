/* SPDX-License-Identifier: Apache-2.0 */
/* Code without unwind information in files that every Debian has. */
#include "object/known.h"

#include <fcntl.h>
#include <unistd.h>

#include "object/object.h"
#include "object/rows.h"
#include "object/test-elf.h"
#include "unit.h"

static struct object *open_file(const char *path)
{
	struct object *object;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		SKIP("there is no such file here");
	ASSERT_OK(object_open(fd, path, &object));
	return object;
}

TEST(the_dynamic_loader_was_called_by_nobody_from_its_entry_to_its_jump)
{
	_cleanup_object_ struct object *object = open_file("/lib64/ld-linux-x86-64.so.2");
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
	struct bytes code;
	uint64_t at = object_entry(object);

	ASSERT_OK(rows_compile(object, &rows));
	ASSERT_TRUE(object_at(object, at, &code));
	// jmp *%r12, to the program
	while (memcmp(code.at, "\x41\xff\xe4", 3) != 0) {
		ASSERT_EQ(rows_find(&rows, at)->cfa, UNWIND_CFA_root);
		code.at++;
		at++;
		ASSERT_TRUE(at < object_entry(object) + 128);
	}
	ASSERT_TRUE(at > object_entry(object) + 32);
}

TEST(init_and_fini_have_rules_like_any_function)
{
	static const char *const names[] = {".init", ".fini"};
	_cleanup_object_ struct object *object = open_file("/usr/bin/sed");
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;
	struct bytes code;
	uint64_t addr, start;

	ASSERT_OK(rows_compile(object, &rows));
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(object_section(object, names[i], &code, &addr));
		// sub $8,%rsp; ...; add $8,%rsp; ret
		ASSERT_EQ(rows_find(&rows, addr)->offset, 8);
		ASSERT_EQ(rows_find(&rows, addr + 4)->offset, 16);
		ASSERT_EQ(rows_find(&rows, addr + bytes_left(&code) - 1)->offset, 8);
		ASSERT_TRUE(rows_find_start(&rows, addr + 4, &start));
		ASSERT_EQ(start, addr);
	}
}

TEST(a_thread_that_musl_starts_was_called_by_nobody)
{
	// What clone() does in the child, between code of its like.
	static const uint8_t code[] = {0x0f, 0x05, 0x85, 0xc0, 0x75, 0x0e, 0x31, 0xed,
				       0x5f, 0x41, 0xff, 0xd1, 0x89, 0xc7, 0x31, 0xc0,
				       0xb0, 0x3c, 0x0f, 0x05, 0xf4, 0xc3};
	enum { START = 0x1000, CHILD = START + 6, RETURN = START + 12, END = START + 20 };
	_cleanup_(made_deinit) struct made m;
	_cleanup_object_ struct object *object = NULL;
	_cleanup_(rows_deinit) struct rows rows = ROWS_INIT;

	made_init(&m);
	made_section(&m, ".text", START, code, sizeof(code))->sh_flags |= SHF_EXECINSTR;
	made_segment(&m, PT_LOAD, PF_R | PF_X, START, sizeof(code));
	made_finish(&m);
	ASSERT_OK(object_open_memory(m.data, m.size, "made", &object));
	ASSERT_OK(rows_compile(object, &rows));
	for (uint64_t at = CHILD; at < END; at++)
		ASSERT_EQ(rows_find(&rows, at)->cfa, UNWIND_CFA_root);
	ASSERT_EQ(rows_find(&rows, RETURN - 1)->cfa, UNWIND_CFA_root);
	ASSERT_TRUE(rows_find(&rows, END)->cfa != UNWIND_CFA_root);
}

RUN_TESTS(UNIT_TEST(the_dynamic_loader_was_called_by_nobody_from_its_entry_to_its_jump),
	  UNIT_TEST(init_and_fini_have_rules_like_any_function),
	  UNIT_TEST(a_thread_that_musl_starts_was_called_by_nobody))
