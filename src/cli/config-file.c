/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of configuration files. */
#include "cli/config-file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"

#define BLANKS " \t\r\v\f"

struct error *config_file_open(const char *name, struct config_file *ret)
{
	_cleanup_free_ char *text = NULL;
	size_t size;

	TRY(file_read(AT_FDCWD, name, CONFIG_FILE_MAX, &text, &size));
	if (memchr(text, 0, size))
		return error_new("%s: is no text: it has a NUL byte", name);
	*ret = (struct config_file){.name = name, .next = text};
	ret->text = take(text);
	return NULL;
}

void config_file_deinit(struct config_file *file)
{
	free(file->text);
	*file = (struct config_file)CONFIG_FILE_INIT;
}

/* TEXT without blanks around it; it is cut. */
static char *strip(char *text)
{
	text += strspn(text, BLANKS);
	for (size_t end = strlen(text); end && strchr(BLANKS, text[end - 1]); end--)
		text[end - 1] = 0;
	return text;
}

/* A comment begins at the text's beginning or behind a blank. */
static bool is_comment(const char *text)
{
	return *text == '#' || *text == ';';
}

/* A value in quotes, without them; NULL: TEXT is not just that and perhaps a comment. */
static char *unquote(char *text)
{
	char *end = *text == '"' || *text == '\'' ? strchr(text + 1, *text) : NULL;

	if (!end)
		return NULL;
	const char *rest = end + 1 + strspn(end + 1, BLANKS);
	if (*rest && !(rest > end + 1 && is_comment(rest)))
		return NULL;
	*end = 0;
	return text + 1;
}

static char *read_value(char *text)
{
	char *quoted = unquote(text);

	if (quoted)
		return quoted;
	for (char *at = text; *at; at++)
		if (is_comment(at) && (at == text || strchr(BLANKS, at[-1]))) {
			*at = 0;
			break;
		}
	return strip(text);
}

/* TEXT is a line without its blanks, and neither empty nor a comment or section. */
static bool read_line(char *text, struct config_line *ret)
{
	size_t length = strcspn(text, ":=;#" BLANKS);
	char *rest = text + length + strspn(text + length, BLANKS);

	if (!length || (rest == text + length && is_comment(rest)))
		return false;
	*ret = (struct config_line){.key = text};
	if (*rest == ':' || *rest == '=')
		ret->value = read_value(rest + 1 + strspn(rest + 1, BLANKS));
	else if (*rest && !is_comment(rest))
		ret->value = read_value(rest);
	text[length] = 0;
	return true;
}

struct error *config_file_next(struct config_file *file, struct config_line *ret)
{
	while (*file->next) {
		char *text = file->next;
		size_t length = strcspn(text, "\n");
		file->next = text + length + (text[length] == '\n');
		text[length] = 0;
		file->line++;
		text = strip(text);
		if (!*text || is_comment(text) || *text == '[' || str_starts(text, "---"))
			continue;
		if (!read_line(text, ret))
			return error_new("%s:%u: expected a line like name = value", file->name,
					 file->line);
		return NULL;
	}
	*ret = (struct config_line){0};
	return NULL;
}
