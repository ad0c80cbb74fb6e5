/* SPDX-License-Identifier: Apache-2.0 */
/* Names from paths, packages from what installers leave, and the text made of both. */
#include "runtimes/python/modules.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/str.h"
#include "runtimes/python/test-interpreters.h"

/* A directory that stands for a process's root, and what has been opened in it. */
struct tree {
	char root[64];
	long opens, fails_at; /* which of them fails for a reason of ours; 0: none */
};

static struct error *open_in_tree(void *context, const char *path, enum python_open what,
				  int *ret_fd)
{
	struct tree *tree = context;
	_cleanup_free_ char *whole = NULL;

	if (++tree->opens == tree->fails_at)
		return error_new("no descriptors left");
	TRY(str_format(&whole, "%s%s", tree->root, path));
	*ret_fd = open(whole, O_RDONLY | O_CLOEXEC | (what == PYTHON_OPEN_file ? 0 : O_DIRECTORY));
	return NULL;
}

static void tree_init(struct tree *tree)
{
	*tree = (struct tree){.root = "/tmp/cairn-modules-XXXXXX"};
	ASSERT_TRUE(mkdtemp(tree->root) != NULL);
}

static void tree_remove(struct tree *tree)
{
	_cleanup_free_ char *command = NULL;

	ASSERT_OK(str_format(&command, "rm -rf '%s'", tree->root));
	ASSERT_EQ(system(command), 0);
}

/* A file with TEXT, and the directories above it. */
static void tree_add(const struct tree *tree, const char *path, const char *text)
{
	_cleanup_free_ char *whole = NULL;

	ASSERT_OK(str_format(&whole, "%s%s", tree->root, path));
	for (char *slash = whole + strlen(tree->root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		mkdir(whole, 0755);
		*slash = '/';
	}
	_cleanup_fclose_ FILE *file = fopen(whole, "we");
	ASSERT_TRUE(file && fputs(text, file) >= 0);
}

static struct python_files files_of(struct tree *tree)
{
	return (struct python_files){.open = open_in_tree, .context = tree};
}

TEST(a_module_is_named_as_it_is_imported)
{
	static const char *const there[] = {"/srv/app/pkg/__init__.py",
					    "/srv/app/pkg/sub/__init__.py", "/top/__init__.py"};
	static const char *const cases[][2] = {
		{"/usr/lib/python3/dist-packages/yaml/__init__.py", "yaml"},
		{"/usr/lib/python3/dist-packages/yaml/parser.py", "yaml.parser"},
		{"/usr/lib/python3/dist-packages/six.py", "six"},
		{"/v/lib/python3.9/site-packages/google/protobuf/x.py", "google.protobuf.x"},
		{"/v/lib/python3.9/site-packages/a/site-packages/b.py", "b"},
		{"/v/lib/python2.7/site-packages/foo-1.0-py2.7.egg/foo/bar.py", "foo.bar"},
		{"/usr/lib/python3.11/json/decoder.py", "json.decoder"},
		{"/usr/lib/python3.11/json/__main__.py", "json.__main__"},
		{"/usr/lib/python3.13t/json/__init__.pyc", "json"},
		{"/opt/python3.9/x/lib/python3.9/os.py", "os"},
		{"/usr/lib/python3.123/os.py", "os"},
		{"/usr/lib/python311.zip/os.pyc", "os"},
		{"/srv/job.pex/dep/mod.py", "dep.mod"},
		{"/srv/app.py", "app"},
		{"/srv/app", "app"},
		{"/srv/run.this.py", "run.this"},
		{"/srv/app/pkg/sub/mod.py", "pkg.sub.mod"},
		{"/srv/app/pkg/sub/__init__.py", "pkg.sub"},
		{"/srv/app/pkg/other/mod.py", "mod"},
		{"/top/mod.py", "top.mod"},
		{"/__init__.py", "__init__"},
		{"/mod.py", "mod"},
		{"pkg/mod.py", "mod"},
		{"./mod.py", "mod"},
		{"<string>", ""},
		{"<stdin>", ""},
		{"<frozen importlib._bootstrap>", "importlib._bootstrap"},
		{"<frozen >", ""},
		{"<frozen ", ""},
		{"", ""},
		{"/", ""},
		{"/srv/.py", ""},
		{"/srv/__init__.py/", ""},
	};
	_cleanup_python_modules_ struct python_modules *modules = NULL;
	struct python_module module;
	struct tree tree;

	tree_init(&tree);
	for (size_t i = 0; i < ARRAY_COUNT(there); i++)
		tree_add(&tree, there[i], "");
	ASSERT_OK(python_modules_new(files_of(&tree), true, &modules));
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		ASSERT_OK(python_modules_find(modules, cases[i][0], &module));
		if (strcmp(module.name, cases[i][1]) != 0)
			print_error("%s\n", cases[i][0]);
		ASSERT_STREQ(module.name, cases[i][1]);
		ASSERT_TRUE(!module.package);
	}
	long opens = tree.opens;
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
		ASSERT_OK(python_modules_find(modules, cases[i][0], &module));
	ASSERT_EQ(tree.opens, opens);
	tree_remove(&tree);
}

