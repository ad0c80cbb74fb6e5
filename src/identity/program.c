/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what a process says about its start; see program.h. */
#include "identity/program.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/str.h"
#include "proc/proctext.h"
#include "proc/process.h"
#include "proc/root.h"

enum { ENVIRON_BYTES_MAX = 2 << 20 };

void program_deinit(struct program *program)
{
	for (size_t i = 0; i < ARRAY_COUNT(program->owned); i++)
		free(program->owned[i]);
	free(program->word);
}

/* The beginning of /proc/PID/NAME, at most MAX bytes; RET is NULL if it cannot be read. */
static struct error *read_part(pid_t pid, const char *name, size_t max, char **ret,
			       size_t *ret_size)
{
	_cleanup_(strbuf_deinit) struct strbuf buf = STRBUF_INIT;
	char path[48], part[16384];
	ssize_t got = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && buf.length < max && (got = read(fd, part, sizeof(part))) > 0)
		TRY(strbuf_add(&buf, part, (size_t)got));
	*ret = take(buf.text);
	*ret_size = *ret ? buf.length : 0;
	return NULL;
}

/* The words of TEXT, each of which ends in a zero; empty ones at the end are what a title left. */
static struct error *find_words(const char *text, size_t size, struct program *program)
{
	size_t room = 0;

	while (size && !text[size - 1])
		size--;
	for (size_t at = 0; at < size && program->words < PROGRAM_WORDS_MAX;) {
		TRY(ARRAY_RESERVE(program->word, room, program->words, 1, PROGRAM_WORDS_MAX,
				  "words of a command line"));
		program->word[program->words++] = text + at;
		at += strlen(text + at) + 1;
	}
	return NULL;
}

/*
 * What the link /proc/PID/NAME says, as the process sees it: the kernel shows paths up to the top
 * of the mount namespace, which is the root of most containers, but not of a chroot.
 */
static struct error *read_link(pid_t pid, const char *name, char **ret)
{
	char path[48], target[PATH_MAX + 16], root[PATH_MAX];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	target[length < 0 ? 0 : length] = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/root", pid);
	length = readlink(path, root, sizeof(root) - 1);
	root[length < 0 ? 0 : length] = 0;
	size_t skip = strcmp(root, "/") ? strlen(root) : 0;
	bool below = str_starts(target, root) && (target[skip] == '/' || !target[skip]);
	return str_copy(ret, below ? target + skip : target);
}

struct error *program_read(pid_t pid, bool *ret_there, struct program *ret)
{
	_cleanup_(program_deinit) struct program program = {.pid = pid};
	size_t size;

	TRY(read_part(pid, "cmdline", PROGRAM_BYTES_MAX, &program.owned[0], &size));
	if (program.owned[0])
		TRY(find_words(program.owned[0], size, &program));
	*ret_there = program.words > 0;
	if (!program.words)
		return NULL;
	TRY(read_link(pid, "exe", &program.owned[1]));
	TRY(read_link(pid, "cwd", &program.owned[2]));
	program.exe = program.owned[1];
	program.cwd = program.owned[2][0] == '/' ? program.owned[2] : "/";
	*ret = take_struct(program);
	return NULL;
}

struct error *program_split_title(const struct program *program, struct program *ret)
{
	_cleanup_(program_deinit) struct program split = *program;

	memset(split.owned, 0, sizeof(split.owned));
	split.word = NULL;
	split.words = 0;
	if (program->words == 1 && strchr(program->word[0], ' ')) {
		TRY(str_copy(&split.owned[0], program->word[0]));
		char *text = split.owned[0];
		size_t size = strlen(text);
		// "[celeryd: celery@host:MainProcess] -active- (worker -A app)"
		if (text[0] == '[' && size && text[size - 1] == ')')
			text[--size] = 0;
		for (size_t i = 0; i < size; i++)
			text[i] = text[i] == ' ' ? 0 : text[i];
		TRY(find_words(text, size, &split));
	}
	*ret = take_struct(split);
	return NULL;
}

const char *program_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool program_is(const char *base, const char *name)
{
	if (!str_starts(base, name))
		return false;
	// " (deleted)" is behind the path of a program that was replaced.
	const char *next = base + strlen(name);
	next += next[0] == '-' && isdigit((unsigned char)next[1]);
	return !*next || *next == '.' || *next == ' ' || isdigit((unsigned char)*next);
}

/* The value of option NAME in word I, or NULL. */
static const char *value_at(const struct program *program, size_t i, const char *name)
{
	const char *word = program->word[i];
	size_t length = strlen(name);

	if (!str_starts(word, name))
		return NULL;
	if (!word[length])
		return i + 1 < program->words ? program->word[i + 1] : NULL;
	if (name[1] != '-')
		return word + length;
	return word[length] == '=' ? word + length + 1 : NULL;
}

const char *program_option(const struct program *program, size_t from, const char *const *names)
{
	for (size_t i = from; i < program->words; i++)
		for (size_t k = 0; names[k]; k++) {
			const char *value = value_at(program, i, names[k]);
			if (value && value[0])
				return value;
		}
	return NULL;
}

/* PATH below the working directory without "//" and "/./". */
static struct error *join(const struct program *program, const char *path, char **ret)
{
	_cleanup_(strbuf_deinit) struct strbuf buf = STRBUF_INIT;
	_cleanup_free_ char *whole = NULL;

