/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the token. It is never printed. */
#include "cli/token.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

enum { TOKEN_MAX = 4096 };

static struct error *read_file(const char *path, char **ret)
{
	_cleanup_free_ char *text = NULL;
	size_t size;

	TRY(file_read(AT_FDCWD, path, TOKEN_MAX, &text, &size));
	while (size && isspace((unsigned char)text[size - 1]))
		text[--size] = 0;
	if (!size || strlen(text) != size)
		return error_new("%s holds no token", path);
	*ret = take(text);
	return NULL;
}

struct error *token_read(const char *token, const char *path, char **ret)
{
	_cleanup_token_ char *copy = NULL;

	TRY(token ? str_copy(&copy, token) : read_file(path, &copy));
	// As long as it was, so that the words behind it stay where they are.
	if (token)
		memset((char *)token, 'x', strlen(token));
	*ret = take(copy);
	return NULL;
}

void token_free(char *token)
{
	if (token)
		explicit_bzero(token, strlen(token));
	free(token);
}