static const char packages_at[] = "/v/lib/python3.9/site-packages/";

static void add_package(const struct tree *tree, const char *name, const char *text)
{
	_cleanup_free_ char *path = NULL;

	ASSERT_OK(str_format(&path, "%s%s", packages_at, name));
	tree_add(tree, path, text);
}

static void make_packages(struct tree *tree)
{
	tree_init(tree);
	add_package(
		tree, "PyYAML-6.0.dist-info/RECORD",
		"yaml/__init__.py,sha256=x,1\n./yaml//parser.py,,\r\n\"odd,\"\"name\"\".py\",,\n"
		"/v/lib/python3.9/site-packages/whole.py,,\n/elsewhere/whole.py,,\n"
		"../outside.py,,\nyaml/_yaml.so,,\nyaml/late.py");
	add_package(tree, "PyYAML-6.0.dist-info/METADATA",
		    "Metadata-Version: 2.1\nNAME:  PyYAML \nVersion: 6.0.1\n\nName: none\n");
	add_package(tree, "old.egg-info/installed-files.txt",
		    "../old/__init__.py\n..//old/./mod.py\nPKG-INFO\n../../away.py\n");
	add_package(tree, "old.egg-info/PKG-INFO", "Name: Old\nVersion: 0.1-2\n");
	add_package(tree, "bare_name-1.2.dist-info/RECORD", "bare.py,,\nyaml/parser.py,,\n");
	add_package(tree, "bare_name-1.2.dist-info/PKG-INFO", "Summary: says nothing\n");
	add_package(tree, "egg_name-3.4-py3.9.egg-info/installed-files.txt", "../egg.py");
	add_package(tree, "egg_name-3.4-py3.9.egg-info/PKG-INFO", "");
	add_package(tree, "silent-1.dist-info/RECORD", "silent.py,,\n");
	add_package(tree, "listless-1.dist-info/METADATA", "Name: listless\nVersion: 1\n");
	add_package(tree, "plain.egg-info", "Name: plain\nVersion: 1\n");
}

/* "NAME==VERSION" of a file of the packages, or "-". */
static void check_package(struct python_modules *modules, const char *file, const char *expected)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_free_ char *found = NULL;
	struct python_module module;

	ASSERT_OK(str_format(&path, "%s%s", packages_at, file));
	ASSERT_OK(python_modules_find(modules, path, &module));
	ASSERT_OK(str_format(&found, "%s==%s", module.package ? module.package : "",
			     module.version ? module.version : ""));
	ASSERT_STREQ(module.package ? found : "-", expected);
	ASSERT_FALSE(module.standard);
}

TEST(a_file_belongs_to_the_package_whose_list_has_it)
{
	static const char *const cases[][2] = {
		{"yaml/__init__.py", "PyYAML==6.0.1"},
		{"odd,\"name\".py", "PyYAML==6.0.1"},
		{"whole.py", "PyYAML==6.0.1"},
		{"yaml/late.py", "PyYAML==6.0.1"},
		{"yaml/parser.py", "PyYAML==6.0.1"}, // the first of the two that claim it
		{"yaml/_yaml.so", "-"},              // gProfiler looks at *.py alone
		{"yaml/none.py", "-"},
		{"old/__init__.py", "Old==0.1-2"},
		{"old/mod.py", "Old==0.1-2"},
		{"bare.py", "bare_name==1.2"},
		{"egg.py", "egg_name==3.4"},
		{"silent.py", "-"},
		{"outside.py", "-"},
		{"away.py", "-"},
	};
	_cleanup_python_modules_ struct python_modules *modules = NULL;
	struct tree tree;

	make_packages(&tree);
	ASSERT_OK(python_modules_new(files_of(&tree), true, &modules));
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
		check_package(modules, cases[i][0], cases[i][1]);
	ASSERT_FALSE(python_modules_cut(modules));
	tree_remove(&tree);
}

TEST(the_directory_is_looked_at_once_and_not_at_all_without_versions)
{
	_cleanup_python_modules_ struct python_modules *modules = NULL;
	_cleanup_python_modules_ struct python_modules *without = NULL;
	struct tree tree;

	make_packages(&tree);
	ASSERT_OK(python_modules_new(files_of(&tree), true, &modules));
	check_package(modules, "yaml/__init__.py", "PyYAML==6.0.1");
	long opens = tree.opens;
	check_package(modules, "old/mod.py", "Old==0.1-2");
	ASSERT_EQ(tree.opens, opens);
	ASSERT_OK(python_modules_new(files_of(&tree), false, &without));
	check_package(without, "yaml/__init__.py", "-");
	ASSERT_EQ(tree.opens, opens);
	tree_remove(&tree);
}

