/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the machine. How a header spells them is metadata.c's. */
#define LOG_DOMAIN "identity"
#include "identity/machine.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/str.h"
#include "identity/host.h"
#include "identity/hypervisor.h"
#include "proc/proctext.h"

enum {
	TEXT_BYTES_MAX = 16 << 20,
	CPUINFO_BYTES_MAX = 64 << 20, /* some 1.5 KiB per CPU */
	LIBC_BYTES_MAX = 16 << 20,
};

void machine_deinit(struct machine *machine)
{
	free(machine->cpu_flags);
	*machine = (struct machine)MACHINE_INIT;
}

static void set_text(char *to, size_t room, const char *text, size_t length)
{
	if (length >= room)
		length = room - 1;
	memcpy(to, text, length);
	to[length] = 0;
}

/* --- files */

/*
 * The value behind KEY and SEPARATOR at the beginning of a line, without blanks and quotes around
 * it. NULL: there is none. RET_LENGTH is its length.
 */
static const char *find_value(const char *text, const char *key, char separator, size_t *ret_length)
{
	for (const char *line = text; *line;) {
		const char *end = line + strcspn(line, "\n");
		const char *at = str_starts(line, key) ? line + strlen(key) : "";
		at = proctext_skip_blanks(at);
		if (*at == separator) {
			at = proctext_skip_blanks(at + 1);
			while (end > at && (isspace((unsigned char)end[-1]) || end[-1] == '"'))
				end--;
			at += at < end && *at == '"';
			*ret_length = (size_t)(end - at);
			return at;
		}
		line = *end ? end + 1 : end;
	}
	return NULL;
}

static void copy_value(const char *text, const char *key, char separator, char *to, size_t room)
{
	size_t length;
	const char *value = text ? find_value(text, key, separator, &length) : NULL;

	if (value)
		set_text(to, room, value, length);
}

static struct error *read_os(int root_fd, struct machine *machine)
{
	_cleanup_free_ char *text = NULL;

	TRY(host_read(root_fd, "/etc/os-release", TEXT_BYTES_MAX, &text));
	if (!text)
		TRY(host_read(root_fd, "/usr/lib/os-release", TEXT_BYTES_MAX, &text));
	copy_value(text, "NAME", '=', machine->os_name, sizeof(machine->os_name));
	copy_value(text, "VERSION_ID", '=', machine->os_release, sizeof(machine->os_release));
	copy_value(text, "VERSION_CODENAME", '=', machine->os_codename,
		   sizeof(machine->os_codename));
	return NULL;
}

/* The version number behind BEFORE in SIZE bytes. */
static void find_version(const char *bytes, size_t size, const char *before, char *to, size_t room)
{
	const char *at = memmem(bytes, size, before, strlen(before));

	if (!at)
		return;
	at += strlen(before);
	size_t left = size - (size_t)(at - bytes), length = 0;
	while (length < left &&
	       (isdigit((unsigned char)at[length]) ||
		(at[length] == '.' && length + 1 < left && isdigit((unsigned char)at[length + 1]))))
		length++;
	set_text(to, room, at, length);
}

/* musl has its version as a text of its own and says nothing around it: "1.2.3" between zeros. */
static void find_musl(const char *bytes, size_t size, char *to, size_t room)
{
	for (const char *at = bytes; (at = memmem(at, size - (size_t)(at - bytes), "\0001.", 3));
	     at++) {
		size_t left = size - (size_t)(at + 1 - bytes);
		size_t length = strnlen(at + 1, left < 12 ? left : 12);
		if (length >= 5 && length < 12 && strspn(at + 1, "0123456789.") == length) {
			set_text(to, room, at + 1, length);
			return;
		}
	}
}

static struct error *read_libc_at(int root_fd, const char *path, struct machine *machine)
{
	static const char glibc[] = "GNU C Library ";
	_cleanup_free_ char *bytes = NULL;
	size_t size;

