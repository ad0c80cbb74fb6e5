/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about machines that are trees of files, and about this one. */
#include "identity/machine.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/str.h"
#include "unit.h"

static void put(const char *root, const char *name, const char *text, size_t size)
{
	_cleanup_free_ char *path = NULL;

	ASSERT_OK(str_format(&path, "%s%s", root, name));
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		(void)mkdir(path, 0755); // it may be there
		*at = '/';
	}
	_cleanup_fclose_ FILE *file = fopen(path, "we");
	ASSERT_TRUE(file);
	ASSERT_EQ(fwrite(text, 1, size, file), size);
}

/* Read the machine whose file NAME holds TEXT. */
static void read_with(const char *name, const char *text, size_t size, struct machine *ret)
{
	char root[] = "/tmp/cairn-machine-XXXXXX", command[64];

	ASSERT_TRUE(mkdtemp(root));
	if (name)
		put(root, name, text, size);
	_cleanup_close_ int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	*ret = (struct machine)MACHINE_INIT;
	ASSERT_OK(machine_read_files(fd, ret));
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", root);
	ASSERT_EQ(system(command), 0);
}

#define TEXT(text) text, sizeof(text) - 1
#define FIELD(field) offsetof(struct machine, field)

static const struct {
	const char *file, *text;
	size_t size, field;
	const char *expected;
} facts[] = {
	{"/etc/os-release", TEXT("NAME=\"Ubuntu\"\nVERSION_ID=\"24.04\"\n"), FIELD(os_name),
	 "Ubuntu"},
	{"/etc/os-release", TEXT("PRETTY_NAME=x\nVERSION_ID=\"24.04\""), FIELD(os_release),
	 "24.04"},
	{"/usr/lib/os-release", TEXT("VERSION_CODENAME=noble\n"), FIELD(os_codename), "noble"},
	{"/etc/os-release", TEXT("NAME=\"\n"), FIELD(os_name), ""},
	{"/etc/os-release", TEXT("NAME\n=\nNAME"), FIELD(os_name), ""},
	{"/proc/cpuinfo", TEXT("cpu family\t: 6\nmodel\t\t: 143\nmodel name\t: A CPU\n"),
	 FIELD(cpu_model), "A CPU"},
	{"/proc/cpuinfo", TEXT("cpu family\t: 6\nmodel\t\t: 143\nmodel name\t: A CPU\n"),
	 FIELD(cpu_codename), "SPR"},
	{"/proc/cpuinfo", TEXT("cpu family\t: 25\nmodel\t\t: 143\n"), FIELD(cpu_codename),
	 "UNKNOWN"},
	{"/lib64/libc.so.6",
	 TEXT("\0GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\n"),
	 FIELD(libc_version), "2.36"},
	{"/lib64/libc.so.6", TEXT("\0GNU C Library \0"), FIELD(libc_type), "glibc"},
	{"/lib/ld-musl-x86_64.so.1", TEXT("ELF\0001.x\0001.2.4\0"), FIELD(libc_version), "1.2.4"},
	{"/lib/ld-musl-x86_64.so.1", TEXT("\0001.2.4"), FIELD(libc_type), "musl"},
	{"/databricks/DBR_VERSION", TEXT("13.3\n"), FIELD(big_data_version), "13.3"},
	{"/databricks/spark/conf/metrics.properties", TEXT("x"), FIELD(big_data_version),
	 "unknown"},
	{"/mnt/var/lib/info/extraInstanceData.json",
	 TEXT("{\"a\":1,\"releaseLabel\" : \"emr-6.9.0\"}"), FIELD(big_data_version), "emr-6.9.0"},
	{"/mnt/var/lib/info/extraInstanceData.json", TEXT("\"releaseLabel\""), FIELD(big_data), ""},
	{"/etc/environment", TEXT("A=b\nDATAPROC_IMAGE_VERSION=2.1"), FIELD(big_data), "dataproc"},
	{"/etc/environment", TEXT("A=b\n"), FIELD(big_data), ""},
	{"/opt/cloudera/cm-agent/cm_version.properties", TEXT("version=7.4\n"),
	 FIELD(big_data_version), "7.4"},
	{NULL, NULL, 0, FIELD(libc_type), ""},
};

TEST(files_tell_what_a_machine_is)
{
	for (size_t i = 0; i < ARRAY_COUNT(facts); i++) {
		_cleanup_(machine_deinit) struct machine machine = MACHINE_INIT;
		read_with(facts[i].file, facts[i].text, facts[i].size, &machine);
		ASSERT_STREQ((const char *)&machine + facts[i].field, facts[i].expected);
	}
}

TEST(this_machine_is_something)
{
	_cleanup_(machine_deinit) struct machine machine = MACHINE_INIT;
	_cleanup_close_ int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	ASSERT_OK(machine_read(fd, &machine));
	ASSERT_TRUE(machine.host[0]);
	ASSERT_TRUE(machine.memory_mib > 0);
	ASSERT_TRUE(strstr(machine.cpu_flags, "fpu"));
	ASSERT_TRUE(machine.hypervisor[0]);
	ASSERT_TRUE(machine.libc_version[0]);
}

RUN_TESTS(UNIT_TEST(files_tell_what_a_machine_is), UNIT_TEST(this_machine_is_something))