TEST(whichever_open_fails_the_failure_is_told_and_nothing_is_left)
{
	long opens = 1;
	struct tree tree;

	make_packages(&tree);
	for (long i = 1; i <= opens; i++) {
		_cleanup_python_modules_ struct python_modules *modules = NULL;
		struct python_module module;
		tree.opens = 0;
		tree.fails_at = 0;
		ASSERT_OK(python_modules_new(files_of(&tree), true, &modules));
		tree.fails_at = i;
		ASSERT_FAILS(python_modules_find(modules, "/v/lib/python3.9/site-packages/bare.py",
						 &module),
			     "no descriptors");
		tree.fails_at = 0;
		tree.opens = 0;
		check_package(modules, "bare.py", "bare_name==1.2");
		opens = tree.opens;
	}
	ASSERT_TRUE(opens > 8);
	tree_remove(&tree);
}

TEST(a_path_without_end_has_no_module)
{
	_cleanup_python_modules_ struct python_modules *modules = NULL;
	static char path[100000];
	struct python_module module = {0};
	struct tree tree;

	tree_init(&tree);
	ASSERT_OK(python_modules_new(files_of(&tree), true, &modules));
	for (size_t i = 0; i + 2 < sizeof(path); i += 2)
		memcpy(path + i, "/a", 2);
	ASSERT_OK(python_modules_find(modules, path, &module));
	ASSERT_STREQ(module.name, "");
	path[4000] = 0;
	ASSERT_OK(python_modules_find(modules, path, &module));
	ASSERT_STREQ(module.name, "a");
	tree_remove(&tree);
}

TEST(more_files_than_are_remembered_are_named_all_the_same)
{
	_cleanup_python_modules_ struct python_modules *modules = NULL;
	struct tree tree;

	tree_init(&tree);
	ASSERT_OK(python_modules_new(files_of(&tree), true, &modules));
	for (int i = 0; i < 20000; i++) {
		struct python_module module;
		char path[128];
		char name[64];
		snprintf(name, sizeof(name), "m%d", i);
		snprintf(path, sizeof(path), "/usr/lib/python3.11/%s.py", name);
		ASSERT_OK(python_modules_find(modules, path, &module));
		ASSERT_STREQ(module.name, name);
		ASSERT_TRUE(module.standard);
	}
	tree_remove(&tree);
}

/* Hold what INTERPRETER says of its packages against what is found. */
static long check_installed(const char *interpreter)
{
	_cleanup_(target_stop) struct target target =
		target_start(interpreter, "targets/python-packages.py");
	_cleanup_python_modules_ struct python_modules *modules = NULL;
	_cleanup_free_ char *row = NULL;
	struct tree tree = {.root = ""};
	size_t room = 0;
	long files = 0;

	ASSERT_OK(python_modules_new(files_of(&tree), true, &modules));
	while (getline(&row, &room, target.told) > 0) {
		struct python_module module;
		char *at = row;
		const char *path = strsep(&at, "\t"), *name = strsep(&at, "\t");
		const char *version = strsep(&at, "\n");
		ASSERT_TRUE(path && name && version);
		ASSERT_OK(python_modules_find(modules, path, &module));
		if (!module.package)
			print_error("%s is of %s\n", path, name);
		ASSERT_TRUE(module.package);
		ASSERT_STREQ(module.package, name);
		ASSERT_STREQ(module.version, version);
		files++;
	}
	return files;
}

TEST(what_is_installed_here_is_what_importlib_metadata_says)
{
	_cleanup_(interpreters_deinit) struct interpreters found = interpreters_find();

	for (size_t i = 0; i < found.count; i++) {
		long files = check_installed(found.path[i]);
		print_message("%s: %ld files of packages\n", found.path[i], files);
	}
}

RUN_TESTS(UNIT_TEST(a_module_is_named_as_it_is_imported),
	  UNIT_TEST(a_file_belongs_to_the_package_whose_list_has_it),
	  UNIT_TEST(the_directory_is_looked_at_once_and_not_at_all_without_versions),
	  UNIT_TEST(whichever_open_fails_the_failure_is_told_and_nothing_is_left),
	  UNIT_TEST(a_path_without_end_has_no_module),
	  UNIT_TEST(more_files_than_are_remembered_are_named_all_the_same),
	  UNIT_TEST(what_is_installed_here_is_what_importlib_metadata_says))