	TRY(host_read_sized(root_fd, path, LIBC_BYTES_MAX, &bytes, &size));
	const char *banner = bytes ? memmem(bytes, size, glibc, strlen(glibc)) : NULL;
	if (banner) {
		snprintf(machine->libc_type, sizeof(machine->libc_type), "glibc");
		find_version(banner, size - (size_t)(banner - bytes), "release version ",
			     machine->libc_version, sizeof(machine->libc_version));
	} else if (bytes && strstr(path, "musl")) {
		snprintf(machine->libc_type, sizeof(machine->libc_type), "musl");
		find_musl(bytes, size, machine->libc_version, sizeof(machine->libc_version));
	}
	return NULL;
}

static struct error *read_libc(int root_fd, struct machine *machine)
{
	static const char *const paths[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/lib/x86_64-linux-gnu/libc.so.6",
		"/lib64/libc.so.6",
		"/usr/lib64/libc.so.6",
		"/usr/lib/libc.so.6",
		"/lib/ld-musl-x86_64.so.1",
	};

	for (size_t i = 0; !*machine->libc_type && i < ARRAY_COUNT(paths); i++)
		TRY(read_libc_at(root_fd, paths[i], machine));
	return NULL;
}

/* Names of families of Intel's servers by model, as gProfiler has them. */
static const char *codename(const char *cpuinfo)
{
	char family[8] = "", model[8] = "";

	copy_value(cpuinfo, "cpu family", ':', family, sizeof(family));
	copy_value(cpuinfo, "model", ':', model, sizeof(model));
	if (strcmp(family, "6") != 0)
		return "UNKNOWN";
	if (!strcmp(model, "106"))
		return "ICX";
	if (!strcmp(model, "143"))
		return "SPR";
	if (!strcmp(model, "207"))
		return "EMR";
	return strcmp(model, "173") ? "UNKNOWN" : "GNR";
}

static struct error *read_cpu(int root_fd, struct machine *machine)
{
	_cleanup_free_ char *text = NULL, *memory = NULL;
	char kib[24] = "";
	uint64_t number;
	size_t length = 0;

	TRY(host_read(root_fd, "/proc/cpuinfo", CPUINFO_BYTES_MAX, &text));
	copy_value(text, "model name", ':', machine->cpu_model, sizeof(machine->cpu_model));
	const char *flags = text ? find_value(text, "flags", ':', &length) : NULL;
	TRY(str_format(&machine->cpu_flags, "%.*s", (int)length, flags ? flags : ""));
	snprintf(machine->cpu_codename, sizeof(machine->cpu_codename), "%s",
		 text ? codename(text) : "UNKNOWN");
	TRY(host_read(root_fd, "/proc/meminfo", TEXT_BYTES_MAX, &memory));
	copy_value(memory, "MemTotal", ':', kib, sizeof(kib));
	kib[strcspn(kib, " ")] = 0;
	if (str_parse_u64(kib, 0, UINT64_MAX, &number))
		machine->memory_mib = number / 1024;
	return NULL;
}

/* Files by which a platform is known, the key of the version in it, and what separates them. */
static const struct {
	const char *provider, *path, *key;
	char separator;
} platforms[] = {
	{"emr", "/mnt/var/lib/info/extraInstanceData.json", "\"releaseLabel\"", ':'},
	{"databricks", "/databricks/DBR_VERSION", NULL, 0},
	{"databricks", "/databricks/spark/conf/metrics.properties", "no version here", 0},
	{"dataproc", "/etc/environment", "DATAPROC_IMAGE_VERSION", '='},
	{"cloudera", "/opt/cloudera/cm-agent/cm_version.properties", "version", '='},
};

/* EMR's file is JSON, of which one text is wanted. */
static void find_member(const char *text, const char *key, char *to, size_t room)
{
	const char *at = strstr(text, key);

	at = at ? strchr(at + strlen(key), ':') : NULL;
	at = at ? strchr(at, '"') : NULL;
	if (at)
		set_text(to, room, at + 1, strcspn(at + 1, "\"\n"));
}