	if (path[0] == '/')
		TRY(str_copy(&whole, path));
	else
		TRY(str_format(&whole, "%s/%s", program->cwd, path));
	for (const char *at = whole; *at;) {
		at += strspn(at, "/");
		size_t length = strcspn(at, "/");
		bool here = length == 1 && at[0] == '.';
		if (length && !here) {
			TRY(strbuf_add(&buf, "/", 1));
			TRY(strbuf_add(&buf, at, length));
		}
		at += length;
	}
	if (!buf.length)
		TRY(strbuf_add(&buf, "/", 1));
	*ret = take(buf.text);
	return NULL;
}

/* The real name of PATH, which is absolute; RET is NULL if there is no such file. */
static struct error *resolve(const struct program *program, const char *path, char **ret)
{
	_cleanup_close_ int fd = -1;
	enum root_outcome outcome;
	char link[32];

	TRY(root_open(program->pid, path, &outcome, &fd));
	if (outcome != ROOT_opened) {
		*ret = NULL;
		return NULL;
	}
	_cleanup_free_ char *real = NULL;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	char target[PATH_MAX], root[PATH_MAX], root_path[32];
	ssize_t length = readlink(link, target, sizeof(target) - 1);
	target[length < 0 ? 0 : length] = 0;
	(void)snprintf(root_path, sizeof(root_path), "/proc/%d/root", program->pid);
	length = program->pid ? readlink(root_path, root, sizeof(root) - 1) : 0;
	root[length < 0 ? 0 : length] = 0;
	size_t skip = root[0] && root[1] && str_starts(target, root) ? strlen(root) : 0;
	// Nothing of it is the process's if it is not an absolute path.
	TRY(str_copy(&real, target[skip] == '/' ? target + skip : path));
	*ret = take(real);
	return NULL;
}

struct error *program_path(const struct program *program, const char *path, char **ret)
{
	_cleanup_free_ char *joined = NULL;
	_cleanup_free_ char *real = NULL;

	TRY(join(program, path, &joined));
	TRY(resolve(program, joined, &real));
	*ret = real ? take(real) : take(joined);
	return NULL;
}

struct error *program_module(const struct program *program, const char *module, char **ret)
{
	_cleanup_free_ char *name = strndup(module, strcspn(module, ":"));
	_cleanup_free_ char *path = NULL;
	_cleanup_free_ char *package = NULL;
	_cleanup_free_ char *joined = NULL;

	if (!name)
		return error_oom();
	if (str_ends(name, ".py"))
		return program_path(program, name, ret);
	for (char *at = name; name[0] != '/' && *at; at++)
		*at = *at == '.' ? '/' : *at;
	TRY(str_format(&path, "%s.py", name));
	TRY(join(program, path, &joined));
	TRY(resolve(program, joined, ret));
	if (*ret)
		return NULL;
	free(take(path));
	TRY(str_format(&path, "%s/__init__.py", name));
	TRY(join(program, path, &package));
	TRY(resolve(program, package, ret));
	if (!*ret)
		*ret = take(joined);
	return NULL;
}

struct error *program_file(const struct program *program, const char *path, char **ret)
{
	_cleanup_free_ char *joined = NULL;
	_cleanup_close_ int fd = -1;
	enum root_outcome outcome;
	size_t size;

	TRY(join(program, path, &joined));
	TRY(root_open(program->pid, joined, &outcome, &fd));
	*ret = NULL;
	if (outcome == ROOT_opened)
		// Too large, or a disk's failure: it says nothing then.
		error_free(file_read_fd(fd, joined, PROGRAM_FILE_MAX, ret, &size));
	return NULL;
}

struct error *program_variable(const struct program *program, const char *name, char **ret)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0, length = strlen(name);

	*ret = NULL;
	if (program->pid)
		TRY(read_part(program->pid, "environ", ENVIRON_BYTES_MAX, &text, &size));
	for (size_t at = 0; at < size; at += strlen(text + at) + 1)
		if (str_starts(text + at, name) && text[at + length] == '=')
			return str_copy(ret, text + at + length + 1);
	return NULL;
}

/* Cut blanks off both ends of LINE. */
static char *trim(char *line)
{
	line += strspn(line, " \t\r\f");
	size_t length = strlen(line);
	while (length && strchr(" \t\r\f", line[length - 1]))
		line[--length] = 0;
	return line;
}

struct error *program_setting(const char *text, const char *section, const char *key, char **ret)
{
	_cleanup_free_ char *copy = NULL;
	bool inside = !section;
	char *rest, *line;

	*ret = NULL;
	TRY(str_copy(&copy, text));
	for (rest = copy; (line = strsep(&rest, "\n"));) {
		line = trim(line);
		size_t length = strlen(line);
		if (section && line[0] == '[' && line[length - 1] == ']') {
			line[length - 1] = 0;
			inside = !strcmp(trim(line + 1), section);
			continue;
		}
		size_t name = strcspn(line, "=: \t");
		if (!inside || !line[0] || strchr("#;!", line[0]) || name != strlen(key) ||
		    strncmp(line, key, name) != 0)
			continue;
		char *value = line + name + strspn(line + name, " \t");
		value += *value == '=' || *value == ':';
		return str_copy(ret, trim(value));
	}
	return NULL;
}
