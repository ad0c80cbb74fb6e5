/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where runtimes keep what we look for:
 *
 *   Docker       containers/ID/config.v2.json: "Name"
 *   kubelet      /var/log/containers/POD_NAMESPACE_CONTAINER-ID.log, a link to
 *                /var/log/pods/NAMESPACE_POD_UID/CONTAINER/RESTARTS.log
 *   Podman,      containers/storage's DRIVER-containers/containers.json: "id" and "names"; CRI-O's
 *   CRI-O        names have the k8s_ form
 *   containerd   NAMESPACE/ID/config.json, the OCI specification, with annotations of its CRI
 *                plugin (io.kubernetes.cri.*) or of nerdctl
 */
#include "identity/runtime-state.h"

#include <jansson.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "identity/host.h"

enum {
	CONFIG_BYTES_MAX = 4 << 20,
	STORAGE_BYTES_MAX = 64 << 20,
	PASSWD_BYTES_MAX = 4 << 20,
	ENTRIES_MAX = 100000, /* of a directory */
	LINK_BYTES = 1024,
};

static void cleanup_json(json_t **value)
{
	json_decref(*value);
}
#define _cleanup_json_ _cleanup_(cleanup_json)

/* NULL when the file is not there or is no JSON. */
static struct error *read_json(int root_fd, const char *path, size_t max, json_t **ret)
{
	_cleanup_free_ char *text = NULL;

	TRY(host_read(root_fd, path, max, &text));
	*ret = text ? json_loads(text, 0, NULL) : NULL;
	return NULL;
}

/* The text of member KEY; "" when there is none. Lives as long as OBJECT. */
static const char *member(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void set_name(char ret[CONTAINER_NAME_MAX], const char *name)
{
	snprintf(ret, CONTAINER_NAME_MAX, "%s", name);
}

/* --- Docker */

static struct error *find_docker(const struct container_asked *asked, char ret[CONTAINER_NAME_MAX])
{
	static const char *const places[] = {"/var/lib/docker",
					     "/var/snap/docker/common/var-lib-docker"};

	for (size_t i = 0; !*ret && i < ARRAY_COUNT(places); i++) {
		_cleanup_free_ char *path = NULL;
		_cleanup_json_ json_t *config = NULL;
		TRY(str_format(&path, "%s/containers/%s/config.v2.json", places[i], asked->id));
		TRY(read_json(asked->root_fd, path, CONFIG_BYTES_MAX, &config));
		const char *name = member(config, "Name");
		set_name(ret, name + (*name == '/'));
	}
	return NULL;
}

/* --- Kubernetes */

/* One container of a pod. The texts are borrowed. */
struct pod_container {
	const char *container, *pod, *space, *uid, *restarts;
};

static void set_pod_name(char ret[CONTAINER_NAME_MAX], const struct pod_container *of)
{
	snprintf(ret, CONTAINER_NAME_MAX, "k8s_%s_%s_%s_%s_%s", of->container, of->pod, of->space,
		 of->uid, of->restarts);
}

/* TARGET: ".../NAMESPACE_POD_UID/CONTAINER/RESTARTS.log", none of which has a "_" of its own. */
static void parse_pod_link(char *target, char ret[CONTAINER_NAME_MAX])
{
	char *restarts = strrchr(target, '/');
	if (!restarts)
		return;
	*restarts++ = 0;
	char *container = strrchr(target, '/');
	if (!container)
		return;
	*container++ = 0;
	char *space = strrchr(target, '/');
	char *pod = space ? strchr(space, '_') : NULL;
	char *uid = pod ? strchr(pod + 1, '_') : NULL;
	if (!uid || !str_ends(restarts, ".log"))
		return;
	space++;
	*pod++ = 0;
	*uid++ = 0;
	restarts[strlen(restarts) - strlen(".log")] = 0;
	struct pod_container of = {container, pod, space, uid, restarts};
	set_pod_name(ret, &of);
}

static struct error *find_kubelet(const struct container_asked *asked, char ret[CONTAINER_NAME_MAX])
{
	_cleanup_closedir_ DIR *directory = NULL;
	_cleanup_free_ char *suffix = NULL;
	char target[LINK_BYTES];
	struct dirent *entry;

	TRY(str_format(&suffix, "-%s.log", asked->id));
	TRY(host_open_directory(asked->root_fd, "/var/log/containers", &directory));
	for (int i = 0; directory && i < ENTRIES_MAX && (entry = readdir(directory)); i++) {
		if (!str_ends(entry->d_name, suffix))
			continue;
		ssize_t length =
			readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = 0;
		parse_pod_link(target, ret);
		break;
	}
	return NULL;
}

/* --- containers/storage */

static struct error *find_in_storage(const struct container_asked *asked, const char *storage,
				     char ret[CONTAINER_NAME_MAX])
{
	static const char *const files[] = {
		"overlay-containers/containers.json", "overlay-containers/volatile-containers.json",
		"vfs-containers/containers.json",     "btrfs-containers/containers.json",
		"zfs-containers/containers.json",
	};

	for (size_t i = 0; !*ret && i < ARRAY_COUNT(files); i++) {
		_cleanup_free_ char *path = NULL;
		_cleanup_json_ json_t *list = NULL;
		const json_t *one;
		size_t at;
		TRY(str_format(&path, "%s/%s", storage, files[i]));
		TRY(read_json(asked->root_fd, path, STORAGE_BYTES_MAX, &list));
		json_array_foreach(list, at, one)
		{
			const char *name =
				json_string_value(json_array_get(json_object_get(one, "names"), 0));
			if (name && !strcmp(member(one, "id"), asked->id))
				set_name(ret, name);
		}
	}
	return NULL;
}

/* The home directory of UID as the machine's /etc/passwd has it; NULL: not there. */
static struct error *find_home(const struct container_asked *asked, char **ret)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_free_ char *uid = NULL;
	char *rest, *line;

	*ret = NULL;
	TRY(str_format(&uid, "%u", asked->uid));
	TRY(host_read(asked->root_fd, "/etc/passwd", PASSWD_BYTES_MAX, &text));
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		char *field[6];
		size_t count = 0;
		while (count < ARRAY_COUNT(field) && line)
			field[count++] = strsep(&line, ":");
		if (count == ARRAY_COUNT(field) && !strcmp(field[2], uid) && field[5][0] == '/')
			return str_copy(ret, field[5]);
	}
	return NULL;
}

