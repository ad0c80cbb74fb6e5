/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of the machine the test runs on. */
#include "proc/system.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "unit.h"

TEST(the_facts_are_those_the_kernel_shows_elsewhere)
{
	static const struct {
		const char *path;
		size_t at;
	} rows[] = {
		{"/proc/sys/kernel/hostname", offsetof(struct system_facts, host)},
		{"/proc/sys/kernel/ostype", offsetof(struct system_facts, name)},
		{"/proc/sys/kernel/osrelease", offsetof(struct system_facts, release)},
		{"/proc/sys/kernel/version", offsetof(struct system_facts, version)},
	};
	struct system_facts facts;

	ASSERT_OK(system_read(&facts));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		_cleanup_free_ char *text = NULL;
		size_t size;
		ASSERT_OK(file_read(AT_FDCWD, rows[i].path, 4096, &text, &size));
		text[strcspn(text, "\n")] = 0;
		ASSERT_STREQ((const char *)&facts + rows[i].at, text);
	}
	ASSERT_EQ(facts.cpus, sysconf(_SC_NPROCESSORS_ONLN));
	ASSERT_TRUE(facts.machine[0] != 0);
}

RUN_TESTS(UNIT_TEST(the_facts_are_those_the_kernel_shows_elsewhere))
