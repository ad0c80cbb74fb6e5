/* SPDX-License-Identifier: Apache-2.0 */
/* Names of containers, in trees of files made as runtimes make them. */
#include "identity/containers.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/str.h"
#include "identity/host.h"
#include "unit.h"

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb2"
#define TASK "0123456789abcdef0123456789abcdef"
#define POD "kubepods-burstable-pod1f2e3d4c_5b6a_7988_a7b6_c5d4e3f2a1b0.slice"

/* What the last level of a path is. */
static const struct {
	const char *cgroup, *text;
	bool named;
} paths[] = {
	{"0::/", "", false},
	{"", "", false},
	{"nonsense", "", false},
	{"0::/system.slice/sshd.service", "", false},
	{"0::/system.slice/docker-" ID_A ".scope", ID_A, false},
	{"12:cpu:/docker/" ID_A "\n1:name=systemd:/docker/" ID_A, ID_A, false},
	{"3:cpu:/kubepods/burstable/podX/" ID_A "\n0::/system.slice/containerd.service", ID_A,
	 false},
	{"0::/kubepods.slice/kubepods-burstable.slice/" POD "/cri-containerd-" ID_A ".scope", ID_A,
	 false},
	{"1:cpu:/system.slice/containerd.service/kubepods-burstable-pod1:cri-containerd:" ID_A,
	 ID_A, false},
	{"0::/kubepods.slice/" POD "/crio-" ID_A ".scope/container", ID_A, false},
	{"0::/kubepods.slice/" POD "/crio-conmon-" ID_A ".scope", "", false},
	{"0::/machine.slice/libpod-" ID_A ".scope/container", ID_A, false},
	{"0::/machine.slice/libpod-conmon-" ID_A ".scope", "", false},
	{"1:cpu:/libpod_parent/libpod-" ID_A, ID_A, false},
	{"1:cpu:/ecs/" TASK "/" ID_A, ID_A, false},
	{"1:cpu:/ecs/" TASK "/" TASK "-1234567890", TASK "-1234567890", false},
	{"1:cpu:/ecs/" TASK "/" TASK "-x", "", false},
	{"1:cpu:/lxc/web-1/system.slice/cron.service", "web-1", true},
	{"0::/lxc.payload.web-1/init.scope", "web-1", true},
	{"1:cpu:/lxc.payload/web-1", "web-1", true},
	{"0::/lxc.monitor.web-1", "", false},
	{"0::/machine.slice/systemd-nspawn@deb-12.service/payload/x", "deb-12", true},
	{"0::/machine.slice/machine-deb\\x2d12.scope", "deb-12", true},
	{"0::/machine.slice/machine-lxc\\x2d7\\x2dweb\\x2d1.scope", "web-1", true},
	{"0::/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", "", false},
	{"0::/../docker-" ID_A ".scope", ID_A, false},
	{"0::/docker/" ID_A "/docker/" ID_B, ID_B, false},
	{"0::/docker/" ID_A "/system.slice/x.service", ID_A, false},
	{"0::/x/" ID_A "f", "", false},
};

TEST(the_group_tells_the_container)
{
	for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
		_cleanup_free_ char *text = NULL;
		struct container_path path;
		ASSERT_OK(str_copy(&text, paths[i].cgroup));
		container_path_parse(text, &path);
		const char *found = path.count ? path.level[0].text : "";
		if (strcmp(found, paths[i].text) != 0)
			print_error("%s\n", paths[i].cgroup);
		ASSERT_STREQ(found, paths[i].text);
		ASSERT_TRUE(!path.count || path.level[0].named == paths[i].named);
	}
}

TEST(deep_nesting_keeps_the_innermost)
{
	_cleanup_(strbuf_deinit) struct strbuf text = STRBUF_INIT;
	struct container_path path;

	ASSERT_OK(strbuf_addf(&text, "0::"));
	for (int i = 0; i < 1000; i++)
		ASSERT_OK(strbuf_addf(&text, "/lxc/n%d", i));
	container_path_parse(text.text, &path);
	ASSERT_EQ(path.count, CONTAINER_LEVELS_MAX);
	ASSERT_STREQ(path.level[0].text, "n999");
	ASSERT_STREQ(path.level[CONTAINER_LEVELS_MAX - 1].text, "n992");
}

/* A directory that is the machine's root. */
struct tree {
	char path[64];
	struct containers *containers;
};