static struct error *find_storage(const struct container_asked *asked, char ret[CONTAINER_NAME_MAX])
{
	_cleanup_free_ char *home = NULL, *path = NULL;

	if (!asked->uid)
		return find_in_storage(asked, "/var/lib/containers/storage", ret);
	TRY(find_home(asked, &home));
	if (!home)
		return NULL;
	TRY(str_format(&path, "%s/.local/share/containers/storage", home));
	return find_in_storage(asked, path, ret);
}

/* --- containerd */

static void name_by_annotations(const json_t *annotations, char ret[CONTAINER_NAME_MAX])
{
	struct pod_container of = {
		.container = member(annotations, "io.kubernetes.cri.container-name"),
		.pod = member(annotations, "io.kubernetes.cri.sandbox-name"),
		.space = member(annotations, "io.kubernetes.cri.sandbox-namespace"),
		.uid = member(annotations, "io.kubernetes.cri.sandbox-uid"),
		.restarts = "0", // which only kubelet knows
	};

	// The container that holds a pod's namespaces has no name of its own.
	if (!strcmp(member(annotations, "io.kubernetes.cri.container-type"), "sandbox"))
		of.container = "POD";
	if (*of.container && *of.pod)
		set_pod_name(ret, &of);
	else
		set_name(ret, member(annotations, "nerdctl/name"));
}

static struct error *find_in_tasks(const struct container_asked *asked, const char *tasks,
				   char ret[CONTAINER_NAME_MAX])
{
	_cleanup_closedir_ DIR *directory = NULL;
	struct dirent *entry;

	TRY(host_open_directory(asked->root_fd, tasks, &directory));
	for (int i = 0; directory && !*ret && i < 100 && (entry = readdir(directory)); i++) {
		_cleanup_free_ char *path = NULL;
		_cleanup_json_ json_t *spec = NULL;
		if (entry->d_name[0] == '.')
			continue;
		TRY(str_format(&path, "%s/%s/%s/config.json", tasks, entry->d_name, asked->id));
		TRY(read_json(asked->root_fd, path, CONFIG_BYTES_MAX, &spec));
		name_by_annotations(json_object_get(spec, "annotations"), ret);
	}
	return NULL;
}

static struct error *find_containerd(const struct container_asked *asked,
				     char ret[CONTAINER_NAME_MAX])
{
	TRY(find_in_tasks(asked, "/run/containerd/io.containerd.runtime.v2.task", ret));
	if (!*ret)
		TRY(find_in_tasks(asked, "/run/k3s/containerd/io.containerd.runtime.v2.task", ret));
	return NULL;
}

struct error *runtime_state_find(const struct container_asked *asked, char ret[CONTAINER_NAME_MAX])
{
	static struct error *(*const finders[])(const struct container_asked *asked, char *ret) = {
		find_docker, find_kubelet, find_storage, find_containerd};

	ret[0] = 0;
	for (size_t i = 0; !*ret && i < ARRAY_COUNT(finders); i++)
		TRY(finders[i](asked, ret));
	return NULL;
}
