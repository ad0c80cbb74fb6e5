/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and cutting the kernel's text. What the fields mean is for the caller. */
#include "proc/proctext.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/file.h"

bool proctext_is_gone(int code)
{
	return code == ENOENT || code == ESRCH;
}

struct error *proctext_read(const char *path, size_t max, char **ret)
{
	size_t size;
	struct error *err = file_read(AT_FDCWD, path, max, ret, &size);

	if (err && proctext_is_gone(error_code(err))) {
		error_free(err); // it has ended: the caller sees it by the NULL
		*ret = NULL;
		return NULL;
	}
	return err;
}

const char *proctext_skip_blanks(const char *text)
{
	return text + strspn(text, " \t");
}

bool proctext_number(const char *text, uint64_t *ret, const char **ret_end)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	*ret_end = end;
	return !errno && (!*end || strchr(" \t\n", *end));
}

const char *proctext_stat_name(const char *text, char *comm, size_t room)
{
	// The name may hold blanks and parentheses; what follows it may not.
	const char *open = strchr(text, '('), *close = strrchr(text, ')');

	if (!open || !close || close < open)
		return NULL;
	size_t length = (size_t)(close - open - 1);
	if (length >= room)
		length = room - 1;
	memcpy(comm, open + 1, length);
	comm[length] = 0;
	return close + 1;
}

bool proctext_stat_number(const char *after, unsigned number, uint64_t *ret)
{
	const char *end;

	for (unsigned field = 3; field < number; field++) {
		after = proctext_skip_blanks(after);
		after += strcspn(after, " \t\n");
	}
	return proctext_number(proctext_skip_blanks(after), ret, &end);
}

const char *proctext_line(const char *text, const char *name)
{
	size_t length = strlen(name);

	while (text && (strncmp(text, name, length) || text[length] != ':')) {
		text = strchr(text, '\n');
		text += text ? 1 : 0;
	}
	return text ? proctext_skip_blanks(text + length + 1) : NULL;
}