static struct error *read_platform(int root_fd, struct machine *machine)
{
	for (size_t i = 0; !*machine->big_data && i < ARRAY_COUNT(platforms); i++) {
		_cleanup_free_ char *text = NULL;
		char version[MACHINE_TEXT] = "";
		TRY(host_read(root_fd, platforms[i].path, TEXT_BYTES_MAX, &text));
		if (!text)
			continue;
		if (!platforms[i].key)
			set_text(version, sizeof(version), text, strcspn(text, "\n"));
		else if (!platforms[i].separator)
			set_text(version, sizeof(version), "unknown", strlen("unknown"));
		else if (platforms[i].separator == ':')
			find_member(text, platforms[i].key, version, sizeof(version));
		else
			copy_value(text, platforms[i].key, '=', version, sizeof(version));
		if (!*version)
			continue;
		snprintf(machine->big_data, sizeof(machine->big_data), "%s", platforms[i].provider);
		memcpy(machine->big_data_version, version, sizeof(version));
	}
	return NULL;
}

struct error *machine_read_files(int root_fd, struct machine *machine)
{
	TRY(read_cpu(root_fd, machine));
	TRY(read_os(root_fd, machine));
	TRY(read_libc(root_fd, machine));
	return read_platform(root_fd, machine);
}

/* --- namespaces */

static void read_mac(char *to, size_t room)
{
	struct ifaddrs *list;

	if (getifaddrs(&list))
		return;
	for (const struct ifaddrs *at = list; at && !*to; at = at->ifa_next) {
		const struct sockaddr_ll *link = (const void *)at->ifa_addr;
		if (!link || link->sll_family != AF_PACKET || at->ifa_flags & IFF_LOOPBACK ||
		    link->sll_halen != 6)
			continue;
		const unsigned char *mac = link->sll_addr;
		snprintf(to, room, "%02X:%02X:%02X:%02X:%02X:%02X", mac[0], mac[1], mac[2], mac[3],
			 mac[4], mac[5]);
	}
	freeifaddrs(list);
}

/* The address from which others would be spoken to. Connecting a UDP socket sends nothing. */
static void read_ip(char *to, size_t room)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(53)};
	socklen_t length = sizeof(at);

	at.sin_addr.s_addr = htonl(0x08080808);
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (void *)&at, sizeof(at)) ||
	    getsockname(fd, (void *)&at, &length) ||
	    !inet_ntop(AF_INET, &at.sin_addr, to, (socklen_t)room))
		to[0] = 0;
}

/* Enter a namespace of process 1; where that is not allowed it is often our own anyway. */
static void enter(const char *path, int type)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, type))
		log_debug("%s is not entered", path);
}

static void *read_inside(void *data)
{
	struct machine *machine = data;

	enter("/proc/1/ns/uts", CLONE_NEWUTS);
	enter("/proc/1/ns/net", CLONE_NEWNET);
	if (gethostname(machine->host, sizeof(machine->host) - 1))
		machine->host[0] = 0;
	read_mac(machine->mac, sizeof(machine->mac));
	read_ip(machine->ip, sizeof(machine->ip));
	return NULL;
}

struct error *machine_read(int root_fd, struct machine *ret)
{
	_cleanup_(machine_deinit) struct machine machine = MACHINE_INIT;
	pthread_t thread;

	TRY(machine_read_files(root_fd, &machine));
	hypervisor_read(machine.hypervisor, sizeof(machine.hypervisor));
	// Namespaces are entered by a thread of its own, which ends inside of them.
	if (pthread_create(&thread, NULL, read_inside, &machine))
		return error_new("no thread to look into the machine's namespaces");
	pthread_join(thread, NULL);
	*ret = take_struct(machine);
	return NULL;
}
