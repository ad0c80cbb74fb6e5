/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Components of control group paths. Seen in the wild:
 *
 *   docker                /docker/ID   /system.slice/docker-ID.scope
 *   containerd, k8s       /kubepods/burstable/podUID/ID   .../cri-containerd-ID.scope
 *                         /system.slice/containerd.service/kubepods-...:cri-containerd:ID
 *   CRI-O                 .../crio-ID.scope[/container]
 *   Podman                /machine.slice/libpod-ID.scope[/container]   /libpod_parent/libpod-ID
 *   ECS                   /ecs/TASK/ID   /ecs/TASK/TASK-NUMBER
 *   LXC, LXD, Incus       /lxc/NAME   /lxc.payload/NAME   /lxc.payload.NAME
 *   systemd-nspawn        /machine.slice/systemd-nspawn@NAME.service
 *   systemd-machined      /machine.slice/machine-NAME.scope
 *   libvirt's LXC         /machine.slice/machine-lxc\x2dNUMBER\x2dNAME.scope
 *
 * conmon, which watches a container of Podman or CRI-O, is in a group with the container's id, too
 * (libpod-conmon-ID.scope), but outside of it.
 */
#include "identity/cgroup-path.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { TASK_ID = 32 }; /* hex digits of a task's id in ECS */

static const char hex_digits[] = "0123456789abcdef";

/* The first run of exactly 64 hex digits in TEXT; NULL: there is none. */
static const char *find_id(const char *text)
{
	while (*text) {
		size_t run = strspn(text, hex_digits);
		if (run == CONTAINER_ID_MAX)
			return text;
		text += run ? run : 1;
	}
	return NULL;
}

/* Fargate's id of a container: "TASK-NUMBER". */
static bool is_task_id(const char *text)
{
	size_t number;

	if (strspn(text, hex_digits) != TASK_ID || text[TASK_ID] != '-')
		return false;
	number = strspn(text + TASK_ID + 1, "0123456789");
	return number && number <= 10 && !text[TASK_ID + 1 + number];
}

static void set(struct container_level *level, bool named, const char *text, size_t length)
{
	if (length >= sizeof(level->text))
		length = sizeof(level->text) - 1;
	level->named = named;
	memcpy(level->text, text, length);
	level->text[length] = 0;
}

/* Undo systemd's escapes of unit names: "\x2d" is "-". */
static void unescape(char *text)
{
	char *to = text;

	while (*text) {
		if (text[0] == '\\' && text[1] == 'x' && isxdigit((unsigned char)text[2]) &&
		    isxdigit((unsigned char)text[3])) {
			char digits[3] = {text[2], text[3], 0};
			*to++ = (char)strtoul(digits, NULL, 16);
			text += 4;
		} else {
			*to++ = *text++;
		}
	}
	*to = 0;
}

/* NAME between PREFIX and SUFFIX of a unit. */
static bool unit_name(const char *text, const char *prefix, const char *suffix,
		      struct container_level *ret)
{
	if (!str_starts(text, prefix) || !str_ends(text, suffix) ||
	    strlen(text) <= strlen(prefix) + strlen(suffix))
		return false;
	set(ret, true, text + strlen(prefix), strlen(text) - strlen(prefix) - strlen(suffix));
	unescape(ret->text);
	return ret->text[0];
}

/* machine-NAME.scope, which systemd-machined makes for whoever registers one. */
static bool machine_name(const char *text, struct container_level *ret)
{
	char *name = ret->text;

	if (!unit_name(text, "machine-", ".scope", ret) || str_starts(name, "qemu-"))
		return false;
	if (str_starts(name, "lxc-")) {
		size_t number = strspn(name + 4, "0123456789");
		const char *rest = name + 4 + number;
		if (number && rest[0] == '-' && rest[1])
			memmove(name, rest + 1, strlen(rest));
	}
	return true;
}

/* The container that the group COMPONENT below PARENT (which may be "") is. */
static bool read_component(const char *parent, const char *component, struct container_level *ret)
{
	const char *id = find_id(component);

	if (str_starts(component, "libpod-conmon-") || str_starts(component, "crio-conmon-"))
		return false;
	if (id) {
		set(ret, false, id, CONTAINER_ID_MAX);
		return true;
	}
	if (is_task_id(component)) {
		set(ret, false, component, strlen(component));
		return true;
	}
	if (str_starts(component, "lxc.payload.") && component[12]) {
		set(ret, true, component + 12, strlen(component + 12));
		return true;
	}
	if (!strcmp(parent, "lxc") || !strcmp(parent, "lxc.payload")) {
		set(ret, true, component, strlen(component));
		return true;
	}
	return unit_name(component, "systemd-nspawn@", ".service", ret) ||
	       machine_name(component, ret);
}

static void add_level(struct container_path *path, const struct container_level *level)
{
	size_t kept = path->count < CONTAINER_LEVELS_MAX ? path->count : CONTAINER_LEVELS_MAX - 1;

	memmove(&path->level[1], &path->level[0], kept * sizeof(path->level[0]));
	path->level[0] = *level;
	path->count = kept + 1;
}

static void read_uid(const char *component, struct container_path *path)
{
	char digits[16];

	if (!str_starts(component, "user-") || !str_ends(component, ".slice"))
		return;
	snprintf(digits, sizeof(digits), "%.*s", (int)strspn(component + 5, "0123456789"),
		 component + 5);
	uint64_t uid;
	if (str_parse_u64(digits, 1, UINT32_MAX - 1, &uid))
		path->uid = (uint32_t)uid;
}

static void read_path(char *text, struct container_path *ret)
{
	const char *parent = "";
	char *component;

	while ((component = strsep(&text, "/"))) {
		struct container_level level;
		if (!*component)
			continue;
		read_uid(component, ret);
		if (read_component(parent, component, &level))
			add_level(ret, &level);
		parent = component;
	}
}

void container_path_parse(char *text, struct container_path *ret)
{
	char *line;

	// Beside v1's hierarchies, v2's group is often that of the runtime itself: any line may be
	// the one that tells.
	while ((line = strsep(&text, "\n"))) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		ret->count = 0;
		ret->uid = 0;
		read_path(path + 1, ret);
		if (ret->count)
			return;
	}
	ret->count = 0;
	ret->uid = 0;
}