static void tree_open(struct tree *tree)
{
	(void)snprintf(tree->path, sizeof(tree->path), "/tmp/cairn-tree-XXXXXX");
	ASSERT_TRUE(mkdtemp(tree->path));
	int fd = open(tree->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ASSERT_TRUE(fd >= 0);
	ASSERT_OK(containers_new(fd, &tree->containers));
}

static void tree_close(struct tree *tree)
{
	char command[128];

	containers_free(tree->containers);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", tree->path);
	ASSERT_EQ(system(command), 0);
}

/* The path of NAME in TREE, below directories that are made. */
static char *tree_path(const struct tree *tree, const char *name)
{
	char *path;

	ASSERT_OK(str_format(&path, "%s%s", tree->path, name));
	for (char *at = path + strlen(tree->path) + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		(void)mkdir(path, 0755); // it may be there
		*at = '/';
	}
	return path;
}

static void tree_write(const struct tree *tree, const char *name, const char *text)
{
	_cleanup_free_ char *path = tree_path(tree, name);
	_cleanup_fclose_ FILE *file = fopen(path, "we");

	ASSERT_TRUE(file);
	fputs(text, file);
}

static void tree_link(const struct tree *tree, const char *name, const char *target)
{
	_cleanup_free_ char *path = tree_path(tree, name);

	ASSERT_EQ(symlink(target, path), 0);
}

static void expect(const struct tree *tree, const char *cgroup, const char *name)
{
	_cleanup_free_ char *text = NULL;
	char found[CONTAINER_NAME_MAX];

	ASSERT_OK(str_copy(&text, cgroup));
	ASSERT_OK(containers_find(tree->containers, text, found));
	ASSERT_STREQ(found, name);
}

#define DOCKER_FILE "/var/lib/docker/containers/" ID_A "/config.v2.json"
#define DOCKER_GROUP "0::/system.slice/docker-" ID_A ".scope"
#define TASKS "/run/containerd/io.containerd.runtime.v2.task/"

/* A file that a runtime keeps, a group, and the name. */
static const struct {
	const char *file, *text, *cgroup, *name;
} states[] = {
	{DOCKER_FILE, "{\"ID\":\"x\",\"Name\":\"/web-1\"}", DOCKER_GROUP, "web-1"},
	{"/var/lib/containers/storage/overlay-containers/containers.json",
	 "[{\"id\":\"" ID_B "\",\"names\":[\"no\"]},{\"id\":\"" ID_A "\",\"names\":[\"pod-man\"]}]",
	 "0::/machine.slice/libpod-" ID_A ".scope/container", "pod-man"},
	{"/var/lib/containers/storage/overlay-containers/containers.json",
	 "[{\"id\":\"" ID_A "\",\"names\":[\"k8s_app_p_ns_uid_3\"]}]",
	 "0::/kubepods.slice/" POD "/crio-" ID_A ".scope", "k8s_app_p_ns_uid_3"},
	{TASKS "k8s.io/" ID_A "/config.json",
	 "{\"annotations\":{\"io.kubernetes.cri.container-type\":\"container\","
	 "\"io.kubernetes.cri.container-name\":\"app\",\"io.kubernetes.cri.sandbox-name\":\"pod\","
	 "\"io.kubernetes.cri.sandbox-namespace\":\"ns\",\"io.kubernetes.cri.sandbox-uid\":\"u\"}}",
	 "0::/kubepods.slice/" POD "/cri-containerd-" ID_A ".scope", "k8s_app_pod_ns_u_0"},
	{TASKS "k8s.io/" ID_A "/config.json",
	 "{\"annotations\":{\"io.kubernetes.cri.container-type\":\"sandbox\","
	 "\"io.kubernetes.cri.sandbox-name\":\"pod\","
	 "\"io.kubernetes.cri.sandbox-namespace\":\"ns\",\"io.kubernetes.cri.sandbox-uid\":\"u\"}}",
	 "0::/kubepods.slice/" POD "/cri-containerd-" ID_A ".scope", "k8s_POD_pod_ns_u_0"},
	{TASKS "default/" ID_A "/config.json", "{\"annotations\":{\"nerdctl/name\":\"nerd\"}}",
	 "0::/system.slice/nerdctl-" ID_A ".scope", "nerd"},
	/* Nothing that can be used: the id, as tools shorten it. */
	{DOCKER_FILE, "", DOCKER_GROUP, "aaaaaaaaaaaa"},
	{DOCKER_FILE, "{\"Name\":7}", DOCKER_GROUP, "aaaaaaaaaaaa"},
	{DOCKER_FILE, "[[[[", DOCKER_GROUP, "aaaaaaaaaaaa"},
	{"/var/lib/containers/storage/overlay-containers/containers.json",
	 "[null,7,{\"id\":[]},{\"id\":\"" ID_A "\",\"names\":{}}]", DOCKER_GROUP, "aaaaaaaaaaaa"},
	/* A container of a container whose runtime is not seen here. */
	{DOCKER_FILE, "{\"Name\":\"/kind\"}", "0::/docker/" ID_A "/kubelet/" ID_B, "kind"},
};

TEST(runtimes_keep_names_in_files)
{
	for (size_t i = 0; i < ARRAY_COUNT(states); i++) {
		struct tree tree;
		tree_open(&tree);
		tree_write(&tree, states[i].file, states[i].text);
		expect(&tree, states[i].cgroup, states[i].name);
		tree_close(&tree);
	}
}

TEST(kubelet_links_logs_with_all_that_is_in_a_name)
{
	struct tree tree;

	tree_open(&tree);
	tree_link(&tree, "/var/log/containers/pod_ns_app-" ID_A ".log",
		  "/var/log/pods/ns_pod_1f2e/app/3.log");
	tree_link(&tree, "/var/log/containers/x-" ID_B ".log", "nowhere");
	expect(&tree, "0::/kubepods.slice/" POD "/cri-containerd-" ID_A ".scope",
	       "k8s_app_pod_ns_1f2e_3");
	expect(&tree, "0::/kubepods.slice/" POD "/cri-containerd-" ID_B ".scope", "bbbbbbbbbbbb");
	tree_close(&tree);
}

TEST(a_user_has_podman_of_their_own)
{
	struct tree tree;

	tree_open(&tree);
	tree_write(&tree, "/etc/passwd",
		   "root:x:0:0::/root:/bin/sh\nme:x:1000:1000:Me:/home/me:/bin/sh\n");
	tree_write(&tree,
		   "/home/me/.local/share/containers/storage/overlay-containers/containers.json",
		   "[{\"id\":\"" ID_A "\",\"names\":[\"mine\"]}]");
	expect(&tree,
	       "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID_A ".scope",
	       "mine");
	expect(&tree,
	       "0::/user.slice/user-1001.slice/user@1001.service/user.slice/libpod-" ID_B ".scope",
	       "bbbbbbbbbbbb");
	tree_close(&tree);
}

TEST(a_name_outlives_its_container)
{
	struct tree tree;

	tree_open(&tree);
	tree_write(&tree, DOCKER_FILE, "{\"Name\":\"/web-1\"}");
	expect(&tree, DOCKER_GROUP, "web-1");
	_cleanup_free_ char *path = tree_path(&tree, DOCKER_FILE);
	ASSERT_EQ(unlink(path), 0);
	expect(&tree, DOCKER_GROUP, "web-1");
	tree_close(&tree);
}

TEST(more_containers_than_are_remembered_are_named_still)
{
	struct tree tree;
	char group[128], id[CONTAINER_ID_MAX + 1];

	tree_open(&tree);
	for (int i = 0; i < 5000; i++) {
		(void)snprintf(id, sizeof(id), "%064x", i);
		(void)snprintf(group, sizeof(group), "0::/docker/%s", id);
		id[12] = 0;
		expect(&tree, group, id);
	}
	tree_close(&tree);
}

TEST(a_process_is_there_or_it_is_not)
{
	_cleanup_containers_ struct containers *containers = NULL;
	char name[CONTAINER_NAME_MAX] = "untouched";
	int root_fd;
	bool there;

	ASSERT_OK(host_open_root(&root_fd));
	ASSERT_OK(containers_new(root_fd, &containers));
	ASSERT_OK(containers_find_process(containers, INT_MAX, &there, name));
	ASSERT_FALSE(there);
	ASSERT_STREQ(name, "untouched");
	ASSERT_OK(containers_find_process(containers, getpid(), &there, name));
	ASSERT_TRUE(there);
}

RUN_TESTS(UNIT_TEST(the_group_tells_the_container), UNIT_TEST(deep_nesting_keeps_the_innermost),
	  UNIT_TEST(runtimes_keep_names_in_files),
	  UNIT_TEST(kubelet_links_logs_with_all_that_is_in_a_name),
	  UNIT_TEST(a_user_has_podman_of_their_own), UNIT_TEST(a_name_outlives_its_container),
	  UNIT_TEST(more_containers_than_are_remembered_are_named_still),
	  UNIT_TEST(a_process_is_there_or_it_is_not))
